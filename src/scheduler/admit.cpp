#include "model/reasons.h"
#include "scheduler/explain.h"
#include "scheduler/pass.h"

namespace tutti::scheduler {

bool admit(Pass& pass, const Candidate& candidate) {
  const Element& element = pass.elements[candidate.element];
  const PartitionSpec& partition = pass.cluster.spec().partitions[candidate.partition];
  for (const AdmitRule& rule : pass.profile.admit) {
    std::string_view reason = rule.refuse(partition, element.entry->workload,
                                          pass.shapes[candidate.shape], candidate.limit);
    if (reason.empty()) continue;
    note_refused(pass, candidate, reason);
    return false;
  }
  if (candidate.queue != kNoQueue && pass.quota.spec(candidate.queue).state == QueueState::kHeld) {
    note_refused(pass, candidate, reason::kQueueHeld);
    return false;
  }
  if (!pass.limits.any()) return true;
  auto over = pass.limits.over(*element.entry, partition, candidate.limit);
  if (over) note_over_limit(pass, candidate, std::move(*over));
  return !over;
}

}  // namespace tutti::scheduler
