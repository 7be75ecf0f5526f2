#include "frontend/slurm/lowering_terms.h"

#include <fmt/format.h>

#include <array>

#include "base/text.h"
#include "frontend/config/reading.h"

namespace tutti::slurm {

namespace {

constexpr std::uint32_t kMaxGroup = 10'000;

// Each sets its part of the terms, or says what was expected.
std::string_view set_queue(std::string_view value, Terms& terms) {
  terms.queue = std::string(value);
  return value.empty() ? "the name of a queue" : "";
}

std::string_view set_group(std::string_view value, Terms& terms) {
  const std::size_t colon = value.rfind(':');
  if (colon == value.npos || colon == 0) return "NAME:SIZE";
  auto size = parse_integer<std::uint32_t>(value.substr(colon + 1));
  if (!size || *size == 0 || *size > kMaxGroup) return "NAME:SIZE with a size from 1 to 10000";
  terms.group = std::string(value.substr(0, colon));
  terms.group_size = *size;
  return "";
}

std::string_view set_gpu_types(std::string_view value, Terms& terms) {
  terms.gpu_types.clear();
  for (std::string_view type : split(value, ',', EmptyPieces::kDrop)) terms.gpu_types.emplace_back(type);
  return terms.gpu_types.empty() ? "GPU types in order, with commas between" : "";
}

std::string_view set_reclaim(std::string_view value, Terms& terms) {
  auto mode = enum_from_name<ReclaimMode>(lower(value));
  if (!mode || *mode == ReclaimMode::kSuspend)
    return "default, off, cancel, requeue or checkpoint (suspend is not there yet)";
  terms.reclaim = *mode;
  return "";
}

std::string_view set_notice(std::string_view value, Terms& terms) {
  terms.notice = config::parse_span(value);
  return terms.notice ? "" : "a time such as 90s, 15m or 0:10:00";
}

std::string_view set_min_runtime(std::string_view value, Terms& terms) {
  auto span = config::parse_span(value);
  if (span) terms.min_runtime = *span;
  return span ? "" : "a time such as 90s, 15m or 0:10:00";
}

std::string_view set_elastic(std::string_view value, Terms& terms) {
  terms.elastic = equals_ci(value, "yes") || equals_ci(value, "true");
  return terms.elastic || equals_ci(value, "no") || equals_ci(value, "false") ? "" : "yes or no";
}

std::string_view set_ready_deadline(std::string_view value, Terms& terms) {
  terms.ready_deadline = config::parse_span(value);
  return terms.ready_deadline ? "" : "a time such as 90s, 15m or 0:10:00";
}

struct Key {
  std::string_view name, variable;
  std::string_view (*set)(std::string_view value, Terms& terms);
};
constexpr std::array kKeys{
    Key{"queue", "TUTTI_QUEUE", set_queue},
    Key{"group", "TUTTI_GROUP", set_group},
    Key{"gpu-types", "TUTTI_GPU_TYPES", set_gpu_types},
    Key{"reclaim", "TUTTI_RECLAIM", set_reclaim},
    Key{"notice", "TUTTI_NOTICE", set_notice},
    Key{"min-runtime", "TUTTI_MIN_RUNTIME", set_min_runtime},
    Key{"elastic", "TUTTI_ELASTIC", set_elastic},
    Key{"ready-deadline", "TUTTI_READY_DEADLINE", set_ready_deadline},
};

Parsed<void> read_word(const Lowering& lowering, std::string_view word, std::string_view place, Terms& terms) {
  auto parts = split_once(word, '=');
  std::vector<std::string_view> names;
  for (const Key& key : kKeys) {
    names.push_back(key.name);
    if (!parts || !equals_ci(parts->first, key.name)) continue;
    std::string_view expected = key.set(parts->second, terms);
    if (expected.empty()) return {};
    return lowering.refuse(fmt::format("{}: {}: expected {}, found {}", place, key.name, expected, quote(parts->second)));
  }
  return lowering.refuse(fmt::format("{}: unknown #TUTTI word {}; known are KEY=VALUE with the keys {}", place, quote(word), join(names, ", ")));
}

Parsed<void> read_script(const Lowering& lowering, std::string_view script, std::string_view file, Terms& terms) {
  std::uint32_t number = 0;
  for (std::string_view line : split(script, '\n')) {
    ++number;
    std::string_view text = trim(line);
    if (text.empty()) continue;
    if (text.front() != '#') break;  // the first command
    constexpr std::string_view kMark = "#TUTTI";
    if (!line.starts_with(kMark) || line.size() == kMark.size() || !is_space(line[kMark.size()])) continue;
    std::string_view rest = trim(line.substr(kMark.size()));
    if (std::size_t comment = rest.find(" #"); comment != rest.npos) rest = rest.substr(0, comment);
    for (std::string_view word : split(rest, ' ', EmptyPieces::kDrop))
      if (auto done = read_word(lowering, trim(word), fmt::format("{} line {}", file, number), terms); !done)
        return done;
  }
  return {};
}

}  // namespace

Parsed<void> lower_terms(Lowering& lowering, std::string_view script, std::string_view file, Terms& terms) {
  if (auto done = read_script(lowering, script, file, terms); !done) return done;
  for (const Key& key : kKeys) {
    auto value = lowering.context.environment.get(key.variable);
    if (!value || value->empty()) continue;
    if (std::string_view expected = key.set(*value, terms); !expected.empty())
      return lowering.refuse(fmt::format("{}: expected {}, found {}", key.variable, expected, quote(*value)));
  }
  return {};
}

}  // namespace tutti::slurm
