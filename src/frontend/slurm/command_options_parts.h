// A table of options over the struct they fill, for the commands of command_options.h.
#pragma once

#include <fmt/format.h>

#include <variant>

#include "base/text.h"
#include "frontend/slurm/command_options.h"
#include "frontend/slurm/option_scan.h"

namespace tutti::slurm {

struct CommandSetting {
  std::string_view program, value;
  bool has_value = false;
  const ClientContext& context;

  tl::unexpected<CommandError> refuse(std::string_view what) const {
    return tl::unexpected(command_error(program, what, 1));
  }
  // As it stands, without the program's name in front.
  tl::unexpected<CommandError> refuse_plainly(std::string text) const {
    return tl::unexpected(CommandError{1, std::move(text), {}});
  }
};

template <class S>
struct CommandRow {
  using Set = Parsed<void> (*)(S&, const CommandSetting&);
  std::string_view name;
  char letter = 0;
  Argument argument = Argument::kNone;
  // A list takes the pieces between commas and grows when the option is repeated. monostate: known
  // and of no consequence here.
  std::variant<std::monostate, bool S::*, std::string S::*, std::vector<std::string> S::*,
               std::uint32_t S::*, Show, Set>
      target = {};
  std::string_view variable = {};
};

template <class Rows>
std::vector<KnownOption> known_rows(const Rows& rows) {
  std::vector<KnownOption> known;
  for (const auto& row : rows)
    known.push_back({{row.name, row.letter, row.argument, 0},
                     !std::holds_alternative<std::monostate>(row.target)});
  return known;
}
std::vector<KnownOption> scancel_options();
std::vector<KnownOption> scontrol_options();

inline void append_list(std::vector<std::string>& list, std::string_view text) {
  for (std::string_view piece : split_outside_brackets(text, ',', EmptyPieces::kDrop))
    if (!trim(piece).empty()) list.emplace_back(trim(piece));
}

template <class S>
Parsed<void> apply_row(const CommandRow<S>& row, S& out, const CommandSetting& setting) {
  if (const auto* flag = std::get_if<bool S::*>(&row.target))
    out.*(*flag) = true;
  else if (const auto* text = std::get_if<std::string S::*>(&row.target))
    out.*(*text) = setting.value;
  else if (const auto* list = std::get_if<std::vector<std::string> S::*>(&row.target))
    append_list(out.*(*list), setting.value);
  else if (const auto* count = std::get_if<std::uint32_t S::*>(&row.target))
    ++(out.*(*count));
  else if (const auto* show = std::get_if<Show>(&row.target))
    out.show = *show;
  else if (const auto* set = std::get_if<typename CommandRow<S>::Set>(&row.target))
    return (*set)(out, setting);
  return {};
}

// Fills `out` from the variables and the words; the words that are no options come back. What a
// list has from a variable is replaced by what the line says.
template <class S>
Parsed<std::vector<std::string>> parse_rows(std::span<const CommandRow<S>> rows,
                                            std::string_view program,
                                            std::span<const std::string> words,
                                            const ClientContext& context, S& out,
                                            bool suggest_help = true) {
  std::vector<OptionName> names;
  for (std::size_t i = 0; i < rows.size(); ++i)
    names.push_back({rows[i].name, rows[i].letter, rows[i].argument, static_cast<int>(i)});
  auto scanned = scan_options(names, words, {program, Operands::kPermute, 1, suggest_help});
  if (!scanned) return tl::unexpected(scanned.error());
  auto given = [&](std::size_t row) {
    for (const FoundOption& one : scanned->options)
      if (one.id == static_cast<int>(row)) return true;
    return false;
  };
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].variable.empty() || given(i)) continue;
    auto value = context.environment.get(rows[i].variable);
    if (!value) continue;
    auto done = apply_row(rows[i], out, CommandSetting{program, *value, true, context});
    if (!done) return tl::unexpected(done.error());
  }
  for (const FoundOption& one : scanned->options) {
    CommandSetting setting{program, one.value, one.has_value, context};
    auto done = apply_row(rows[static_cast<std::size_t>(one.id)], out, setting);
    if (!done) return tl::unexpected(done.error());
  }
  return std::move(scanned->operands);
}

// The ids of a list; an unknown one is refused as squeue does.
inline Parsed<void> append_jobs(std::vector<JobName>& jobs, const CommandSetting& setting) {
  for (std::string_view piece : split_outside_brackets(setting.value, ',', EmptyPieces::kDrop)) {
    if (trim(piece).empty()) continue;
    auto job = parse_job_name(trim(piece));
    if (!job) return setting.refuse(fmt::format("Invalid job id: {}", trim(piece)));
    jobs.push_back(std::move(*job));
  }
  return {};
}

Parsed<void> append_hosts(std::vector<std::string>& nodes, const CommandSetting& setting);

}  // namespace tutti::slurm
