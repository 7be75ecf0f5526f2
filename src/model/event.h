// Every change of the cluster's state, as it is written to the journal. What an event means is
// defined once, in state/apply. An event carries the time at which it was decided.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/archive.h"
#include "base/time.h"
#include "model/accounts.h"
#include "model/cluster.h"
#include "model/eviction.h"
#include "model/gang_event.h"
#include "model/ids.h"
#include "model/promises.h"
#include "model/queues.h"
#include "model/reservation.h"
#include "model/workload.h"

namespace tutti {

struct ClusterConfigured {
  static constexpr std::string_view kName = "cluster_configured";
  ClusterSpec spec;
};
void describe(auto& a, ClusterConfigured& x) { a("spec", x.spec); }

struct WorkloadSubmitted {
  static constexpr std::string_view kName = "workload_submitted";
  Workload workload;
};
void describe(auto& a, WorkloadSubmitted& x) { a("workload", x.workload); }

// scontrol update, hold, release, top: only what is set changes. `array_index` or the gang's own
// number restricts it to one element (hold and priority only).
struct WorkloadChanged {
  static constexpr std::string_view kName = "workload_changed";
  WorkloadId workload;
  std::optional<GangId> gang;
  std::optional<Hold> hold;
  std::optional<std::string> hold_reason;
  std::optional<std::uint32_t> priority;
  bool clear_priority = false;
  std::optional<std::int32_t> nice;
  std::optional<Duration> time_limit;
  std::optional<Instant> begin;
  std::optional<std::string> name, comment, admin_comment, account, qos;
  std::optional<std::vector<std::string>> partitions;
  std::optional<std::uint32_t> array_throttle;
  std::optional<bool> requeue;
  std::optional<bool> detached, ends_with_steps;
  std::optional<std::vector<RoleAsk>> roles;
  std::optional<std::vector<Dependency>> dependencies;
};
void describe(auto& a, WorkloadChanged& x) {
  a("workload", x.workload);
  a("gang", x.gang);
  a("hold", x.hold);
  a("hold_reason", x.hold_reason);
  a("priority", x.priority);
  a("clear_priority", x.clear_priority);
  a("nice", x.nice);
  a("time_limit_ms", x.time_limit);
  a("begin_ms", x.begin);
  a("name", x.name);
  a("comment", x.comment);
  a("admin_comment", x.admin_comment);
  a("account", x.account);
  a("qos", x.qos);
  a("partitions", x.partitions);
  a("array_throttle", x.array_throttle);
  a("requeue", x.requeue);
  a("detached", x.detached);
  a("ends_with_steps", x.ends_with_steps);
  a("roles", x.roles);
  a("dependencies", x.dependencies);
}

// Elements of an array (or the whole of a simple job) that end without ever having started.
struct ElementsCancelled {
  static constexpr std::string_view kName = "elements_cancelled";
  WorkloadId workload;
  std::string indices;  // index set; "" = everything that is still pending
  Outcome outcome = Outcome::kCancelled;
  std::optional<std::uint32_t> by_uid;
};
void describe(auto& a, ElementsCancelled& x) {
  a("workload", x.workload);
  a("indices", x.indices);
  a("outcome", x.outcome);
  a("by_uid", x.by_uid);
}

// Finished longer than MinJobAge ago: only history knows it now.
struct WorkloadForgotten {
  static constexpr std::string_view kName = "workload_forgotten";
  WorkloadId workload;
};
void describe(auto& a, WorkloadForgotten& x) { a("workload", x.workload); }

struct NodeChanged {
  static constexpr std::string_view kName = "node_changed";
  std::string node;
  NodeState state;
};
void describe(auto& a, NodeChanged& x) {
  a("node", x.node);
  a("state", x.state);
}

struct PartitionChanged {
  static constexpr std::string_view kName = "partition_changed";
  std::string partition;
  PartitionState state = PartitionState::kUp;
};
void describe(auto& a, PartitionChanged& x) {
  a("partition", x.partition);
  a("state", x.state);
}

// The quota tree is replaced whole; what runs goes on, what is over its quota then only falls.
struct QueuesConfigured {
  static constexpr std::string_view kName = "queues_configured";
  QueueTree tree;
  std::optional<std::uint32_t> by_uid;
};
void describe(auto& a, QueuesConfigured& x) {
  a("tree", x.tree);
  a("by_uid", x.by_uid);
}

// Changes of the account book: what is listed is put in or replaced by its name (associations by
// account, user and partition; a number given with one is not looked at), then what is listed as
// gone is taken out. `reset`: associations whose usage is forgotten, with all below them.
struct AccountsConfigured {
  static constexpr std::string_view kName = "accounts_configured";
  std::vector<Account> accounts;
  std::vector<AccountUser> users;
  std::vector<Qos> qos;
  std::vector<Association> associations;  // parents before children
  std::vector<std::string> gone_accounts, gone_users, gone_qos;
  std::vector<AssociationId> gone_associations, reset;
  std::optional<std::uint32_t> by_uid;
  bool empty() const {
    return accounts.empty() && users.empty() && qos.empty() && associations.empty() &&
           gone_accounts.empty() && gone_users.empty() && gone_qos.empty() &&
           gone_associations.empty() && reset.empty();
  }
};
void describe(auto& a, AccountsConfigured& x) {
  a("accounts", x.accounts);
  a("users", x.users);
  a("qos", x.qos);
  a("associations", x.associations);
  a("gone_accounts", x.gone_accounts);
  a("gone_users", x.gone_users);
  a("gone_qos", x.gone_qos);
  a("gone_associations", x.gone_associations);
  a("reset", x.reset);
  a("by_uid", x.by_uid);
}

using EventBody =
    std::variant<ClusterConfigured, WorkloadSubmitted, WorkloadChanged, ElementsCancelled,
                 GangAllocated, RollCallFailed, AvoidanceExpired, GangStarted, StepCreated,
                 StepStarted, StepEnded, GangEnding, SlotReleased, WorkloadForgotten, NodeChanged,
                 PartitionChanged, GangWarned, QueuesConfigured, PromisesChanged, ReservationSet,
                 ReservationRemoved, EvictionDecided, EvictionWithdrawn, EvictionTakenOver,
                 CheckpointReported, RanksMet, GangSuspended, GangResumed, GangResized,
                 AccountsConfigured>;

struct Event {
  Instant at;
  EventBody body;
};
void describe(auto& a, Event& x) {
  a("at_ms", x.at);
  a("event", x.body);
}

}  // namespace tutti
