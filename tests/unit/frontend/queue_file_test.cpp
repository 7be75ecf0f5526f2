// Queues read from Tutti's own file and from Kueue's and Volcano's manifests.
#include <fstream>
#include <sstream>

#include "frontend/config/gpu_types.h"
#include "frontend/config/queue_source.h"
#include "frontend/config/reading.h"

namespace tutti::config {
namespace {

std::string data(const std::string& name) {
  std::ifstream in(std::string(TUTTI_SOURCE_DIR) + "/tests/data/queues/" + name);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

std::vector<std::string> errors(const QueueSource& source) {
  std::vector<std::string> out;
  for (const Diagnostic& one : source.diagnostics)
    if (one.severity == Severity::kError)
      out.push_back(fmt::format("{}:{}: {}", one.span.line, one.span.column, one.message));
  return out;
}

const QueueSpec* find(const QueueSource& source, const std::string& name) {
  for (const QueueSpec& queue : source.queues)
    if (queue.name == name) return &queue;
  return nullptr;
}

constexpr const char* kFile = R"(default_queue: everyone
queues:
  - name: company
    quotas:
      gpu:h100: {nominal: 16}
      memory: {nominal: 64G}
    queues:
      - name: research
        quotas:
          gpu:h100: {nominal: 8, borrowing_limit: 4, lending_limit: 2, limit: 12}
          cpu: shared
        weight: 3
        strictness: best_effort
        state: held
        reclaims: false
        reclaim: checkpoint
        notice: 90s
        min_runtime: 10m
        gpu_types: [h100, a100]
        accounts: [ml, vision]
      - name: everyone
        quotas: {gpu: 4}
)";

TEST(QueueFile, SaysWhatItUnderstandsAndDoesNotDo) {
  QueueSource source = read_policy_file(
      "queues:\n  - name: a\n    order: fifo\n    reclaim: suspend\n    quotas: {gpu: 1}\n",
      "q.yaml");
  EXPECT_TRUE(source.usable());
  std::vector<std::string> said;
  for (const Diagnostic& one : source.diagnostics)
    said.push_back(
        fmt::format("{} {}:{} {}", one.code, one.span.line, one.span.column, one.message));
  EXPECT_EQ(said,
            (std::vector<std::string>{
                "config-no-effect 3:12 queue a: order fifo has no effect yet: its jobs stand in "
                "multifactor order",
                "config-no-effect 4:14 queue a: reclaim suspend is not there yet: its jobs are "
                "never taken back"}));
}

TEST(QueueFile, KeysOfEveryKind) {
  QueueSource source = read_policy_file(kFile, "q.yaml");
  EXPECT_EQ(errors(source), std::vector<std::string>{});
  ASSERT_EQ(source.queues.size(), 3u);
  EXPECT_EQ(source.default_queue, "everyone");
  EXPECT_EQ(source.queues[0].quotas[1].nominal, 64u * 1024);
  const QueueSpec& research = source.queues[1];
  EXPECT_EQ(research.parent, "company");
  EXPECT_EQ(research.quotas[0], (QuotaSpec{"gpu:h100", 8, 4, 2, 12}));
  EXPECT_EQ(research.quotas[1], (QuotaSpec{"cpu", {}, {}, {}, {}}));
  EXPECT_EQ(research.weight, 3u);
  EXPECT_EQ(research.strictness, QueueStrictness::kBestEffort);
  EXPECT_EQ(research.state, QueueState::kHeld);
  EXPECT_FALSE(research.reclaims);
  EXPECT_EQ(research.reclaim, ReclaimMode::kCheckpoint);
  EXPECT_EQ(research.notice, Duration::seconds(90));
  EXPECT_EQ(research.min_runtime, Duration::seconds(600));
  EXPECT_EQ(research.accounts, (std::vector<std::string>{"ml", "vision"}));
  EXPECT_EQ(source.queues[2].quotas[0].nominal, 4u);
}

TEST(QueueFile, WhatIsExportedReadsBackTheSame) {
  QueueSource source = read_policy_file(kFile, "q.yaml");
  QueueTree tree{source.queues, *source.default_queue};
  tree.queues.emplace_back().name = "12: odd \"name\"";
  tree.queues.back().loss_budget_gpu_seconds = 3600;
  tree.queues.back().reclaim = ReclaimMode::kOff;
  tree.queues.back().quotas.push_back({"gpu", {}, {}, {}, 32});
  QueueSource again = read_policy_file(policy_text(tree), "export");
  EXPECT_EQ(errors(again), std::vector<std::string>{});
  EXPECT_EQ(again.queues, tree.queues);
  EXPECT_EQ(again.default_queue, "everyone");
}

TEST(QueueFile, AllProblemsAtOnceWithTheirPlaces) {
  QueueSource source = read_policy_file(
      "queues:\n"
      "  - name: a\n"
      "    quotas:\n"
      "      gpu: many\n"
      "    wieght: 3\n"
      "    order: random\n"
      "  - weight: 2\n"
      "queue: []\n",
      "q.yaml");
  const std::vector<std::string> expected{
      "4:12: gpu: expected a whole number, found \"many\"",
      "6:12: order: expected one of multifactor, fifo, drf, expected, found \"random\"",
      "5:5: queue \"a\": unknown key \"wieght\"; did you mean weight?",
      "7:5: a queue without a name", "8:1: the file: unknown key \"queue\"; did you mean queues?"};
  EXPECT_EQ(errors(source), expected);
  EXPECT_FALSE(source.usable());
}

TEST(QueueFile, BrokenTextHasItsPlace) {
  EXPECT_EQ(errors(read_policy_file("queues:\n  - name: [a\n", "q")).size(), 1u);
  auto twice = errors(read_policy_file("queues: []\nqueues: []\n", "q"));
  ASSERT_EQ(twice.size(), 1u);
  EXPECT_EQ(twice[0], "2:1: \"queues\" is said twice, first in line 1");
  EXPECT_FALSE(read_policy_file("", "q").usable());
  EXPECT_FALSE(read_policy_file("- a\n", "q").usable());
  // Aliases that would grow without end are cut.
  std::string bomb = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n";
  for (int i = 1; i < 9; ++i) {
    bomb += fmt::format("a{}: &a{} [", i, i);
    for (int k = 0; k < 10; ++k) bomb += fmt::format("{}*a{}", k ? "," : "", i - 1);
    bomb += "]\n";
  }
  EXPECT_FALSE(read_policy_file(bomb, "q").usable());
}

TEST(QueueFile, ProblemsOfTheClusterFindTheirLine) {
  QueueSource source = read_policy_file(kFile, "q.yaml");
  EXPECT_EQ(source.place_of({"research", "quotas.gpu:h100.lending_limit", "", false}).line, 10u);
  EXPECT_EQ(source.place_of({"research", "quotas.cpu.nominal", "", false}).line, 11u);
  EXPECT_EQ(source.place_of({"research", "elsewhere", "", false}).line, 8u);
  EXPECT_EQ(source.place_of({"nobody", "", "", false}).line, 0u);
}

TEST(Manifests, KueueExample) {
  QueueSource source = read_manifests(data("kueue-quota.yaml"), "kueue.yaml");
  EXPECT_EQ(errors(source), std::vector<std::string>{});
  ASSERT_EQ(source.queues.size(), 2u);
  EXPECT_EQ(source.queues[0].name, "shared-gpu");  // the cohort, which nobody declares
  const QueueSpec& queue = source.queues[1];
  EXPECT_EQ(queue.name, "team-research");
  EXPECT_EQ(queue.parent, "shared-gpu");
  ASSERT_EQ(queue.quotas.size(), 1u);
  EXPECT_EQ(queue.quotas[0], (QuotaSpec{"gpu:rtxpro6000", 16, 8, {}, {}}));
  EXPECT_EQ(queue.gpu_types, std::vector<std::string>{"rtxpro6000"});
  EXPECT_EQ(queue.strictness, QueueStrictness::kBestEffort);
}

TEST(Manifests, VolcanoExampleLeavesTheJobAlone) {
  QueueSource source = read_manifests(data("volcano-queue-and-job.yaml"), "volcano.yaml");
  EXPECT_EQ(errors(source), std::vector<std::string>{});
  const QueueSpec* queue = find(source, "training");
  ASSERT_TRUE(queue);
  EXPECT_EQ(queue->weight, 4u);
  EXPECT_EQ(queue->parent, "root");
  ASSERT_EQ(queue->quotas.size(), 1u);
  EXPECT_EQ(queue->quotas[0], (QuotaSpec{"gpu", {}, {}, {}, 32}));
  ASSERT_TRUE(find(source, "root"));
  EXPECT_EQ(source.left_alone, std::vector<std::string>{"Job qwen-finetune"});
}

TEST(Manifests, VolcanoDeservedAndGuarantee) {
  QueueSource source = read_manifests(
      "apiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\nmetadata: {name: a}\n"
      "spec: {reclaimable: false, deserved: {nvidia.com/gpu: 5, cpu: 2500m}, capability: "
      "{nvidia.com/gpu: 10, memory: 1.5Gi}, guarantee: {resource: {nvidia.com/gpu: 2}}}\n",
      "v");
  EXPECT_EQ(errors(source), std::vector<std::string>{});
  const QueueSpec* queue = find(source, "a");
  ASSERT_TRUE(queue);
  EXPECT_EQ(queue->reclaim, ReclaimMode::kOff);
  ASSERT_EQ(queue->quotas.size(), 3u);
  EXPECT_EQ(queue->quotas[0], (QuotaSpec{"gpu", 5, {}, 3, 10}));
  EXPECT_EQ(queue->quotas[1], (QuotaSpec{"cpu", 3, {}, {}, {}}));
  EXPECT_EQ(queue->quotas[2], (QuotaSpec{"memory", {}, {}, {}, 1536}));
}

TEST(Manifests, CohortsLocalQueuesAndWhatIsMissing) {
  const std::string cluster_queue =
      "apiVersion: kueue.x-k8s.io/v1beta1\nkind: ClusterQueue\nmetadata: {name: cq}\n"
      "spec:\n  cohort: team\n  preemption: {reclaimWithinCohort: Any, withinClusterQueue: "
      "LowerPriority}\n"
      "  queueingStrategy: StrictFIFO\n  stopPolicy: Hold\n  resourceGroups:\n"
      "  - coveredResources: [nvidia.com/gpu]\n    flavors:\n    - name: gone\n      resources:\n"
      "      - {name: nvidia.com/gpu, nominalQuota: 4}\n";
  QueueSource source = read_manifests(
      "apiVersion: kueue.x-k8s.io/v1alpha1\nkind: Cohort\nmetadata: {name: team}\nspec: {parent: "
      "all}\n---\n"
      "apiVersion: kueue.x-k8s.io/v1beta1\nkind: LocalQueue\nmetadata: {name: lq, namespace: ns}\n"
      "spec: {clusterQueue: cq}\n---\n" +
          cluster_queue,
      "k");
  EXPECT_EQ(errors(source), std::vector<std::string>{"22:13: ClusterQueue cq: ResourceFlavor gone "
                                                     "is not in this file, so that its GPU type is "
                                                     "unknown: put both into one file"});
  const QueueSpec* queue = find(source, "cq");
  ASSERT_TRUE(queue);
  EXPECT_EQ(queue->aliases, std::vector<std::string>{"ns/lq"});
  EXPECT_EQ(queue->strictness, QueueStrictness::kStrict);
  EXPECT_EQ(queue->state, QueueState::kHeld);
  EXPECT_TRUE(queue->reclaims);
  ASSERT_TRUE(find(source, "team"));
  EXPECT_EQ(find(source, "team")->parent, "all");
  EXPECT_TRUE(find(source, "all"));
}

TEST(Manifests, Quantities) {
  EXPECT_EQ(parse_quantity("16"), 16u);
  EXPECT_EQ(parse_quantity("500m"), 1u);
  EXPECT_EQ(parse_quantity("2k"), 2000u);
  EXPECT_EQ(parse_memory_quantity("64Gi"), 65536u);
  EXPECT_EQ(parse_memory_quantity("1048577"), 2u);
  EXPECT_EQ(parse_quantity("many"), std::nullopt);
  EXPECT_EQ(parse_quantity("-1"), std::nullopt);
  EXPECT_EQ(parse_quantity("1."), std::nullopt);
  EXPECT_EQ(parse_quantity("99999999999999999999"), std::nullopt);
  EXPECT_EQ(parse_quantity("9999999999999999999P"), std::nullopt);
}

TEST(GpuTypes, LongestNameWins) {
  EXPECT_EQ(gpu_type_of_product("NVIDIA-H100-80GB-HBM3"), "h100");
  EXPECT_EQ(gpu_type_of_product("NVIDIA-A10G"), "a10g");
  EXPECT_EQ(gpu_type_of_product("NVIDIA-L40S"), "l40s");
  EXPECT_EQ(gpu_type_of_product("RTX-PRO-6000-Blackwell"), "rtxpro6000");
  EXPECT_EQ(gpu_type_of_product("NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition"), "rtxpro6000");
  EXPECT_EQ(gpu_type_of_product("NVIDIA-H2000"), "h2000");
}

}  // namespace
}  // namespace tutti::config
