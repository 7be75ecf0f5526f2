#include "frontend/slurm/config.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/duration_text.h"
#include "base/hostlist.h"
#include "base/size_text.h"
#include "base/text.h"
#include "frontend/slurm/config_parts.h"

namespace tutti::slurm {
namespace {

std::optional<Duration> days_and_hours(ConfigReading& reading, const ConfigWord& word) {
  auto duration = parse_duration(word.value);
  if (!duration) {
    reading.error("config-value", word.span,
                  fmt::format("{}: {}", word.key, duration.error().message));
    return std::nullopt;
  }
  return *duration;
}

void set_weight(ConfigReading& reading, const ConfigWord& word, std::uint32_t& weight) {
  if (auto value = reading.number(word)) weight = *value;
}

void set_seconds(ConfigReading& reading, const ConfigWord& word, Duration& target) {
  if (auto value = reading.number(word)) target = Duration::seconds(*value);
}

// What becomes of jobs whose room is taken: PreemptType and PreemptMode (slurm.conf(5)).
bool read_preemption(ConfigReading& reading, std::string_view key, const ConfigWord& word) {
  PreemptionSpec& preemption = reading.out.spec.preemption;
  if (key == "PreemptType") {
    const std::string value = lower(word.value);
    if (value == "preempt/partition_prio")
      preemption.type = PreemptType::kPartitionPriority;
    else if (value == "preempt/qos")
      preemption.type = PreemptType::kQos;
    else if (value != "preempt/none")
      reading.error("config-value", word.span,
                    fmt::format("PreemptType: expected preempt/none, preempt/partition_prio or "
                                "preempt/qos, not {}",
                                quote(word.value)));
    if (preemption.type == PreemptType::kQos)
      reading.warn("config-unsupported", word.span,
                   "PreemptType=preempt/qos is understood but nobody is preempted by QOS yet");
  } else if (key == "PreemptMode") {
    if (auto mode = preempt_mode(reading, word)) preemption.mode = *mode;
  } else if (key == "PreemptExemptTime") {
    if (auto value = days_and_hours(reading, word)) preemption.exempt_time = *value;
  } else {
    return false;
  }
  return true;
}

void read_global(ConfigReading& reading, std::string_view key, const ConfigWord& word) {
  if (read_preemption(reading, key, word)) return;
  ClusterSpec& spec = reading.out.spec;
  PriorityWeights& weights = spec.priority;
  if (key == "ClusterName") {
    spec.name = word.value;
  } else if (key == "KillWait") {
    set_seconds(reading, word, spec.kill_wait);
  } else if (key == "MinJobAge") {
    set_seconds(reading, word, spec.min_job_age);
  } else if (key == "BatchStartTimeout") {
    set_seconds(reading, word, spec.roll_call_timeout);
  } else if (key == "SlurmdTimeout") {
    set_seconds(reading, word, spec.node_grace);
  } else if (key == "MaxArraySize") {
    // The greatest index is one below it (slurm.conf(5)).
    if (auto value = reading.number(word)) spec.max_array_index = *value > 0 ? *value - 1 : 0;
  } else if (key == "MaxJobCount") {
    if (auto value = reading.number(word)) spec.max_jobs = *value;
  } else if (key == "FirstJobId") {
    if (auto value = reading.number(word)) spec.first_job_id = *value;
  } else if (key == "DefMemPerCPU") {
    if (auto value = reading.megabytes(word)) spec.default_memory_mib_per_cpu = *value;
  } else if (key == "DefMemPerNode") {
    if (auto value = reading.megabytes(word)) spec.default_memory_mib_per_node = *value;
  } else if (key == "PriorityWeightAge") {
    set_weight(reading, word, weights.age);
  } else if (equals_ci(key, "PriorityWeightFairshare")) {
    set_weight(reading, word, weights.fair_share);
  } else if (key == "PriorityWeightJobSize") {
    set_weight(reading, word, weights.job_size);
  } else if (key == "PriorityWeightPartition") {
    set_weight(reading, word, weights.partition);
  } else if (key == "PriorityWeightQOS") {
    set_weight(reading, word, weights.qos);
  } else if (key == "PriorityMaxAge") {
    if (auto value = days_and_hours(reading, word)) weights.max_age = *value;
  } else if (key == "PriorityDecayHalfLife") {
    if (auto value = days_and_hours(reading, word)) weights.half_life = *value;
  } else if (key == "AccountingStorageTRES") {
    for (std::string_view one : split(word.value, ',', EmptyPieces::kDrop))
      spec.gpus_in_accounting = spec.gpus_in_accounting || starts_with_ci(trim(one), "gres/gpu");
  } else if (key == "GresTypes") {
    for (std::string_view one : split(word.value, ',', EmptyPieces::kDrop))
      reading.gres_types.push_back(lower(trim(one)));
  } else {
    read_accounting_word(reading, key, word);
  }
}

// Lines of their own kind are told by their first word.
std::string_view kind_of(const ConfigLine& line) {
  for (std::string_view kind :
       {"NodeName", "PartitionName", "NodeSet", "DownNodes", "FrontendName"})
    if (equals_ci(line.words.front().key, kind)) return kind;
  return "";
}

void read_other_files(ConfigReading& reading, const std::string& folder,
                      const ReadConfigFile& read_file) {
  auto& diagnostics = reading.out.diagnostics;
  ConfigLines gres = read_config_lines(folder + "gres.conf", read_file, diagnostics);
  read_gres_lines(reading, gres);
  // It has no effect: cgroups are always used. Its form is checked.
  read_config_lines(folder + "cgroup.conf", read_file, diagnostics);
  read_topology_lines(reading,
                      read_config_lines(folder + "topology.conf", read_file, diagnostics));
}

}  // namespace

void ConfigReading::error(std::string_view code, const Span& span, std::string message) {
  add_problem(out.diagnostics, Severity::kError, code, span, std::move(message));
}
void ConfigReading::warn(std::string_view code, const Span& span, std::string message) {
  add_problem(out.diagnostics, Severity::kWarning, code, span, std::move(message));
}

const KnownKey* ConfigReading::look_up(std::span<const KnownKey> keys, const ConfigWord& word,
                                       std::string_view where) {
  std::vector<std::string_view> names;
  for (const KnownKey& known : keys) {
    if (equals_ci(known.name, word.key)) {
      if (known.use == KeyUse::kUnsupported && !warned[std::string(where) + lower(known.name)]) {
        warned[std::string(where) + lower(known.name)] = true;
        warn("config-unsupported", word.span,
             fmt::format("{}={} is understood but has no effect", known.name, word.value));
      }
      return known.use == KeyUse::kUsed ? &known : nullptr;
    }
    names.push_back(known.name);
  }
  auto near = closest_match(word.key, names);
  error("config-unknown-key", word.span,
        fmt::format("{} is no key of {}{}", quote(word.key), where,
                    near ? fmt::format(": did you mean {}?", *near) : ""));
  return nullptr;
}

std::optional<std::uint32_t> ConfigReading::number(const ConfigWord& word) {
  auto value = parse_integer<std::uint32_t>(word.value);
  if (!value)
    error("config-value", word.span,
          fmt::format("{}: expected a whole number, not {}", word.key, quote(word.value)));
  return value;
}
std::optional<std::uint64_t> ConfigReading::megabytes(const ConfigWord& word) {
  if (equals_ci(word.value, "UNLIMITED")) return 0;
  auto value = parse_memory_mib(word.value);
  if (!value) {
    error("config-value", word.span, fmt::format("{}: {}", word.key, value.error().message));
    return std::nullopt;
  }
  return *value;
}
std::optional<bool> ConfigReading::yes_or_no(const ConfigWord& word) {
  if (equals_ci(word.value, "yes") || word.value == "1" || equals_ci(word.value, "true"))
    return true;
  if (equals_ci(word.value, "no") || word.value == "0" || equals_ci(word.value, "false"))
    return false;
  error("config-value", word.span,
        fmt::format("{}: expected YES or NO, not {}", word.key, quote(word.value)));
  return std::nullopt;
}
std::vector<std::string> ConfigReading::hosts(const ConfigWord& word, std::string_view text) {
  auto names = expand_hostlist(text);
  if (names) return std::move(*names);
  error("config-value", word.span, fmt::format("{}: {}", word.key, names.error().message));
  return {};
}

void read_global_line(ConfigReading& reading, const ConfigLine& line) {
  for (const ConfigWord& word : line.words) {
    const KnownKey* known = reading.look_up(global_keys(), word, "slurm.conf");
    for (const KnownKey& key : global_keys())
      if (equals_ci(key.name, word.key))
        reading.out.spec.as_given[std::string(key.name)] = word.value;
    if (known) read_global(reading, known->name, word);
  }
}

bool ClusterConfig::usable() const {
  return std::ranges::none_of(
      diagnostics, [](const Diagnostic& one) { return one.severity == Severity::kError; });
}

ClusterConfig read_cluster_config(const std::string& path, const ReadConfigFile& read_file) {
  ClusterConfig out;
  ConfigReading reading{out, {}, {}, {}, {}, {}};
  ConfigLines lines = read_config_lines(path, read_file, out.diagnostics);
  if (!lines.found) {
    if (out.diagnostics.empty())
      reading.error("config-include", {path, 0, 0}, "there is no such file");
    return out;
  }
  // Weights that slurm.conf does not name are 0, and GPUs count only where it says so.
  out.spec.priority.age = out.spec.priority.fair_share = out.spec.priority.job_size = 0;
  out.spec.priority.partition = out.spec.priority.qos = 0;
  out.spec.gpus_in_accounting = false;
  for (const ConfigLine& line : lines.lines) {
    std::string_view kind = kind_of(line);
    if (kind.empty()) read_global_line(reading, line);
    if (kind == "DownNodes" || kind == "FrontendName")
      reading.warn("config-unsupported", line.words.front().span,
                   fmt::format("lines of {} are understood but have no effect", kind));
  }
  read_node_lines(reading, lines);
  std::size_t slash = path.rfind('/');
  read_other_files(reading, slash == path.npos ? "" : path.substr(0, slash + 1), read_file);
  read_partition_lines(reading, lines);
  Span file{path, 0, 0};
  if (out.spec.nodes.empty())
    reading.error("config-node", file, "no line describes a node (NodeName=)");
  if (out.spec.partitions.empty())
    reading.error("config-partition", file, "no line describes a partition (PartitionName=)");
  return out;
}

}  // namespace tutti::slurm
