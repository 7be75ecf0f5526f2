// Rights: who may take room back from whom, by the quota tree or by slurm.conf, judged below the
// lowest common ancestor of the two queues. See design/scheduling.md, 5. Internal to scheduler/.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/cluster_state.h"
#include "scheduler/quota.h"

namespace tutti::scheduler {

// Amounts by resource, as QuotaSpec names them: "gpu", "gpu:h100", "cpu", "memory".
using Amounts = std::map<std::string, std::uint64_t, std::less<>>;

// How a gang leaves if it must.
struct Yield {
  ReclaimMode mode = ReclaimMode::kOff;  // never kDefault
  Duration notice;
  Duration min_runtime;
  std::string queue;                    // whose budget it is booked on
  std::optional<std::uint64_t> budget;  // GPU-seconds per hour
};

class Rights {
 public:
  enum class Kind : std::uint8_t {
    kNone,
    kPriority,  // it stands strictly higher
    kNominal,   // the claimant's queue takes back what it owns
  };
  struct Claimant {
    const Workload* workload = nullptr;
    const PartitionSpec* partition = nullptr;
    std::optional<QueueId> queue;
    Amounts demand;        // of its minimum
    Instant nominal_from;  // from then on it stays within nominal at every node; never() if not
  };
  struct Taken {
    const Gang* gang = nullptr;
    const Workload* workload = nullptr;
    Kind kind = Kind::kNone;
    bool whole = true;
    Amounts amount;
  };

  // `quota` is settled and must live longer. Cost: O(active gangs x depth of the tree) where there
  // is a tree, else nothing.
  Rights(const ClusterState& state, const Agenda& agenda, const QuotaTree& quota, Instant now);

  // Whether anybody may take anything at all on this cluster.
  bool enabled() const { return enabled_; }
  Claimant claimant(const Workload& workload, const PartitionSpec& partition) const;
  Kind over(const Claimant& claimant, const Gang& gang, const Workload& victim) const;
  // The same for one that would start now.
  Kind over_start(const Claimant& claimant, const Workload& victim,
                  const PartitionSpec& partition) const;
  // Whether these may be taken together: nobody's queue falls below its nominal for surplus; a
  // whole gang may bring it there only as a last resort.
  bool together(const Claimant& claimant, const std::vector<Taken>& taken, bool last_resort) const;
  Yield yield_of(const Gang& gang, const Workload& workload) const;
  Yield yield_of(const Workload& workload, const PartitionSpec* where) const;
  Amounts holdings_of(const Gang& gang, std::optional<std::uint32_t> only_slot) const;
  const PartitionSpec* partition(std::string_view name) const;

 private:
  std::vector<QueueId> path(std::optional<QueueId> queue) const;  // from it to its root
  bool is_over(QueueId queue, const Amounts& held, const Amounts& added) const;
  Kind judge(const Claimant& claimant, const Workload& victim, const PartitionSpec* theirs,
             const Amounts& held, const Amounts& added) const;
  Instant nominal_from(std::optional<QueueId> queue, const Amounts& demand) const;
  std::vector<QueueId> below_lca(QueueId queue, QueueId other) const;

  const ClusterState& state_;
  const QuotaTree& quota_;
  bool enabled_ = false;
  std::vector<Amounts> used_;  // by queue, with all below it; without what is leaving
  struct Holding {
    Instant end;
    QueueId queue = 0;
    Amounts amount;
  };
  std::vector<Holding> holdings_;  // by end
  Instant now_;
};

// It has been told to leave and that stands.
inline bool is_leaving(const Gang& gang) {
  return gang.eviction && gang.eviction->deadline < Instant::never();
}
inline bool leaves_whole(const Gang& gang) {
  return is_leaving(gang) && gang.eviction->slots.empty();
}
// Strictly higher by what stands still: the priority class, then a priority that an operator gave.
bool stands_higher(const Workload& one, const Workload& other);

}  // namespace tutti::scheduler
