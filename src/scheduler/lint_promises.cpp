#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "scheduler/lint.h"

namespace tutti::scheduler {

namespace {

struct Booking {
  Instant from, until;
  std::uint64_t cpus = 0, gpus = 0, memory_mib = 0;
};

std::uint64_t gpus_of(const NodeSpec& node) {
  return static_cast<std::uint64_t>(
      std::count_if(node.devices.begin(), node.devices.end(),
                    [](const DeviceSpec& device) { return device.kind == "gpu"; }));
}

Instant end_of(const Gang& gang, Instant now, Duration kill_wait) {
  Instant soon = now + std::max(kill_wait, Duration::seconds(1));
  if (gang.state == GangState::kEnding) return soon;
  if (gang.eviction && gang.eviction->slots.empty() &&
      gang.eviction->deadline < Instant::never()) {
    Instant left = gang.eviction->deadline + kill_wait;
    if (gang.limit_end.is_set()) left = std::min(left, gang.limit_end + kill_wait);
    return left > now ? left : soon;
  }
  if (!gang.limit_end.is_set() || gang.limit_end >= Instant::never()) return Instant::never();
  Instant end = gang.limit_end + kill_wait;
  return end > now ? end : soon;
}

Booking booking_of(const NodeSpec& node, const Slot& slot, Instant from, Instant until) {
  if (slot.exclusive) return {from, until, node.cpus, gpus_of(node), slot.memory_mib};
  return {from, until, slot.cpu_ids.size(), slot.gpus.size(), slot.memory_mib};
}

using Bookings = std::map<NodeIndex, std::vector<Booking>>;

Bookings without_promises(const PassInput& input, const Plan& plan) {
  const ClusterSpec& spec = *input.state.spec;
  Bookings out;
  // Who is to leave for a promise is gone by then.
  std::map<GangId, Instant> recalled;
  for (const Promise& promise : plan.promises)
    for (GangId gang : promise.recalls) {
      auto [it, fresh] = recalled.emplace(gang, promise.at);
      it->second = std::min(it->second, promise.at);
    }
  for (std::uint32_t id : input.agenda.active) {
    const Gang* gang = input.state.gangs.find(id);
    if (!gang) continue;
    Instant end = end_of(*gang, input.now, spec.kill_wait);
    if (auto it = recalled.find(gang->id); it != recalled.end()) end = std::min(end, it->second);
    for (std::uint32_t i = 0; i < gang->slots.size(); ++i) {
      const Slot& slot = gang->slots[i];
      if (slot.released || slot.node >= spec.nodes.size()) continue;
      const bool goes = gang->eviction && gang->eviction->deadline < Instant::never() &&
                        std::binary_search(gang->eviction->slots.begin(),
                                           gang->eviction->slots.end(), i);
      const Instant left =
          goes ? std::max(gang->eviction->deadline, input.now) +
                     std::max(spec.kill_wait, Duration::seconds(1))
               : Instant::never();
      out[slot.node].push_back(
          booking_of(spec.nodes[slot.node], slot, input.now, std::min(end, left)));
    }
  }
  for (const Start& start : plan.starts) {
    Instant end =
        start.limit.is_infinite() ? Instant::never() : input.now + start.limit + spec.kill_wait;
    end = std::min(end, start.recalled);
    for (const Slot& slot : start.slots)
      if (slot.node < spec.nodes.size())
        out[slot.node].push_back(booking_of(spec.nodes[slot.node], slot, input.now, end));
  }
  return out;
}

// A firm promise is kept (within a minute), or it is written down why not.
void check_firm(const PassInput& input, const Plan& plan, std::vector<std::string>& findings) {
  using Key = std::pair<WorkloadId, GangId>;
  std::map<Key, const Promise*> planned;
  std::map<Key, const PromiseChange*> changed;
  std::set<Key> waits;
  for (const Promise& promise : plan.promises)
    planned[{promise.element.workload, promise.element.gang}] = &promise;
  for (const PromiseChange& change : plan.promise_changes)
    changed[{change.workload, change.gang}] = &change;
  if (!input.state.promises->records.empty())
    for (const Waiting& waiting : plan.waiting)
      waits.insert({waiting.element.workload, waiting.element.gang});
  for (const PromiseRecord& record : input.state.promises->records) {
    const Key key{record.workload, record.gang};
    if (!record.firm || !waits.contains(key)) continue;
    auto change = changed.find(key);
    const bool told = change != changed.end() && !change->second->cause.empty();
    auto promise = planned.find(key);
    if (promise == planned.end() && !told)
      findings.push_back(fmt::format("the firm promise to job {} is gone without a cause",
                                     record.workload.value()));
    if (promise != planned.end() && !told &&
        promise->second->at >= record.at + Duration::seconds(60))
      findings.push_back(fmt::format("the firm promise to job {} slips by {} s without a cause",
                                     record.workload.value(),
                                     (promise->second->at - record.at).whole_seconds()));
  }
}

// Nothing starts where and when it is reserved for others.
void check_reserved(const PassInput& input, const Plan& plan, std::vector<std::string>& findings) {
  const ClusterSpec& spec = *input.state.spec;
  for (const Reservation& each : input.state.reservations->all) {
    std::set<std::string> nodes(each.nodes.begin(), each.nodes.end());
    for (const Start& start : plan.starts) {
      const WorkloadEntry* entry = input.state.workloads.find(start.element.workload.value());
      const bool own = entry && entry->workload.extras->reservation == each.name;
      const Instant end = input.now + start.limit;
      for (const Slot& slot : start.slots) {
        if (slot.node >= spec.nodes.size()) continue;
        const bool inside = nodes.contains(spec.nodes[slot.node].name);
        if (!own && inside && each.start < end && input.now < each.end)
          findings.push_back(fmt::format("{} starts on {} across reservation {}",
                                         lint_name(start.element), spec.nodes[slot.node].name,
                                         each.name));
        if (own && !each.has(ReservationFlag::kFlex) &&
            (!inside || input.now < each.start || end > each.end))
          findings.push_back(fmt::format("{} starts outside its reservation {}",
                                         lint_name(start.element), each.name));
      }
    }
  }
}

}  // namespace

std::string lint_name(const ElementRef& element) {
  if (element.array_index)
    return fmt::format("job {}_{}", element.workload.value(), *element.array_index);
  return fmt::format("job {}", element.workload.value());
}

std::vector<std::string> lint_promises(const PassInput& input, const Plan& plan) {
  std::vector<std::string> findings;
  const ClusterSpec& spec = *input.state.spec;
  Bookings booked = without_promises(input, plan);
  for (const Promise& promise : plan.promises) {
    if (promise.at < input.now)
      findings.push_back(
          fmt::format("{} is promised a start in the past", lint_name(promise.element)));
    for (const PromisedShare& share : promise.shares) {
      if (share.node >= spec.nodes.size()) continue;
      booked[share.node].push_back(
          {promise.at, promise.until, share.cpus, share.gpus, share.memory_mib});
    }
  }
  check_firm(input, plan, findings);
  check_reserved(input, plan, findings);
  for (const Promise& promise : plan.promises) {
    for (const PromisedShare& share : promise.shares) {
      if (share.node >= spec.nodes.size()) continue;
      const NodeSpec& node = spec.nodes[share.node];
      Booking sum;
      for (const Booking& booking : booked[share.node]) {
        if (booking.from > promise.at || booking.until <= promise.at) continue;
        sum.cpus += booking.cpus;
        sum.gpus += booking.gpus;
        sum.memory_mib += booking.memory_mib;
      }
      if (sum.cpus > node.cpus || sum.gpus > gpus_of(node) || sum.memory_mib > node.memory_mib)
        findings.push_back(fmt::format("the start promised to {} on {} is delayed by others",
                                       lint_name(promise.element), node.name));
    }
  }
  return findings;
}

}  // namespace tutti::scheduler
