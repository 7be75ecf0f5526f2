#include "controller/job_lookup.h"

namespace tutti::controller {

JobTarget whole_of(const WorkloadEntry& entry) {
  JobTarget target;
  target.workload = entry.workload.id;
  target.simple_unstarted = entry.simple_unstarted;
  target.unstarted = entry.unstarted;
  target.gangs = entry.gangs;
  target.whole = true;
  return target;
}

std::optional<JobTarget> find_job(const ClusterState& state, std::uint32_t job, const IndexSet* array) {
  const WorkloadEntry* entry = state.workloads.find(job);
  if (!entry) {
    // The own number of an element of an array.
    const Gang* gang = state.gangs.find(job);
    if (!gang || array) return std::nullopt;
    JobTarget target;
    target.workload = gang->workload;
    target.gangs.push_back(gang->id);
    return target;
  }
  if (!array) return whole_of(*entry);
  JobTarget target;
  target.workload = entry->workload.id;
  for (const auto& range : array->ranges()) {
    for (auto next = entry->unstarted.next(range.first); next && *next <= range.last;
         next = *next == range.last ? std::nullopt : entry->unstarted.next(*next + 1))
      target.unstarted.insert(*next);
  }
  for (GangId id : entry->gangs) {
    const Gang* gang = state.gangs.find(id.value());
    if (gang && gang->array_index && array->contains(*gang->array_index)) target.gangs.push_back(id);
  }
  if (target.empty()) return std::nullopt;
  return target;
}

}  // namespace tutti::controller
