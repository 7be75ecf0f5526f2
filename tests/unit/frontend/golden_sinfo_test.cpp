#include "frontend/slurm/sinfo_render.h"
#include "tests/unit/frontend/golden_support.h"

namespace tutti::slurm::golden {
namespace {

// node03 down and node04 drained by root; both were promised to a waiting job before.
StateView broken() {
  StateView view = jobs_31_to_35();
  NodeState& down = view.nodes[2].state;
  down.down = true;
  down.reason = "lost link";
  down.reason_at = at(20, 1, 26);
  NodeState& drained = view.nodes[3].state;
  drained.drained = true;
  drained.reason = "bad fan";
  drained.reason_at = at(20, 1, 26);
  return view;
}

TEST(GoldenSinfo, AllListings) {
  StateView good = jobs_31_to_35(), bad = broken();
  auto run = [](const StateView& view, Instant now, auto change) {
    return [&view, now, change] {
      SinfoOptions o;
      o.times = times(now);
      change(o);
      return render_sinfo(view, o);
    };
  };
  using O = SinfoOptions;
  auto nothing = [](O&) {};
  auto by_node_long = [](O& o) { o.by_node = o.long_form = true; };
  std::string names = "NodeList,Gres:24,GresUsed:40,StateLong,CPUsState,AllocMem,Reason";
  Instant first = at(20, 1, 26);
  std::vector<Case> cases = {
      {"sinfo", 0, run(good, first, nothing)},
      {"sinfo -N", 0, run(good, first, [](O& o) { o.by_node = true; })},
      {"sinfo -l", 0, run(good, first, [](O& o) { o.long_form = true; })},
      {"sinfo -N -l", 0, run(good, first, by_node_long)},
      {"sinfo -s", 0, run(good, first, [](O& o) { o.summarize = true; })},
      {"sinfo", 1, run(bad, at(20, 1, 28), nothing)},
      {"sinfo -R", 0, run(bad, at(20, 1, 28), [](O& o) { o.reasons = true; })},
      // Slurm lists the partitions of a node in no fixed order.
      {"sinfo -N -l", 1, run(bad, at(20, 1, 28), by_node_long), Match::kAnyOrderOfLines},
      {"sinfo -h -N -O " + names, 0,
       run(bad, at(20, 1, 28),
           [=](O& o) {
             o.no_header = o.by_node = true;
             o.name_format = names;
           })},
      {"sinfo -p nosuch", 0, run(bad, at(20, 1, 28), [](O& o) { o.partitions = {"nosuch"}; })},
  };
  compare("sinfo.txt", cases,
          {// CPU_LOAD and FREE_MEM are N/A; see SinfoWide below for the other columns.
           "sinfo -o \"%P|%a|%l|%D|%t|%T|%N|%c|%m|%G|%C|%O|%e|%E|%H|%u\"",
           // The lab's nodes are all "localhost".
           "sinfo -t idle,mix -h -o %n",
           // v0.0.42 instead of 0.0.38.
           "sinfo --json | jq -c \"keys,(.nodes[0]|keys)\"",
           "sinfo --json | jq \".nodes[]|select(.name==\\\"node01\\\")\""});
}

TEST(GoldenSinfo, WideExceptLoadAndFreeMemory) {
  StateView bad = broken();
  SinfoOptions o;
  o.times = times(at(20, 1, 28));
  o.format = "%P|%a|%l|%D|%t|%T|%N|%c|%m|%G|%C|%O|%e|%E|%H|%u";
  for (Command& command : load("sinfo.txt")) {
    if (command.line != "sinfo -o \"" + o.format + "\"") continue;
    for (std::string measured : {"|10.18|15975-15976|", "|10.18|15975|"})
      for (std::size_t p; (p = command.text.find(measured)) != std::string::npos;)
        command.text.replace(p, measured.size(), "|N/A|N/A|");
    EXPECT_EQ(command.text, render_sinfo(bad, o).text);
    return;
  }
  FAIL() << "no such command";
}

}  // namespace
}  // namespace tutti::slurm::golden
