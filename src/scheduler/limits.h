// Limits of accounts, users and QOSs, and licences: what is in use at this moment, and whether one
// more gang would be over. Who is over waits without a promise and keeps nobody back. Rules and words
// are Slurm's (man sacctmgr, man squeue): a limit says why with the word that squeue shows.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/cluster_state.h"

namespace tutti::scheduler {

struct OverLimit {
  std::string_view word;  // "AssocGrpGRES", "QOSMaxJobsPerUserLimit", "Licenses"
  std::string text;       // one sentence with the numbers
  std::string blocker;    // the limit's name
  bool by_qos = false;
};

class LimitBook {
 public:
  // Cost: O(gangs that hold slots); nothing when no limit is set and no licence configured.
  LimitBook(const ClusterState& state, const Agenda& agenda, Instant now);

  bool any() const { return any_; }
  // Whether one gang of the workload, with that time limit, may start now.
  std::optional<OverLimit> over(const WorkloadEntry& entry, const PartitionSpec& partition,
                                Duration limit) const;
  // A gang of it starts now.
  void started(const WorkloadEntry& entry, const PartitionSpec& partition, Duration limit);

 private:
  struct InUse {
    TresAmounts held, remaining;  // amounts; amounts times the milliseconds that are left
    std::uint32_t jobs = 0;
  };
  struct Used {
    TresAmounts amount;  // resource-milliseconds
    std::uint64_t wall_ms = 0;
  };
  using Name = std::pair<std::uint32_t, std::string>;  // Qos::id, user or account

  std::vector<const Qos*> qualities(const WorkloadEntry& entry, const PartitionSpec* where) const;
  TresAmounts ask(const Workload& workload, const PartitionSpec& partition) const;
  void add(const WorkloadEntry& entry, const PartitionSpec* where, const TresAmounts& held,
           Duration left);
  void gather_usage(Instant now);
  std::optional<OverLimit> over_association(const WorkloadEntry& entry, const TresAmounts& asked,
                                            Duration limit) const;
  std::optional<OverLimit> over_qos(const Qos& qos, const WorkloadEntry& entry,
                                    const TresAmounts& asked, Duration limit) const;
  std::optional<OverLimit> over_licenses(const TresAmounts& asked) const;

  const ClusterState& state_;
  const AccountBook& book_;
  bool any_ = false;
  std::map<AssociationId, InUse> associations_;
  std::map<std::uint32_t, InUse> qos_;
  std::map<Name, InUse> qos_users_, qos_accounts_;
  std::map<AssociationId, Used> used_;
  std::map<std::uint32_t, Used> qos_used_;
  TresAmounts licenses_;
};

// Refusals at submit: MaxSubmitJobs and GrpSubmitJobs, and with DenyOnLimit what the QOS could never
// let run. Empty = accepted. `jobs`: how many gangs the workload is.
std::optional<OverLimit> over_at_submit(const ClusterState& state, const Agenda& agenda,
                                        const WorkloadEntry& entry, std::uint64_t jobs);

// "matlab:2,foo" as "license/matlab": 2, "license/foo": 1. Empty for a malformed list.
std::optional<TresAmounts> parse_licenses(std::string_view text);

}  // namespace tutti::scheduler
