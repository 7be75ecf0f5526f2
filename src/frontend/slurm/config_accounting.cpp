// What slurm.conf says of order, accounting and licences: PriorityFlags, TRES weights,
// AccountingStorageEnforce, Licenses (man slurm.conf).
#include <fmt/format.h>

#include <cmath>

#include "base/size_text.h"
#include "base/text.h"
#include "frontend/slurm/config_parts.h"

namespace tutti::slurm {
namespace {

// "0.25" of something as millionths; digits after the sixth are cut.
std::optional<std::uint64_t> millionths(std::string_view text) {
  const auto dot = text.find('.');
  auto whole = parse_integer<std::uint64_t>(dot == 0 ? "0" : text.substr(0, dot));
  if (!whole || *whole > 1'000'000'000) return std::nullopt;
  std::uint64_t part = 0, unit = 100'000;
  if (dot != std::string_view::npos) {
    for (char c : text.substr(dot + 1)) {
      if (c < '0' || c > '9') return std::nullopt;
      part += unit * static_cast<std::uint64_t>(c - '0');
      unit /= 10;
    }
  }
  return *whole * 1'000'000 + part;
}

// "CPU=1.0,Mem=0.25G,GRES/gpu:h100=2.0": millionths per CPU, per MiB, per GPU.
std::map<std::string, std::uint64_t> weights_of(ConfigReading& reading, const ConfigWord& word) {
  std::map<std::string, std::uint64_t> out;
  for (std::string_view piece : split(word.value, ',', EmptyPieces::kDrop)) {
    auto pair = split_once(piece, '=');
    std::string name = pair ? lower(trim(pair->first)) : std::string();
    std::string_view value = pair ? trim(pair->second) : std::string_view();
    std::uint64_t mib = 1;
    if (name == "mem" && !value.empty()) {
      switch (value.back()) {
        case 'T':
          mib = 1024 * 1024;
          break;
        case 'G':
          mib = 1024;
          break;
        default:
          break;
      }
      if (value.back() > '9') value.remove_suffix(1);
    }
    auto number = millionths(value);
    if (name.empty() || !number)
      reading.error("config-value", word.span,
                    fmt::format("{}: {} is no weight: NAME=NUMBER expected, as in CPU=1.0,Mem=0.25G",
                                word.key, quote(piece)));
    else
      out[name] = *number / mib;
  }
  return out;
}

void read_enforce(ConfigReading& reading, const ConfigWord& word) {
  AccountingRules& rules = reading.out.spec.accounting;
  rules = {false, false, false, false};
  for (std::string_view one : split(word.value, ',', EmptyPieces::kDrop)) {
    const std::string flag = lower(trim(one));
    const bool all = flag == "all" || flag == "1";
    if (all || flag.starts_with("assoc")) rules.associations = true;
    if (all || flag.starts_with("limit")) rules.limits = rules.associations = true;
    if (flag.starts_with("safe")) rules.safe = rules.limits = rules.associations = true;
    if (all || flag.starts_with("qos")) rules.qos = rules.associations = true;
    if (all || flag == "none" || flag == "0" || flag.starts_with("assoc") ||
        flag.starts_with("limit") || flag.starts_with("safe") || flag.starts_with("qos") ||
        flag == "nojobs" || flag == "nosteps" || flag == "wckeys")
      continue;
    reading.error("config-value", word.span,
                  fmt::format("AccountingStorageEnforce: {} is not known: associations, limits, qos, "
                              "safe, all or none expected",
                              quote(flag)));
  }
}

void read_flags(ConfigReading& reading, const ConfigWord& word) {
  PriorityWeights& weights = reading.out.spec.priority;
  for (std::string_view one : split(word.value, ',', EmptyPieces::kDrop)) {
    const std::string flag = upper(trim(one));
    if (flag == "ACCRUE_ALWAYS")
      weights.accrue_always = true;
    else if (flag == "SMALL_RELATIVE_TO_TIME")
      weights.size_relative_to_time = true;
    else if (flag == "MAX_TRES" || flag == "MAX_TRES_GRES")
      weights.bill_largest = true;
    else if (flag == "NO_NORMAL_ALL")
      weights.unnormalised_association = weights.unnormalised_partition =
          weights.unnormalised_qos = weights.unnormalised_tres = true;
    else if (flag == "NO_NORMAL_ASSOC")
      weights.unnormalised_association = true;
    else if (flag == "NO_NORMAL_PART")
      weights.unnormalised_partition = true;
    else if (flag == "NO_NORMAL_QOS")
      weights.unnormalised_qos = true;
    else if (flag == "NO_NORMAL_TRES")
      weights.unnormalised_tres = true;
    else if (flag != "CALCULATE_RUNNING" && flag != "FAIR_TREE")
      reading.warn("config-unsupported", word.span,
                   fmt::format("PriorityFlags={} is understood but has no effect", flag));
  }
}

void read_licenses(ConfigReading& reading, const ConfigWord& word) {
  for (std::string_view piece : split(word.value, ',', EmptyPieces::kDrop)) {
    const auto colon = piece.find(':');
    std::optional<std::uint32_t> count = 1;
    if (colon != std::string_view::npos)
      count = parse_integer<std::uint32_t>(trim(piece.substr(colon + 1)));
    if (!count || trim(piece.substr(0, colon)).empty())
      reading.error("config-value", word.span,
                    fmt::format("Licenses: {}: NAME or NAME:COUNT expected", quote(piece)));
    else
      reading.out.spec.licenses[std::string(trim(piece.substr(0, colon)))] = *count;
  }
}

}  // namespace

void read_accounting_word(ConfigReading& reading, std::string_view key, const ConfigWord& word) {
  PriorityWeights& weights = reading.out.spec.priority;
  if (key == "AccountingStorageEnforce") {
    read_enforce(reading, word);
  } else if (key == "Licenses") {
    read_licenses(reading, word);
  } else if (key == "PriorityFlags") {
    read_flags(reading, word);
  } else if (key == "PriorityFavorSmall") {
    if (auto value = reading.yes_or_no(word)) weights.favor_small = *value;
  } else if (key == "PriorityUsageResetPeriod") {
    if (auto period = enum_from_name<ResetPeriod>(lower(word.value)))
      weights.reset_period = *period;
    else
      reading.error("config-value", word.span,
                    fmt::format("PriorityUsageResetPeriod: {}: NONE, NOW, DAILY, WEEKLY, MONTHLY, "
                                "QUARTERLY or YEARLY expected",
                                quote(word.value)));
  } else if (key == "PriorityWeightAssoc") {
    if (auto value = reading.number(word)) weights.association = *value;
  } else if (key == "PriorityWeightTRES") {
    for (const auto& [name, value] : weights_of(reading, word))
      weights.tres[name] = static_cast<std::uint32_t>(value / 1'000'000);
  }
}

bool set_partition_accounting(ConfigReading& reading, std::string_view key, const ConfigWord& word,
                              PartitionSpec& partition) {
  auto names = [&] {
    std::vector<std::string> out;
    for (std::string_view one : split(word.value, ',', EmptyPieces::kDrop))
      if (!equals_ci(trim(one), "ALL")) out.emplace_back(trim(one));
    return out;
  };
  if (key == "TRESBillingWeights")
    partition.billing_weights = weights_of(reading, word);
  else if (key == "QOS")
    partition.qos = equals_ci(word.value, "N/A") ? "" : word.value;
  else if (key == "AllowQos")
    partition.allow_qos = names();
  else if (key == "DenyQos")
    partition.deny_qos = names();
  else
    return false;
  return true;
}

}  // namespace tutti::slurm
