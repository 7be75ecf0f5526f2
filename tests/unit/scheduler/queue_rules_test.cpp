// The rules that a queue tree must keep, and which queue a workload goes to.
#include <gtest/gtest.h>

#include "scheduler/queue_rules.h"

namespace tutti::scheduler {
namespace {

ClusterSpec eight_h100() {
  ClusterSpec spec;
  NodeSpec node;
  node.name = "n1";
  node.cpus = 16;
  node.memory_mib = 1000;
  for (int i = 0; i < 8; ++i) node.devices.emplace_back().type = "h100";
  spec.nodes.push_back(node);
  return spec;
}

QueueSpec queue(std::string name, std::string parent = {}, std::vector<QuotaSpec> quotas = {}) {
  QueueSpec out;
  out.name = std::move(name);
  out.parent = std::move(parent);
  out.quotas = std::move(quotas);
  return out;
}

std::vector<std::string> told(const QueueTree& tree) {
  std::vector<std::string> out;
  for (const QueueProblem& one : check_queues(tree, eight_h100()))
    out.push_back((one.is_warning ? "warning " : "error ") + one.queue + " " + one.key);
  return out;
}

using Lines = std::vector<std::string>;

TEST(QueueRules, AGoodTreeHasNoProblems) {
  QueueTree tree;
  tree.queues = {queue("all", "", {{"gpu:h100", 8, {}, {}, {}}}),
                 queue("a", "all", {{"gpu:h100", 4, 4, 4, 8}, {"memory", 500, {}, {}, {}}}),
                 queue("b", "all", {{"gpu:h100", {}, {}, {}, {}}})};
  tree.default_queue = "b";
  EXPECT_EQ(told(tree), Lines{});
}

TEST(QueueRules, EverythingAtOnce) {
  QueueTree tree;
  tree.queues = {queue("a", "b"), queue("b", "c"), queue("c", "a"),
                 queue("d", "nobody", {{"gpu:h200", 1, {}, {}, {}}, {"disk", 1, {}, {}, {}}}),
                 queue("e", "", {{"gpu", 4, 1, 5, 3}, {"gpu", 2, {}, {}, {}}}),
                 queue("e")};
  tree.queues[3].accounts = {"ml"};
  tree.queues[4].accounts = {"ml"};
  tree.queues[4].gpu_types = {"a100"};
  tree.default_queue = "f";
  EXPECT_EQ(told(tree), (Lines{"error e ", "error a parent", "error d parent",
                               "error d quotas.gpu:h200", "error d quotas.disk",
                               "error e quotas.gpu.lending_limit", "error e quotas.gpu.limit",
                               "warning e quotas.gpu.borrowing_limit",
                               "warning e quotas.gpu.lending_limit", "error e quotas.gpu",
                               "error e accounts", "error e gpu_types", "error  default_queue"}));
}

TEST(QueueRules, QuotaAboveTheHardwareIsAWarning) {
  QueueTree tree;
  tree.queues = {queue("a", "", {{"gpu:h100", 16, {}, {}, {}}})};
  auto problems = check_queues(tree, eight_h100());
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_TRUE(problems[0].is_warning);
  EXPECT_EQ(problems[0].text,
            "queue a, gpu:h100: owns 16, the cluster has 8: the hardware is what binds");
}

TEST(QueueRules, ParentsComeFirstAndOrderIsKept) {
  QueueTree tree;
  tree.queues = {queue("leaf", "mid"), queue("x"), queue("mid", "top"), queue("top")};
  Lines names;
  for (const QueueSpec& one : parents_first(tree).queues) names.push_back(one.name);
  EXPECT_EQ(names, (Lines{"x", "top", "mid", "leaf"}));
}

TEST(QueueRules, WhereAWorkloadGoes) {
  QueueTree tree;
  tree.queues = {queue("all"), queue("research", "all"), queue("gpu", "all"), queue("rest", "all")};
  tree.queues[1].accounts = {"ml"};
  tree.queues[1].aliases = {"ns/lq"};
  tree.queues[3].state = QueueState::kClosed;
  tree.default_queue = "rest";
  Workload workload;
  EXPECT_EQ(queue_for(tree, workload)->name, "rest");
  EXPECT_FALSE(check_queue_takes(tree, workload).has_value());  // closed
  workload.partitions.edit() = {"gpu"};
  EXPECT_EQ(queue_for(tree, workload)->name, "gpu");
  workload.account = "ml";
  EXPECT_EQ(queue_for(tree, workload)->name, "research");
  EXPECT_TRUE(check_queue_takes(tree, workload).has_value());
  workload.extras.edit().terms.queue = "gpu";
  EXPECT_EQ(queue_for(tree, workload)->name, "gpu");
  workload.extras.edit().terms.queue = "ns/lq";
  EXPECT_EQ(queue_for(tree, workload)->name, "research");
  workload.extras.edit().terms.queue = "reserch";
  auto refused = check_queue_takes(tree, workload);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().reason, "invalid_queue");
  EXPECT_NE(refused.error().message.find("did you mean research?"), std::string::npos);
  workload.extras.edit().terms.queue = "all";
  EXPECT_FALSE(check_queue_takes(tree, workload).has_value());  // it has children
}

}  // namespace
}  // namespace tutti::scheduler
