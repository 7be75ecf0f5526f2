#include "scheduler/pass.h"

namespace tutti::scheduler {

namespace {

// Nodes looked at for promises in one pass; what is beyond keeps its place in the queue but gets no
// planned start.
constexpr std::uint64_t kMostForecastWork = 1'000'000;
constexpr std::size_t kBlockedListed = 16;

void promise(Pass& pass, const Candidate& candidate, const Forecast& forecast) {
  Element& element = pass.elements[candidate.element];
  auto owner = static_cast<Timeline::Owner>(pass.owners.size());
  pass.owners.push_back(element.ref);
  Promise made;
  made.element = element.ref;
  made.at = forecast.at;
  Instant until = candidate.limit.is_infinite()
                      ? Instant::never()
                      : forecast.at + candidate.limit + pass.input.state.spec->kill_wait;
  made.until = until;
  for (const Share& share : forecast.placement) {
    pass.timeline.add_promise(share.node, {forecast.at, until, owner, share.take});
    const NodeClass& kind = pass.cluster.of(share.node);
    made.shares.push_back({share.node, static_cast<std::uint32_t>(share.take.cores) * kind.threads,
                           static_cast<std::uint32_t>(share.take.gpu_count()),
                           static_cast<std::uint64_t>(share.take.memory_mib)});
    if (made.nodes.empty() || made.nodes.back() != share.node) made.nodes.push_back(share.node);
  }
  pass.promised_nodes |= pass.shapes[candidate.shape].candidates;
  pass.plan.promises.push_back(std::move(made));
  ++pass.promised;
  element.promise = owner;
}

void wait_for_room(Pass& pass, const Candidate& candidate) {
  const Shape& shape = pass.shapes[candidate.shape];
  bool behind_others = shape.candidates.intersects(pass.blocked_nodes);
  bool conflicts = shape.candidates.intersects(pass.promised_nodes);
  bool may_promise =
      !pass.elements[candidate.element].promise && pass.forecaster.looked() < kMostForecastWork &&
      pass.profile.reserve.promises(conflicts, pass.promised, pass.input.reserve_depth);
  std::optional<Forecast> forecast;
  if (may_promise) {
    Duration duration = candidate.limit.is_infinite()
                            ? candidate.limit
                            : candidate.limit + pass.input.state.spec->kill_wait;
    forecast = pass.forecaster.earliest(shape, pass.input.now, duration);
  }
  if (forecast) {
    note_planned(pass, candidate, behind_others, *forecast);
    promise(pass, candidate, *forecast);
  } else {
    note_blocked(pass, candidate, behind_others);
  }
  pass.blocked_nodes |= shape.candidates;
  pass.somebody_waits = true;
}

}  // namespace

void reserve(Pass& pass, const Candidate& candidate) {
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
  if (state.blocked++ == 0) pass.blocked_shapes.push_back(candidate.shape);
  if (state.first_blocked.size() < kBlockedListed) {
    ElementRef ahead = pass.elements[candidate.element].ref;
    // An array stands with all its elements: the next one takes the place of each.
    if (!ahead.gang) ahead.array_index.reset();
    state.first_blocked.push_back(ahead);
  }
}

}  // namespace tutti::scheduler
