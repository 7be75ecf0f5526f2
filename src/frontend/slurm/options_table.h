// The table behind options.h, for its own sources: every name with its target.
#pragma once

#include <span>
#include <variant>

#include "frontend/slurm/options.h"

namespace tutti::slurm {

enum Commands : std::uint8_t { kB = 1, kR = 2, kA = 4, kBR = 3, kBA = 5, kRA = 6, kAll = 7 };

struct SetValue {
  Command command = Command::kSbatch;
  std::string_view name;  // of the option, for texts
  std::string_view value;
  bool has_value = false;
  const ClientContext& context;

  std::string_view program() const { return program_name(command); }
  // `Invalid numeric value "x" for --ntasks.`, exit code 1.
  tl::unexpected<CommandError> not_a_number() const;
  // "Invalid --time specification", exit code 255; `before` is printed above it.
  tl::unexpected<CommandError> bad_specification(std::string_view before = {}) const;
  tl::unexpected<CommandError> refuse(std::string_view what, int exit_code = 1) const;
};
using Setter = Parsed<void> (*)(JobOptions&, const SetValue&);

// Where a value goes. A number is positive unless its setter says otherwise.
using Target = std::variant<std::monostate, std::string JobOptions::*, bool JobOptions::*,
                            std::optional<std::uint32_t> JobOptions::*, Setter>;

struct OptionRow {
  std::string_view name;
  char letter = 0;
  Argument argument = Argument::kNone;
  std::uint8_t commands = kAll;
  Effect effect = Effect::kHonoured;
  Target target;
  std::string_view sbatch_environment = {}, salloc_environment = {}, srun_environment = {};
  std::string_view same_as = {};  // an alias of this name
};

std::span<const OptionRow> option_rows();

namespace setters {
Parsed<void> nodes(JobOptions&, const SetValue&);
Parsed<void> gres(JobOptions&, const SetValue&);
Parsed<void> gpus(JobOptions&, const SetValue&);
Parsed<void> gpus_per_node(JobOptions&, const SetValue&);
Parsed<void> gpus_per_socket(JobOptions&, const SetValue&);
Parsed<void> gpus_per_task(JobOptions&, const SetValue&);
Parsed<void> memory(JobOptions&, const SetValue&);
Parsed<void> memory_per_cpu(JobOptions&, const SetValue&);
Parsed<void> memory_per_gpu(JobOptions&, const SetValue&);
Parsed<void> time_limit(JobOptions&, const SetValue&);
Parsed<void> time_min(JobOptions&, const SetValue&);
Parsed<void> begin(JobOptions&, const SetValue&);
Parsed<void> deadline(JobOptions&, const SetValue&);
Parsed<void> nice(JobOptions&, const SetValue&);
Parsed<void> switches(JobOptions&, const SetValue&);
Parsed<void> segment(JobOptions&, const SetValue&);
Parsed<void> topology_level(JobOptions&, const SetValue&);
Parsed<void> priority(JobOptions&, const SetValue&);
Parsed<void> requeue(JobOptions&, const SetValue&);
Parsed<void> no_requeue(JobOptions&, const SetValue&);
Parsed<void> exclusive(JobOptions&, const SetValue&);
Parsed<void> immediate(JobOptions&, const SetValue&);
Parsed<void> signal(JobOptions&, const SetValue&);
Parsed<void> open_mode(JobOptions&, const SetValue&);
Parsed<void> distribution(JobOptions&, const SetValue&);
Parsed<void> export_names(JobOptions&, const SetValue&);
Parsed<void> mail_type(JobOptions&, const SetValue&);
Parsed<void> hint(JobOptions&, const SetValue&);
Parsed<void> wrap(JobOptions&, const SetValue&);
Parsed<void> verbose(JobOptions&, const SetValue&);
Parsed<void> wait_seconds(JobOptions&, const SetValue&);
Parsed<void> relative(JobOptions&, const SetValue&);
Parsed<void> kill_on_bad_exit(JobOptions&, const SetValue&);
Parsed<void> kill_command(JobOptions&, const SetValue&);
Parsed<void> no_bell(JobOptions&, const SetValue&);
Parsed<void> mpi(JobOptions&, const SetValue&);
Parsed<void> refused(JobOptions&, const SetValue&);
Parsed<void> any_number(JobOptions&, const SetValue&);
Parsed<void> any_memory(JobOptions&, const SetValue&);
}  // namespace setters

}  // namespace tutti::slurm
