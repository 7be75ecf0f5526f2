#include "frontend/slurm/view_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "base/text.h"
#include "model/reasons.h"

namespace tutti::slurm {
namespace {

constexpr std::array kStateNames{JobStateName{JobState::kPending, "PD", "PENDING"},
                                 JobStateName{JobState::kRunning, "R", "RUNNING"},
                                 JobStateName{JobState::kSuspended, "S", "SUSPENDED"},
                                 JobStateName{JobState::kCompleted, "CD", "COMPLETED"},
                                 JobStateName{JobState::kCancelled, "CA", "CANCELLED"},
                                 JobStateName{JobState::kFailed, "F", "FAILED"},
                                 JobStateName{JobState::kTimeout, "TO", "TIMEOUT"},
                                 JobStateName{JobState::kNodeFail, "NF", "NODE_FAIL"},
                                 JobStateName{JobState::kPreempted, "PR", "PREEMPTED"},
                                 JobStateName{JobState::kBootFail, "BF", "BOOT_FAIL"},
                                 JobStateName{JobState::kDeadline, "DL", "DEADLINE"},
                                 JobStateName{JobState::kOutOfMemory, "OOM", "OUT_OF_MEMORY"},
                                 JobStateName{JobState::kCompleting, "CG", "COMPLETING"},
                                 JobStateName{JobState::kConfiguring, "CF", "CONFIGURING"},
                                 JobStateName{JobState::kResizing, "RS", "RESIZING"},
                                 JobStateName{JobState::kResvDelHold, "RD", "RESV_DEL_HOLD"},
                                 JobStateName{JobState::kRequeued, "RQ", "REQUEUED"},
                                 JobStateName{JobState::kRequeueFed, "RF", "REQUEUE_FED"},
                                 JobStateName{JobState::kRequeueHold, "RH", "REQUEUE_HOLD"},
                                 JobStateName{JobState::kRevoked, "RV", "REVOKED"},
                                 JobStateName{JobState::kSignaling, "SI", "SIGNALING"},
                                 JobStateName{JobState::kSpecialExit, "SE", "SPECIAL_EXIT"},
                                 JobStateName{JobState::kStageOut, "SO", "STAGE_OUT"},
                                 JobStateName{JobState::kStopped, "ST", "STOPPED"}};

const JobStateName& name_of(JobState state) { return kStateNames[static_cast<std::size_t>(state)]; }

void append_number(std::string& out, std::uint64_t number) {
  char buffer[20];
  auto [end, error] = std::to_chars(buffer, buffer + sizeof buffer, number);
  out.append(buffer, end);
}

struct ReasonWord {
  std::string_view reason, word;
};
constexpr std::array kReasonWords{
    ReasonWord{reason::kPriority, "Priority"},
    ReasonWord{reason::kResources, "Resources"},
    ReasonWord{reason::kDependency, "Dependency"},
    ReasonWord{reason::kDependencyNever, "DependencyNeverSatisfied"},
    ReasonWord{reason::kBeginTime, "BeginTime"},
    ReasonWord{reason::kHeldUser, "JobHeldUser"},
    ReasonWord{reason::kHeldAdmin, "JobHeldAdmin"},
    ReasonWord{reason::kArrayThrottle, "JobArrayTaskLimit"},
    ReasonWord{reason::kGroupIncomplete, "Dependency"},
    ReasonWord{reason::kPartitionStopped, "PartitionDown"},
    ReasonWord{reason::kPartitionInactive, "PartitionInactive"},
    ReasonWord{reason::kPartitionNodeLimit, "PartitionNodeLimit"},
    ReasonWord{reason::kPartitionTimeLimit, "PartitionTimeLimit"},
    ReasonWord{reason::kQueueQuota, "AssocGrpGRES"},
    ReasonWord{reason::kQueueHeld, "JobHeldAdmin"},
    ReasonWord{reason::kNodesDown,
               "Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority "
               "partitions"},
    ReasonWord{reason::kRequestedNodesBusy, "ReqNodeNotAvail"},
    ReasonWord{reason::kLaunchFailedHeld, "launch failed requeued held"},
    ReasonWord{reason::kRetrying, "BeginTime"},
    ReasonWord{reason::kReservedForMaintenance, "ReqNodeNotAvail, Reserved for maintenance"},
    ReasonWord{reason::kReservedForOthers, "ReqNodeNotAvail, May be reserved for other job"},
    ReasonWord{reason::kReservation, "Reservation"},
    ReasonWord{reason::kReservationGone, "ReservationDeleted"},
    ReasonWord{reason::kCleaning, "Cleaning"},
    ReasonWord{reason::kNoneYet, "None"}};

std::string_view reason_of_end(JobState state) {
  switch (state) {
    case JobState::kFailed:
      return "NonZeroExitCode";
    case JobState::kTimeout:
      return "TimeLimit";
    case JobState::kNodeFail:
      return "NodeDown";
    case JobState::kOutOfMemory:
      return "OutOfMemory";
    case JobState::kDeadline:
      return "DeadLine";
    default:
      return "None";
  }
}

void add_rest_rows(const WorkloadView& view, ArrayRows arrays, std::vector<JobRow>& rows) {
  JobRow row;
  row.view = &view;
  if (!view.unstarted.empty()) {
    row.array_text = view.unstarted;
    auto set = parse_index_set(view.unstarted, 0xFFFFFFFE);
    if (set && set->count() == 1) {
      row.array_index = set->first();
    } else if (set && arrays == ArrayRows::kByElement) {
      for (const IndexSet::Range& range : set->ranges())
        for (std::uint64_t i = range.first; i <= range.last; ++i) {
          row.array_index = static_cast<std::uint32_t>(i);
          rows.push_back(row);
        }
      return;
    }
    rows.push_back(row);
  } else if (view.simple_unstarted) {
    rows.push_back(row);
  }
}

}  // namespace

std::span<const JobStateName> job_state_names() { return kStateNames; }
std::string_view state_word(JobState state) { return name_of(state).word; }
std::string_view state_compact(JobState state) { return name_of(state).compact; }

std::optional<JobState> parse_job_state(std::string_view text) {
  std::string_view word = text.substr(0, text.find_first_of(" +"));
  for (const JobStateName& name : kStateNames)
    if (equals_ci(word, name.compact) || equals_ci(word, name.word)) return name.state;
  return std::nullopt;
}

bool is_active(JobState state) {
  switch (state) {
    case JobState::kPending:
    case JobState::kRunning:
    case JobState::kSuspended:
    case JobState::kCompleting:
    case JobState::kConfiguring:
    case JobState::kResizing:
    case JobState::kSignaling:
    case JobState::kStageOut:
    case JobState::kStopped:
      return true;
    default:
      return false;
  }
}

bool is_done(JobState state) { return !is_active(state); }

JobState state_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::kNone:
    case Outcome::kCompleted:
      return JobState::kCompleted;
    case Outcome::kFailed:
      return JobState::kFailed;
    case Outcome::kCancelled:
      return JobState::kCancelled;
    case Outcome::kTimeout:
      return JobState::kTimeout;
    case Outcome::kNodeFail:
      return JobState::kNodeFail;
    case Outcome::kOutOfMemory:
      return JobState::kOutOfMemory;
    case Outcome::kPreempted:
      return JobState::kPreempted;
    case Outcome::kDeadline:
      return JobState::kDeadline;
    case Outcome::kLaunchFailed:
      return JobState::kBootFail;
    case Outcome::kRequeued:
      return JobState::kRequeued;
  }
  return JobState::kCompleted;
}

JobState state_of(const Gang& gang) {
  switch (gang.state) {
    case GangState::kPending:
      return JobState::kPending;
    case GangState::kPreparing:
      return JobState::kConfiguring;
    case GangState::kRunning:
      return JobState::kRunning;
    case GangState::kEnding:
      return JobState::kCompleting;
    case GangState::kDone:
      return state_of(gang.outcome);
  }
  return JobState::kPending;
}

std::uint32_t JobRow::job_id() const {
  return gang ? gang->gang.id.value() : workload().id.value();
}

const Wait* JobRow::wait() const {
  if (!is_pending()) return nullptr;
  const std::optional<Wait>& wait = gang ? gang->wait : view->wait;
  return wait ? &*wait : nullptr;
}

bool JobRow::on_hold() const {
  return is_pending() &&
         (workload().hold != Hold::kNone || (gang && gang->gang.hold != Hold::kNone));
}

void add_job_rows(const WorkloadView& w, ArrayRows arrays, std::vector<JobRow>& rows) {
  // A workload without any role is not one; a reader must not fall over it.
  if (w.workload.roles.empty()) return;
  const std::size_t first = rows.size();
  add_rest_rows(w, arrays, rows);
  if (w.outcome != Outcome::kNone) {
    JobRow row;
    row.view = &w;
    row.state = state_of(w.outcome);
    rows.push_back(row);
  }
  for (const GangView& g : w.gangs) {
    JobRow row;
    row.view = &w;
    row.gang = &g;
    row.array_index = g.gang.array_index;
    row.state = state_of(g.gang);
    rows.push_back(row);
  }
  if (w.workload.roles.size() <= 1) return;
  const std::size_t last = rows.size();
  for (std::size_t i = first; i < last; ++i)
    for (std::uint32_t role = 1; role < w.workload.roles.size(); ++role) {
      JobRow row = rows[i];
      row.role = role;
      rows.push_back(row);
    }
}

std::vector<JobRow> job_rows(const StateView& view, ArrayRows arrays) {
  std::vector<JobRow> rows;
  rows.reserve(view.workloads.size() + 16);
  for (const WorkloadView& w : view.workloads) add_job_rows(w, arrays, rows);
  return rows;
}

void append_job_id(std::string& out, const JobRow& row) {
  const Workload& w = row.workload();
  if (row.array_index) {
    append_number(out, w.id.value());
    out += '_';
    append_number(out, *row.array_index);
  } else if (!row.array_text.empty()) {
    append_number(out, w.id.value());
    out += "_[";
    out += row.array_text;
    if (w.array_throttle != 0) {
      out += '%';
      append_number(out, w.array_throttle);
    }
    out += ']';
  } else {
    append_number(out, row.job_id());
  }
  if (row.is_het()) {
    out += '+';
    append_number(out, row.role);
  }
}

std::string array_task_id(const JobRow& row) {
  if (row.array_index) return fmt::format("{}", *row.array_index);
  if (row.array_text.empty()) return "N/A";
  std::uint32_t throttle = row.workload().array_throttle;
  return throttle == 0 ? std::string(row.array_text)
                       : fmt::format("{}%{}", row.array_text, throttle);
}

std::string_view job_reason(const JobRow& row) {
  if (is_done(row.state)) return reason_of_end(row.state);
  if (!row.is_pending()) return "None";
  const Wait* wait = row.wait();
  std::string_view why = wait ? std::string_view(wait->reason) : std::string_view();
  if (why.empty() && row.on_hold()) {
    bool admin =
        row.workload().hold == Hold::kAdmin || (row.gang && row.gang->gang.hold == Hold::kAdmin);
    return admin ? "JobHeldAdmin" : "JobHeldUser";
  }
  for (const ReasonWord& known : kReasonWords)
    if (known.reason == why) return known.word;
  return why.empty() ? "None" : why;
}

std::vector<std::uint32_t> array_ids(const StateView& view) {
  std::vector<std::uint32_t> ids;
  for (const WorkloadView& w : view.workloads)
    if (w.workload.is_array()) ids.push_back(w.workload.id.value());
  std::sort(ids.begin(), ids.end());
  return ids;
}

std::string dependency_text(const JobRow& row, const std::vector<std::uint32_t>& arrays) {
  const WorkloadExtras& extras = row.workload().extras;
  if (extras.dependencies.empty() || !row.is_pending()) return {};
  // Slurm forgets a dependency once it is fulfilled; so does this text, by the reason to wait.
  std::string_view why = job_reason(row);
  bool never = why == "DependencyNeverSatisfied";
  if (!never && why != "Dependency" && !row.on_hold()) return {};
  std::string out;
  for (const Dependency& d : extras.dependencies) {
    if (!out.empty()) out += extras.any_dependency ? '?' : ',';
    out += enum_name(d.kind);
    if (d.kind != DependencyKind::kSingleton) {
      fmt::format_to(std::back_inserter(out), ":{}", d.job);
      if (d.array_index)
        fmt::format_to(std::back_inserter(out), "_{}", *d.array_index);
      else if (d.of_array || std::binary_search(arrays.begin(), arrays.end(), d.job))
        out += "_*";
      if (d.delay_minutes != 0) fmt::format_to(std::back_inserter(out), "+{}", d.delay_minutes);
    }
    out += never ? "(failed)" : "(unfulfilled)";
  }
  return out;
}

Instant start_time(const JobRow& row) {
  if (row.is_pending()) {
    if (row.on_hold()) return {};
    const Wait* wait = row.wait();
    if (wait && wait->planned_start.is_set()) return wait->planned_start;
    if (row.gang && row.gang->gang.eligible > row.workload().submitted)
      return row.gang->gang.eligible;
    return row.workload().begin;
  }
  if (!row.gang) return {};
  const Gang& gang = row.gang->gang;
  return gang.started.is_set() ? gang.started : gang.allocated;
}

Instant end_time(const JobRow& row) {
  if (is_done(row.state)) return row.gang ? row.gang->gang.ended : row.view->ended;
  if (row.is_pending()) {
    Instant start = start_time(row);
    return start.is_set() ? start + row.view->time_limit : Instant{};
  }
  const Gang& gang = row.gang->gang;
  if (gang.ended.is_set()) return gang.ended;
  if (gang.limit_end.is_set()) return gang.limit_end;
  return start_time(row) + row.view->time_limit;
}

Duration time_used(const JobRow& row, Instant now) {
  if (row.is_pending() || !row.gang) return {};
  Instant start = start_time(row);
  if (!start.is_set()) return {};
  Instant end = row.gang->gang.ended.is_set() ? row.gang->gang.ended : now;
  return end > start ? end - start : Duration{};
}

Duration time_left(const JobRow& row, Instant now) {
  Duration limit = row.view->time_limit;
  if (limit.is_infinite()) return limit;
  // Whole seconds on both sides, so that used and left add up to the limit.
  return Duration::seconds(limit.whole_seconds() - time_used(row, now).whole_seconds());
}

std::uint64_t shown_priority(const JobRow& row) {
  return row.on_hold() ? 0 : row.view->priority.total;
}

}  // namespace tutti::slurm
