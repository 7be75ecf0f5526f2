// The visitor behind apply(): one overload per event. Internal to state/.
#pragma once

#include "model/cluster_state.h"
#include "model/event.h"

namespace tutti::state {

// Lets the record share what is equal in one of the few submitted before it.
void share_equal_parts(const ClusterState& state, Workload& workload);

struct Fold {
  ClusterState& state;
  Agenda& agenda;
  Instant at;
  std::uint32_t touched_workload = 0;

  Status operator()(const ClusterConfigured& e);
  Status operator()(const WorkloadSubmitted& e);
  Status operator()(const WorkloadChanged& e);
  Status operator()(const ElementsCancelled& e);
  Status operator()(const GangAllocated& e);
  Status operator()(const RollCallFailed& e);
  Status operator()(const AvoidanceExpired& e);
  Status operator()(const GangStarted& e);
  Status operator()(const GangWarned& e);
  Status operator()(const StepCreated& e);
  Status operator()(const StepStarted& e);
  Status operator()(const StepEnded& e);
  Status operator()(const GangEnding& e);
  Status operator()(const SlotReleased& e);
  Status operator()(const WorkloadForgotten& e);
  Status operator()(const NodeChanged& e);
  Status operator()(const PartitionChanged& e);
  Status operator()(const QueuesConfigured& e);
  Status operator()(const AccountsConfigured& e);
  Status operator()(const PromisesChanged& e);
  Status operator()(const ReservationSet& e);
  Status operator()(const EvictionDecided& e);
  Status operator()(const EvictionWithdrawn& e);
  Status operator()(const EvictionTakenOver& e);
  Status operator()(const CheckpointReported& e);
  Status operator()(const RanksMet& e);
  Status operator()(const GangSuspended& e);
  Status operator()(const GangResumed& e);
  Status operator()(const GangResized& e);
  Status operator()(const ReservationRemoved& e);

  // fold_accounts.cpp. The association of the owner; one is made, with its account, if there is none.
  AssociationId associate(const Workload& workload);
  // Writes down what the gang has held since it was charged last, up to now.
  void charge_gang(Gang& gang);
  void charge_all();

  void put(Gang gang);
  void put(WorkloadEntry entry);
  // Promises of the workload whose element has started or is gone; all of them when it asks for
  // something else now.
  enum class Which : std::uint8_t { kObsolete, kAll };
  void forget_promises(WorkloadId workload, Which which);
  // Nodes have other positions, or none.
  void renumber_promises(const std::vector<std::optional<NodeIndex>>& now_at);
  // Notes when a workload has nothing left to do.
  void close_if_over(WorkloadId id);
  // One gang of the workload is done; the workload exists.
  void gang_is_over(WorkloadId id);
  static Status unknown(std::string_view what, std::uint32_t id);
  static Status wrong_phase(const Gang& gang, std::string_view event);
};

}  // namespace tutti::state
