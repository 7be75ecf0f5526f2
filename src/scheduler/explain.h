// What a stage notes about a candidate that does not start: the reason, with its numbers, for the
// owner to read. Reasons that need no search are complete at once; the others are completed by
// explain() at the end of the pass. Internal to scheduler/.
#pragma once

#include "scheduler/pass.h"

namespace tutti::scheduler {

void note_ineligible(Pass& pass, Element& element, const Ineligible& why);
void note_over_quota(Pass& pass, const Candidate& candidate, const QuotaTree::Refusal& refusal);
void note_refused(Pass& pass, const Candidate& candidate, std::string_view reason);
void note_over_limit(Pass& pass, const Candidate& candidate, OverLimit over);
void judge_shape(Pass& pass, const Candidate& candidate, const Judgement& judgement);
void note_outlook(Pass& pass, const Candidate& candidate);
void note_blocked(Pass& pass, const Candidate& candidate, bool behind_others);
void note_window(Pass& pass, const Candidate& candidate, const Forecast* forecast);
void note_planned(Pass& pass, const Candidate& candidate, bool behind_others,
                  const Forecast& forecast);

}  // namespace tutti::scheduler
