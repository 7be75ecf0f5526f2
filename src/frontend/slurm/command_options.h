// The options of the commands that ask and change: scancel, squeue, sinfo, sacct, sprio, sdiag and
// scontrol, parsed into plain structs. Formats, sort orders and node states stay the text that was
// given (the views know what they mean); job ids, job states and times are checked here, with the
// texts of the real commands. Environment variables of a command are its defaults.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/slurm/client_context.h"
#include "frontend/slurm/error_text.h"
#include "frontend/slurm/lowering.h"
#include "frontend/slurm/option_scan.h"
#include "model/api.h"
#include "model/reservation.h"

namespace tutti::slurm {

// A job as the user wrote it: "12", "12_3", "12_[1-5]", "12.0", "12.batch", "12+0".
struct JobName {
  std::string text;
  JobRef job;
  std::optional<StepId> step;
};
// Nothing if it is no job id. A component ("+0") is accepted; it names the whole job.
std::optional<JobName> parse_job_name(std::string_view text);

// "PENDING" for PENDING, pending, PD, pd; nothing for an unknown word.
std::optional<std::string_view> job_state_name(std::string_view word);

// The options that "scancel", "squeue", "sinfo", "sacct", "sprio", "sdiag" or "scontrol" knows, in
// the order of its table, for --help and completion; nothing for another name.
struct KnownOption {
  OptionName option;
  bool has_effect = false;  // else accepted and of no consequence here
};
std::vector<KnownOption> known_options(std::string_view program);
// The first words that scontrol takes ("show", "hold"...), in the order they are looked for.
std::vector<std::string_view> scontrol_keywords();

struct ScancelCommand {
  Show show = Show::kNothing;
  // One for each step named, and one for all jobs or filters; `verb` is kCancel or kSignal.
  std::vector<ActionRequest> requests;
  std::vector<std::string> names;  // as given, for "Terminating job N"
  std::string clusters;
  bool interactive = false, quiet = false;
  std::uint32_t verbose = 0;
};
Parsed<ScancelCommand> parse_scancel(std::span<const std::string> words,
                                     const ClientContext& context);

struct SqueueCommand {
  Show show = Show::kNothing;
  std::string format, name_format, sort;  // -o, -O, -S
  bool all = false, hide = false, array = false, array_unique = false, no_header = false,
       long_form = false, start = false, no_convert = false, json = false, yaml = false,
       only_job_state = false, priority = false, steps = false, all_states = false, me = false;
  std::uint32_t iterate_s = 0, verbose = 0;
  std::vector<JobName> jobs, step_names;
  std::vector<std::string> users, accounts, partitions, qos, names, licenses, reservations, nodes;
  std::vector<std::string> states;  // full names
  std::string clusters;
};
Parsed<SqueueCommand> parse_squeue(std::span<const std::string> words,
                                   const ClientContext& context);

struct SinfoCommand {
  Show show = Show::kNothing;
  std::string format, name_format, sort;
  bool all = false, hide = false, dead = false, exact = false, future = false, no_header = false,
       long_form = false, by_node = false, no_convert = false, responding = false, reasons = false,
       summarize = false, reservation = false, json = false, yaml = false;
  std::uint32_t iterate_s = 0, verbose = 0;
  std::vector<std::string> partitions, nodes, states;  // states as given, lower case
  std::string clusters;
};
Parsed<SinfoCommand> parse_sinfo(std::span<const std::string> words, const ClientContext& context);

struct SacctCommand {
  Show show = Show::kNothing;
  std::string format, delimiter = "|", units;
  bool all_users = false, allocations = false, batch_script = false, brief = false,
       duplicates = false, help_format = false, json = false, yaml = false, long_form = false,
       no_convert = false, no_header = false, parsable = false, parsable2 = false, truncate = false,
       env_vars = false, array = false;
  std::uint32_t verbose = 0;
  std::vector<JobName> jobs;
  std::vector<std::string> accounts, users, groups, partitions, qos, names, nodes, wckeys;
  std::vector<std::string> states;    // full names
  std::optional<Instant> start, end;  // as asked for; defaults are sacct's (see sacct(1))
  std::string clusters;
};
Parsed<SacctCommand> parse_sacct(std::span<const std::string> words, const ClientContext& context);

struct SprioCommand {
  Show show = Show::kNothing;
  std::string format, sort;
  bool no_header = false, long_form = false, normalized = false, weights = false;
  std::uint32_t verbose = 0;
  std::vector<JobName> jobs;
  std::vector<std::string> users, partitions;
  std::string clusters;
};
Parsed<SprioCommand> parse_sprio(std::span<const std::string> words, const ClientContext& context);

struct SdiagCommand {
  Show show = Show::kNothing;
  bool all = false, reset = false, json = false, yaml = false;
  char sort = 0;  // 'i', 't', 'T'
  std::string clusters;
};
Parsed<SdiagCommand> parse_sdiag(std::span<const std::string> words, const ClientContext& context);

enum class ScontrolVerb : std::uint8_t {
  kHelp,
  kVersion,
  kPing,
  kReconfigure,
  kShutdown,
  kShowAliases,
  kShowConfig,
  kShowDaemons,
  kShowHostList,
  kShowHostListSorted,
  kShowHostNames,
  kShowJobs,
  kShowLicenses,
  kShowNodes,
  kShowPartitions,
  kShowReservations,
  kShowSteps,
  kShowTopology,
  kAct,              // `action`, for the jobs named
  kUpdateNode,       // `node`
  kUpdatePartition,  // `partition`
  kReservation,      // `reservation`: create, update, delete
  kWriteBatchScript,
  kWaitJob,
  kListPids,
};
struct ScontrolCommand {
  Show show = Show::kNothing;
  ScontrolVerb verb = ScontrolVerb::kHelp;
  bool all = false, details = false, one_line = false, quiet = false, json = false, yaml = false,
       future = false;
  std::uint32_t verbose = 0;
  std::string clusters;
  std::vector<std::string> arguments;  // of show, write, wait_job: names, lists, file names
  ActionRequest action;
  std::vector<std::string> job_names;  // of `action`, as given
  NodeRequest node;
  PartitionRequest partition;
  ReservationRequest reservation;
};
// Keywords by prefix of at least three letters, as KEY=VALUE in any case.
Parsed<ScontrolCommand> parse_scontrol(std::span<const std::string> words,
                                       const ClientContext& context);

}  // namespace tutti::slurm
