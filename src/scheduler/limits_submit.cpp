// What is refused at submit rather than left to wait.
#include <fmt/format.h>

#include "scheduler/limits.h"

namespace tutti::scheduler {

namespace {

std::uint64_t open_gangs(const WorkloadEntry& entry) {
  return entry.unstarted.count() + (entry.simple_unstarted ? 1 : 0) + entry.open_gangs;
}

// Over everything that is not over yet.
template <class Visit>
void for_each_open(const ClusterState& state, const Agenda& agenda, Visit visit) {
  for (std::uint32_t id : agenda.pending)
    if (const WorkloadEntry* entry = state.workloads.find(id)) visit(*entry, open_gangs(*entry));
  for (std::uint32_t id : agenda.active) {
    const Gang* gang = state.gangs.find(id);
    if (!gang || agenda.pending.contains(gang->workload.value())) continue;
    if (const WorkloadEntry* entry = state.workloads.find(gang->workload.value())) visit(*entry, 1u);
  }
}

OverLimit too_many(std::string_view word, std::string_view limit, const std::string& whose,
                   std::uint64_t would_be, std::uint64_t most, bool by_qos) {
  return {word, fmt::format("{} of {}: {} jobs with this one, {} allowed", limit, whose, would_be, most),
          fmt::format("limit {} of {}", limit, whose), by_qos};
}

}  // namespace

std::optional<OverLimit> over_at_submit(const ClusterState& state, const Agenda& agenda,
                                        const WorkloadEntry& entry, std::uint64_t jobs) {
  if (!state.spec->accounting.limits) return std::nullopt;
  const AccountBook& book = *state.accounts;
  const Workload& w = entry.workload;
  const Qos* qos = book.find_qos(w.qos);
  auto count = [&](auto belongs) {
    std::uint64_t sum = jobs;
    for_each_open(state, agenda, [&](const WorkloadEntry& other, std::uint64_t gangs) {
      if (belongs(other)) sum += gangs;
    });
    return sum;
  };
  if (qos) {
    auto same = [&](const WorkloadEntry& other) { return other.workload.qos == w.qos; };
    const std::string whose = "qos " + qos->name;
    if (qos->group_submitted)
      if (auto all = count(same); all > *qos->group_submitted)
        return too_many("QOSGrpSubmitJobsLimit", "GrpSubmitJobs", whose, all, *qos->group_submitted, true);
    if (qos->submitted_per_user) {
      auto all = count([&](const WorkloadEntry& o) { return same(o) && o.workload.user == w.user; });
      if (all > *qos->submitted_per_user)
        return too_many("QOSMaxSubmitJobPerUserLimit", "MaxSubmitJobsPerUser", whose, all,
                        *qos->submitted_per_user, true);
    }
    if (qos->submitted_per_account) {
      auto all = count([&](const WorkloadEntry& o) { return same(o) && o.workload.account == w.account; });
      if (all > *qos->submitted_per_account)
        return too_many("MaxSubmitJobsPerAccount", "MaxSubmitJobsPerAccount", whose, all,
                        *qos->submitted_per_account, true);
    }
  }
  const std::optional<std::uint32_t>* most = nullptr;
  for (const Association* a = book.find(entry.association); a && !most; a = book.find(a->parent))
    if (a->limits.submitted) most = &a->limits.submitted;
  if (most) {
    auto all = count([&](const WorkloadEntry& o) { return o.association == entry.association; });
    if (all > **most)
      return too_many("AssocMaxSubmitJobLimit", "MaxSubmitJobs", "user " + w.user, all, **most, false);
  }
  for (const Association* a = book.find(entry.association); a; a = book.find(a->parent)) {
    if (!a->limits.group_submitted) continue;
    auto all = count([&](const WorkloadEntry& o) {
      for (const Association* x = book.find(o.association); x; x = book.find(x->parent))
        if (x->id == a->id) return true;
      return false;
    });
    if (all > *a->limits.group_submitted)
      return too_many("AssocGrpSubmitJobsLimit", "GrpSubmitJobs", "account " + a->account, all,
                      *a->limits.group_submitted, false);
  }
  return std::nullopt;
}

}  // namespace tutti::scheduler
