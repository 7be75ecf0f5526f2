#include "frontend/slurm/error_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "model/reasons.h"

namespace tutti::slurm {
namespace {

struct Sentence {
  std::string_view reason, text;
};
constexpr std::string_view kNoController = "Unable to contact slurm controller (connect failure)";
constexpr std::array kSentences{
    Sentence{reason::kInvalidPartition, "Invalid partition name specified"},
    Sentence{reason::kPartitionDown, "Required partition not available (inactive or drain)"},
    Sentence{reason::kInvalidNode, "Invalid node name specified"},
    Sentence{reason::kUnknownNode, "Invalid node name specified"},
    Sentence{reason::kInvalidFeature, "Invalid feature specification"},
    Sentence{reason::kInvalidAccount, "Invalid account or account/partition combination specified"},
    Sentence{reason::kInvalidQos, "Invalid qos specification"},
    Sentence{reason::kInvalidArray, "Invalid job array specification"},
    Sentence{reason::kInvalidDependency, "Job dependency problem"},
    Sentence{reason::kInvalidReservation, "Requested reservation is invalid"},
    Sentence{reason::kReservationAccess, "Access denied to requested reservation"},
    Sentence{reason::kReservationBusy, "Requested reservation is in use"},
    Sentence{reason::kReservationOverlap,
             "Requested reservation overlaps with another reservation"},
    Sentence{reason::kReservationName, "Duplicate reservation name"},
    Sentence{reason::kNodesBusy, "Requested nodes are busy"},
    Sentence{reason::kInvalidTime, "Invalid time specified"},
    Sentence{reason::kInvalidGres, "Invalid generic resource (gres) specification"},
    Sentence{reason::kInvalidLicense, "Invalid license specification"},
    Sentence{reason::kInvalidTimeLimit,
             "Requested time limit is invalid (missing or exceeds some limit)"},
    Sentence{reason::kNeverFits, "Requested node configuration is not available"},
    Sentence{reason::kMemoryNeverFits, "Requested node configuration is not available"},
    Sentence{reason::kStepNeverFits, "More processors requested than permitted"},
    Sentence{reason::kScriptTooLarge, "Pathname of a file, directory or other parameter too long"},
    Sentence{reason::kEmptyScript, "Batch script is empty!"},
    Sentence{reason::kTooManyJobs, "Slurm temporarily unable to accept job, sleeping and retrying"},
    Sentence{reason::kNotImmediate, "Requested nodes are busy"},
    Sentence{reason::kStepBusy, "Requested nodes are busy"},
    Sentence{reason::kUnknownJob, "Invalid job id specified"},
    Sentence{reason::kUnknownStep, "Invalid job id specified"},
    Sentence{reason::kNotOwner, "Access/permission denied"},
    Sentence{reason::kNotOperator, "Access/permission denied"},
    Sentence{reason::kAlreadyDone, "Job/step already completing or completed"},
    Sentence{reason::kStillPending, "Job is pending execution"},
    Sentence{reason::kNotRunning, "Job is in a state which does not permit this operation"},
    Sentence{reason::kRequeueDisabled, "Requested operation is presently disabled"},
};

// Exit codes of a failed kill: Slurm ends scancel with the error's number cut to a byte.
constexpr int kExitDenied = 210;

}  // namespace

CommandError command_error(std::string_view program, std::string_view what, int exit_code) {
  return {exit_code, fmt::format("{}: error: {}\n", program, what), {}};
}

std::string slurm_sentence(const ApiError& error) {
  for (const Sentence& sentence : kSentences)
    if (sentence.reason == error.reason) return std::string(sentence.text);
  if (error.code == ErrorCode::kUnavailable) return std::string(kNoController);
  return error.message.empty() ? error.reason : error.message;
}

ApiError as_api_error(const Error& error) { return {error.code, error.reason, to_string(error)}; }

namespace {
// Slurm's sentence says too little for these: ours follows it on a line of its own.
std::string with_detail(std::string_view program, const ApiError& error) {
  static constexpr std::array kTerse{
      reason::kNeverFits,   reason::kMemoryNeverFits,   reason::kStepNeverFits,
      reason::kInvalidNode, reason::kInvalidDependency, reason::kInvalidFeature,
      reason::kInvalidGres, reason::kScriptTooLarge,    reason::kTooManyJobs};
  bool terse = std::find(kTerse.begin(), kTerse.end(), error.reason) != kTerse.end();
  if (!terse || error.message.empty()) return {};
  return fmt::format("{}: tutti: {}\n", program, error.message);
}
}  // namespace

CommandError submit_error(std::string_view program, const ApiError& error,
                          const RefusedRequest& request) {
  std::string text;
  if (error.reason == reason::kInvalidPartition && !request.partition.empty())
    text += fmt::format("{}: error: invalid partition specified: {}\n", program, request.partition);
  if (error.reason == reason::kMemoryNeverFits)
    text += fmt::format("{}: error: Memory specification can not be satisfied\n", program);
  if (error.reason == reason::kEmptyScript || error.reason == reason::kInvalidGres) {
    text += fmt::format("{}: error: {}\n", program, slurm_sentence(error));
    text += with_detail(program, error);
    return {1, std::move(text), {}};
  }
  std::string_view head =
      program == "sbatch"   ? "Batch job submission failed"
      : program == "salloc" ? "Job submit/allocate failed"
      : error.reason == reason::kStepNeverFits || error.reason == reason::kStepBusy
          ? "Unable to create step for job"
          : "Unable to allocate resources";
  if (head.ends_with("for job") && !request.job.empty())
    text +=
        fmt::format("{}: error: {} {}: {}\n", program, head, request.job, slurm_sentence(error));
  else
    text += fmt::format("{}: error: {}: {}\n", program, head, slurm_sentence(error));
  text += with_detail(program, error);
  return {1, std::move(text), {}};
}

CommandError scontrol_error(const ApiError& error, const RefusedRequest& request) {
  std::string sentence =
      error.reason == reason::kNotOwner ? "Invalid user id" : slurm_sentence(error);
  if (error.code == ErrorCode::kUnavailable || request.job.empty())
    return {1, fmt::format("slurm_update error: {}\n", sentence), {}};
  return {1, fmt::format("{} for job {}\n", sentence, request.job), {}};
}

CommandError scancel_error(const ApiError& error, const RefusedRequest& request) {
  if (error.reason == reason::kUnknownJob || error.reason == reason::kAlreadyDone)
    return {0, "", {}};
  bool denied = error.code == ErrorCode::kDenied;
  return {denied ? kExitDenied : 1,
          fmt::format("scancel: error: Kill job error on job id {}: {}\n", request.job,
                      slurm_sentence(error)),
          {}};
}

CommandError read_error(Reader reader, const ApiError& error) {
  std::string sentence = slurm_sentence(error);
  auto line = [&](std::string_view head) {
    return CommandError{1, fmt::format("{}: {}\n", head, sentence), {}};
  };
  switch (reader) {
    case Reader::kSinfo:
      return line("slurm_load_partitions");
    case Reader::kSdiag:
      return line("slurm_get_statistics");
    case Reader::kSacct:
      return line("sacct: error");
    case Reader::kScontrolNodes:
      return line("slurm_load_node error");
    case Reader::kScontrolPartitions:
      return line("slurm_load_partitions error");
    case Reader::kScontrolSteps:
      return line("slurm_get_job_steps error");
    case Reader::kScontrolConfig:
      return line("slurm_load_ctl_conf error");
    case Reader::kScontrolReservations:
      return line("slurm_load_reservations error");
    case Reader::kScontrolLicenses:
      return line("slurm_load_licenses error");
    case Reader::kSqueue:
    case Reader::kSprio:
    case Reader::kScontrolJobs:
      return line("slurm_load_jobs error");
  }
  return line("slurm_load_jobs error");
}

}  // namespace tutti::slurm
