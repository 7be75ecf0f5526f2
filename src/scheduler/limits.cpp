#include "scheduler/limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/text.h"
#include "scheduler/order.h"

namespace tutti::scheduler {

namespace {

// The words of one kind of limit, by resource.
struct Words {
  std::string_view cpu, memory, node, gres, billing, license;
  std::string_view of(std::string_view resource) const {
    if (resource == "cpu") return cpu;
    if (resource == "mem") return memory;
    if (resource == "node") return node;
    if (resource == "billing") return billing;
    return resource.starts_with("license/") ? license : gres;
  }
};
constexpr Words kGroup{"AssocGrpCpuLimit", "AssocGrpMemLimit", "AssocGrpNodeLimit",
                       "AssocGrpGRES",     "AssocGrpBilling",  "AssocGrpLicense"};
constexpr Words kGroupMinutes{"AssocGrpCPUMinutesLimit", "AssocGrpMemMinutes",
                              "AssocGrpNodeMinutes",     "AssocGrpGRESMinutes",
                              "AssocGrpBillingMinutes",  "AssocGrpLicenseMinutes"};
constexpr Words kGroupRun{"AssocGrpCPURunMinutesLimit", "AssocGrpMemRunMinutes",
                          "AssocGrpNodeRunMinutes",     "AssocGrpGRESRunMinutes",
                          "AssocGrpBillingRunMinutes",  "AssocGrpLicenseRunMinutes"};
constexpr Words kPerJob{"AssocMaxCpuPerJobLimit", "AssocMaxMemPerJob",     "AssocMaxNodePerJobLimit",
                        "AssocMaxGRESPerJob",     "AssocMaxBillingPerJob", "AssocMaxLicensePerJob"};
constexpr Words kJobMinutes{"AssocMaxCpuMinutesPerJobLimit", "AssocMaxMemMinutesPerJob",
                            "AssocMaxNodeMinutesPerJob",     "AssocMaxGRESMinutesPerJob",
                            "AssocMaxBillingMinutesPerJob",  "AssocMaxLicenseMinutesPerJob"};
constexpr Words kQosGroup{"QOSGrpCpuLimit", "QOSGrpMemLimit", "QOSGrpNodeLimit",
                          "QOSGrpGRES",     "QOSGrpBilling",  "QOSGrpLicense"};
constexpr Words kQosMinutes{"QOSGrpCPUMinutesLimit", "QOSGrpMemoryMinutes",  "QOSGrpNodeMinutes",
                            "QOSGrpGRESMinutes",     "QOSGrpBillingMinutes", "QOSGrpLicenseMinutes"};
constexpr Words kQosRun{"QOSGrpCPURunMinutesLimit", "QOSGrpMemoryRunMinutes",
                        "QOSGrpNodeRunMinutes",     "QOSGrpGRESRunMinutes",
                        "QOSGrpBillingRunMinutes",  "QOSGrpLicenseRunMinutes"};
constexpr Words kQosPerJob{"QOSMaxCpuPerJobLimit", "QOSMaxMemoryPerJob",  "QOSMaxNodePerJobLimit",
                           "QOSMaxGRESPerJob",     "QOSMaxBillingPerJob", "QOSMaxLicensePerJob"};
constexpr Words kQosPerUser{"QOSMaxCpuPerUserLimit", "QOSMaxMemoryPerUser",  "QOSMaxNodePerUserLimit",
                            "QOSMaxGRESPerUser",     "QOSMaxBillingPerUser", "QOSMaxLicensePerUser"};
constexpr Words kQosPerAccount{"MaxCpuPerAccount",  "MaxMemoryPerAccount",  "MaxNodePerAccount",
                               "MaxGRESPerAccount", "MaxBillingPerAccount", "MaxLicensePerAccount"};
constexpr Words kQosJobMinutes{"QOSMaxCpuMinutesPerJobLimit", "QOSMaxMemoryMinutesPerJob",
                               "QOSMaxNodeMinutesPerJob",     "QOSMaxGRESMinutesPerJob",
                               "QOSMaxBillingMinutesPerJob",  "QOSMaxLicenseMinutesPerJob"};
constexpr Words kQosLeast{"QOSMinCpuNotSatisfied", "QOSMinMemory",  "QOSMinNode",
                          "QOSMinGRES",            "QOSMinBilling", "QOSMinLicense"};

std::uint64_t amount_in(const TresAmounts& amounts, const std::string& resource) {
  auto it = amounts.find(resource);
  return it == amounts.end() ? 0 : it->second;
}

OverLimit over_by(std::string_view word, std::string_view limit, std::string_view whose,
                  std::string_view resource, std::uint64_t would_be, std::uint64_t most) {
  return {word,
          fmt::format("{} {} of {}: {} with this job, {} allowed", limit, resource, whose, would_be,
                      most),
          fmt::format("limit {} of {}", limit, whose), false};
}

// `held` and what is asked may not be more than `limits` in a resource that is asked for.
std::optional<OverLimit> too_much(const TresAmounts& limits, const TresAmounts& held,
                                  const TresAmounts& asked, const Words& words,
                                  std::string_view limit, std::string_view whose) {
  for (const auto& [resource, most] : limits) {
    const std::uint64_t want = amount_in(asked, resource);
    if (want == 0) continue;
    const std::uint64_t all = amount_in(held, resource) + want;
    if (all > most) return over_by(words.of(resource), limit, whose, resource, all, most);
  }
  return std::nullopt;
}

constexpr std::uint64_t kMinute = 60'000;

// Used up minutes; `ahead_ms`: with what the job may use by its limit, or 0.
std::optional<OverLimit> used_up(const TresAmounts& limits, const TresAmounts& used,
                                 const TresAmounts& asked, std::uint64_t ahead_ms,
                                 const Words& words, std::string_view limit,
                                 std::string_view whose) {
  for (const auto& [resource, minutes] : limits) {
    const std::uint64_t want = amount_in(asked, resource);
    if (want == 0) continue;
    const std::uint64_t all = amount_in(used, resource) + want * ahead_ms;
    const std::uint64_t most = minutes * kMinute;
    if (all > most || (ahead_ms == 0 && all >= most))
      return over_by(words.of(resource), limit, whose, resource, all / kMinute, minutes);
  }
  return std::nullopt;
}

std::uint64_t bounded_ms(Duration limit) {
  return limit.is_infinite() ? std::uint64_t{1} << 40 : static_cast<std::uint64_t>(limit.ms());
}

template <class T>
const std::optional<T>* nearest(const AccountBook& book, AssociationId from,
                                std::optional<T> AssociationLimits::*field) {
  for (const Association* a = book.find(from); a; a = book.find(a->parent))
    if (a->limits.*field) return &(a->limits.*field);
  return nullptr;
}

std::string name_of(const Association& a) {
  return a.user.empty() ? "account " + a.account
                        : fmt::format("user {} in account {}", a.user, a.account);
}

bool has_limits(const Qos& qos) {
  Qos plain;
  plain.id = qos.id;
  plain.name = qos.name;
  plain.description = qos.description;
  plain.priority = qos.priority;
  plain.preempt = qos.preempt;
  plain.preempt_mode = qos.preempt_mode;
  plain.grace = qos.grace;
  plain.exempt = qos.exempt;
  plain.usage_factor = qos.usage_factor;
  return !(plain == qos);
}

}  // namespace

std::optional<TresAmounts> parse_licenses(std::string_view text) {
  TresAmounts out;
  for (std::string_view piece : split(text, ',', EmptyPieces::kDrop)) {
    const std::size_t colon = piece.find_first_of(":=*");
    const std::string_view name = piece.substr(0, colon);
    std::uint64_t count = 1;
    if (colon != std::string_view::npos) {
      const std::string_view number = piece.substr(colon + 1);
      auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), count);
      if (error != std::errc() || end != number.data() + number.size()) return std::nullopt;
    }
    if (name.empty()) return std::nullopt;
    out[fmt::format("license/{}", name)] += count;
  }
  return out;
}

LimitBook::LimitBook(const ClusterState& state, const Agenda& agenda, Instant now)
    : state_(state), book_(*state.accounts) {
  const bool limits = state.spec->accounting.limits;
  any_ = !state.spec->licenses.empty();
  for (const auto& [id, a] : book_.associations) any_ = any_ || (limits && !a.limits.empty());
  for (const auto& [name, qos] : book_.qos) any_ = any_ || (limits && has_limits(qos));
  if (!any_) return;
  for (std::uint32_t id : agenda.active) {
    const Gang* gang = state.gangs.find(id);
    const WorkloadEntry* entry = gang ? state.workloads.find(gang->workload.value()) : nullptr;
    if (!entry) continue;
    const auto& partitions = state.spec->partitions;
    auto where = std::find_if(partitions.begin(), partitions.end(), [&](const PartitionSpec& p) {
      return p.name == gang->partition;
    });
    const PartitionSpec* partition = where == partitions.end() ? nullptr : &*where;
    TresAmounts held = tres_of(*state.spec, gang->slots);
    held["billing"] = billing_milli(state.spec->priority, partition, held) / 1000;
    if (auto licenses = parse_licenses(entry->workload.extras->licenses))
      held.insert(licenses->begin(), licenses->end());
    const bool bounded = gang->limit_end.is_set() && gang->limit_end < Instant::never();
    add(*entry, partition, held,
        bounded ? std::max(gang->limit_end - now, Duration()) : Duration::infinite());
  }
  gather_usage(now);
}

// Only where minutes are limited.
void LimitBook::gather_usage(Instant now) {
  const PriorityWeights& rules = state_.spec->priority;
  auto sum = [](Used& used, const UsageRecord& record) {
    for (const auto& [resource, amount] : record.amount) used.amount[resource] += amount;
    used.wall_ms += record.wall_ms;
  };
  bool minutes = false;
  for (const auto& [id, a] : book_.associations)
    minutes = minutes || !a.limits.group_minutes.empty() || a.limits.group_wall;
  for (const auto& [name, qos] : book_.qos)
    minutes = minutes || !qos.group_minutes.empty() || qos.group_wall;
  if (!minutes) return;
  auto up = [&](AssociationId id, const UsageRecord& record) {
    for (const Association* a = book_.find(id); a; a = book_.find(a->parent))
      sum(used_[a->id], record);
  };
  state_.usage.for_each([&](std::uint32_t id, const UsageRecord& kept) {
    UsageRecord record = kept;
    fade(record, rules, now);
    up(id, record);
  });
  PriorityWeights lasting = rules;
  lasting.half_life = Duration();
  std::map<std::uint32_t, bool> lasts;
  for (const auto& [name, qos] : book_.qos) lasts[qos.id] = qos.no_decay;
  state_.qos_usage.for_each([&](std::uint32_t id, const UsageRecord& kept) {
    UsageRecord record = kept;
    fade(record, lasts[id] ? lasting : rules, now);
    sum(qos_used_[id], record);
  });
  state_.gangs.for_each([&](std::uint32_t, const Gang& gang) {
    if (!gang.charged_from.is_set() || gang.charged_from >= now) return;
    const WorkloadEntry* entry = state_.workloads.find(gang.workload.value());
    if (!entry) return;
    const Qos* qos = book_.find_qos(entry->workload.qos);
    UsageRecord record;
    record.at = now;
    const TresAmounts held = tres_of(*state_.spec, gang.slots);
    charge(record, rules, held, billing_milli(rules, nullptr, held), gang.charged_from,
           qos ? qos->usage_factor : kFactorOne);
    up(entry->association, record);
    if (qos) sum(qos_used_[qos->id], record);
  });
}

std::vector<const Qos*> LimitBook::qualities(const WorkloadEntry& entry,
                                             const PartitionSpec* where) const {
  std::vector<const Qos*> out;
  const Qos* own = book_.find_qos(entry.workload.qos);
  const Qos* of_partition = where && !where->qos.empty() ? book_.find_qos(where->qos) : nullptr;
  if (of_partition && of_partition != own) out.push_back(of_partition);
  if (own) out.push_back(own);
  // With OverPartQOS the job's own limits go before the partition's.
  if (own && own->part_overrides && out.size() == 2) out.erase(out.begin());
  return out;
}

TresAmounts LimitBook::ask(const Workload& workload, const PartitionSpec& partition) const {
  TresAmounts asked = asked_by(workload);
  asked["billing"] = billing_milli(state_.spec->priority, &partition, asked) / 1000;
  if (auto licenses = parse_licenses(workload.extras->licenses))
    asked.insert(licenses->begin(), licenses->end());
  return asked;
}

void LimitBook::add(const WorkloadEntry& entry, const PartitionSpec* where,
                    const TresAmounts& held, Duration left) {
  auto count = [&](InUse& in_use) {
    ++in_use.jobs;
    for (const auto& [resource, amount] : held) {
      in_use.held[resource] += amount;
      in_use.remaining[resource] += amount * bounded_ms(left);
    }
  };
  for (const Association* a = book_.find(entry.association); a; a = book_.find(a->parent))
    count(associations_[a->id]);
  for (const Qos* qos : qualities(entry, where)) {
    count(qos_[qos->id]);
    count(qos_users_[{qos->id, entry.workload.user}]);
    count(qos_accounts_[{qos->id, entry.workload.account}]);
  }
  for (const auto& [resource, amount] : held)
    if (resource.starts_with("license/")) licenses_[resource] += amount;
}

void LimitBook::started(const WorkloadEntry& entry, const PartitionSpec& partition,
                        Duration limit) {
  if (any_) add(entry, &partition, ask(entry.workload, partition), limit);
}

std::optional<OverLimit> LimitBook::over(const WorkloadEntry& entry,
                                         const PartitionSpec& partition, Duration limit) const {
  if (!any_) return std::nullopt;
  const TresAmounts asked = ask(entry.workload, partition);
  if (auto over = over_licenses(asked)) return over;
  if (!state_.spec->accounting.limits) return std::nullopt;
  for (const Qos* qos : qualities(entry, &partition))
    if (auto over = over_qos(*qos, entry, asked, limit)) return over;
  return over_association(entry, asked, limit);
}

std::optional<OverLimit> LimitBook::over_licenses(const TresAmounts& asked) const {
  for (const auto& [name, total] : state_.spec->licenses) {
    const std::string resource = "license/" + name;
    const std::uint64_t want = amount_in(asked, resource);
    const std::uint64_t all = amount_in(licenses_, resource) + want;
    if (want > 0 && all > total)
      return OverLimit{"Licenses",
                       fmt::format("needs {} of license {}; {} of {} are free", want, name,
                                   total - std::min<std::uint64_t>(total, all - want), total),
                       "license " + name, false};
  }
  return std::nullopt;
}

std::optional<OverLimit> LimitBook::over_association(const WorkloadEntry& entry,
                                                     const TresAmounts& asked,
                                                     Duration limit) const {
  static const InUse kIdle;
  static const Used kUnused;
  const std::uint64_t ahead = state_.spec->accounting.safe ? bounded_ms(limit) : 0;
  auto in_use = [&](AssociationId id) -> const InUse& {
    auto it = associations_.find(id);
    return it == associations_.end() ? kIdle : it->second;
  };
  if (const auto* most = nearest(book_, entry.association, &AssociationLimits::jobs);
      most && in_use(entry.association).jobs >= **most)
    return over_by("AssocMaxJobsLimit", "MaxJobs", "user " + entry.workload.user, "jobs",
                   in_use(entry.association).jobs + 1, **most);
  if (const auto* most = nearest(book_, entry.association, &AssociationLimits::wall);
      most && limit > **most)
    return over_by("AssocMaxWallDurationPerJobLimit", "MaxWall", "user " + entry.workload.user,
                   "seconds", bounded_ms(limit) / 1000,
                   static_cast<std::uint64_t>((*most)->whole_seconds()));
  for (const Association* a = book_.find(entry.association); a; a = book_.find(a->parent)) {
    const AssociationLimits& limits = a->limits;
    const std::string whose = name_of(*a);
    const InUse& now = in_use(a->id);
    auto found = used_.find(a->id);
    const Used& used = found == used_.end() ? kUnused : found->second;
    if (limits.group_jobs && now.jobs >= *limits.group_jobs)
      return over_by("AssocGrpJobsLimit", "GrpJobs", whose, "jobs", now.jobs + 1,
                     *limits.group_jobs);
    if (limits.group_wall && used.wall_ms + ahead >= bounded_ms(*limits.group_wall))
      return over_by("AssocGrpWallLimit", "GrpWall", whose, "minutes", used.wall_ms / kMinute,
                     bounded_ms(*limits.group_wall) / kMinute);
    if (auto over = too_much(limits.group, now.held, asked, kGroup, "GrpTRES", whose)) return over;
    if (auto over = used_up(limits.group_minutes, used.amount, asked, ahead, kGroupMinutes,
                            "GrpTRESMins", whose))
      return over;
    if (auto over = used_up(limits.group_run_minutes, now.remaining, asked, bounded_ms(limit),
                            kGroupRun, "GrpTRESRunMins", whose))
      return over;
    if (auto over = too_much(limits.per_job, {}, asked, kPerJob, "MaxTRESPerJob", whose))
      return over;
    if (auto over = used_up(limits.job_minutes, {}, asked, bounded_ms(limit), kJobMinutes,
                            "MaxTRESMins", whose))
      return over;
  }
  return std::nullopt;
}

std::optional<OverLimit> LimitBook::over_qos(const Qos& qos, const WorkloadEntry& entry,
                                             const TresAmounts& asked, Duration limit) const {
  static const InUse kIdle;
  static const Used kUnused;
  auto at = [](const auto& map, const auto& key, const auto& otherwise) -> const auto& {
    auto it = map.find(key);
    return it == map.end() ? otherwise : it->second;
  };
  const InUse& all = at(qos_, qos.id, kIdle);
  const InUse& user = at(qos_users_, Name(qos.id, entry.workload.user), kIdle);
  const InUse& account = at(qos_accounts_, Name(qos.id, entry.workload.account), kIdle);
  const Used& used = at(qos_used_, qos.id, kUnused);
  const std::string whose = "qos " + qos.name;
  const std::uint64_t ahead = state_.spec->accounting.safe ? bounded_ms(limit) : 0;
  std::optional<OverLimit> over;
  auto jobs = [&](const std::optional<std::uint32_t>& most, const InUse& in_use,
                  std::string_view word, std::string_view name) {
    if (!over && most && in_use.jobs >= *most)
      over = over_by(word, name, whose, "jobs", in_use.jobs + 1, *most);
  };
  jobs(qos.group_jobs, all, "QOSGrpJobsLimit", "GrpJobs");
  jobs(qos.jobs_per_user, user, "QOSMaxJobsPerUserLimit", "MaxJobsPerUser");
  jobs(qos.jobs_per_account, account, "MaxJobsPerAccount", "MaxJobsPerAccount");
  if (!over && qos.wall && limit > *qos.wall)
    over = over_by("QOSMaxWallDurationPerJobLimit", "MaxWall", whose, "seconds",
                   bounded_ms(limit) / 1000, bounded_ms(*qos.wall) / 1000);
  if (!over && qos.group_wall && used.wall_ms + ahead >= bounded_ms(*qos.group_wall))
    over = over_by("QOSGrpWallLimit", "GrpWall", whose, "minutes", used.wall_ms / kMinute,
                   bounded_ms(*qos.group_wall) / kMinute);
  for (const auto& [resource, least] : qos.min_per_job)
    if (!over && amount_in(asked, resource) < least)
      over = OverLimit{kQosLeast.of(resource),
                       fmt::format("MinTRES {} of {}: {} asked, at least {} needed", resource,
                                   whose, amount_in(asked, resource), least),
                       "limit MinTRES of " + whose, true};
  auto first = [&](std::optional<OverLimit> next) {
    if (!over) over = std::move(next);
  };
  first(too_much(qos.group, all.held, asked, kQosGroup, "GrpTRES", whose));
  first(too_much(qos.per_job, {}, asked, kQosPerJob, "MaxTRESPerJob", whose));
  first(too_much(qos.per_user, user.held, asked, kQosPerUser, "MaxTRESPerUser", whose));
  first(too_much(qos.per_account, account.held, asked, kQosPerAccount, "MaxTRESPerAccount", whose));
  first(used_up(qos.group_minutes, used.amount, asked, ahead, kQosMinutes, "GrpTRESMins", whose));
  first(used_up(qos.group_run_minutes, all.remaining, asked, bounded_ms(limit), kQosRun,
                "GrpTRESRunMins", whose));
  first(used_up(qos.job_minutes, {}, asked, bounded_ms(limit), kQosJobMinutes, "MaxTRESMins",
                whose));
  if (over) over->by_qos = true;
  return over;
}

}  // namespace tutti::scheduler
