#include <regex>

#include "frontend/slurm/sdiag_render.h"
#include "frontend/slurm/sprio_render.h"
#include "tests/unit/frontend/golden_support.h"

namespace tutti::slurm::golden {
namespace {

TEST(GoldenSprio, Listings) {
  StateView view = jobs_31_to_35();
  // As the factors had become when sprio ran.
  view.workloads[1].priority = {10607, 0, 10000, 508, 100, 0, 0};
  view.workloads[3].priority = {11503, 0, 10000, 504, 1000, 0, 0};
  auto run = [&](auto change) {
    return [&view, change] {
      SprioOptions o;
      change(o);
      return render_sprio(view, o);
    };
  };
  std::vector<Case> cases = {
      {"sprio", 0, run([](SprioOptions&) {})},
      {"sprio -l", 0, run([](SprioOptions& o) { o.long_form = true; })},
      {"sprio -w", 0, run([](SprioOptions& o) { o.weights = true; })},
  };
  compare("sprio-sshare.txt", cases, {"sshare", "sshare -a", "sshare -l -a -P"});
}

TEST(Sprio, FormatsAndNothingFound) {
  StateView view = jobs_31_to_35();
  SprioOptions o;
  o.format = "%i|%F|%f|%Y";
  o.no_header = true;
  o.filter.jobs = {{32, {}, {}}};
  EXPECT_EQ(render_sprio(view, o).text, "32|10000|1.0000000|10603\n");
  o.filter.jobs = {{99, {}, {}}};
  EXPECT_EQ(render_sprio(view, o).text, "Unable to find jobs matching user/id(s) specified\n");
  o.format = "%i%Z";
  EXPECT_EQ(render_sprio(view, o).errors, "sprio: error: Invalid job format specification: Z\n");
}

// The labels that exporters look for, each with a number behind it.
TEST(Sdiag, LabelsOfRealSlurm) {
  DiagView d;
  d.now = at(20, 10, 0);
  d.since = at(20, 0, 0);
  d.jobs_submitted = 54;
  d.jobs_started = 7;
  d.passes = 9;
  d.pass_us_total = 90;
  d.pass_us_last = 18;
  d.last_pass = at(20, 9, 0);
  std::string text = render_sdiag(d, times(d.now)).text;
  for (const char* label : {"Server thread count",
                            "Agent queue size",
                            "Agent count",
                            "Agent thread count",
                            "DBD Agent queue size",
                            "Jobs submitted",
                            "Jobs started",
                            "Jobs completed",
                            "Jobs canceled",
                            "Jobs failed",
                            "Jobs pending",
                            "Jobs running",
                            "Last cycle",
                            "Max cycle",
                            "Total cycles",
                            "Mean cycle",
                            "Mean depth cycle",
                            "Cycles per minute",
                            "Last queue length",
                            "Total backfilled jobs \\(since last slurm start\\)",
                            "Total backfilled jobs \\(since last stats cycle start\\)",
                            "Total backfilled heterogeneous job components",
                            "Last depth cycle",
                            "Last depth cycle \\(try sched\\)",
                            "Depth Mean",
                            "Depth Mean \\(try depth\\)",
                            "Queue length mean",
                            "Last table size",
                            "Mean table size"})
    EXPECT_TRUE(
        std::regex_search(text, std::regex("(^|\n)\\s*" + std::string(label) + ":\\s*\\d+\n")))
        << label;
  EXPECT_NE(text.find("sdiag output at Mon Nov 30 20:10:00 2026 (1796069400)\n"),
            std::string::npos);
  EXPECT_NE(text.find("Jobs started:   7\n"), std::string::npos);
  EXPECT_NE(text.find("\tMean cycle:   10\n"), std::string::npos);
  EXPECT_NE(text.find("\tLast cycle when: Mon Nov 30 20:09:00 2026 (1796069340)\n"),
            std::string::npos);
}

}  // namespace
}  // namespace tutti::slurm::golden
