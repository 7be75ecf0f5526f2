#include <fmt/format.h>

#include "base/duration_text.h"
#include "base/text.h"
#include "frontend/slurm/sacctmgr.h"

namespace tutti::slurm {

namespace {

// -1 takes the limit away.
bool read_count(std::string_view value, std::optional<std::uint32_t>& target) {
  if (value == "-1") {
    target.reset();
    return true;
  }
  auto number = parse_integer<std::uint32_t>(value);
  if (number) target = *number;
  return number.has_value();
}

bool read_wall(std::string_view value, std::optional<Duration>& target) {
  if (value == "-1") {
    target.reset();
    return true;
  }
  auto wall = parse_duration(std::string(value));
  if (wall) target = *wall;
  return wall.has_value();
}

template <class T>
struct Named {
  std::string_view name;
  TresAmounts T::*tres = nullptr;
  std::optional<std::uint32_t> T::*count = nullptr;
  std::optional<Duration> T::*wall = nullptr;
};

template <class T, std::size_t N>
bool set_named(const Named<T> (&table)[N], std::string_view key, std::string_view value, T& target,
               bool& bad) {
  for (const Named<T>& one : table) {
    if (!equals_ci(one.name, key)) continue;
    if (one.tres)
      bad = !read_tres(value, target.*one.tres);
    else if (one.count)
      bad = !read_count(value, target.*one.count);
    else
      bad = !read_wall(value, target.*one.wall);
    return true;
  }
  return false;
}

using L = AssociationLimits;
constexpr Named<L> kLimits[] = {
    {"GrpTRES", &L::group},
    {"GrpTRESMins", &L::group_minutes},
    {"GrpTRESRunMins", &L::group_run_minutes},
    {"MaxTRES", &L::per_job},
    {"MaxTRESPerJob", &L::per_job},
    {"MaxTRESMins", &L::job_minutes},
    {"MaxTRESMinsPerJob", &L::job_minutes},
    {"GrpJobs", nullptr, &L::group_jobs},
    {"GrpSubmit", nullptr, &L::group_submitted},
    {"GrpSubmitJobs", nullptr, &L::group_submitted},
    {"MaxJobs", nullptr, &L::jobs},
    {"MaxSubmit", nullptr, &L::submitted},
    {"MaxSubmitJobs", nullptr, &L::submitted},
    {"GrpWall", nullptr, nullptr, &L::group_wall},
    {"MaxWall", nullptr, nullptr, &L::wall},
    {"MaxWallDurationPerJob", nullptr, nullptr, &L::wall}};
using Q = Qos;
constexpr Named<Q> kQosLimits[] = {
    {"GrpTRES", &Q::group},
    {"GrpTRESMins", &Q::group_minutes},
    {"GrpTRESRunMins", &Q::group_run_minutes},
    {"MaxTRES", &Q::per_job},
    {"MaxTRESPerJob", &Q::per_job},
    {"MaxTRESPerUser", &Q::per_user},
    {"MaxTRESPU", &Q::per_user},
    {"MaxTRESPerAccount", &Q::per_account},
    {"MaxTRESPA", &Q::per_account},
    {"MaxTRESMins", &Q::job_minutes},
    {"MinTRES", &Q::min_per_job},
    {"MinTRESPerJob", &Q::min_per_job},
    {"GrpJobs", nullptr, &Q::group_jobs},
    {"GrpSubmit", nullptr, &Q::group_submitted},
    {"GrpSubmitJobs", nullptr, &Q::group_submitted},
    {"MaxJobsPerUser", nullptr, &Q::jobs_per_user},
    {"MaxJobsPU", nullptr, &Q::jobs_per_user},
    {"MaxJobsPerAccount", nullptr, &Q::jobs_per_account},
    {"MaxJobsPA", nullptr, &Q::jobs_per_account},
    {"MaxSubmitJobsPerUser", nullptr, &Q::submitted_per_user},
    {"MaxSubmitPU", nullptr, &Q::submitted_per_user},
    {"MaxSubmitJobsPerAccount", nullptr, &Q::submitted_per_account},
    {"MaxSubmitPA", nullptr, &Q::submitted_per_account},
    {"GrpWall", nullptr, nullptr, &Q::group_wall},
    {"MaxWall", nullptr, nullptr, &Q::wall},
    {"MaxWallDurationPerJob", nullptr, nullptr, &Q::wall},
    {"PreemptExemptTime", nullptr, nullptr, &Q::exempt}};

bool set_flags(std::string_view value, Qos& qos) {
  qos.deny_on_limit = qos.no_decay = qos.part_overrides = false;
  for (std::string_view flag : split(value, ',', EmptyPieces::kDrop)) {
    if (equals_ci(flag, "DenyOnLimit"))
      qos.deny_on_limit = true;
    else if (equals_ci(flag, "NoDecay"))
      qos.no_decay = true;
    else if (equals_ci(flag, "OverPartQOS"))
      qos.part_overrides = true;
    else if (flag != "-1")
      return false;
  }
  return true;
}

}  // namespace

bool read_tres(std::string_view text, TresAmounts& amounts) {
  if (text == "-1") {
    amounts.clear();
    return true;
  }
  for (std::string_view piece : split(text, ',', EmptyPieces::kDrop)) {
    auto pair = split_once(piece, '=');
    if (!pair) return false;
    const std::string name = lower(pair->first);
    std::string_view number = pair->second;
    const bool known = name == "cpu" || name == "mem" || name == "node" || name == "billing" ||
                       name.starts_with("gres/") || name.starts_with("license/");
    if (!known || number.empty()) return false;
    if (number == "-1") {
      amounts.erase(name);
      continue;
    }
    std::uint64_t unit = 1;
    if (name == "mem") {
      const char suffix = number.back();
      unit = suffix == 'T' ? 1024 * 1024 : suffix == 'G' ? 1024 : 1;
      if (suffix == 'T' || suffix == 'G' || suffix == 'M') number.remove_suffix(1);
    }
    auto value = parse_integer<std::uint64_t>(number);
    if (!value) return false;
    amounts[name] = *value * unit;
  }
  return true;
}

std::string tres_text(const TresAmounts& amounts) {
  std::string out;
  for (const auto& [name, amount] : amounts)
    out += fmt::format("{}{}={}{}", out.empty() ? "" : ",", name, amount, name == "mem" ? "M" : "");
  return out;
}

bool set_association_limit(std::string_view key, std::string_view value, AssociationLimits& limits,
                           bool& bad) {
  return set_named(kLimits, key, value, limits, bad);
}

bool set_qos_value(std::string_view key, std::string_view value, Qos& qos, bool& bad) {
  if (set_named(kQosLimits, key, value, qos, bad)) return true;
  if (equals_ci(key, "Priority")) {
    auto number = parse_integer<std::uint32_t>(value);
    bad = !number;
    if (number) qos.priority = *number;
  } else if (equals_ci(key, "Description")) {
    qos.description = value;
  } else if (equals_ci(key, "GraceTime")) {
    auto number = parse_integer<std::uint32_t>(value);
    bad = !number;
    if (number) qos.grace = Duration::seconds(*number);
  } else if (equals_ci(key, "Preempt")) {
    qos.preempt.clear();
    for (std::string_view name : split(value, ',', EmptyPieces::kDrop)) qos.preempt.emplace_back(name);
  } else if (equals_ci(key, "PreemptMode")) {
    auto mode = equals_ci(value, "cluster") ? ReclaimMode::kDefault
                                            : enum_from_name<ReclaimMode>(lower(value));
    bad = !mode;
    if (mode) qos.preempt_mode = *mode;
  } else if (equals_ci(key, "Flags")) {
    bad = !set_flags(value, qos);
  } else if (equals_ci(key, "UsageFactor")) {
    auto pair = split_once(value, '.');
    auto whole = parse_integer<std::uint64_t>(pair ? pair->first : value);
    std::string part(pair ? pair->second : "");
    part.resize(6, '0');
    auto millionths = parse_integer<std::uint64_t>(part);
    bad = !whole || !millionths;
    if (!bad) qos.usage_factor = *whole * kFactorOne + *millionths;
  } else {
    return false;
  }
  return true;
}

std::string FieldTable::render() const {
  std::string out;
  auto line = [&](auto cell_of) {
    for (std::size_t i = 0; i < columns.size(); ++i) {
      std::string cell = cell_of(i);
      if (parsable || parsable2) {
        out += cell;
        if (parsable || i + 1 < columns.size()) out += '|';
        continue;
      }
      const auto width = static_cast<std::size_t>(std::abs(columns[i].width));
      if (cell.size() > width) cell = cell.substr(0, width - 1) + "+";
      out += columns[i].width < 0 ? fmt::format("{:<{}} ", cell, width)
                                  : fmt::format("{:>{}} ", cell, width);
    }
    out += '\n';
  };
  if (!no_header) {
    line([&](std::size_t i) {
      const auto width = static_cast<std::size_t>(std::abs(columns[i].width));
      return parsable || parsable2 ? columns[i].title : columns[i].title.substr(0, width);
    });
    if (!parsable && !parsable2)
      line([&](std::size_t i) {
        return std::string(static_cast<std::size_t>(std::abs(columns[i].width)), '-');
      });
  }
  for (const auto& row : rows) line([&](std::size_t i) { return row[i]; });
  return out;
}

}  // namespace tutti::slurm
