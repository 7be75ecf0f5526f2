#include "frontend/slurm/config.h"

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <sstream>

#include "base/text.h"

namespace tutti::slurm {
namespace {

using Files = std::map<std::string, std::string>;

ClusterConfig read(const Files& files) {
  return read_cluster_config("/etc/slurm/slurm.conf",
                             [&](const std::string& path) -> Result<std::string> {
                               auto found = files.find(path.substr(path.rfind('/') + 1));
                               if (found == files.end())
                                 return fail(ErrorCode::kNotFound, "not there");
                               return found->second;
                             });
}
std::string told(const ClusterConfig& config) {
  std::string out;
  for (const Diagnostic& one : config.diagnostics)
    out += fmt::format("{}{}:{}:{} {}: {}\n", one.severity == Severity::kError ? "E " : "W ",
                       one.span.file.substr(one.span.file.rfind('/') + 1), one.span.line,
                       one.span.column, one.code, one.message);
  return out;
}
std::string file_text(const std::string& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

TEST(SlurmConf, OfTheExampleDescribesItsFourNodes) {
  std::string folder = TUTTI_SOURCE_DIR "/examples/slurm/";
  ClusterConfig config = read({{"slurm.conf", file_text(folder + "slurm.conf")},
                               {"gres.conf", file_text(folder + "gres.conf")}});
  EXPECT_EQ(told(config), "");
  EXPECT_TRUE(config.auto_detect);
  const ClusterSpec& spec = config.spec;
  EXPECT_EQ(spec.name, "kentino-lab");
  ASSERT_EQ(spec.nodes.size(), 4U);
  EXPECT_EQ(spec.nodes[3].name, "node04");
  EXPECT_EQ(spec.nodes[0].cpus, 128U);
  EXPECT_EQ(spec.nodes[0].sockets, 2U);
  EXPECT_EQ(spec.nodes[0].memory_mib, 1024000U);
  ASSERT_EQ(spec.nodes[0].devices.size(), 8U);
  EXPECT_EQ(spec.nodes[0].devices[7].type, "rtxpro6000");
  EXPECT_EQ(spec.nodes[0].devices[7].file, "/dev/nvidia7");
  ASSERT_EQ(spec.partitions.size(), 2U);
  EXPECT_TRUE(spec.partitions[0].is_default);
  EXPECT_EQ(spec.partitions[0].nodes.size(), 3U);
  EXPECT_EQ(spec.partitions[0].max_time, Duration::seconds(48 * 3600));
  EXPECT_EQ(spec.partitions[1].priority_tier, 10U);
  EXPECT_EQ(spec.priority.fair_share, 10000U);
  EXPECT_EQ(spec.priority.age, 1000U);
  EXPECT_EQ(spec.priority.job_size, 0U);
  EXPECT_EQ(spec.priority.half_life, Duration::seconds(7 * 86400));
  EXPECT_TRUE(spec.gpus_in_accounting);
  EXPECT_EQ(spec.as_given.at("SelectType"), "select/cons_tres");
}

TEST(SlurmConf, DefaultsIncludesAndContinuations) {
  ClusterConfig config =
      read({{"slurm.conf",
             "ClusterName=c # a name\n"
             "KillWait=5\nMinJobAge=60\nMaxArraySize=1001\nDefMemPerCPU=2048\n"
             "include nodes.conf\n"
             "PartitionName=DEFAULT MaxTime=60 State=UP\n"
             "PartitionName=all Nodes=ALL Default=YES\n"
             "PartitionName=big Nodes=big[1-2],fast \\\n"
             "   MaxTime=INFINITE OverSubscribe=EXCLUSIVE MaxNodes=2 AllowGroups=a,b\n"},
            {"nodes.conf",
             "NodeName=DEFAULT CPUs=8 RealMemory=16000 Feature=a,b\n"
             "NodeSet=fast Feature=quick\n"
             "NodeName=n[1-2] NodeAddr=10.0.0.[1-2]\n"
             "NodeName=q1 Feature=quick State=DOWN Reason=\"bad disk\"\n"
             "NodeName=later State=FUTURE\n"
             "NodeName=big[1-2] CPUs=64 State=CLOUD\n"}});
  EXPECT_EQ(told(config), "");
  const ClusterSpec& spec = config.spec;
  ASSERT_EQ(spec.nodes.size(), 5U);
  EXPECT_EQ(spec.nodes[1].address, "10.0.0.2");
  EXPECT_EQ(spec.nodes[1].features, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(spec.nodes[2].initial_drain_reason, "bad disk");
  EXPECT_EQ(spec.nodes[3].kind, NodeKind::kPlanned);
  EXPECT_EQ(spec.nodes[3].cpus, 64U);
  EXPECT_EQ(spec.kill_wait, Duration::seconds(5));
  EXPECT_EQ(spec.min_job_age, Duration::seconds(60));
  EXPECT_EQ(spec.max_array_index, 1000U);
  EXPECT_EQ(spec.default_memory_mib_per_cpu, 2048U);
  ASSERT_EQ(spec.partitions.size(), 2U);
  EXPECT_EQ(spec.partitions[0].nodes.size(), 5U);
  EXPECT_EQ(spec.partitions[0].max_time, Duration::minutes(60));
  EXPECT_EQ(spec.partitions[1].nodes, (std::vector<std::string>{"big1", "big2", "q1"}));
  EXPECT_FALSE(spec.partitions[1].max_time.has_value());
  EXPECT_TRUE(spec.partitions[1].exclusive);
  EXPECT_EQ(spec.partitions[1].allow_groups, (std::vector<std::string>{"a", "b"}));
}

TEST(SlurmConf, ReportsEveryProblemWithItsPlace) {
  ClusterConfig config =
      read({{"slurm.conf",
             "ClusterNam=c\n"
             "KillWait=soon\n"
             "GresTypes=gpu\n"
             "Prolog=/etc/prolog\n"
             "just words\n"
             "NodeName=n[1-2] CPUs=8 Sockets=2 CoresPerSocket=3 Gres=gpu:2,fpga:1\n"
             "NodeName=n2 CPUs=8 State=BROKEN\n"
             "PartitionName=a Nodes=n[1-9] MaxTime=long Default=perhaps\n"
             "  Include missing.conf\n"}});
  EXPECT_FALSE(config.usable());
  EXPECT_EQ(
      told(config),
      "E slurm.conf:5:1 config-syntax: expected KEY=VALUE, not \"just\"\n"
      "E slurm.conf:5:6 config-syntax: expected KEY=VALUE, not \"words\"\n"
      "E slurm.conf:9:3 config-include: cannot read the included file /etc/slurm/missing.conf: "
      "not there\n"
      "E slurm.conf:1:1 config-unknown-key: \"ClusterNam\" is no key of slurm.conf: did you "
      "mean ClusterName?\n"
      "E slurm.conf:2:1 config-value: KillWait: expected a whole number, not \"soon\"\n"
      "W slurm.conf:4:1 config-unsupported: Prolog=/etc/prolog is understood but has no "
      "effect\n"
      "E slurm.conf:6:51 config-gres: Gres: fpga is not among GresTypes=gpu\n"
      "E slurm.conf:6:17 config-node: CPUs=8 does not fit 2 sockets x 3 cores x 1 threads = "
      "6\n"
      "E slurm.conf:7:20 config-value: State: expected UNKNOWN, CLOUD, DOWN, DRAIN, FAIL or "
      "FUTURE, not \"broken\"\n"
      "E slurm.conf:7:1 config-node: node n2 is described twice\n"
      "E slurm.conf:8:17 config-partition: Nodes: no NodeName line describes n3 and 6 more\n"
      "E slurm.conf:8:30 config-value: MaxTime: " +
          std::string(config.diagnostics[11].message.substr(9)) +
          "\n"
          "E slurm.conf:8:43 config-value: Default: expected YES or NO, not \"perhaps\"\n");
}

TEST(SlurmConf, AnIncludeOfItselfEnds) {
  ClusterConfig config = read({{"slurm.conf", "include slurm.conf\n"}});
  EXPECT_FALSE(config.usable());
  EXPECT_NE(told(config).find("does slurm.conf include itself?"), std::string::npos)
      << told(config);
}

TEST(SlurmConf, ThatIsMissingIsOneError) {
  EXPECT_EQ(told(read({})), "E slurm.conf:0:0 config-include: there is no such file\n");
}

TEST(GresConf, MustAgreeWithSlurmConf) {
  Files files{{"slurm.conf",
               "GresTypes=gpu\nNodeName=n[1-2] CPUs=8 Gres=gpu:h100:4\n"
               "PartitionName=a Nodes=ALL\n"},
              {"gres.conf", "NodeName=n[1-2] Name=gpu Type=h100 File=/dev/nvidia[0-2]\n"}};
  EXPECT_EQ(told(read(files)),
            "E slurm.conf:2:24 config-gres: n1: Gres=gpu:h100:4 here, but gres.conf has 3 of that "
            "kind and type\n");
  files["gres.conf"] = "Name=gpu Type=h100 File=/dev/nvidia[0-1]\nName=gpu Type=h100 Count=2\n";
  ClusterConfig good = read(files);
  EXPECT_EQ(told(good), "");
  ASSERT_EQ(good.spec.nodes[1].devices.size(), 4U);
  EXPECT_EQ(good.spec.nodes[1].devices[1].file, "/dev/nvidia1");
  EXPECT_EQ(good.spec.nodes[1].devices[3].file, "");
  files["gres.conf"] = "NodeName=n1 Name=gpu Type=a100 Count=4\nAutoDetect=nvml\n";
  EXPECT_EQ(told(read(files)),
            "E gres.conf:1:13 config-gres: n1: Name=gpu Type=a100 here, but slurm.conf gives the "
            "node no such Gres\n");
  // Without the file the devices are those that slurm.conf declares.
  files.erase("gres.conf");
  ClusterConfig declared = read(files);
  EXPECT_EQ(told(declared), "");
  EXPECT_EQ(declared.spec.nodes[0].devices.size(), 4U);
}

ClusterConfig with_topology(const std::string& topology, const std::string& extra = "") {
  return read({{"slurm.conf", extra + "NodeName=n[1-6] CPUs=1\nPartitionName=a Nodes=ALL\n"},
               {"cgroup.conf", "ConstrainDevices=yes\n"},
               {"topology.conf", topology}});
}

TEST(TopologyConf, ATreeOfSwitchesBecomesLabels) {
  ClusterConfig config = with_topology(
      "SwitchName=s[0-1] Switches=x\n"  // wrong, see below
      "SwitchName=leaf1 Nodes=n[1-2]\nSwitchName=leaf2 Nodes=n[3-4]\nSwitchName=leaf3 Nodes=n[5-6]\n");
  EXPECT_FALSE(config.usable());
  config = with_topology(
      "SwitchName=leaf1 Nodes=n[1-2]\nSwitchName=leaf2 Nodes=n[3-4] LinkSpeed=10\n"
      "SwitchName=leaf3 Nodes=n[5-6]\nSwitchName=mid Switches=leaf[1-2]\n"
      "SwitchName=top Switches=mid,leaf3\n");
  EXPECT_EQ(told(config), "");
  EXPECT_EQ(config.spec.topology_levels,
            (std::vector<std::string>{"switch2", "switch1", "switch0"}));
  using Labels = std::map<std::string, std::string>;
  EXPECT_EQ(config.spec.nodes[2].labels,
            (Labels{{"switch2", "top"}, {"switch1", "mid"}, {"switch0", "leaf2"}}));
  // A leaf right below the top stands for the level it has not.
  EXPECT_EQ(config.spec.nodes[5].labels,
            (Labels{{"switch2", "top"}, {"switch1", "leaf3"}, {"switch0", "leaf3"}}));
}

TEST(TopologyConf, BlocksAndPlanningBlocksBecomeLabels) {
  ClusterConfig config = with_topology(
      "BlockName=b1 Nodes=n[1-2]\nBlockName=b2 Nodes=n[3-4]\nBlockName=b3 Nodes=n[5-6]\n"
      "BlockSizes=2,4\n");
  EXPECT_EQ(told(config), "");
  EXPECT_EQ(config.spec.topology_levels, (std::vector<std::string>{"block2", "block"}));
  EXPECT_EQ(config.spec.nodes[3].labels.at("block2"), "b1+");
  EXPECT_EQ(config.spec.nodes[4].labels.at("block2"), "b3+");
  EXPECT_EQ(config.spec.nodes[4].labels.at("block"), "b3");
}

TEST(TopologyConf, AllThatIsWrongIsToldWithItsPlace) {
  EXPECT_EQ(told(with_topology("SwitchName=a Nodes=n[1-2]\n"
                               "SwitchName=b Nodes=n[2-3],n9\n"
                               "SwitchName=b Nodes=n4\n"
                               "SwitchName=c Switches=d\n"
                               "SwitchName=e\n"
                               "SwitchName=f Links=2 Nodes=n5\n")),
            "E topology.conf:2:14 config-topology: node n2 is in two places\n"
            "E topology.conf:2:14 config-topology: Nodes: slurm.conf has no node n9\n"
            "E topology.conf:3:1 config-topology: switch b is described twice\n"
            "E topology.conf:5:1 config-topology: switch e: expected either Nodes or Switches\n"
            "E topology.conf:6:14 config-unknown-key: \"Links\" is no key of topology.conf here: "
            "expected Nodes, Switches or LinkSpeed\n"
            "E topology.conf:1:1 config-topology: the file misses a node of slurm.conf: n6\n"
            "E topology.conf:4:1 config-topology: switch c: there is no switch d\n");
  EXPECT_EQ(told(with_topology("SwitchName=a Nodes=n[1-6]\nSwitchName=b Switches=c\n"
                               "SwitchName=c Switches=b\n")),
            "E topology.conf:2:1 config-topology: switch b is below itself, or below more than 16 "
            "others\n");
  EXPECT_EQ(told(with_topology("BlockName=a Nodes=n[1-3]\nBlockName=b Nodes=n[4-6]\n"
                               "BlockSizes=4,12\n")),
            "E topology.conf:1:1 config-topology: block a has 3 nodes, fewer than the base block "
            "size of 4\n"
            "E topology.conf:2:1 config-topology: block b has 3 nodes, fewer than the base block "
            "size of 4\n"
            "E topology.conf:3:1 config-topology: BlockSizes: 12 is not 4 times a power of two\n");
}

TEST(TopologyConf, IsLeftAsideWhereThePluginIsAnother) {
  ClusterConfig config =
      with_topology("SwitchName=s0 Nodes=n1\n", "TopologyPlugin=topology/flat\n");
  EXPECT_EQ(told(config),
            "W topology.conf:1:1 config-unsupported: topology.conf is not used with "
            "TopologyPlugin=topology/flat\n");
  EXPECT_TRUE(config.spec.topology_levels.empty());
}

}  // namespace
}  // namespace tutti::slurm
