// ClusterState: everything the cluster knows, as plain tables; the fold of the journal. Copying it
// is cheap and gives an immutable snapshot (the tables share their chunks), which is how readers
// see it. Agenda: what follows from the tables and is kept beside them so that nobody searches.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/cow_table.h"
#include "base/id_set.h"
#include "base/index_set.h"
#include "model/accounts.h"
#include "model/cluster.h"
#include "model/eviction.h"
#include "model/gang.h"
#include "model/promises.h"
#include "model/queues.h"
#include "model/reservation.h"
#include "model/usage.h"
#include "model/workload.h"

namespace tutti {

// A workload with what has become of its elements.
struct WorkloadEntry {
  Workload workload;
  IndexSet unstarted;             // elements of an array that have no gang yet
  AssociationId association = 0;  // its owner's place in the book
  bool simple_unstarted = false;  // not an array and its gang does not exist yet
  std::uint32_t open_gangs = 0;   // gangs that are not done
  std::vector<GangId> gangs;      // in order of first start
  // Of elements that ended without a gang (cancelled while pending).
  Outcome outcome = Outcome::kNone;
  std::optional<std::uint32_t> ended_by_uid;
  Instant ended;  // when nothing was left to do; unset before

  bool has_unstarted() const { return simple_unstarted || !unstarted.empty(); }
  bool is_open() const { return has_unstarted() || open_gangs > 0; }
};

struct ClusterState {
  std::uint64_t sequence = 0;  // events folded in
  std::shared_ptr<const ClusterSpec> spec = std::make_shared<ClusterSpec>();
  std::shared_ptr<const QueueTree> queues = std::make_shared<QueueTree>();
  std::shared_ptr<const PromiseBook> promises = std::make_shared<PromiseBook>();
  std::shared_ptr<const ReservationList> reservations = std::make_shared<ReservationList>();
  std::shared_ptr<const LossBook> losses = std::make_shared<LossBook>();
  std::shared_ptr<const AccountBook> accounts = std::make_shared<AccountBook>();
  CowTable<UsageRecord> usage;        // by AssociationId, of users
  CowTable<UsageRecord> qos_usage;    // by Qos::id
  CowTable<WorkloadEntry> workloads;  // by WorkloadId
  CowTable<Gang> gangs;               // by GangId
  CowTable<NodeState> nodes;          // by NodeIndex + 1
  std::uint32_t next_id = 1;          // workloads and gangs share one numbering
  std::uint64_t next_epoch = 1;

  const NodeState* node(NodeIndex index) const { return nodes.find(index + 1); }
};

struct Agenda {
  IdSet pending;   // workloads with an unstarted element or a pending gang
  IdSet active;    // gangs that hold slots: preparing, running, ending
  IdSet finished;  // workloads that are over but still remembered
  friend bool operator==(const Agenda&, const Agenda&) = default;
};

}  // namespace tutti
