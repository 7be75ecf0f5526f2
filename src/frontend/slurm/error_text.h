// What a Slurm command says on stderr and how it exits when something is refused: Slurm's own texts
// (those of 22.05, golden files in tests/golden/slurm), because clients tell cases apart by them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

#include "base/error.h"
#include "model/api.h"

namespace tutti::slurm {

// The end of a command: everything it prints on stderr, whole lines, and its exit code.
struct CommandError {
  int exit_code = 1;
  std::string text;
  Span span;  // where in a script; empty for the command line
};
template <class T>
using Parsed = tl::expected<T, CommandError>;

// "sbatch: error: WHAT\n".
CommandError command_error(std::string_view program, std::string_view what, int exit_code = 1);

// The sentence of slurm_strerror() for a reason of model/reasons.h ("Invalid partition name
// specified"); `message` itself for a reason that Slurm has no sentence for.
std::string slurm_sentence(const ApiError& error);
// An Error of ours about the way to the controller, as an ApiError.
ApiError as_api_error(const Error& error);

// What was asked for, where the text repeats it.
struct RefusedRequest {
  std::string partition;      // as given, for "invalid partition specified: NAME"
  std::string_view job = "";  // "12", "12_3"
};
// A refusal of sbatch, srun, salloc: one or two lines. Exit code 1.
CommandError submit_error(std::string_view program, const ApiError& error,
                          const RefusedRequest& request);
// A refusal of `scontrol VERB`, of one job: "Invalid user id for job 36". Exit code 1.
CommandError scontrol_error(const ApiError& error, const RefusedRequest& request);
// scancel on one job: silent and 0 for a job that is over or never was; 210 where it is denied.
CommandError scancel_error(const ApiError& error, const RefusedRequest& request);

// What a program that reads says when it gets no answer, by the function of Slurm's it stands for:
// squeue and `scontrol show job` "slurm_load_jobs", sinfo "slurm_load_partitions"...
enum class Reader : std::uint8_t {
  kSqueue,
  kSinfo,
  kSacct,
  kSprio,
  kSdiag,
  kScontrolJobs,
  kScontrolNodes,
  kScontrolPartitions,
  kScontrolSteps,
  kScontrolConfig,
  kScontrolReservations,
  kScontrolLicenses
};
CommandError read_error(Reader reader, const ApiError& error);

}  // namespace tutti::slurm
