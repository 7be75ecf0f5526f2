// What has been used: resource-time per association and per QOS, fading with a half-life. Integers
// throughout: the same events give the same numbers on every machine. A gang is charged from "go"
// to its end; what runs is added by the reader, up to the moment of reading.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "base/archive.h"
#include "base/decay.h"
#include "base/time.h"
#include "base/wide.h"
#include "model/accounts.h"
#include "model/cluster.h"
#include "model/gang.h"

namespace tutti {

// `amount` counts resource-milliseconds (mem: MiB-milliseconds; billing: as weighted) that were used
// up to `at`, with what faded taken off. Below accounts nothing is kept: an account has used what
// its users have.
struct UsageRecord {
  Instant at;
  TresAmounts amount;
  std::uint64_t wall_ms = 0;  // of gangs, whatever they held; for GrpWall
};
template <class A>
void describe(A& a, UsageRecord& x) {
  a("at_ms", x.at);
  a("amount", x.amount);
  a("wall_ms", x.wall_ms);
}

// What the slots hold, without "billing": CPUs, MiB, nodes, GPUs in all and by type. A part of a
// GPU counts as one: quotas, not usage, deal in parts.
inline TresAmounts tres_of(const ClusterSpec& spec, const std::vector<Slot>& slots) {
  TresAmounts out;
  NodeIndex last = ~NodeIndex{0};
  for (const Slot& slot : slots) {
    if (slot.node >= spec.nodes.size()) continue;
    const NodeSpec& node = spec.nodes[slot.node];
    const bool first = slot.node != last;
    last = slot.node;
    out["node"] += first;
    out["cpu"] += slot.exclusive ? (first ? node.cpus : 0) : slot.cpu_ids.size();
    out["mem"] += slot.memory_mib;
    for (std::uint16_t gpu : slot.gpus) {
      ++out["gres/gpu"];
      if (gpu < node.devices.size() && !node.devices[gpu].type.empty())
        ++out["gres/gpu:" + node.devices[gpu].type];
    }
    out["gres/gpu"] += slot.parts.size();
  }
  if (out["gres/gpu"] == 0) out.erase("gres/gpu");
  return out;
}

// Weights of the partition in millionths per unit (mem: per MiB). Without any, GPUs are what counts
// and a CPU is a thousandth of one, so that a cluster without GPUs is fair too.
inline std::uint64_t billing_weight(const PartitionSpec* partition, const std::string& resource) {
  if (partition && !partition->billing_weights.empty()) {
    auto it = partition->billing_weights.find(resource);
    return it == partition->billing_weights.end() ? 0 : it->second;
  }
  if (resource == "gres/gpu") return 1'000'000;
  return resource == "cpu" ? 1'000 : 0;
}

// Billed units in thousandths: the sum of weight times amount, or, with PriorityFlags=MAX_TRES, the
// largest of them on its nodes.
inline std::uint64_t billing_milli(const PriorityWeights& rules, const PartitionSpec* partition,
                                   const TresAmounts& held) {
  Wide sum = 0, most = 0;
  for (const auto& [resource, amount] : held) {
    if (resource == "billing") continue;
    const auto part = Wide(billing_weight(partition, resource)) * amount;
    sum += part;
    most = std::max(most, part);
  }
  return static_cast<std::uint64_t>((rules.bill_largest ? most : sum) / 1000);
}

// The record as it is at `now`.
inline void fade(UsageRecord& record, const PriorityWeights& rules, Instant now) {
  if (record.at >= now) return;
  if (record.at.is_set()) {
    const bool reset = usage_period(rules.reset_period, record.at) != usage_period(rules.reset_period, now);
    const Fade factor(now - record.at, rules.half_life);
    for (auto& [resource, amount] : record.amount) amount = reset ? 0 : factor.of(amount);
    record.wall_ms = reset ? 0 : factor.of(record.wall_ms);
  }
  record.at = now;
}

// Adds what a gang held between `from` and the record's own time, faded since. `factor`: UsageFactor.
inline void charge(UsageRecord& record, const PriorityWeights& rules, const TresAmounts& held,
                   std::uint64_t billed_milli, Instant from, std::uint64_t factor) {
  if (record.at <= from) return;
  const Instant start = std::max(from, period_start(rules.reset_period, record.at));
  const std::uint64_t ms = faded_time(record.at - start, rules.half_life);
  auto add = [&](std::uint64_t& amount, std::uint64_t rate, std::uint64_t divide) {
    Wide more = Wide(rate) * ms / divide * factor / kFactorOne;
    more += amount;
    amount = more > kMostUsage ? kMostUsage : static_cast<std::uint64_t>(more);
  };
  for (const auto& [resource, amount] : held) add(record.amount[resource], amount, 1);
  add(record.amount["billing"], billed_milli, 1000);
  add(record.wall_ms, 1, 1);
}

}  // namespace tutti
