#include "agent/virtual_cluster.h"

#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "agent/cgroups.h"
#include "agent/device_nodes.h"
#include "agent/namespaces.h"
#include "agent/process.h"
#include "tests/unit/agent/helper.h"

namespace tutti::agent {
namespace {

using namespace std::chrono_literals;

std::string shell(const std::string& script) {
  std::string text;
  FILE* pipe = ::popen(script.c_str(), "r");
  char buffer[512];
  while (std::size_t n = std::fread(buffer, 1, sizeof buffer, pipe)) text.append(buffer, n);
  ::pclose(pipe);
  return text;
}

// What must be the same before and after, and while a cluster is up.
std::string host_view() {
  return shell("cat /proc/net/dev | cut -d: -f1; cat /proc/mounts; ls /run/netns 2>&1; hostname");
}

// A cluster of `count` nodes with `gpus` declared GPUs each; everything goes with it.
class Cluster {
 public:
  Cluster(std::uint32_t count, std::uint32_t gpus) {
    static int number = 0;
    folder_ = std::filesystem::temp_directory_path() /
              fmt::format("tutti-cluster-{}-{}", ::getpid(), number++);
    std::filesystem::create_directories(folder_);
    std::filesystem::permissions(folder_, std::filesystem::perms(0777));
    std::vector<std::string> names;
    for (std::uint32_t i = 0; i < count; ++i) names.push_back(fmt::format("node{:02}", i + 1));
    std::ofstream(folder_ / "hosts") << hosts_text(names);
    const std::vector<std::string> command{"/proc/self/exe", "agent-test-helper", "node-holder"};
    auto started = start_switch({command, probe_namespaces().through_user_namespace});
    if (!started) {
      error_ = started.error().message;
      return;
    }
    bridge = *started;
    std::vector<VirtualNodeSpec> specs;
    for (std::uint32_t i = 0; i < count; ++i) {
      VirtualNodeSpec spec{
          command, bridge.process, names[i], i, folder_ / names[i], folder_ / "hosts", {}};
      std::filesystem::create_directory(spec.directory);
      for (std::uint32_t gpu = 0; gpu < gpus; ++gpu) {
        spec.devices.push_back(
            {fmt::format("/dev/nvidia{}", gpu), pick_gpu_major(), i * gpus + gpu, false});
      }
      specs.push_back(std::move(spec));
    }
    auto handles = start_nodes(specs);
    if (handles) {
      nodes = *handles;
    } else {
      error_ = handles.error().message;
    }
  }
  ~Cluster() {
    auto holders = std::vector{bridge.process};
    for (const auto& node : nodes) holders.push_back(node.process);
    auto stopped = stop_holders(holders);
    EXPECT_TRUE(stopped) << stopped.error().message;
    for (const auto& holder : holders) EXPECT_FALSE(is_alive(holder));
    std::filesystem::remove_all(folder_);
  }
  const std::string& error() const { return error_; }

  // Runs a shell script in a node, as an agent's child would: enters first, then starts it.
  std::string in_node(std::size_t index, const std::string& script) const {
    return run_helper({"enter", std::to_string(nodes[index].process.pid), script}).value();
  }

  HolderHandle bridge;
  std::vector<HolderHandle> nodes;

 private:
  std::filesystem::path folder_;
  std::string error_;
};

#define SKIP_WITHOUT_NAMESPACES()                              \
  if (const auto support = probe_namespaces(); !support.all()) \
  GTEST_SKIP() << fmt::format("{}", fmt::join(support.missing, "; "))

TEST(VirtualCluster, AddressesAreDistinctAndNotTheSwitchs) {
  EXPECT_EQ(node_address(0), "10.77.1.1");
  EXPECT_EQ(node_address(249), "10.77.1.250");
  EXPECT_EQ(node_address(250), "10.77.2.1");
  EXPECT_EQ(node_address(kMaxVirtualNodes - 1), "10.77.66.134");
  EXPECT_EQ(node_address6(0), "fd54:7574:7469::2");
  EXPECT_EQ(hosts_text({"a", "b"}),
            "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n"
            "10.77.0.1 tutti-controller\n10.77.1.1 a\n10.77.1.2 b\n"
            "fd54:7574:7469::2 a\nfd54:7574:7469::3 b\n");
}

TEST(VirtualCluster, ANodeIsAMachineOfItsOwnAndTheHostIsAsBefore) {
  SKIP_WITHOUT_NAMESPACES();
  const auto before = host_view();
  {
    Cluster cluster(2, 2);
    ASSERT_EQ(cluster.error(), "");
    EXPECT_EQ(host_view(), before);
    EXPECT_EQ(cluster.in_node(0, "hostname; cat /etc/hostname"), "node01\nnode01\n");
    EXPECT_EQ(cluster.in_node(1, "hostname"), "node02\n");
    EXPECT_EQ(cluster.in_node(0, "getent ahostsv4 node02 | head -n1 | cut -d' ' -f1"),
              "10.77.1.2\n");
    EXPECT_EQ(cluster.in_node(0, "cat /proc/net/dev | tail -n+3 | cut -d: -f1 | tr -d ' ' | sort"),
              "eth0\nlo\n");
    EXPECT_EQ(cluster.in_node(0, "ls -d /dev/nvidia* /dev/sd* /dev/vd* /dev/kmsg 2>/dev/null"),
              "/dev/nvidia0\n/dev/nvidia1\n");
    EXPECT_EQ(cluster.in_node(0,
                              "echo x > /dev/null && head -c 3 /dev/zero | wc -c; "
                              "test -c /dev/pts/ptmx && echo pts; echo mine > /dev/shm/file"),
              "3\npts\n");
    EXPECT_EQ(cluster.in_node(1, "ls /dev/shm"), "");
    EXPECT_FALSE(std::filesystem::exists("/dev/shm/file"));
    // Terminals work: script(1) opens /dev/ptmx and a slave.
    EXPECT_EQ(cluster.in_node(0, "script -qec 'tty | sed s/[0-9]*$//' /dev/null | tr -d '\\r'"),
              "/dev/pts/\n");
  }
  EXPECT_EQ(host_view(), before);
}

TEST(VirtualCluster, DeclaredGpusAreNodesThatNoDriverAnswers) {
  SKIP_WITHOUT_NAMESPACES();
  Cluster cluster(2, 2);
  ASSERT_EQ(cluster.error(), "");
  if (::geteuid() != 0) {
    ASSERT_FALSE(cluster.nodes[0].missing.empty());
    EXPECT_TRUE(cluster.nodes[0].missing[0].starts_with("GPU isolation: "));
    return;
  }
  EXPECT_TRUE(cluster.nodes[0].missing.empty()) << cluster.nodes[0].missing[0];
  EXPECT_EQ(cluster.in_node(1, "stat -c '%F %a %Hr %Lr' /dev/nvidia1"),
            fmt::format("character special file 666 {} 3\n", pick_gpu_major()));
  EXPECT_NE(cluster.in_node(1, "cat /dev/nvidia1 2>&1").find("No such device or address"),
            std::string::npos);
}

// The whole way a rank goes: into its step's cgroup and its node, holding GPU 0 of 8.
TEST(VirtualCluster, ARankInItsNodeOpensOnlyItsOwnGpu) {
  SKIP_WITHOUT_NAMESPACES();
  auto groups = open_cgroups(probe_cgroups(), fmt::format("rank{}", ::getpid()), "node02");
  if (::geteuid() != 0 || !groups->features().devices) {
    GTEST_SKIP() << fmt::format("{}", fmt::join(groups->features().missing, "; "));
  }
  Cluster cluster(2, 8);
  ASSERT_EQ(cluster.error(), "");
  JobLimits limits;
  limits.devices = standard_devices();
  limits.devices->push_back({'c', pick_gpu_major(), 8, "rwm"});  // node02's number 0
  ASSERT_TRUE(groups->create_job(1, limits));
  ASSERT_TRUE(groups->create_step(1, "0"));
  SpawnOptions options;
  options.cgroup_procs = groups->procs_files(1, "0");
  const auto script = fmt::format(
      "for i in 0 1 7; do cat /dev/nvidia$i 2>&1; done; mknod /dev/mine c {} 9; "
      "cat /dev/mine 2>&1; cat /dev/null; exit 0",
      pick_gpu_major());
  const auto holder = std::to_string(cluster.nodes[1].process.pid);
  EXPECT_EQ(run_helper({"enter", holder, script}, options).value(),
            "cat: /dev/nvidia0: No such device or address\n"
            "cat: /dev/nvidia1: Operation not permitted\n"
            "cat: /dev/nvidia7: Operation not permitted\n"
            "cat: /dev/mine: Operation not permitted\n");
  EXPECT_TRUE(groups->remove_job(1));
  EXPECT_TRUE(groups->remove_node());
}

TEST(VirtualCluster, NodesAndControllerReachEachOtherAndTwoClustersDoNotMeet) {
  SKIP_WITHOUT_NAMESPACES();
  Cluster one(2, 0);
  Cluster two(1, 0);
  ASSERT_EQ(one.error() + two.error(), "");
  auto listener = listen_in_switch(one.bridge.process, {std::string(kSwitchAddress), 29500});
  ASSERT_TRUE(listener) << listener.error().message;
  EXPECT_EQ(local_port(listener->get()).value(), 29500);
  // The same address and port in the other cluster, and on each node.
  auto other = listen_in_switch(two.bridge.process, {std::string(kSwitchAddress), 29500});
  ASSERT_TRUE(other) << other.error().message;
  EXPECT_TRUE(listen_in_switch(one.nodes[0].process, {"0.0.0.0", 29500}));
  EXPECT_TRUE(listen_in_switch(one.nodes[1].process, {"::", 29500}));
  EXPECT_FALSE(listen_in_switch(one.bridge.process, {std::string(kSwitchAddress), 29500}))
      << "taken already";
  const auto dial = [](const std::string& host) {
    return "bash -c 'exec 3<>/dev/tcp/" + host + "/29500 && echo connected' 2>/dev/null";
  };
  EXPECT_EQ(one.in_node(1, dial("tutti-controller")), "connected\n");
  EXPECT_GE(::accept4(listener->get(), nullptr, nullptr, SOCK_CLOEXEC), 0);
  EXPECT_EQ(::accept(other->get(), nullptr, nullptr), -1) << "nobody dialled that one";
  // From node to node over the bridge, both protocols.
  auto node = listen_in_switch(one.nodes[0].process, {"::", 29500});
  ASSERT_TRUE(node) << node.error().message;
  EXPECT_EQ(one.in_node(1, dial("node01")), "connected\n");
  EXPECT_EQ(one.in_node(1, dial(node_address6(0))), "connected\n");
  EXPECT_EQ(two.in_node(0, dial("10.77.1.1")), "") << "its own node01 has nobody listening";
}

TEST(VirtualCluster, AHolderKeepsNothingOfTheCallersAndEndsWhenTold) {
  SKIP_WITHOUT_NAMESPACES();
  Descriptor inheritable(::open("/dev/zero", O_RDONLY));
  Cluster cluster(1, 0);
  ASSERT_EQ(cluster.error(), "");
  const auto pid = cluster.nodes[0].process.pid;
  EXPECT_EQ(shell(fmt::format("readlink /proc/{}/fd/* | sort -u", pid)), "/dev/null\n");
  EXPECT_EQ(::getsid(pid), pid);
  EXPECT_TRUE(stop_holders({cluster.nodes[0].process}));
  EXPECT_FALSE(is_alive(cluster.nodes[0].process));
  auto entered = enter_node(cluster.nodes[0].process);
  ASSERT_FALSE(entered);
  EXPECT_EQ(entered.error().code, ErrorCode::kNotFound);
}

TEST(VirtualCluster, OneNodeThatCannotStartStopsAll) {
  SKIP_WITHOUT_NAMESPACES();
  Cluster cluster(0, 0);
  ASSERT_EQ(cluster.error(), "");
  const std::vector<std::string> command{"/proc/self/exe", "agent-test-helper", "node-holder"};
  const auto folder = std::filesystem::temp_directory_path() / fmt::format("nodes-{}", ::getpid());
  std::filesystem::create_directory(folder);
  std::ofstream(folder / "hosts") << "";
  VirtualNodeSpec good{command, cluster.bridge.process, "good", 0, folder, folder / "hosts", {}};
  VirtualNodeSpec bad{command, cluster.bridge.process, "bad", 1, "/nowhere", folder / "hosts", {}};
  auto nodes = start_nodes({good, bad});
  ASSERT_FALSE(nodes);
  EXPECT_EQ(nodes.error().message, "bad: making /nowhere/hostname: No such file or directory");
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), 0) << "only the switch is left";
  bad = good;
  bad.command = {"/bin/false"};
  nodes = start_nodes({bad});
  ASSERT_FALSE(nodes);
  EXPECT_EQ(nodes.error().message, "good: the holder process ended without an answer");
  bad.command = {"/nowhere/tutti"};
  EXPECT_FALSE(start_nodes({bad}));
  bad = good;
  bad.devices = {{"/etc/passwd", 1, 3, false}};
  nodes = start_nodes({bad});
  ASSERT_FALSE(nodes);
  EXPECT_EQ(nodes.error().message, "good: a device file must be below /dev/: /etc/passwd");
  std::filesystem::remove_all(folder);
}

// The same as an ordinary user: this program once more, with the rights of nobody.
TEST(VirtualCluster, WorksAsAnOrdinaryUserInsideOneUserNamespace) {
  if (::geteuid() != 0) GTEST_SKIP() << "the other tests run as an ordinary user already";
  SpawnOptions options;
  options.credentials = Credentials{65534, 65534, {}};
  options.environment = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin"};
  const auto support = run_helper({"probe"}, options).value();
  if (support != "network host-name mounts through-user\n") GTEST_SKIP() << support;
  options.program = "/proc/self/exe";
  options.arguments = {"agent_test",
                       "--gtest_filter=VirtualCluster.*:-*OrdinaryUser*:*OnlyItsOwnGpu",
                       "--gtest_brief=1"};
  options.descriptors = {{0, 0}, {1, 1}, {2, 2}};
  auto process = spawn(options);
  ASSERT_TRUE(process) << process.error().message;
  int status = 0;
  ::waitpid(process->pid, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST(UserNamespace, ARankSeesItsOwnUidAgainAndHasNoPowerOverTheNode) {
  if (::geteuid() != 0) GTEST_SKIP() << "takes another user's part, which needs root";
  SpawnOptions options;
  options.credentials = Credentials{65534, 65534, {}};
  options.environment = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin"};
  const auto seen = run_helper({"nested-user"}, options).value();
  if (seen.starts_with("refused")) GTEST_SKIP() << seen;
  EXPECT_EQ(seen, "0 65534 65534\n0000000000000000\n");
}

// Not an assertion: start-up cost, for the reader.
TEST(VirtualCluster, PrintsItsCost) {
  SKIP_WITHOUT_NAMESPACES();
  for (std::uint32_t count : {8U, 64U}) {
    const auto start = std::chrono::steady_clock::now();
    auto cluster = std::make_unique<Cluster>(count, 8);
    ASSERT_EQ(cluster->error(), "");
    const auto up = std::chrono::steady_clock::now();
    cluster.reset();
    const auto down = std::chrono::steady_clock::now();
    std::printf("             %u nodes: up %ld ms, down %ld ms\n", count,
                long(std::chrono::duration_cast<std::chrono::milliseconds>(up - start).count()),
                long(std::chrono::duration_cast<std::chrono::milliseconds>(down - up).count()));
  }
}

TEST(DeviceNodes, TakesAMajorThatNoDriverHas) {
  const auto path = std::filesystem::temp_directory_path() / fmt::format("devices-{}", ::getpid());
  std::ofstream(path)
      << "Character devices:\n  1 mem\n195 nvidia\n240 x\n\nBlock devices:\n241 y\n";
  EXPECT_EQ(pick_gpu_major(path), 241U);
  std::ofstream(path) << "Character devices:\n  1 mem\n\nBlock devices:\n195 y\n";
  EXPECT_EQ(pick_gpu_major(path), 195U);
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace tutti::agent
