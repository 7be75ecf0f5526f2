// The quota tree as it is configured: queues with what they own, may borrow and lend, per resource.
// Kept in ClusterState::queues and replaced whole by QueuesConfigured, so that it changes on a
// running cluster. What the numbers mean: design/scheduling.md, 1, 2 and 5.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/archive.h"
#include "base/time.h"
#include "model/terms.h"

namespace tutti {

// One resource of one queue. Amounts: GPUs, logical CPUs, MiB.
struct QuotaSpec {
  std::string resource;  // "gpu:h100" (one type), "gpu" (all types together), "cpu", "memory"
  // Owned. None: the deserved amount, the parent's filled up by weight and capped by demand.
  std::optional<std::uint64_t> nominal;
  std::optional<std::uint64_t> borrowing_limit;  // above nominal, from the parent; none = no limit
  std::optional<std::uint64_t> lending_limit;    // of nominal, to others; none = all of it
  std::optional<std::uint64_t> limit;            // never more than this, whoever could lend it
  friend bool operator==(const QuotaSpec&, const QuotaSpec&) = default;
};
template <class A>
void describe(A& a, QuotaSpec& x) {
  a("resource", x.resource);
  a("nominal", x.nominal);
  a("borrowing_limit", x.borrowing_limit);
  a("lending_limit", x.lending_limit);
  a("limit", x.limit);
}

enum class QueueOrder : std::uint8_t { kMultifactor, kFifo, kDrf, kExpected };
template <>
struct EnumNames<QueueOrder> {
  static constexpr std::array kTable{
      std::pair{QueueOrder::kMultifactor, std::string_view("multifactor")},
      std::pair{QueueOrder::kFifo, std::string_view("fifo")},
      std::pair{QueueOrder::kDrf, std::string_view("drf")},
      std::pair{QueueOrder::kExpected, std::string_view("expected")}};
};

// What a blocked gang does to those behind it in its queue.
enum class QueueStrictness : std::uint8_t {
  kStrict,      // every blocked gang within depth is promised a start
  kBestEffort,  // only the queue's first per pool
};
template <>
struct EnumNames<QueueStrictness> {
  static constexpr std::array kTable{
      std::pair{QueueStrictness::kStrict, std::string_view("strict")},
      std::pair{QueueStrictness::kBestEffort, std::string_view("best_effort")}};
};

enum class QueueState : std::uint8_t {
  kOpen,
  kHeld,    // accepts, starts nothing
  kClosed,  // refuses what is new, starts what waits
};
template <>
struct EnumNames<QueueState> {
  static constexpr std::array kTable{std::pair{QueueState::kOpen, std::string_view("open")},
                                     std::pair{QueueState::kHeld, std::string_view("held")},
                                     std::pair{QueueState::kClosed, std::string_view("closed")}};
};

struct QueueSpec {
  std::string name;
  std::string parent;             // "" = a root; a queue with children takes no gangs itself
  std::vector<QuotaSpec> quotas;  // a resource that is not listed has no limit here
  std::uint32_t weight = 1;
  std::uint32_t tier = 0;  // higher first, before everything else
  QueueOrder order = QueueOrder::kMultifactor;
  QueueStrictness strictness = QueueStrictness::kStrict;
  QueueState state = QueueState::kOpen;
  bool reclaims = true;                 // may take its nominal back from those who borrowed it
  bool preempts_lower_priority = true;  // within the queue, and among borrowers
  ReclaimMode reclaim = ReclaimMode::kDefault;  // of its gangs that do not say
  std::optional<Duration> notice;               // of its gangs that do not say
  Duration min_runtime;
  std::optional<std::uint64_t> loss_budget_gpu_seconds;  // per hour, of what is taken from it
  std::vector<std::string> gpu_types;  // in the order in which they are tried; empty = any
  std::vector<std::string> accounts;   // whose jobs come here unless they name a queue
  std::vector<std::string> aliases;    // by which a workload may name it too: "team-a/lq"
  friend bool operator==(const QueueSpec&, const QueueSpec&) = default;
};
template <class A>
void describe(A& a, QueueSpec& x) {
  a("name", x.name);
  a("parent", x.parent);
  a("quotas", x.quotas);
  a("weight", x.weight);
  a("tier", x.tier);
  a("order", x.order);
  a("strictness", x.strictness);
  a("state", x.state);
  a("reclaims", x.reclaims);
  a("preempts_lower_priority", x.preempts_lower_priority);
  a("reclaim", x.reclaim);
  a("notice_ms", x.notice);
  a("min_runtime_ms", x.min_runtime);
  a("loss_budget_gpu_seconds", x.loss_budget_gpu_seconds);
  a("gpu_types", x.gpu_types);
  a("accounts", x.accounts);
  a("aliases", x.aliases);
}

struct QueueTree {
  std::vector<QueueSpec> queues;  // parents before children; empty = no quotas at all
  std::string default_queue;
  friend bool operator==(const QueueTree&, const QueueTree&) = default;

  const QueueSpec* find(std::string_view name) const {
    for (const QueueSpec& queue : queues)
      if (queue.name == name) return &queue;
    return nullptr;
  }
};
template <class A>
void describe(A& a, QueueTree& x) {
  a("queues", x.queues);
  a("default_queue", x.default_queue);
}

}  // namespace tutti
