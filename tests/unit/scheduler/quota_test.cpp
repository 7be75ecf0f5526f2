#include "scheduler/quota.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "scheduler/queue_rules.h"

namespace tutti::scheduler {
namespace {

constexpr std::uint64_t kGpu = 1000;

ClusterSpec cluster_of(std::uint32_t h100, std::uint32_t a100) {
  ClusterSpec spec;
  for (const auto& [type, count] : {std::pair{"h100", h100}, std::pair{"a100", a100}}) {
    NodeSpec node;
    node.name = std::string("n-") + type;
    node.cpus = node.cores_per_socket = 64;
    node.memory_mib = 1000;
    DeviceSpec device;
    device.type = type;
    node.devices.assign(count, device);
    spec.nodes.push_back(std::move(node));
  }
  return spec;
}

QueueSpec queue(std::string name, std::string parent, std::vector<QuotaSpec> quotas,
                std::uint32_t weight = 1) {
  QueueSpec spec;
  spec.name = std::move(name);
  spec.parent = std::move(parent);
  spec.quotas = std::move(quotas);
  spec.weight = weight;
  return spec;
}

QuotaSpec gpus(std::optional<std::uint64_t> nominal, std::optional<std::uint64_t> borrow = {},
               std::optional<std::uint64_t> lend = {}) {
  return {"gpu", nominal, borrow, lend};
}

Charge of(std::uint64_t count) {
  Charge charge;
  charge.untyped_gpus = count * kGpu;
  return charge;
}

using Fit = QuotaTree::Fit;

TEST(Quota, BorrowsWhatOthersDoNotUse) {
  ClusterSpec spec = cluster_of(16, 0);
  ClusterIndex cluster(spec);
  QueueTree tree{
      {queue("root", "", {}), queue("a", "root", {gpus(8, 4, 4)}), queue("b", "root", {gpus(8)})},
      ""};
  QuotaTree quota(tree, cluster);
  quota.settle();
  QueueId a = *quota.find("a"), b = *quota.find("b");
  EXPECT_EQ(quota.amount(*quota.find("root"), "gpu"), 16u);
  EXPECT_EQ(quota.judge(a, of(8)), Fit::kWithinNominal);
  EXPECT_EQ(quota.judge(a, of(12)), Fit::kBorrows);
  EXPECT_EQ(quota.judge(a, of(13)), Fit::kOver);  // its borrowing limit
  EXPECT_EQ(quota.judge(b, of(12)), Fit::kBorrows);
  EXPECT_EQ(quota.judge(b, of(13)), Fit::kOver);  // a keeps 4
  quota.charge(a, of(10));
  EXPECT_EQ(quota.judge(b, of(6)), Fit::kWithinNominal);
  EXPECT_EQ(quota.judge(b, of(7)), Fit::kOver);
  EXPECT_TRUE(quota.is_over_nominal(a, of(1)));
  auto refusal = quota.refusal(b, of(7));
  ASSERT_TRUE(refusal);
  EXPECT_EQ(quota.spec(refusal->queue).name, "root");
  EXPECT_EQ(refusal->used, 10u);
  EXPECT_EQ(refusal->amount, 16u);
  EXPECT_TRUE(refusal->at_root);
  quota.refund(a, of(10));
  EXPECT_EQ(quota.judge(b, of(12)), Fit::kBorrows);
}

TEST(Quota, TypesAreChargedApartAndTogether) {
  ClusterSpec spec = cluster_of(8, 8);
  ClusterIndex cluster(spec);
  QueueTree tree{{queue("a", "", {{"gpu:h100", 4, {}, {}}, {"gpu", 6, {}, {}}})}, ""};
  QuotaTree quota(tree, cluster);
  quota.settle();
  QueueId a = *quota.find("a");
  auto typed = [&](std::string_view type, std::uint64_t count) {
    Charge charge;
    charge.gpus.emplace_back(*cluster.gpu_type(type), count * kGpu);
    return charge;
  };
  EXPECT_TRUE(quota.tells_types_apart(a));
  EXPECT_EQ(quota.judge(a, typed("h100", 4)), Fit::kWithinNominal);
  EXPECT_EQ(quota.judge(a, typed("h100", 5)), Fit::kOver);
  EXPECT_EQ(quota.judge(a, typed("a100", 6)), Fit::kWithinNominal);
  quota.charge(a, typed("h100", 4));
  EXPECT_EQ(quota.judge(a, typed("a100", 2)), Fit::kWithinNominal);
  EXPECT_EQ(quota.judge(a, typed("a100", 3)), Fit::kOver);
  EXPECT_EQ(quota.used(a, "gpu:h100"), 4u);
  EXPECT_EQ(quota.used(a, "gpu"), 4u);
}

TEST(Quota, DeservedSharesFollowWeightAndDemand) {
  ClusterSpec spec = cluster_of(12, 0);
  ClusterIndex cluster(spec);
  QueueTree tree{{queue("root", "", {}), queue("a", "root", {gpus({})}, 2),
                  queue("b", "root", {gpus({})}, 1), queue("c", "root", {gpus({})}, 1)},
                 ""};
  auto shares = [&](std::uint64_t a, std::uint64_t b, std::uint64_t c) {
    QuotaTree quota(tree, cluster);
    quota.add_demand(1, of(a));
    quota.add_demand(2, of(b));
    quota.add_demand(3, of(c));
    quota.settle();
    return std::vector<std::uint64_t>{quota.amount(1, "gpu"), quota.amount(2, "gpu"),
                                      quota.amount(3, "gpu")};
  };
  EXPECT_EQ(shares(100, 100, 100), (std::vector<std::uint64_t>{6, 3, 3}));
  EXPECT_EQ(shares(100, 100, 0), (std::vector<std::uint64_t>{8, 4, 0}));
  EXPECT_EQ(shares(2, 100, 1), (std::vector<std::uint64_t>{2, 9, 1}));
  EXPECT_EQ(shares(1, 1, 1), (std::vector<std::uint64_t>{1, 1, 1}));
}

TEST(Quota, TheQueueOfAWorkload) {
  ClusterSpec spec = cluster_of(8, 0);
  ClusterIndex cluster(spec);
  QueueTree tree{{queue("a", "", {}), queue("b", "", {}), queue("rest", "", {})}, "rest"};
  tree.queues[1].accounts = {"nlp"};
  QuotaTree quota(tree, cluster);
  Workload workload;
  EXPECT_EQ(quota.queue_of(workload), quota.find("rest"));
  workload.account = "nlp";
  EXPECT_EQ(quota.queue_of(workload), quota.find("b"));
  WorkloadExtras extras;
  extras.terms.queue = "a";
  workload.extras = std::move(extras);
  EXPECT_EQ(quota.queue_of(workload), quota.find("a"));
  EXPECT_EQ(quota.common_ancestor(0, 1), std::nullopt);
  EXPECT_TRUE(QuotaTree(QueueTree{}, cluster).empty());
}

// The tree of a pass looks names up; queue_for() is the rule as it is written down.
TEST(Quota, TheQueueOfAWorkloadIsThatOfTheRules) {
  ClusterSpec spec = cluster_of(8, 0);
  ClusterIndex cluster(spec);
  QueueTree tree{{queue("root", "", {}), queue("a", "root", {}), queue("b", "root", {}),
                  queue("rest", "root", {})},
                 "rest"};
  tree.queues[1].accounts = {"nlp"};
  tree.queues[2].aliases = {"team-b"};
  QuotaTree quota(tree, cluster);
  std::size_t found = 0;
  for (const char* named : {"", "a", "root", "team-b", "nobody"})
    for (const char* account : {"", "nlp", "other"})
      for (const char* partition : {"", "a", "b", "root", "batch"}) {
        Workload workload;
        workload.account = account;
        if (*partition) workload.partitions = std::vector<std::string>{partition};
        WorkloadExtras extras;
        extras.terms.queue = named;
        workload.extras = std::move(extras);
        const QueueSpec* rule = queue_for(tree, workload);
        const auto id = quota.queue_of(workload);
        ASSERT_EQ(id.has_value(), rule != nullptr) << named << " " << account << " " << partition;
        if (rule) {
          EXPECT_EQ(quota.spec(*id).name, rule->name);
        }
        found += rule != nullptr;
      }
  EXPECT_EQ(found, 60u);  // all but those that name what does not exist
}

// The definition in the head of quota.h, written down as recursion over plain numbers.
struct Reference {
  const QueueTree& tree;
  std::map<std::string, std::uint64_t> used;  // of leaves

  std::vector<const QueueSpec*> children(const std::string& name) const {
    std::vector<const QueueSpec*> out;
    for (const QueueSpec& queue : tree.queues)
      if (queue.parent == name) out.push_back(&queue);
    return out;
  }
  std::uint64_t amount(const QueueSpec& queue) const {
    if (!queue.quotas.empty()) return *queue.quotas[0].nominal;
    std::uint64_t sum = 0;
    for (const QueueSpec* child : children(queue.name)) sum += amount(*child);
    return sum;
  }
  std::uint64_t claim(const QueueSpec& queue) const {
    std::uint64_t taken = 0;
    auto below = children(queue.name);
    for (const QueueSpec* child : below) taken += claim(*child);
    if (below.empty()) taken = used.count(queue.name) ? used.at(queue.name) : 0;
    std::uint64_t kept = 0;
    if (!queue.quotas.empty() && queue.quotas[0].lending_limit)
      kept = amount(queue) - std::min(amount(queue), *queue.quotas[0].lending_limit);
    return std::max(taken, kept);
  }
  Fit judge(const QueueSpec& leaf, std::uint64_t count) {
    used[leaf.name] += count;
    Fit fit = Fit::kWithinNominal;
    for (const QueueSpec* node = &leaf; node; node = tree.find(node->parent)) {
      const std::uint64_t takes = claim(*node), own = amount(*node);
      if (takes <= own) continue;
      const bool root = node->parent.empty();
      const bool limited = !node->quotas.empty() && node->quotas[0].borrowing_limit;
      const bool over = root || (limited && takes > own + *node->quotas[0].borrowing_limit);
      fit = std::max(fit, over ? Fit::kOver : Fit::kBorrows);
    }
    used[leaf.name] -= count;
    return fit;
  }
};

TEST(Quota, IsWhatItsDefinitionSaysOnRandomTrees) {
  ClusterSpec spec = cluster_of(64, 0);
  ClusterIndex cluster(spec);
  std::size_t kinds[3] = {0, 0, 0};
  for (std::uint32_t seed = 1; seed <= 300; ++seed) {
    std::mt19937 random(seed);
    auto below = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
    QueueTree tree;
    const std::uint32_t inner = 1 + below(4);
    for (std::uint32_t i = 0; i < inner; ++i) {
      std::vector<QuotaSpec> quotas;
      if (below(2) == 0) quotas.push_back(gpus(below(40)));
      if (!quotas.empty() && i > 0 && below(2) == 0) quotas[0].borrowing_limit = below(10);
      if (!quotas.empty() && i > 0 && below(2) == 0) quotas[0].lending_limit = below(10);
      tree.queues.push_back(
          queue("i" + std::to_string(i), i == 0 ? "" : "i" + std::to_string(below(i)), quotas));
    }
    std::vector<std::string> leaves;
    for (std::uint32_t i = 0; i < inner + 3; ++i) {
      QuotaSpec quota = gpus(below(12));
      if (below(2) == 0) quota.borrowing_limit = below(8);
      if (below(2) == 0) quota.lending_limit = below(8);
      leaves.push_back("l" + std::to_string(i));
      tree.queues.push_back(
          queue(leaves.back(), "i" + std::to_string(i < inner ? i : below(inner)), {quota}));
    }
    QuotaTree quota(tree, cluster);
    quota.settle();
    Reference reference{tree, {}};
    for (int step = 0; step < 60; ++step) {
      const std::string& name = leaves[below(static_cast<std::uint32_t>(leaves.size()))];
      const QueueId id = *quota.find(name);
      const std::uint64_t count = 1 + below(9);
      const Fit fit = quota.judge(id, of(count));
      ASSERT_EQ(fit, reference.judge(*tree.find(name), count))
          << "seed " << seed << " step " << step;
      ++kinds[static_cast<std::size_t>(fit)];
      ASSERT_EQ(quota.refusal(id, of(count)).has_value(), fit == Fit::kOver);
      ASSERT_EQ(quota.is_within_nominal(id, of(count), {}), fit == Fit::kWithinNominal);
      if (below(3) == 0 && reference.used[name] >= count) {
        quota.refund(id, of(count));
        reference.used[name] -= count;
      } else if (fit != Fit::kOver) {
        quota.charge(id, of(count));
        reference.used[name] += count;
      }
    }
  }
  for (std::size_t seen : kinds) EXPECT_GT(seen, 500u);  // all three answers occur
}

}  // namespace
}  // namespace tutti::scheduler
