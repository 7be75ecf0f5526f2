// Lines PartitionName= of slurm.conf.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/duration_text.h"
#include "base/text.h"
#include "frontend/slurm/config_parts.h"

namespace tutti::slurm {
namespace {

std::vector<std::string> names_of(const ConfigWord& word) {
  std::vector<std::string> out;
  if (equals_ci(word.value, "ALL")) return out;
  for (std::string_view one : split(word.value, ',', EmptyPieces::kDrop))
    out.emplace_back(trim(one));
  return out;
}

const ConfigReading::NodeSet* find_set(const ConfigReading& reading, std::string_view name) {
  for (const auto& set : reading.node_sets)
    if (set.name == name) return &set;
  return nullptr;
}

// "ALL", a node set, or a host list, in any mixture.
std::vector<std::string> partition_nodes(ConfigReading& reading, const ConfigWord& word) {
  std::vector<std::string> names;
  const std::vector<NodeSpec>& nodes = reading.out.spec.nodes;
  for (std::string_view piece : split_outside_brackets(word.value, ',', EmptyPieces::kDrop)) {
    if (equals_ci(piece, "ALL")) {
      for (const NodeSpec& node : nodes) names.push_back(node.name);
    } else if (const auto* set = find_set(reading, piece)) {
      names.insert(names.end(), set->nodes.begin(), set->nodes.end());
      for (const NodeSpec& node : nodes)
        if (!set->features.empty() && std::ranges::count(node.features, set->features) > 0)
          names.push_back(node.name);
    } else {
      for (std::string& name : reading.hosts(word, piece)) names.push_back(std::move(name));
    }
  }
  std::set<std::string> known, taken;
  for (const NodeSpec& node : nodes) known.insert(node.name);
  std::vector<std::string> out, missing;
  for (std::string& name : names) {
    if (!taken.insert(name).second) continue;
    if (std::ranges::count(reading.future_nodes, name) > 0) continue;
    if (known.contains(name))
      out.push_back(std::move(name));
    else
      missing.push_back(std::move(name));
  }
  if (!missing.empty())
    reading.error(
        "config-partition", word.span,
        fmt::format("Nodes: no NodeName line describes {}{}", missing.front(),
                    missing.size() > 1 ? fmt::format(" and {} more", missing.size() - 1) : ""));
  return out;
}

std::optional<Duration> limit_of(ConfigReading& reading, const ConfigWord& word) {
  auto limit = parse_duration(word.value);
  if (!limit) {
    reading.error("config-value", word.span,
                  fmt::format("{}: {}", word.key, limit.error().message));
    return std::nullopt;
  }
  if (limit->is_infinite()) return std::nullopt;
  return *limit;
}

std::uint32_t count_of(ConfigReading& reading, const ConfigWord& word, std::uint32_t otherwise) {
  if (equals_ci(word.value, "UNLIMITED") || equals_ci(word.value, "INFINITE")) return kNoLimit;
  return reading.number(word).value_or(otherwise);
}

void set_state(ConfigReading& reading, const ConfigWord& word, PartitionSpec& partition) {
  if (auto state = enum_from_name<PartitionState>(lower(word.value)))
    partition.state = *state;
  else
    reading.error(
        "config-value", word.span,
        fmt::format("State: expected UP, DOWN, DRAIN or INACTIVE, not {}", quote(word.value)));
}

void set_sharing(ConfigReading& reading, const ConfigWord& word, PartitionSpec& partition) {
  std::string mode = lower(split(word.value, ':').front());
  partition.exclusive = mode == "exclusive";
  if (mode == "force")
    reading.warn("config-unsupported", word.span,
                 "OverSubscribe=FORCE is understood but has no effect: CPUs are not shared");
  else if (mode != "exclusive" && mode != "yes" && mode != "no")
    reading.error("config-value", word.span,
                  fmt::format("{}: expected EXCLUSIVE, FORCE, YES or NO, not {}", word.key,
                              quote(word.value)));
}

void set_limit_word(ConfigReading& reading, std::string_view key, const ConfigWord& word,
                    PartitionSpec& partition) {
  auto yes = [&](bool& target) {
    if (auto value = reading.yes_or_no(word)) target = *value;
  };
  auto megabytes = [&](std::uint64_t& target) {
    if (auto value = reading.megabytes(word)) target = *value;
  };
  if (key == "MaxTime")
    partition.max_time = limit_of(reading, word);
  else if (key == "DefaultTime")
    partition.default_time = limit_of(reading, word);
  else if (key == "MaxNodes")
    partition.max_nodes = count_of(reading, word, partition.max_nodes);
  else if (key == "MinNodes")
    partition.min_nodes = count_of(reading, word, partition.min_nodes);
  else if (key == "PriorityTier")
    partition.priority_tier = count_of(reading, word, 1);
  else if (key == "GraceTime")
    partition.grace_time = Duration::seconds(count_of(reading, word, 0));
  else if (key == "PreemptMode")
    partition.preempt_mode = preempt_mode(reading, word).value_or(ReclaimMode::kDefault);
  else if (key == "PriorityJobFactor")
    partition.priority_job_factor = count_of(reading, word, 1);
  else if (key == "Priority")
    partition.priority_tier = partition.priority_job_factor = count_of(reading, word, 1);
  else if (key == "Hidden")
    yes(partition.hidden);
  else if (key == "RootOnly")
    yes(partition.root_only);
  else if (key == "DisableRootJobs")
    yes(partition.no_root_jobs);
  else if (key == "DefMemPerCPU")
    megabytes(partition.default_memory_mib_per_cpu);
  else if (key == "DefMemPerNode")
    megabytes(partition.default_memory_mib_per_node);
  else if (key == "MaxMemPerNode")
    megabytes(partition.max_memory_mib_per_node);
}

void set_partition_word(ConfigReading& reading, std::string_view key, const ConfigWord& word,
                        PartitionSpec& partition) {
  if (key == "Nodes") {
    partition.nodes = partition_nodes(reading, word);
  } else if (key == "Default") {
    if (auto value = reading.yes_or_no(word)) partition.is_default = *value;
  } else if (key == "State") {
    set_state(reading, word, partition);
  } else if (key == "OverSubscribe" || key == "Shared") {
    set_sharing(reading, word, partition);
  } else if (key == "AllowGroups") {
    partition.allow_groups = names_of(word);
  } else if (key == "AllowAccounts") {
    partition.allow_accounts = names_of(word);
  } else if (key == "DenyAccounts") {
    partition.deny_accounts = names_of(word);
  } else if (!set_partition_accounting(reading, key, word, partition)) {
    set_limit_word(reading, key, word, partition);
  }
}

}  // namespace

std::optional<ReclaimMode> preempt_mode(ConfigReading& reading, const ConfigWord& word) {
  std::optional<ReclaimMode> mode;
  for (std::string_view part : split(word.value, ',', EmptyPieces::kDrop)) {
    const std::string value = lower(part);
    if (value == "off")
      mode = ReclaimMode::kOff;
    else if (value == "cancel")
      mode = ReclaimMode::kCancel;
    else if (value == "requeue")
      mode = ReclaimMode::kRequeue;
    else if (value == "suspend") {
      mode = ReclaimMode::kSuspend;
      reading.warn(
          "config-no-effect", word.span,
          fmt::format("{}: SUSPEND is not there yet: nobody is preempted by it", word.key));
    } else if (value != "gang")
      reading.error("config-value", word.span,
                    fmt::format("{}: expected OFF, CANCEL, REQUEUE, SUSPEND or GANG, not {}",
                                word.key, quote(word.value)));
  }
  return mode;
}

void read_partition_lines(ConfigReading& reading, const ConfigLines& lines) {
  PartitionSpec defaults;
  std::vector<PartitionSpec>& partitions = reading.out.spec.partitions;
  for (const ConfigLine& line : lines.lines) {
    const ConfigWord& first = line.words.front();
    if (!equals_ci(first.key, "PartitionName")) continue;
    PartitionSpec partition = defaults;
    for (const ConfigWord& word : line.words) {
      const KnownKey* known = reading.look_up(partition_keys(), word, "a PartitionName line");
      if (known) set_partition_word(reading, known->name, word, partition);
    }
    if (equals_ci(first.value, "DEFAULT")) {
      defaults = std::move(partition);
      continue;
    }
    if (partition.max_time && partition.default_time &&
        *partition.default_time > *partition.max_time)
      reading.error("config-partition", first.span,
                    fmt::format("partition {}: DefaultTime is longer than MaxTime", first.value));
    for (PartitionSpec& other : partitions)
      if (partition.is_default && other.is_default) {
        reading.warn(
            "config-partition", first.span,
            fmt::format("{} is the default partition now; {} was before", first.value, other.name));
        other.is_default = false;
      }
    for (std::string_view name : split(first.value, ',', EmptyPieces::kDrop)) {
      partition.name = std::string(trim(name));
      if (std::ranges::find(partitions, partition.name, &PartitionSpec::name) != partitions.end())
        reading.error("config-partition", first.span,
                      fmt::format("partition {} is described twice", partition.name));
      else
        partitions.push_back(partition);
    }
  }
}

}  // namespace tutti::slurm
