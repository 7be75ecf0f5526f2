// Quotas: what waits could use, the GPU types that a request is tried with, and whether a start is
// allowed now.
#include <algorithm>

#include "scheduler/pass.h"

namespace tutti::scheduler {

namespace {

// How many of the element may start: those of an array that are left, within its throttle.
std::uint64_t elements_of(const Element& element) {
  if (element.gang || !element.ref.array_index) return 1;
  return std::min<std::uint64_t>(element.entry->unstarted.count(), element.throttle_room);
}

// The GPU types to try, in order: what the workload names, else what its queue names, else all.
std::vector<std::string> types_to_try(const Pass& pass, QueueId queue, const Workload& workload) {
  if (!workload.extras->terms.gpu_types.empty()) return workload.extras->terms.gpu_types;
  if (const auto& types = pass.quota.spec(queue).gpu_types; !types.empty()) return types;
  return pass.cluster.gpu_types();
}

bool is_untyped(const Shape& shape) {
  return std::any_of(shape.roles.begin(), shape.roles.end(),
                     [](const RoleNeed& need) { return need.asks_gpus() && need.any_gpu; });
}

// A shape for each type, which asks for that type alone.
void add_flavours(Pass& pass, const Candidate& candidate) {
  const Element& element = pass.elements[candidate.element];
  const Workload& workload = element.entry->workload;
  static const std::vector<std::string> kNone;
  const std::vector<std::string>& avoid = element.gang ? element.gang->avoid_nodes : kNone;
  const ShapeTable::Within within = within_of(pass, candidate.reservation);
  const TopologyAsk topology = pass.shapes.topology_of(candidate.shape);
  std::vector<std::uint32_t> flavours;
  for (const std::string& type : types_to_try(pass, candidate.queue, workload)) {
    std::vector<RoleAsk> roles = element.roles ? *element.roles : *workload.roles;
    for (RoleAsk& ask : roles)
      if (ask.gpu_type.empty()) ask.gpu_type = type;
    pass.flavour_roles.push_back(std::move(roles));
    flavours.push_back(
        pass.shapes.intern(candidate.partition, pass.flavour_roles.back(), avoid, within, topology));
  }
  pass.shape_states.resize(pass.shapes.size());
  pass.shape_states[candidate.shape].flavours = std::move(flavours);
}

}  // namespace

void prepare_quota(Pass& pass) {
  // Elements in several partitions count once.
  std::vector<bool> known(pass.elements.size());
  for (const Candidate& candidate : pass.candidates) {
    if (candidate.queue == kNoQueue) continue;
    if (pass.shape_states[candidate.shape].flavours.empty() &&
        is_untyped(pass.shapes[candidate.shape]) && pass.quota.tells_types_apart(candidate.queue))
      add_flavours(pass, candidate);
    if (known[candidate.element]) continue;
    known[candidate.element] = true;
    pass.quota.add_demand(candidate.queue, pass.charge_of_shape(candidate.shape),
                          elements_of(pass.elements[candidate.element]));
  }
  pass.quota.settle();
}

std::optional<QuotaTree::Refusal> over_quota(Pass& pass, const Candidate& candidate) {
  if (candidate.queue == kNoQueue) return std::nullopt;
  const Charge& charge = pass.charge_of_shape(candidate.shape);
  if (pass.quota.judge(candidate.queue, charge) != QuotaTree::Fit::kOver) return std::nullopt;
  return pass.quota.refusal(candidate.queue, charge);
}

std::optional<QuotaTree::Refusal> over_quota(Pass& pass, const Candidate& candidate,
                                             const Placement& placement) {
  if (candidate.queue == kNoQueue) return std::nullopt;
  Charge charge;
  for (const Share& share : placement) {
    const NodeClass& node = pass.cluster.of(share.node);
    Charge part;
    part.cpus = static_cast<std::uint64_t>(share.take.cores) * node.threads;
    part.memory_mib = static_cast<std::uint64_t>(share.take.memory_mib);
    charge += part;
    for (std::size_t type = 0; type < node.types.size() && type < kGpuTypesPerNode; ++type) {
      if (share.take.gpus[type] == 0) continue;
      Charge gpus;
      gpus.gpus = {{node.types[type], static_cast<std::uint64_t>(share.take.gpus[type]) * 1000}};
      charge += gpus;
    }
  }
  if (pass.quota.judge(candidate.queue, charge) != QuotaTree::Fit::kOver) return std::nullopt;
  return pass.quota.refusal(candidate.queue, charge);
}

}  // namespace tutti::scheduler
