// How each value is read and what is said about a bad one; texts and exit codes as sbatch 22.05.
#include <fmt/format.h>

#include "base/duration_text.h"
#include "base/text.h"
#include "base/time_text.h"
#include "frontend/slurm/options_table.h"

namespace tutti::slurm {
namespace {

const UtcZone kUtc;

std::optional<std::uint32_t> positive(std::string_view text) {
  auto value = parse_integer<std::uint32_t>(trim(text));
  // Slurm keeps the last two numbers of the range for "not given" and "infinite".
  if (!value || *value == 0 || *value >= 0x7FFFFFFF) return std::nullopt;
  return value;
}

Parsed<void> set_gpu_list(std::vector<Gres>& target, const SetValue& v) {
  auto list = parse_gpu_list(v.value);
  if (!list) return v.refuse("Invalid generic resource (gres) specification");
  target = std::move(*list);
  return {};
}

Parsed<void> set_memory(std::optional<std::uint64_t>& target, const SetValue& v) {
  auto mib = parse_memory_mib(v.value);
  if (!mib) return v.bad_specification();
  target = *mib;
  return {};
}

// Reads a time as sbatch does; the line above Slurm's own names the place and the text.
Parsed<Instant> read_time(const SetValue& v) {
  if (trim(v.value).empty()) return v.bad_specification();
  const TimeZone& zone = v.context.zone ? *v.context.zone : kUtc;
  auto at = parse_time(v.value, v.context.now, zone);
  if (at) return *at;
  std::uint32_t position = at.error().span.column > 0 ? at.error().span.column - 1 : 0;
  return v.bad_specification(
      fmt::format("Invalid time specification (pos={}): {}\n", position, v.value));
}

}  // namespace

tl::unexpected<CommandError> SetValue::not_a_number() const {
  return refuse(fmt::format("Invalid numeric value \"{}\" for --{}.", value, name));
}
tl::unexpected<CommandError> SetValue::bad_specification(std::string_view before) const {
  CommandError error =
      command_error(program(), fmt::format("Invalid --{} specification", name), 255);
  error.text.insert(0, before);
  return tl::unexpected(std::move(error));
}
tl::unexpected<CommandError> SetValue::refuse(std::string_view what, int exit_code) const {
  return tl::unexpected(command_error(program(), what, exit_code));
}

namespace setters {

Parsed<void> nodes(JobOptions& o, const SetValue& v) {
  auto count = parse_node_count(trim(v.value));
  if (!count) {
    if (count.error().reason == "node_count_order") {
      auto ends = split_once(trim(v.value), '-');
      return v.refuse(fmt::format("Maximum node count {} is less than minimum node count {}",
                                  ends->second, ends->first),
                      255);
    }
    return v.refuse(fmt::format("\"{}\" is not a valid node count", v.value), 255);
  }
  o.nodes = *count;
  return {};
}
Parsed<void> gres(JobOptions& o, const SetValue& v) {
  auto list = parse_gres_list(v.value);
  // Others than GPUs and shares of them would have to be configured first; Tutti has none.
  bool known = list.has_value();
  for (std::size_t i = 0; known && i < list->size(); ++i) known = (*list)[i].name == "gpu" || (*list)[i].name == "mps" || (*list)[i].name == "gpumem";
  if (!known) return v.refuse("Invalid generic resource (gres) specification");
  o.gres = std::move(*list);
  o.gres_given = true;
  return {};
}
Parsed<void> gpus(JobOptions& o, const SetValue& v) { return set_gpu_list(o.gpus, v); }
Parsed<void> gpus_per_node(JobOptions& o, const SetValue& v) {
  return set_gpu_list(o.gpus_per_node, v);
}
Parsed<void> gpus_per_socket(JobOptions& o, const SetValue& v) {
  return set_gpu_list(o.gpus_per_socket, v);
}
Parsed<void> gpus_per_task(JobOptions& o, const SetValue& v) {
  return set_gpu_list(o.gpus_per_task, v);
}
Parsed<void> memory(JobOptions& o, const SetValue& v) { return set_memory(o.memory_mib, v); }
Parsed<void> memory_per_cpu(JobOptions& o, const SetValue& v) {
  return set_memory(o.memory_mib_per_cpu, v);
}
Parsed<void> memory_per_gpu(JobOptions& o, const SetValue& v) {
  return set_memory(o.memory_mib_per_gpu, v);
}
Parsed<void> any_memory(JobOptions&, const SetValue& v) {
  if (!parse_memory_mib(v.value)) return v.bad_specification();
  return {};
}
Parsed<void> any_number(JobOptions&, const SetValue& v) {
  if (!parse_integer<std::uint32_t>(trim(v.value))) return v.not_a_number();
  return {};
}

Parsed<void> time_limit(JobOptions& o, const SetValue& v) {
  auto limit = parse_time_limit(trim(v.value));
  if (!limit) return v.bad_specification();
  o.time_limit = *limit;
  return {};
}
Parsed<void> time_min(JobOptions& o, const SetValue& v) {
  auto limit = parse_time_limit(trim(v.value));
  if (!limit) return v.bad_specification();
  o.time_min = *limit;
  return {};
}
Parsed<void> begin(JobOptions& o, const SetValue& v) {
  auto at = read_time(v);
  if (!at) return tl::unexpected(at.error());
  o.begin = v.value;
  o.begin_at = *at;
  return {};
}
Parsed<void> deadline(JobOptions&, const SetValue& v) {
  auto at = read_time(v);
  if (!at) return tl::unexpected(at.error());
  return {};
}

// COUNT[@MAX-TIME]
Parsed<void> switches(JobOptions& o, const SetValue& v) {
  std::string_view text = trim(v.value);
  std::size_t at = text.find('@');
  auto count = parse_integer<std::uint32_t>(text.substr(0, at));
  if (!count || *count == 0) return v.bad_specification();
  o.topology.switches = *count;
  if (at == text.npos) return {};
  auto wait = parse_time_limit(text.substr(at + 1));
  if (!wait) return v.bad_specification();
  o.topology.switches_wait = *wait;
  return {};
}
Parsed<void> segment(JobOptions& o, const SetValue& v) {
  auto size = parse_integer<std::uint32_t>(trim(v.value));
  if (!size || *size == 0) return v.not_a_number();
  o.topology.segment = *size;
  return {};
}
// Tutti's own: LEVEL or required:LEVEL, all nodes in one domain of that level; preferred:LEVEL, if
// that delays nothing.
Parsed<void> topology_level(JobOptions& o, const SetValue& v) {
  std::string_view text = trim(v.value);
  bool preferred = text.starts_with("preferred:");
  text.remove_prefix(preferred ? 10 : text.starts_with("required:") ? 9 : 0);
  if (text.empty()) return v.bad_specification();
  (preferred ? o.topology.preferred : o.topology.required) = std::string(text);
  return {};
}

Parsed<void> nice(JobOptions& o, const SetValue& v) {
  constexpr std::int64_t kLimit = 2147483645;
  if (!v.has_value) {
    o.nice = 100;
    return {};
  }
  auto value = parse_integer<std::int64_t>(trim(v.value));
  if (!value) return v.refuse(fmt::format("Invalid numeric value \"{}\" for --nice.", v.value));
  if (*value > kLimit || *value < -kLimit)
    return v.refuse(fmt::format("Invalid --nice value, out of range (+/- {})", kLimit), 255);
  o.nice = static_cast<std::int32_t>(*value);
  // Only an operator may raise a job; Slurm says so and goes on with 0.
  if (*value < 0 && v.context.uid != 0) o.nice = 0;
  return {};
}
Parsed<void> priority(JobOptions& o, const SetValue& v) {
  if (equals_ci(trim(v.value), "TOP")) {
    o.priority = kNoLimit - 1;
    return {};
  }
  auto value = parse_integer<std::int64_t>(trim(v.value));
  if (!value) return v.refuse(fmt::format("Invalid --priority specification"), 255);
  if (*value < 0) return v.refuse("Priority must be >= 0", 255);
  if (*value >= kNoLimit) return v.refuse(fmt::format("Priority must be < {}", kNoLimit - 1), 255);
  o.priority = static_cast<std::uint32_t>(*value);
  return {};
}
Parsed<void> requeue(JobOptions& o, const SetValue&) {
  o.requeue = true;
  return {};
}
Parsed<void> no_requeue(JobOptions& o, const SetValue&) {
  o.requeue = false;
  return {};
}
Parsed<void> exclusive(JobOptions& o, const SetValue& v) {
  if (v.has_value && !equals_ci(v.value, "user") && !equals_ci(v.value, "mcs") &&
      !equals_ci(v.value, "exclusive"))
    return v.bad_specification();
  o.exclusive = true;
  return {};
}
Parsed<void> immediate(JobOptions& o, const SetValue& v) {
  if (!v.has_value) {
    o.immediate_s = 0;
    return {};
  }
  auto seconds = positive(v.value);
  if (!seconds)
    return v.refuse(fmt::format("Invalid numeric value \"{}\" for immediate.", v.value));
  o.immediate_s = *seconds;
  return {};
}
Parsed<void> signal(JobOptions& o, const SetValue& v) {
  auto spec = parse_signal_spec(trim(v.value));
  if (!spec) return v.bad_specification();
  o.signal = *spec;
  return {};
}
Parsed<void> open_mode(JobOptions& o, const SetValue& v) {
  char first = v.value.empty() ? '?' : to_lower(v.value.front());
  if (first != 'a' && first != 't') return v.bad_specification();
  o.open_mode = first == 'a' ? "append" : "truncate";
  return {};
}
Parsed<void> distribution(JobOptions& o, const SetValue& v) {
  std::string_view levels = split(v.value, ',').front();
  std::vector<std::string_view> level = split(levels, ':');
  std::string nodes = lower(level.front());
  for (std::size_t i = 1; i < level.size(); ++i) {
    std::string word = lower(level[i]);
    if (word != "*" && word != "block" && word != "cyclic" && word != "fcyclic")
      return v.bad_specification();
  }
  if (nodes == "*" || nodes == "block")
    o.distribution = "block";
  else if (nodes == "cyclic")
    o.distribution = "cyclic";
  else if (nodes == "arbitrary" || nodes.starts_with("plane"))
    o.not_honoured.push_back("distribution=" + nodes);
  else
    return v.bad_specification();
  return {};
}
Parsed<void> export_names(JobOptions& o, const SetValue& v) {
  o.export_names = v.value;
  o.export_given = true;
  return {};
}
Parsed<void> mail_type(JobOptions& o, const SetValue& v) {
  static constexpr std::string_view kTypes[] = {
      "NONE",          "BEGIN",       "END",           "FAIL",          "REQUEUE",
      "ALL",           "STAGE_OUT",   "TIME_LIMIT",    "TIME_LIMIT_90", "TIME_LIMIT_80",
      "TIME_LIMIT_50", "ARRAY_TASKS", "INVALID_DEPEND"};
  for (std::string_view word : split(v.value, ',', EmptyPieces::kDrop)) {
    bool known = false;
    for (std::string_view type : kTypes) known = known || equals_ci(trim(word), type);
    if (!known) return v.bad_specification();
  }
  o.mail_type = v.value;
  return {};
}
Parsed<void> hint(JobOptions&, const SetValue& v) {
  for (std::string_view word : split(v.value, ',', EmptyPieces::kDrop))
    if (!equals_ci(word, "compute_bound") && !equals_ci(word, "memory_bound") &&
        !equals_ci(word, "multithread") && !equals_ci(word, "nomultithread") &&
        !equals_ci(word, "help"))
      return v.refuse(fmt::format("unrecognized --hint argument \"{}\", see --hint=help", v.value));
  return {};
}
Parsed<void> wrap(JobOptions& o, const SetValue& v) {
  o.wrap = std::string(v.value);
  return {};
}
Parsed<void> verbose(JobOptions& o, const SetValue& v) {
  if (v.has_value)
    o.verbose = parse_integer<std::uint32_t>(trim(v.value)).value_or(o.verbose + 1);
  else
    ++o.verbose;
  return {};
}
Parsed<void> wait_seconds(JobOptions& o, const SetValue& v) {
  auto seconds = parse_integer<std::uint32_t>(trim(v.value));
  if (!seconds) return v.not_a_number();
  o.wait_s = *seconds;
  return {};
}
Parsed<void> relative(JobOptions& o, const SetValue& v) {
  auto node = parse_integer<std::uint32_t>(trim(v.value));
  if (!node) return v.not_a_number();
  o.relative = *node;
  return {};
}
Parsed<void> kill_on_bad_exit(JobOptions& o, const SetValue& v) {
  if (!v.has_value) {
    o.kill_on_bad_exit = 1;
    return {};
  }
  auto value = parse_integer<std::uint32_t>(trim(v.value));
  if (!value) return v.not_a_number();
  o.kill_on_bad_exit = *value;
  return {};
}
Parsed<void> kill_command(JobOptions& o, const SetValue& v) {
  constexpr int kTerm = 15;
  if (!v.has_value || v.value.empty()) {
    o.kill_command = kTerm;
    return {};
  }
  auto signal = parse_signal(trim(v.value));
  if (!signal) return v.bad_specification();
  o.kill_command = *signal;
  return {};
}
Parsed<void> no_bell(JobOptions& o, const SetValue&) {
  o.bell = false;
  return {};
}
Parsed<void> mpi(JobOptions& o, const SetValue& v) {
  std::string type = lower(trim(v.value));
  if (type.starts_with("pmix")) type = "pmix";
  if (type != "none" && type != "pmi2" && type != "pmix" && type != "list" && type != "openmpi" &&
      type != "cray_shasta")
    return v.refuse(fmt::format("Invalid MPI type '{}', --mpi=list for acceptable types", v.value));
  o.mpi = type;
  if (type != "none") o.not_honoured.push_back("mpi=" + type);
  return {};
}
Parsed<void> refused(JobOptions&, const SetValue& v) {
  if (v.name == "uid" || v.name == "gid" || v.name == "no-allocate")
    return v.refuse(fmt::format("--{} only permitted by root user", v.name));
  if (v.name.starts_with("container"))
    return v.refuse(fmt::format(
        "--{} is not supported yet: the job would run outside of its container", v.name));
  return v.refuse(fmt::format("--{} is not supported yet", v.name));
}

}  // namespace setters
}  // namespace tutti::slurm
