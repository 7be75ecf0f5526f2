// JobRow: one line of Slurm's job tables. A workload gives one row per gang, one for its elements
// that wait (or one per element), and each of these once per component when it is heterogeneous.
// Rows point into the StateView they were made from and are valid as long as it is.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/index_set.h"
#include "model/views.h"

namespace tutti::slurm {

enum class JobState : std::uint8_t {
  kPending,
  kRunning,
  kSuspended,
  kCompleted,
  kCancelled,
  kFailed,
  kTimeout,
  kNodeFail,
  kPreempted,
  kBootFail,
  kDeadline,
  kOutOfMemory,
  kCompleting,
  kConfiguring,
  kResizing,
  kResvDelHold,
  kRequeued,
  kRequeueFed,
  kRequeueHold,
  kRevoked,
  kSignaling,
  kSpecialExit,
  kStageOut,
  kStopped,
};
struct JobStateName {
  JobState state;
  std::string_view compact, word;
};
// In the order of Slurm's message "Valid job states include".
std::span<const JobStateName> job_state_names();
std::string_view state_word(JobState state);
std::string_view state_compact(JobState state);
// Either form in any case, also what sacct adds to it ("CANCELLED by 0", "CANCELLED+").
std::optional<JobState> parse_job_state(std::string_view text);
bool is_active(JobState state);  // what squeue shows by default
bool is_done(JobState state);
JobState state_of(const Gang& gang);
JobState state_of(Outcome outcome);

struct JobRow {
  const WorkloadView* view = nullptr;
  const GangView* gang = nullptr;            // null: waits or ended without ever starting
  std::optional<std::uint32_t> array_index;  // of a single element
  std::string_view array_text;               // of the waiting rest: "2-7"
  std::uint32_t role = 0;                    // component of a heterogeneous job
  JobState state = JobState::kPending;

  const Workload& workload() const { return view->workload; }
  const RoleAsk& ask() const { return workload().roles[role]; }
  bool is_het() const { return workload().roles.size() > 1; }
  bool is_pending() const { return state == JobState::kPending; }
  // Slurm's job id of this row alone; the waiting rest of an array has the array's own.
  std::uint32_t job_id() const;
  const Wait* wait() const;
  bool on_hold() const;
};

enum class ArrayRows : std::uint8_t { kFolded, kByElement };
// All rows of a view, in its order. Under kByElement an array's waiting rest is a row per element.
// Errors in `unstarted` (not an index set) give the rest as one row with that text.
std::vector<JobRow> job_rows(const StateView& view, ArrayRows arrays);
// Those of one workload, added to `rows`.
void add_job_rows(const WorkloadView& view, ArrayRows arrays, std::vector<JobRow>& rows);

// "31", "19_1", "19_[2-7%2]", "29+1".
void append_job_id(std::string& out, const JobRow& row);
// "2-7%2", "1", or "N/A" for what is no array.
std::string array_task_id(const JobRow& row);
// Slurm's word or sentence for why the row is as it is; "None" when there is nothing to say.
std::string_view job_reason(const JobRow& row);
// "afterok:19_*(unfulfilled)"; "" when none is left. Array numbers are known from `arrays`
// (array_ids()).
std::string dependency_text(const JobRow& row, const std::vector<std::uint32_t>& arrays);
std::vector<std::uint32_t> array_ids(const StateView& view);

// What a row holds, or asks for as long as it holds nothing.
struct JobAmounts {
  std::uint32_t nodes = 0, cpus = 0, tasks = 0;
  std::uint64_t memory_mib = 0;
  std::uint32_t gpus = 0;
};
JobAmounts job_amounts(const JobRow& row);
std::uint32_t min_cpus_per_node(const RoleAsk& ask);
// Names of its nodes, folded; "" while it waits.
std::string node_list(const JobRow& row);
std::vector<std::string> node_names(const JobRow& row);
std::string batch_host(const JobRow& row);  // "" while it waits

// The memory asked for, with what the number is for. Falls back to the partition's and the
// cluster's default when the view has them.
struct MemoryAsk {
  std::uint64_t mib = 0;
  enum class Per : std::uint8_t { kNode, kCpu, kGpu } per = Per::kNode;
};
MemoryAsk memory_ask(const JobRow& row, const StateView& view);

// "gres:gpu:rtxpro6000:4" per node, per task or for the job; "" when not asked that way.
enum class TresScope : std::uint8_t { kNode, kTask, kJob };
std::string tres_ask(const RoleAsk& ask, TresScope scope);
// "cpu=16,mem=128G,node=2,billing=16,gres/gpu=8,gres/gpu:rtxpro6000=8".
std::string tres_text(const JobRow& row, const StateView& view);

// Times as Slurm means them. start: actual, else planned, else the begin time, else unset.
Instant start_time(const JobRow& row);
Instant end_time(const JobRow& row);
Duration time_used(const JobRow& row, Instant now);
Duration time_left(const JobRow& row, Instant now);
std::uint64_t shown_priority(const JobRow& row);

// Where output goes, as the submitter wrote it or Slurm's default; under kExpanded with %j, %A, %a,
// %x, %u and %% replaced and made absolute.
enum class OutputKind : std::uint8_t { kStdin, kStdout, kStderr };
enum class Patterns : std::uint8_t { kAsWritten, kExpanded };
std::string output_path(const JobRow& row, OutputKind kind, Patterns patterns);

}  // namespace tutti::slurm
