#include "frontend/slurm/options.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "frontend/slurm/options_table.h"

namespace tutti::slurm {
namespace {

std::uint8_t bit(Command command) {
  return command == Command::kSbatch ? kB : command == Command::kSrun ? kR : kA;
}

std::vector<OptionName> names_for(Command command) {
  std::vector<OptionName> names;
  std::span<const OptionRow> rows = option_rows();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!(rows[i].commands & bit(command))) continue;
    int id = static_cast<int>(i);
    for (std::size_t j = 0; j < rows.size() && !rows[i].same_as.empty(); ++j)
      if (rows[j].name == rows[i].same_as && (rows[j].commands & bit(command)))
        id = static_cast<int>(j);
    names.push_back({rows[i].name, rows[i].letter, rows[i].argument, id});
  }
  return names;
}

std::string_view environment_name(const OptionRow& row, Command command) {
  return command == Command::kSbatch ? row.sbatch_environment
         : command == Command::kSrun ? row.srun_environment
                                     : row.salloc_environment;
}

Parsed<void> set_number(std::optional<std::uint32_t>& target, const SetValue& value) {
  auto number = parse_integer<std::uint32_t>(trim(value.value));
  if (!number || *number == 0 || *number >= 0x7FFFFFFF) return value.not_a_number();
  target = *number;
  return {};
}

// Puts one value where the table says, if nothing stronger was there; what is strong but given
// again (two -p on one line) is replaced.
Parsed<void> set_option(JobOptions& options, std::size_t row_index, const SetValue& value,
                        Origin origin) {
  const OptionRow& row = option_rows()[row_index];
  if (auto known = options.origins.find(row_index);
      known != options.origins.end() && known->second > origin)
    return {};
  Parsed<void> done;
  if (const auto* text = std::get_if<std::string JobOptions::*>(&row.target))
    options.*(*text) = value.value;
  else if (const auto* flag = std::get_if<bool JobOptions::*>(&row.target))
    options.*(*flag) = true;
  else if (const auto* number =
               std::get_if<std::optional<std::uint32_t> JobOptions::*>(&row.target))
    done = set_number(options.*(*number), value);
  else if (const auto* setter = std::get_if<Setter>(&row.target))
    done = (*setter)(options, value);
  if (!done) return done;
  options.origins[row_index] = origin;
  std::string name(row.name);
  if (row.effect == Effect::kAccepted && std::ranges::count(options.not_honoured, name) == 0)
    options.not_honoured.push_back(std::move(name));
  return {};
}

// A flag's variable: Slurm takes any value but 0 and "no" for "on".
bool means_off(std::string_view value) { return value == "0" || equals_ci(value, "no"); }

Parsed<void> set_from_environment(Command command, JobOptions& options,
                                  const ClientContext& context) {
  std::span<const OptionRow> rows = option_rows();
  auto set = [&](std::size_t i, std::string_view value) -> Parsed<void> {
    if (rows[i].argument == Argument::kNone && means_off(value)) return {};
    bool has_value = rows[i].argument == Argument::kRequired || !value.empty();
    if (rows[i].name == "exclusive" && !equals_ci(value, "user") && !equals_ci(value, "mcs"))
      has_value = false;
    SetValue one{command, rows[i].name, value, has_value, context};
    std::size_t known = options.not_honoured.size();
    auto done = set_option(options, i, one, Origin::kEnvironment);
    // What a job's own variables repeat to its steps is not something the user asked of the step.
    if (command == Command::kSrun) options.not_honoured.resize(known);
    return done;
  };
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!(rows[i].commands & bit(command))) continue;
    std::string_view name = environment_name(rows[i], command);
    auto value = name.empty() ? std::nullopt : context.environment.get(name);
    // The older spellings that srun still reads.
    if (!value && command == Command::kSrun && rows[i].name == "nodes")
      value = context.environment.get("SLURM_NNODES");
    if (!value && command == Command::kSrun && rows[i].name == "ntasks")
      value = context.environment.get("SLURM_NPROCS");
    if (!value && command == Command::kSrun && rows[i].name == "export")
      value = context.environment.get("SLURM_EXPORT_ENV");
    if (!value && rows[i].name == "clusters") value = context.environment.get("SLURM_CLUSTERS");
    if (!value) continue;
    if (auto done = set(i, *value); !done) return done;
  }
  return {};
}

Parsed<void> set_all(Command command, JobOptions& options, const std::vector<FoundOption>& found,
                     const ClientContext& context, Origin origin) {
  for (const FoundOption& one : found) {
    auto row = static_cast<std::size_t>(one.id);
    SetValue value{command, option_rows()[row].name, one.value, one.has_value, context};
    if (auto done = set_option(options, row, value, origin); !done) return done;
  }
  return {};
}

}  // namespace

std::string_view program_name(Command command) {
  return command == Command::kSbatch ? "sbatch" : command == Command::kSrun ? "srun" : "salloc";
}

Origin JobOptions::origin_of(std::string_view option) const {
  for (const auto& [row, origin] : origins)
    if (option_rows()[row].name == option) return origin;
  return Origin::kDefault;
}

std::vector<OptionFacts> options_of(Command command) {
  std::vector<OptionFacts> facts;
  for (const OptionRow& row : option_rows())
    if (row.commands & bit(command))
      facts.push_back(
          {row.name, row.letter, row.argument, row.effect, environment_name(row, command)});
  return facts;
}

Parsed<JobOptions> environment_options(Command command, const ClientContext& context) {
  JobOptions options;
  if (auto done = set_from_environment(command, options, context); !done)
    return tl::unexpected(done.error());
  return options;
}

Parsed<ParsedCommand> parse_command(Command command, std::span<const std::string> words,
                                    const ClientContext& context) {
  const std::vector<OptionName> names = names_for(command);
  ScanSettings settings{program_name(command), Operands::kStop, 255, true};
  ParsedCommand out;
  bool more = true;
  while (more) {
    auto options = environment_options(command, context);
    if (!options) return tl::unexpected(options.error());
    auto scanned = scan_options(names, words, settings);
    if (!scanned) return tl::unexpected(scanned.error());
    if (auto done = set_all(command, *options, scanned->options, context, Origin::kCommandLine);
        !done)
      return tl::unexpected(done.error());
    // A lone ":" ends a component of a heterogeneous job; the rest is the next one. After a script
    // or salloc's command it is an argument like others.
    auto colon = std::ranges::find(scanned->operands, ":");
    if (command != Command::kSrun && colon != scanned->operands.begin())
      colon = scanned->operands.end();
    more = colon != scanned->operands.end();
    std::vector<std::string> operands(scanned->operands.begin(), colon);
    if (more) words = words.last(static_cast<std::size_t>(scanned->operands.end() - colon) - 1);
    out.components.push_back(std::move(*options));
    out.operands = operands;
    out.commands.push_back(std::move(operands));
  }
  return out;
}

Parsed<void> add_script_words(JobOptions& options, std::span<const std::string> words,
                              const ClientContext& context, const Span& span) {
  ScanSettings settings{"sbatch", Operands::kStop, 255, true};
  auto fail_at = [&](CommandError error) {
    error.span = span;
    return tl::unexpected(std::move(error));
  };
  // The component's own line, not an option of getopt.
  if (words.size() == 1 && (words[0] == "hetjob" || words[0] == "packjob")) return {};
  auto scanned = scan_options(names_for(Command::kSbatch), words, settings);
  if (!scanned) return fail_at(scanned.error());
  if (auto done = set_all(Command::kSbatch, options, scanned->options, context, Origin::kScript);
      !done)
    return fail_at(done.error());
  if (!scanned->operands.empty())
    return fail_at(command_error(
        "sbatch",
        fmt::format("Invalid directive found in batch script: {}", scanned->operands.front()),
        255));
  return {};
}

}  // namespace tutti::slurm
