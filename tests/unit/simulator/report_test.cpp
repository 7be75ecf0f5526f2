#include "simulator/report.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "simulator/gunzip.h"
#include "simulator/lowering.h"
#include "simulator/replay.h"

namespace tutti::simulator {
namespace {

// Three jobs on 8 GPUs: two of 4 side by side, then one of 8.
constexpr std::string_view kLog =
    "number,submit,run,limit,gpus,user\n"
    "1,0,100,200,4,ada\n"
    "2,0,100,200,4,bob\n"
    "3,10,50,60,8,ada\n";

Trace small_trace() {
  auto trace = read_csv(kLog, *parse_csv_mapping("number=number submit=submit run=run limit=limit "
                                                 "gpus=gpus user=user"));
  EXPECT_TRUE(trace);
  trace->source = "small <log>";
  return std::move(*trace);
}

ReplayResult run(const Trace& trace, const std::string& profile) {
  ReplayOptions options;
  options.world.profile = profile;
  options.world.lint = true;
  auto result = replay(trace, *parse_cluster_text("1x8:h100"), options);
  EXPECT_TRUE(result) << result.error().message;
  return std::move(*result);
}

TEST(Replay, BooksEverySecondOnce) {
  Trace trace = small_trace();
  ReplayResult result = run(trace, "easy");
  ASSERT_EQ(result.jobs.size(), 3u);
  EXPECT_EQ((result.jobs[2].started - result.jobs[2].submitted).ms(), 90'000);
  EXPECT_EQ((result.end - result.begin).ms(), 150'000);
  ASSERT_EQ(result.ledger.size(), 1u);
  EXPECT_EQ(result.ledger[0].type, "h100");
  EXPECT_EQ(result.ledger[0].capacity, 8u * 150 * ledger::kUnitsPerGpuSecond);
  EXPECT_EQ(result.ledger[0].sum(), result.ledger[0].capacity);
  auto progressing = result.ledger[0].levels[static_cast<std::size_t>(ledger::Level::kProgressing)];
  EXPECT_EQ(progressing, 1200 * ledger::kUnitsPerGpuSecond);
  EXPECT_EQ(result.idle_while_waiting, 0u);
}

TEST(Replay, DelaysAreBookedAsStartingAndAsHeldWithoutAProcess) {
  Trace trace = small_trace();
  ReplayOptions options;
  options.world.start_delay = Duration::seconds(5);
  options.world.release_delay = Duration::seconds(2);
  auto result = replay(trace, *parse_cluster_text("1x8"), options);
  ASSERT_TRUE(result) << result.error().message;
  const auto& levels = result->ledger[0].levels;
  EXPECT_EQ(levels[static_cast<std::size_t>(ledger::Level::kStarting)],
            16u * 5 * ledger::kUnitsPerGpuSecond);
  EXPECT_EQ(levels[static_cast<std::size_t>(ledger::Level::kNoProcess)],
            16u * 2 * ledger::kUnitsPerGpuSecond);
  EXPECT_EQ(result->ledger[0].sum(), result->ledger[0].capacity);
}

TEST(Replay, IsTheSameEveryTime) {
  Trace trace = small_trace();
  ReplayResult one = run(trace, "tutti"), two = run(trace, "tutti");
  EXPECT_EQ(one.jobs, two.jobs);
  Comparison first{trace.source, "1x8", {measure(trace, one)}, {one.samples}, 0, "$"};
  Comparison second{trace.source, "1x8", {measure(trace, two)}, {two.samples}, 0, "$"};
  EXPECT_EQ(render_html(first), render_html(second));
  EXPECT_EQ(render_json(first), render_json(second));
}

TEST(Replay, ListsWhatTheClusterCannotHold) {
  Trace trace = small_trace();
  auto result = replay(trace, *parse_cluster_text("1x4"), {});
  ASSERT_TRUE(result);
  ASSERT_EQ(result->refused.kinds.count(TraceProblemKind::kLargerThanCluster), 1u);
  const auto& listed = result->refused.kinds.at(TraceProblemKind::kLargerThanCluster);
  EXPECT_EQ(listed.count, 1u);
  EXPECT_EQ(listed.first[0].line, 4u);
  EXPECT_EQ(result->jobs.size(), 2u);
}

TEST(Metrics, AreWhatTheirNamesSay) {
  Trace trace = small_trace();
  Metrics metrics = measure(trace, run(trace, "easy"));
  EXPECT_EQ(metrics.jobs, 3u);
  EXPECT_DOUBLE_EQ(metrics.wait.mean, 30);
  EXPECT_DOUBLE_EQ(metrics.wait.p50, 0);
  EXPECT_DOUBLE_EQ(metrics.wait.p95, 90);
  EXPECT_DOUBLE_EQ(metrics.slowdown.mean, (1 + 1 + 140.0 / 50) / 3);
  EXPECT_DOUBLE_EQ(metrics.allocated, 1);
  EXPECT_DOUBLE_EQ(metrics.makespan_s, 150);
  ASSERT_EQ(metrics.classes.size(), 1u);
  EXPECT_EQ(metrics.classes[0].name, "2-8");
  // ada's mean is 1.9, bob's 1.
  EXPECT_DOUBLE_EQ(metrics.fairness, 2.9 * 2.9 / (2 * (1.9 * 1.9 + 1)));
}

TEST(Metrics, PercentilesAreByNearestRank) {
  std::vector<double> values;
  for (int i = 100; i >= 1; --i) values.push_back(i);
  Distribution all = distribution_of(values);
  EXPECT_DOUBLE_EQ(all.p50, 50);
  EXPECT_DOUBLE_EQ(all.p95, 95);
  EXPECT_DOUBLE_EQ(all.p99, 99);
  EXPECT_DOUBLE_EQ(all.max, 100);
  std::vector<double> one{7}, none;
  EXPECT_DOUBLE_EQ(distribution_of(one).p99, 7);
  EXPECT_DOUBLE_EQ(distribution_of(none).mean, 0);
}

TEST(Report, AVerdictWithNumbersAndMoney) {
  Metrics good, bad;
  good.profile = "good";
  bad.profile = "bad";
  good.unit = bad.unit = "GPU";
  good.slowdown.mean = 1.5;
  bad.slowdown.mean = 3;
  good.wait.p95 = 60;
  bad.wait.p95 = 7200;
  good.idle_hours = 10;
  bad.idle_hours = 110;
  Comparison comparison{"log", "8x8", {bad, good}, {}, 2.5, "$"};
  EXPECT_EQ(verdict(comparison),
            "good serves this load best: mean bounded slowdown 1.50, 95 of 100 jobs wait at most "
            "60 s, 10.00 GPU-hours stood idle while jobs waited. Under bad the slowdown is 3.00, "
            "the wait 2.0 h, and 110 GPU-hours stood idle. The difference of 100 GPU-hours costs "
            "$250.00 at $2.50 each.");
  comparison.profiles.pop_back();
  EXPECT_EQ(verdict(comparison), "");
}

TEST(Report, ThePageEscapesWhatItIsGiven) {
  Trace trace = small_trace();
  ReplayResult result = run(trace, "easy");
  Comparison comparison{trace.source, "1x8", {measure(trace, result)}, {result.samples}, 0, "$"};
  std::string page = render_html(comparison);
  EXPECT_NE(page.find("small &lt;log&gt;"), std::string::npos);
  EXPECT_EQ(page.find("<log>"), std::string::npos);
  EXPECT_NE(page.find("<svg"), std::string::npos);
}

TEST(ClusterText, GroupsOfNodes) {
  auto spec = parse_cluster_text("2x8:h100,cpus=96,mem=2T+1x16c");
  ASSERT_TRUE(spec) << spec.error().message;
  ASSERT_EQ(spec->nodes.size(), 3u);
  EXPECT_EQ(spec->nodes[0].devices.size(), 8u);
  EXPECT_EQ(spec->nodes[0].devices[0].type, "h100");
  EXPECT_EQ(spec->nodes[0].cpus, 96u);
  EXPECT_EQ(spec->nodes[1].memory_mib, 2'097'152u);
  EXPECT_EQ(spec->nodes[2].name, "n3");
  EXPECT_EQ(spec->nodes[2].cpus, 16u);
  EXPECT_TRUE(spec->nodes[2].devices.empty());
  for (std::string_view wrong : {"", "8", "x8", "0x8", "8x", "8x8:", "8x0", "2x8,gpus=3", "8x8c:a"})
    EXPECT_FALSE(parse_cluster_text(wrong)) << wrong;
}

TEST(ClusterText, ANodeListAsCsv) {
  auto spec =
      read_node_csv("sn,cpu_milli,memory_mib,gpu,model\na,64000,262144,2,P100\nb,32000,1000,0,\n");
  ASSERT_TRUE(spec) << spec.error().message;
  ASSERT_EQ(spec->nodes.size(), 2u);
  EXPECT_EQ(spec->nodes[0].name, "a");
  EXPECT_EQ(spec->nodes[0].cpus, 64u);
  EXPECT_EQ(spec->nodes[0].devices[1].type, "P100");
  EXPECT_TRUE(spec->nodes[1].devices.empty());
  auto wrong = read_node_csv("name,gpus\na,8\nb,x\nc,-1\n");
  ASSERT_FALSE(wrong);
  EXPECT_NE(wrong.error().message.find("line 3, line 4"), std::string::npos)
      << wrong.error().message;
}

TEST(Lowering, GpusLieAsDenseAsNodesAllow) {
  Trace trace;
  TraceJob job;
  job.gpus = 4;
  RoleAsk ask = lower_job(trace, job, 8).roles->at(0);
  EXPECT_EQ(ask.nodes_max, 1u);
  EXPECT_EQ(ask.gpus_per_node, 4u);
  job.gpus = 16;
  ask = lower_job(trace, job, 8).roles->at(0);
  EXPECT_EQ(ask.nodes_min, 2u);
  EXPECT_EQ(ask.gpus_per_node, 8u);
  job.nodes = 4;
  ask = lower_job(trace, job, 8).roles->at(0);
  EXPECT_EQ(ask.nodes_min, 4u);
  EXPECT_EQ(ask.gpus_per_node, 4u);
}

// Published (the archive's log, requested processors, requested times): 92.577.
TEST(Published, EasyOnKth) {
  const char* shared = std::getenv("TUTTI_SHARED");
  std::ifstream file(std::string(shared ? shared : "../shared") +
                         "/traces/pwa-swf/KTH-SP2-1996-2.swf.gz",
                     std::ios::binary);
  if (!file) GTEST_SKIP() << "TUTTI_SHARED has no public traces";
  std::stringstream bytes;
  bytes << file.rdbuf();
  auto trace = read_trace(*gunzip(bytes.str()), "kth");
  ASSERT_TRUE(trace);
  ReplayOptions options;
  options.world.profile = "easy";
  auto result = replay(*trace, *parse_cluster_text("1x100c"), options);
  ASSERT_TRUE(result) << result.error().message;
  Metrics metrics = measure(*trace, *result);
  EXPECT_EQ(metrics.jobs, 28'481u);
  EXPECT_NEAR(metrics.slowdown.mean, 92.577, 92.577 * 0.0015);
}

}  // namespace
}  // namespace tutti::simulator
