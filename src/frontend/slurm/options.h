// The options of sbatch, srun and salloc: one table (options_table.cpp) of every option that the
// man pages of 22.05 know, what each does here, and where its value goes. Values are parsed and
// checked when they are set, in the order and with the texts and exit codes of the real commands.
#pragma once

#include <bitset>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/gres_text.h"
#include "model/terms.h"
#include "base/signal_text.h"
#include "base/size_text.h"
#include "base/time.h"
#include "frontend/slurm/client_context.h"
#include "frontend/slurm/error_text.h"
#include "frontend/slurm/option_scan.h"

namespace tutti::slurm {

enum class Command : std::uint8_t { kSbatch, kSrun, kSalloc };
std::string_view program_name(Command command);

// Where a value came from; a later one of these wins over an earlier one.
enum class Origin : std::uint8_t { kDefault, kScript, kEnvironment, kCommandLine };

// The values as given, parsed. "Not given" is nullopt, an empty text or an empty list.
struct JobOptions {
  // Sizes
  std::optional<NodeCount> nodes;
  std::optional<std::uint32_t> tasks, tasks_per_node, tasks_per_gpu, cpus_per_task, cpus_per_gpu,
      min_cpus, sockets_per_node, relative;
  std::vector<Gres> gres, gpus, gpus_per_node, gpus_per_socket, gpus_per_task;
  bool gres_given = false;  // --gres=none is given and empty
  std::optional<std::uint64_t> memory_mib, memory_mib_per_cpu, memory_mib_per_gpu;
  std::optional<Duration> time_limit, time_min;
  TopologyAsk topology;
  bool exclusive = false, exact = false, overlap = false, contiguous = false;
  std::string constraint, node_list, exclude, node_file;
  // When and how
  std::string array, dependency, begin;
  Instant begin_at;
  std::optional<std::int32_t> nice;
  std::optional<std::uint32_t> priority;
  bool hold = false, no_kill = false;
  std::optional<bool> requeue;
  std::optional<std::uint32_t> immediate_s;  // 0 = at once
  std::optional<SignalSpec> signal;
  // Whose and where
  std::string account, qos, partition, reservation, licenses, clusters, wckey, comment, mail_user,
      mail_type, job_name, chdir;
  // Streams, environment
  std::string input, output, error, open_mode, export_names, export_file;
  bool export_given = false;
  // What the client does
  bool parsable = false, wait = false, test_only = false, quiet = false, label = false,
       unbuffered = false, pty = false, no_shell = false, bell = false, disable_status = false,
       quit_on_interrupt = false, help = false, usage = false, version = false, het_job = false;
  std::uint32_t verbose = 0;
  std::optional<std::string> wrap;
  std::optional<std::uint32_t> wait_s, kill_on_bad_exit, job_id;
  std::optional<int> kill_command;
  std::string distribution, mpi, het_group;

  // By row of the table.
  std::map<std::size_t, Origin> origins;
  std::vector<std::string> not_honoured;  // names, in the order given, once each

  Origin origin_of(std::string_view option) const;  // kDefault = not given
};

// What an option does here.
enum class Effect : std::uint8_t {
  kHonoured,
  kAccepted,  // known and checked, but without effect: its name goes to not_honoured
  kRefused,   // would change what the job means; said so
};

struct OptionFacts {
  std::string_view name;
  char letter = 0;
  Argument argument = Argument::kNone;
  Effect effect = Effect::kHonoured;
  std::string_view environment;  // of that command, "" = none
};
// The options of one command, for completion, --help and tests.
std::vector<OptionFacts> options_of(Command command);

// One component of a command line: `srun A : B` has two.
struct ParsedCommand {
  std::vector<JobOptions> components;  // at least one
  std::vector<std::string> operands;   // script or command, with its arguments, of the last
  std::vector<std::vector<std::string>> commands;  // srun: of each component
};

// The command line over the environment, before any script is read. `words` without the program.
Parsed<ParsedCommand> parse_command(Command command, std::span<const std::string> words,
                                    const ClientContext& context);

// What the environment alone says: of a component that only the script has.
Parsed<JobOptions> environment_options(Command command, const ClientContext& context);

// Adds an option as a `#SBATCH` line of a script gives it: it yields to what the environment and
// the command line said. `span` is put into an error.
Parsed<void> add_script_words(JobOptions& options, std::span<const std::string> words,
                              const ClientContext& context, const Span& span);

}  // namespace tutti::slurm
