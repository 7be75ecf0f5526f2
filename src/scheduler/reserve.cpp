#include "scheduler/explain.h"
#include "scheduler/pass.h"

namespace tutti::scheduler {

namespace {

// Nodes looked at for promises in one pass; what is beyond keeps its place in the queue but gets no
// planned start.
constexpr std::uint64_t kMostForecastWork = 1'000'000;
constexpr std::size_t kBlockedListed = 16;

// What was promised in the candidate's queue, if that is a best-effort one.
NodeSet* promised_of_queue(Pass& pass, const Candidate& candidate) {
  if (candidate.queue == kNoQueue ||
      pass.quota.spec(candidate.queue).strictness != QueueStrictness::kBestEffort)
    return nullptr;
  pass.queue_promised.resize(pass.quota.size(), NodeSet(pass.cluster.size()));
  return &pass.queue_promised[candidate.queue];
}

void wait_for_room(Pass& pass, const Candidate& candidate) {
  const Shape& shape = pass.shapes[candidate.shape];
  bool behind_others = shape.candidates.intersects(pass.blocked_nodes);
  const NodeSet* of_queue = promised_of_queue(pass, candidate);
  // Of a best-effort queue only the first is promised a start in each set of nodes.
  bool conflicts = shape.candidates.intersects(pass.promised_nodes);
  const bool second = of_queue && shape.candidates.intersects(*of_queue);
  const bool looks = pass.forecaster.looked() < kMostForecastWork;
  if (pass.elements[candidate.element].promise) {
    if (looks) pull_earlier(pass, candidate, behind_others);
    if (!pass.elements[candidate.element].wait) note_blocked(pass, candidate, behind_others);
    pass.promised_nodes |= shape.candidates;
  } else {
    std::optional<Forecast> forecast;
    if (looks && !second &&
        pass.profile.reserve.promises(conflicts, pass.promised, pass.input.reserve_depth))
      forecast = earliest_for(pass, candidate);
    if (forecast) {
      note_planned(pass, candidate, behind_others, *forecast);
      book_promise(pass, candidate, forecast->at, forecast->placement);
      pass.promised_nodes |= shape.candidates;
      if (NodeSet* promised = promised_of_queue(pass, candidate)) *promised |= shape.candidates;
      ++pass.promised;
    } else if (!window_of(pass, candidate).holds(pass.input.now, candidate.limit)) {
      note_window(pass, candidate, nullptr);
    } else {
      note_blocked(pass, candidate, behind_others);
    }
  }
  pass.blocked_nodes |= shape.candidates;
  pass.somebody_waits = true;
}

}  // namespace

std::optional<Forecast> earliest_for(Pass& pass, const Candidate& candidate) {
  const Window window = window_of(pass, candidate);
  auto forecast = pass.forecaster.earliest(pass.shapes[candidate.shape], window.from,
                                           pass.occupancy(candidate.limit));
  if (!forecast || !window.holds(forecast->at, candidate.limit)) return std::nullopt;
  if (window.from > pass.input.now) forecast->room_is_free = false;
  return forecast;
}

void stand_in_line(Pass& pass, const Candidate& candidate) {
  ShapeState& state = pass.shape_states[candidate.shape];
  if (state.blocked++ == 0) pass.blocked_shapes.push_back(candidate.shape);
  if (state.first_blocked.size() >= kBlockedListed) return;
  ElementRef ahead = pass.elements[candidate.element].ref;
  // An array stands with all its elements: the next one takes the place of each.
  if (!ahead.gang) ahead.array_index.reset();
  state.first_blocked.push_back(ahead);
}

void reserve(Pass& pass, const Candidate& candidate) {
  if (reclaim(pass, candidate)) return;
  const Shape& shape = pass.shapes[candidate.shape];
  ShapeState& state = pass.shape_states[candidate.shape];
  if (!state.outlook) {
    Judgement judgement = pass.forecaster.judge(shape);
    state.outlook = judgement.outlook;
    if (judgement.outlook != Outlook::kLater) judge_shape(pass, candidate, judgement);
  }
  if (*state.outlook != Outlook::kLater)
    note_outlook(pass, candidate);
  else
    wait_for_room(pass, candidate);
  stand_in_line(pass, candidate);
}

}  // namespace tutti::scheduler
