// sbatch, srun and salloc lowered: a command line, an environment and a script in, a Submission or
// a StepRequest and what the client has to do out. Everything that can be said without the cluster
// is said here, with the texts and exit codes of the real commands; the rest is the controller's.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "frontend/slurm/client_context.h"
#include "frontend/slurm/error_text.h"
#include "frontend/slurm/options.h"
#include "model/api.h"

namespace tutti::slurm {

// --help, --usage and --version end a command before anything else happens.
enum class Show : std::uint8_t { kNothing, kHelp, kUsage, kVersion, kMpiTypes };

struct LoweredBatch {
  Show show = Show::kNothing;
  Submission submission;
  std::string warnings;  // whole lines for stderr, also on success
  bool parsable = false, wait = false, quiet = false, test_only = false;
  std::uint32_t verbose = 0;
  std::string clusters;    // as given with -M
  RefusedRequest refused;  // for submit_error()
};
// `words` without the program's name. Reads the script with context.open_file (no more of it than
// a script may have). The name of the job is that of the script file, "wrap" or "sbatch".
Parsed<LoweredBatch> lower_sbatch(std::span<const std::string> words, const ClientContext& context);

struct LoweredRun {
  Show show = Show::kNothing;
  // Set when srun makes its own allocation; else the steps go to `job`.
  std::optional<Submission> allocation;
  std::uint32_t job = 0;
  // One for each component (`srun A : B`). `gang` is set for steps of an existing job.
  std::vector<StepRequest> steps;
  std::string warnings;
  bool label = false, unbuffered = false, pty = false, quiet = false, test_only = false,
       disable_status = false, quit_on_interrupt = false;
  std::uint32_t verbose = 0;
  // Seconds after the first task's end before the others are killed; none = the cluster's choice.
  std::optional<std::uint32_t> wait_s;
  bool kill_on_bad_exit = false;
  std::optional<std::uint32_t> immediate_s;  // give up after so long (0: at once)
  std::string het_group;
  RefusedRequest refused;
};
// Inside a job (SLURM_JOB_ID, or --jobid) the SLURM_* variables of the allocation are inherited as
// "INPUT ENVIRONMENT VARIABLES" of srun(1) says. SLURM_CPUS_PER_TASK is not (since 22.05).
Parsed<LoweredRun> lower_srun(std::span<const std::string> words, const ClientContext& context);

struct LoweredAllocation {
  Show show = Show::kNothing;
  Submission submission;
  std::string warnings;
  std::vector<std::string> command;  // empty = the user's shell
  bool no_shell = false, bell = false, quiet = false;
  std::uint32_t verbose = 0;
  std::optional<std::uint32_t> immediate_s;
  std::optional<int> kill_command;  // signal for the command when the allocation ends
  RefusedRequest refused;
};
Parsed<LoweredAllocation> lower_salloc(std::span<const std::string> words,
                                       const ClientContext& context);

// The environment that --export and --export-file leave: all of it; or SLURM_* and what is named.
// Without "ALL" also HOME, USER, LOGNAME, SHELL and a plain PATH, for a login environment.
// Errors: an export file that cannot be read.
Parsed<Environment> exported_environment(Command command, const JobOptions& options,
                                         const ClientContext& context);

// The value of srun's --input, --output and --error: "none", "all", a task's number, or a file.
StreamTarget stream_target(std::string_view mode, std::uint32_t tasks);

}  // namespace tutti::slurm
