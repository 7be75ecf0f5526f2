// The table of contents of the scheduler. One pass: who may be considered, in which order, and for
// each in turn whether the rules admit it, where it fits, and if nowhere, what it is promised.
#include <optional>

#include "scheduler/pass.h"
#include "scheduler/pick_next.h"

namespace tutti::scheduler {

Plan plan(const PassInput& input) {
  const Profile* profile = find_profile(input.profile);
  if (!profile) profile = find_profile("tutti");
  Pass pass(input, *profile);

  book_holdings(pass);      // holdings.cpp
  book_reservations(pass);  // reservations.cpp
  find_eligible(pass);      // candidates.cpp, eligible.cpp
  put_in_order(pass);       // candidates.cpp, order.cpp
  begin_reclaim(pass);      // reclaim.cpp
  keep_promises(pass);      // promises.cpp
  PickNext pick(pass);      // pick_next.cpp
  while (std::optional<Candidate> next = pick.next()) {
    Candidate& candidate = *next;
    if (pass.plan.stats.work_units > input.budget) {
      pass.out_of_budget = true;
      break;
    }
    if (pass.elements[candidate.element].recalls) continue;  // in another partition
    if (pass.elements[candidate.element].settled) continue;  // in another partition
    if (!admit(pass, candidate)) continue;                   // admit.cpp
    SeenBy seen(pass, candidate);                            // reservations.cpp
    StandAside aside(pass, candidate);                       // promises.cpp
    if (start(pass, candidate)) {                            // start.cpp, place*.cpp
      promise_later(pass, candidate);                        // quota_promises.cpp
      continue;
    }
    reserve(pass, candidate);  // reserve.cpp, forecast.cpp
  }
  settle_reclaim(pass);   // reclaim.cpp
  settle_promises(pass);  // promises.cpp
  settle_groups(pass);    // groups.cpp
  explain(pass);          // explain.cpp
  return std::move(pass.plan);
}

}  // namespace tutti::scheduler
