#include "frontend/slurm/scontrol_show.h"
#include "tests/unit/frontend/golden_support.h"

namespace tutti::slurm::golden {
namespace {

ShowOptions options(Instant now) {
  ShowOptions o;
  o.times = times(now);
  return o;
}

void replace(std::string& text, std::string_view from, std::string_view to) {
  for (std::size_t p = 0; (p = text.find(from, p)) != std::string::npos; p += to.size())
    text.replace(p, from.size(), to);
}

TEST(GoldenScontrol, Show) {
  StateView view = jobs_31_to_35();
  view.now = at(20, 1, 2);  // the last pass, as LastSchedEval of the waiting job
  for (NodeView& node : view.nodes) node.state.kernel = "Linux KERNEL x86_64";
  auto job = [&](std::uint32_t id, bool one_line, bool details) {
    return [&view, id, one_line, details] {
      ShowOptions o = options(at(20, 1, 22));
      o.one_line = one_line;
      o.details = details;
      return show_jobs(view, {{id, {}, {}}}, o);
    };
  };
  auto node = [&](const std::string& name) {
    return [&view, name] {
      Output out = show_nodes(view, {name}, options(at(20, 1, 22)));
      // What no agent reports yet, and the lab's several nodes on one host.
      replace(out.text, "CPULoad=N/A", "CPULoad=10.18");
      replace(out.text, "FreeMem=N/A", "FreeMem=15976");
      replace(out.text, "NodeHostName=node01 Port=0", "NodeHostName=localhost Port=17001");
      return out;
    };
  };
  auto partition = [&](const std::string& name) {
    return [&view, name] { return show_partitions(view, {name}, options(at(20, 1, 22))); };
  };
  std::vector<Case> cases = {
      {"scontrol show job 31", 0, job(31, false, false)},
      {"scontrol show job -d 31", 0, job(31, false, true)},
      {"scontrol -o show job 32", 0, job(32, true, false)},
      {"scontrol show job 99999", 0, job(99999, false, false)},
      {"scontrol show node node01", 0, node("node01")},
      {"scontrol show node nosuch", 0, node("nosuch")},
      {"scontrol show partition batch", 0, partition("batch")},
      {"scontrol show partition nosuch", 0, partition("nosuch")},
      {"scontrol show step 31", 0,
       [&] {
         Output out = show_steps(view, {{31, {}, {}}}, options(at(20, 1, 22)));
         // Which srun started a step is not kept.
         std::size_t last = out.text.rfind("(null):0");
         if (last != std::string::npos) out.text.replace(last, 8, "HOST:4847");
         return out;
       }},
      {"scontrol ping", 0, [] { return show_ping("HOST", Reachable::kUp); }},
      {"scontrol show hostnames \"node[01-03,07],gpu[1-2]x[08-10]\"", 0,
       [] { return show_hostnames("node[01-03,07],gpu[1-2]x[08-10]"); }},
      {"scontrol show hostlist node01,node02,node03,node07,gpu1,gpu10", 0,
       [] { return show_hostlist("node01,node02,node03,node07,gpu1,gpu10"); }},
      {"scontrol show hostlistsorted node03,node01,node02", 0,
       [] { return show_hostlistsorted("node03,node01,node02"); }},
  };
  compare("scontrol-show.txt", cases,
          {// The file has this text only up to OS=, which the lab scrubbed.
           "scontrol -o show node node04",
           // Not show, or said by the command line itself.
           "scontrol update jobid=33 timelimit=20 name=renamed",
           "scontrol hold 32; scontrol release 32", "scontrol update jobid=31 timelimit=9-0",
           "scontrol update nodename=node01 state=drain reason=x",
           "scontrol write batch_script 31 -", "scontrol bogus", "scontrol show bogus"});
}

TEST(GoldenScontrol, OneLineNodeBeginsAsSlurms) {
  StateView view = jobs_31_to_35();
  for (NodeView& node : view.nodes) node.state.kernel = "Linux KERNEL x86_64";
  ShowOptions o = options(at(20, 1, 22));
  o.one_line = true;
  Output out = show_nodes(view, {"node04"}, o);
  replace(out.text, "CPULoad=N/A", "CPULoad=10.18");
  replace(out.text, "NodeHostName=node04 Port=0", "NodeHostName=localhost Port=17004");
  for (const Command& command : load("scontrol-show.txt")) {
    if (command.line != "scontrol -o show node node04") continue;
    std::string start = command.text.substr(0, command.text.size() - 1);
    EXPECT_EQ(start, out.text.substr(0, start.size()));
    EXPECT_EQ(1, std::count(out.text.begin(), out.text.end(), '\n'));
    return;
  }
  FAIL() << "no such command";
}

TEST(GoldenScontrol, ArrayElement) {
  StateView view = array_19();
  std::vector<Case> cases = {{"scontrol show job 19_1", 0, [&] {
                                ShowOptions o = options(at(20, 0, 15));
                                return show_jobs(view, {{19, 1, {}}}, o);
                              }}};
  std::vector<std::string> rest;
  for (const Command& command : load("array-dependency.txt")) rest.push_back(command.line);
  compare("array-dependency.txt", cases, rest);
}

TEST(Scontrol, ConfigurationHasWhatClientsRead) {
  StateView view = cluster();
  view.spec->as_given["MailProg"] = "/bin/mail";
  std::string text = show_config(view, options(at(20, 0, 0))).text;
  EXPECT_NE(text.find("MinJobAge               = 300 sec\n"), std::string::npos) << text;
  EXPECT_NE(text.find("MaxArraySize            = 1000001\n"), std::string::npos);
  EXPECT_NE(text.find("ClusterName             = lab\n"), std::string::npos);
  EXPECT_NE(text.find("MailProg                = /bin/mail\n"), std::string::npos);
  EXPECT_NE(text.find("\nSlurmctld(primary) at HOST is UP\n"), std::string::npos);
}

TEST(Scontrol, EmptyTables) {
  EXPECT_EQ(show_reservations(StateView{}, {}, ShowOptions{}).text, "No reservations in the system\n");
  EXPECT_EQ(show_reservations(StateView{}, {"x"}, ShowOptions{}).exit_code, 1);
  EXPECT_EQ(show_licenses().text, "No licenses configured in Slurm.\n");
  StateView empty = cluster();
  EXPECT_EQ(show_jobs(empty, {}, options(at(20, 0, 0))).text, "No jobs in the system\n");
  EXPECT_EQ(show_hostnames("n[1-").exit_code, 1);
  EXPECT_EQ(show_ping("h", Reachable::kDown).exit_code, 1);
}

}  // namespace
}  // namespace tutti::slurm::golden
