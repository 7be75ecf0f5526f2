#include "agent/agent_impl.h"
#include "agent/rank_environment.h"

namespace tutti::agent {
namespace {

// Sent and not acknowledged by the client; more would only fill queues on the way.
constexpr std::uint64_t kWindow = 8 << 20;
// Queued in the uplink, above which other work goes first.
constexpr std::size_t kUplinkQueueMax = 4 << 20;

}  // namespace

void Agent::Impl::open_spool(GangEntry& gang, StepEntry& step) {
  auto spool = SpoolReader::open(step.directory);
  if (spool) {
    step.spool = std::move(*spool);
    return;
  }
  log(to_string(spool.error()));
  // Nothing can be sent any more; nobody has to wait for it.
  step.sent = step.size;
  unsent_.erase({gang.id(), step.id});
}

void Agent::Impl::pump(GangEntry& gang, StepEntry& step) {
  if (!step.spool.is_open() && step.sent < step.size) open_spool(gang, step);
  while (step.sent < step.size && uplink_.queued_bytes() < kUplinkQueueMax) {
    // A step that has ended is soon removed: then the controller has to keep what it is sent.
    if (step.sent - step.taken >= kWindow && !gang.ending) break;
    auto record = step.spool.read(step.sent);
    if (!record || !*record) {
      if (!record) log(to_string(record.error()));
      if (!record || step.phase == StepPhase::kDone) step.sent = step.size;
      break;
    }
    from_agent::Output output;
    output.key = key_of(gang, step.id);
    output.rank = (*record)->rank;
    output.is_error = (*record)->is_error;
    output.offset = (*record)->offset;
    output.next = (*record)->next;
    output.end = (*record)->end;
    send(output, (*record)->bytes);
    step.sent = (*record)->next;
  }
  if (step.sent == step.size && step.phase == StepPhase::kDone) step.spool = SpoolReader();
}

void Agent::Impl::pump_all() {
  if (!hello_said_ || !uplink_.is_ready()) return;
  for (auto it = unsent_.begin(); it != unsent_.end();) {
    const auto [gang_id, step_id] = *it++;  // before the element may go
    GangEntry* gang = find_gang(gang_id);
    StepEntry* step = nullptr;
    if (gang != nullptr && gang->steps.contains(step_id)) step = &gang->steps[step_id];
    if (step != nullptr) pump(*gang, *step);
    // A closed window is opened by OutputTaken, which puts the step back.
    const bool is_blocked_by_uplink =
        step != nullptr && step->sent < step->size && uplink_.queued_bytes() >= kUplinkQueueMax;
    if (!is_blocked_by_uplink) unsent_.erase({gang_id, step_id});
  }
}

}  // namespace tutti::agent
