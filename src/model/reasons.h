// The stable words for why a request is refused and why a gang waits. Front ends translate them
// (the Slurm front end to Slurm's texts); tests see that every one of them occurs somewhere.
#pragma once

#include <string_view>

namespace tutti::reason {

// Refusals at submit.
inline constexpr std::string_view kInvalidPartition = "invalid_partition";
inline constexpr std::string_view kPartitionDown = "partition_down_refused";
inline constexpr std::string_view kInvalidNode = "invalid_node_name";
inline constexpr std::string_view kInvalidFeature = "invalid_feature";
inline constexpr std::string_view kInvalidAccount = "invalid_account";
inline constexpr std::string_view kInvalidQos = "invalid_qos";
inline constexpr std::string_view kInvalidArray = "invalid_array";
inline constexpr std::string_view kInvalidDependency = "invalid_dependency";
inline constexpr std::string_view kInvalidReservation = "invalid_reservation";
inline constexpr std::string_view kReservationAccess = "reservation_access";
inline constexpr std::string_view kReservationBusy = "reservation_busy";
inline constexpr std::string_view kReservationOverlap = "reservation_overlap";
inline constexpr std::string_view kReservationName = "reservation_name_taken";
inline constexpr std::string_view kNodesBusy = "nodes_busy_then";
inline constexpr std::string_view kInvalidTime = "invalid_time_window";
inline constexpr std::string_view kInvalidGres = "invalid_gres";
inline constexpr std::string_view kInvalidLicense = "invalid_license";
inline constexpr std::string_view kInvalidTimeLimit = "invalid_time_limit";
inline constexpr std::string_view kNeverFits =
    "never_fits";  // no node set of the configured cluster can
inline constexpr std::string_view kMemoryNeverFits = "memory_never_fits";
inline constexpr std::string_view kScriptTooLarge = "script_too_large";
inline constexpr std::string_view kEmptyScript = "empty_script";
inline constexpr std::string_view kTooManyJobs = "too_many_jobs";
inline constexpr std::string_view kNotImmediate = "nodes_busy";  // --immediate and it cannot start
inline constexpr std::string_view kUnknownJob = "unknown_job";
inline constexpr std::string_view kUnknownNode = "unknown_node";
inline constexpr std::string_view kUnknownStep = "unknown_step";
inline constexpr std::string_view kNotOwner = "not_owner";
inline constexpr std::string_view kNotOperator = "not_operator";
inline constexpr std::string_view kAlreadyDone = "already_done";
inline constexpr std::string_view kStillPending = "still_pending";
inline constexpr std::string_view kNotRunning = "not_running";
inline constexpr std::string_view kRequeueDisabled = "requeue_disabled";
inline constexpr std::string_view kStepBusy = "step_resources_busy";  // try again later
inline constexpr std::string_view kStepNeverFits = "step_never_fits";
inline constexpr std::string_view kMalformed = "malformed";

// Why a gang waits.
inline constexpr std::string_view kPriority = "priority";
inline constexpr std::string_view kResources = "resources";
inline constexpr std::string_view kDependency = "dependency";
inline constexpr std::string_view kDependencyNever = "dependency_never_satisfied";
inline constexpr std::string_view kBeginTime = "begin_time";
inline constexpr std::string_view kHeldUser = "held_user";
inline constexpr std::string_view kHeldAdmin = "held_admin";
inline constexpr std::string_view kArrayThrottle = "array_throttle";
inline constexpr std::string_view kPartitionStopped = "partition_down";
inline constexpr std::string_view kPartitionInactive = "partition_inactive";
inline constexpr std::string_view kPartitionNodeLimit = "partition_node_limit";
inline constexpr std::string_view kPartitionTimeLimit = "partition_time_limit";
inline constexpr std::string_view kQueueQuota = "queue_quota";
inline constexpr std::string_view kQueueHeld = "queue_held";
inline constexpr std::string_view kNodesDown =
    "nodes_down";  // fits only if down or drained nodes return
inline constexpr std::string_view kRequestedNodesBusy = "requested_nodes_unavailable";
inline constexpr std::string_view kLaunchFailedHeld = "launch_failed_held";
inline constexpr std::string_view kRetrying =
    "retrying_launch";  // back-off after a failed roll call
inline constexpr std::string_view kReservedForMaintenance = "reserved_for_maintenance";
inline constexpr std::string_view kReservedForOthers = "reserved_for_others";
inline constexpr std::string_view kReservation = "reservation";  // its own has not begun
inline constexpr std::string_view kReservationGone = "reservation_deleted";
inline constexpr std::string_view kCleaning =
    "cleaning";                                       // requeued, the last life is not clean yet
inline constexpr std::string_view kNoneYet = "none";  // no pass has looked yet

}  // namespace tutti::reason
