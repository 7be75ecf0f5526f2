// The plan linter. Written from the invariants, without the placer's code: it counts devices and
// CPUs itself.
#include "scheduler/lint.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

namespace tutti::scheduler {

namespace {

using Findings = std::vector<std::string>;

// One node's bookings: who has each CPU and device.
struct Bookings {
  std::map<std::uint16_t, std::string> cpus, gpus;
  std::uint64_t memory_mib = 0;
  std::string exclusive_owner;
  std::set<std::string> owners;
  std::map<std::uint16_t, std::string> ports;
  std::map<std::uint16_t, DevicePart> parts;                // in use of each device, added up
  std::map<std::uint16_t, std::set<std::uint16_t>> starts;  // of MIG instances
};

// A part is of a device that nobody has whole; parts do not add up to more than it is.
void book_part(const NodeSpec& node, const std::string& owner, const DevicePart& part,
               Bookings& booked, Findings& findings) {
  if (part.device >= node.devices.size() || node.devices[part.device].kind != "gpu") {
    findings.push_back(fmt::format("{} holds a part of device {} of {}, which is no GPU there",
                                   owner, part.device, node.name));
    return;
  }
  if (auto whole = booked.gpus.find(part.device); whole != booked.gpus.end())
    findings.push_back(fmt::format("device {} of {} is held by {} and in part by {}", part.device,
                                   node.name, whole->second, owner));
  DevicePart& sum = booked.parts[part.device];
  sum.memory_mib += part.memory_mib;
  sum.share_permille += part.share_permille;
  if (sum.memory_mib > node.devices[part.device].memory_mib || sum.share_permille > 1000)
    findings.push_back(fmt::format("parts of device {} of {} are {} MiB and {} permille",
                                   part.device, node.name, sum.memory_mib, sum.share_permille));
  if (part.profile.empty()) return;
  if (!booked.starts[part.device].insert(part.start).second)
    findings.push_back(fmt::format("two MIG instances of device {} of {} begin at {}", part.device,
                                   node.name, part.start));
}

void book_slot(const ClusterSpec& spec, const std::string& owner, const Slot& slot,
               std::map<NodeIndex, Bookings>& nodes, Findings& findings) {
  if (slot.node >= spec.nodes.size()) {
    findings.push_back(
        fmt::format("{} has a slot on node {}, which does not exist", owner, slot.node));
    return;
  }
  const NodeSpec& node = spec.nodes[slot.node];
  Bookings& booked = nodes[slot.node];
  auto claim = [&](std::map<std::uint16_t, std::string>& table, std::uint16_t id,
                   std::string_view what, std::size_t count) {
    if (id >= count)
      findings.push_back(
          fmt::format("{} holds {} {} of {}, which has {}", owner, what, id, node.name, count));
    auto [it, fresh] = table.emplace(id, owner);
    if (!fresh)
      findings.push_back(
          fmt::format("{} {} of {} is held by {} and {}", what, id, node.name, it->second, owner));
  };
  for (std::uint16_t cpu : slot.cpu_ids) claim(booked.cpus, cpu, "CPU", node.cpus);
  for (std::uint16_t gpu : slot.gpus) {
    claim(booked.gpus, gpu, "device", node.devices.size());
    if (booked.parts.contains(gpu))
      findings.push_back(fmt::format("device {} of {} is held by {} and in part by others", gpu,
                                     node.name, owner));
    if (gpu < node.devices.size() && node.devices[gpu].kind != "gpu")
      findings.push_back(
          fmt::format("{} holds device {} of {} as a GPU; it is none", owner, gpu, node.name));
  }
  for (const DevicePart& part : slot.parts) book_part(node, owner, part, booked, findings);
  booked.memory_mib += slot.memory_mib;
  if (booked.memory_mib > node.memory_mib)
    findings.push_back(fmt::format("{} MiB of memory of {} are booked; it has {}",
                                   booked.memory_mib, node.name, node.memory_mib));
  bool shared =
      !booked.owners.empty() && !(booked.owners.size() == 1 && booked.owners.contains(owner));
  if (shared && (slot.exclusive || !booked.exclusive_owner.empty()))
    findings.push_back(fmt::format("{} shares {} although it is held alone by {}", owner, node.name,
                                   slot.exclusive ? owner : booked.exclusive_owner));
  if (slot.exclusive) booked.exclusive_owner = owner;
  booked.owners.insert(owner);
}

// A gang has all of what it asks for.
void check_whole(const Workload& workload, const Start& start, Findings& findings) {
  std::string owner = lint_name(start.element);
  for (std::uint32_t role = 0; role < workload.roles.size(); ++role) {
    const RoleAsk& ask = workload.roles[role];
    std::uint64_t nodes = 0, tasks = 0, gpus = 0;
    for (const Slot& slot : start.slots) {
      if (slot.role != role) continue;
      ++nodes;
      tasks += slot.tasks;
      const bool parts =
          !ask.gpu_profile.empty() || ask.gpu_memory_mib > 0 || ask.gpu_share_permille > 0;
      const std::size_t given = parts && !slot.exclusive ? slot.parts.size() : slot.gpus.size();
      gpus += given;
      if (slot.tasks == 0) findings.push_back(fmt::format("{} has a slot without a task", owner));
      if (slot.cpu_ids.size() < std::uint64_t{slot.tasks} * ask.cpus_per_task ||
          slot.cpu_ids.size() < ask.cpus_per_node)
        findings.push_back(fmt::format("{} has too few CPUs on node {}", owner, slot.node));
      if (given < ask.gpus_per_node || given < std::uint64_t{slot.tasks} * ask.gpus_per_task)
        findings.push_back(fmt::format("{} has too few GPUs on node {}", owner, slot.node));
      if (ask.tasks_per_node > 0 && slot.tasks > ask.tasks_per_node)
        findings.push_back(fmt::format("{} has too many tasks on node {}", owner, slot.node));
      if (slot.memory_mib < ask.memory_mib_per_node ||
          slot.memory_mib < ask.memory_mib_per_gpu * (ask.exclusive ? 0 : slot.gpus.size()))
        findings.push_back(fmt::format("{} has too little memory on node {}", owner, slot.node));
    }
    if (nodes < ask.nodes_min || nodes > ask.nodes_max)
      findings.push_back(
          fmt::format("{} has {} nodes of {} to {}", owner, nodes, ask.nodes_min, ask.nodes_max));
    if (tasks < ask.tasks)
      findings.push_back(fmt::format("{} has {} tasks of {}", owner, tasks, ask.tasks));
    if (gpus < ask.gpus_total)
      findings.push_back(fmt::format("{} has {} GPUs of {}", owner, gpus, ask.gpus_total));
  }
}

void check_nodes(const PassInput& input, const Workload& workload, const Start& start,
                 Findings& findings) {
  const ClusterSpec& spec = *input.state.spec;
  std::string owner = lint_name(start.element);
  auto partition = std::find_if(spec.partitions.begin(), spec.partitions.end(),
                                [&](const PartitionSpec& p) { return p.name == start.partition; });
  if (partition == spec.partitions.end()) {
    findings.push_back(fmt::format("{} starts in unknown partition {}", owner, start.partition));
    return;
  }
  std::set<std::string> names;
  for (const Slot& slot : start.slots) {
    if (slot.node >= spec.nodes.size()) continue;
    const NodeSpec& node = spec.nodes[slot.node];
    const NodeState* state = input.state.node(slot.node);
    names.insert(node.name);
    if (!state || state->status != NodeStatus::kUp || state->drained || state->down)
      findings.push_back(fmt::format("{} starts on {}, which takes no work", owner, node.name));
    const auto& members = partition->nodes;
    if (std::find(members.begin(), members.end(), node.name) == members.end())
      findings.push_back(fmt::format("{} starts on {}, which is not in partition {}", owner,
                                     node.name, start.partition));
    if (slot.role >= workload.roles.size()) continue;
    const RoleAsk& ask = workload.roles[slot.role];
    if (std::find(ask.nodes_out.begin(), ask.nodes_out.end(), node.name) != ask.nodes_out.end())
      findings.push_back(fmt::format("{} starts on {}, which it excludes", owner, node.name));
    if (ask.gpu_type.empty() || ask.exclusive || partition->exclusive) continue;
    for (std::uint16_t gpu : slot.gpus)
      if (gpu < node.devices.size() && node.devices[gpu].type != ask.gpu_type)
        findings.push_back(fmt::format("{} got a GPU of another type on {}", owner, node.name));
  }
  for (const RoleAsk& ask : workload.roles)
    for (const std::string& name : ask.nodes_in)
      if (!names.contains(name))
        findings.push_back(fmt::format("{} starts without node {}", owner, name));
}

// An element is started or waits, once; a started one was pending.
void check_elements(const PassInput& input, const Plan& plan, Findings& findings) {
  std::vector<ElementRef> seen;
  seen.reserve(plan.starts.size() + plan.waiting.size());
  auto note = [&](const ElementRef& element, std::string_view what) {
    if (!input.agenda.pending.contains(element.workload.value()))
      findings.push_back(fmt::format("{} {} but is not pending", lint_name(element), what));
    seen.push_back(element);
    const WorkloadEntry* entry = input.state.workloads.find(element.workload.value());
    if (!entry) return;
    bool exists = element.gang ? input.state.gangs.find(element.gang.value()) &&
                                     input.state.gangs.find(element.gang.value())->state ==
                                         GangState::kPending
                  : element.array_index ? entry->unstarted.contains(*element.array_index)
                                        : entry->simple_unstarted;
    if (!exists)
      findings.push_back(fmt::format("{} {} but has nothing to start", lint_name(element), what));
  };
  for (const Start& start : plan.starts) note(start.element, "starts");
  for (const Waiting& waiting : plan.waiting) {
    note(waiting.element, "waits");
    if (!waiting.wait || waiting.wait->reason.empty() || waiting.wait->text.empty())
      findings.push_back(fmt::format("{} waits without a reason", lint_name(waiting.element)));
  }
  std::sort(seen.begin(), seen.end());
  for (auto twice = std::adjacent_find(seen.begin(), seen.end()); twice != seen.end();
       twice = std::adjacent_find(twice + 1, seen.end()))
    findings.push_back(fmt::format("{} is decided twice", lint_name(*twice)));
  auto before = [](const Waiting& a, const Waiting& b) {
    return std::pair(a.element.workload, a.element.gang) <
           std::pair(b.element.workload, b.element.gang);
  };
  if (!std::is_sorted(plan.waiting.begin(), plan.waiting.end(), before))
    findings.push_back("what waits is not listed by workload and gang");
}

// Gangs that share a node do not share a port.
void book_port(const std::string& owner, std::uint16_t port, const std::vector<Slot>& slots,
               std::map<NodeIndex, Bookings>& nodes, Findings& findings) {
  if (port == 0) return;
  for (const Slot& slot : slots) {
    if (slot.released) continue;
    auto [it, fresh] = nodes[slot.node].ports.emplace(port, owner);
    if (!fresh && it->second != owner)
      findings.push_back(fmt::format("port {} of node {} is given to {} and {}", port, slot.node,
                                     it->second, owner));
  }
}

}  // namespace

std::vector<std::string> lint_holdings(const PassInput& input, const Plan& plan) {
  Findings findings;
  const ClusterSpec& spec = *input.state.spec;
  std::map<NodeIndex, Bookings> nodes;
  for (std::uint32_t id : input.agenda.active) {
    const Gang* gang = input.state.gangs.find(id);
    if (!gang) {
      findings.push_back(fmt::format("gang {} is active but does not exist", id));
      continue;
    }
    std::string owner = lint_name({gang->workload, gang->array_index, gang->id});
    for (const Slot& slot : gang->slots)
      if (!slot.released) book_slot(spec, owner, slot, nodes, findings);
    book_port(owner, gang->rendezvous_port, gang->slots, nodes, findings);
  }
  check_elements(input, plan, findings);
  for (const Start& start : plan.starts) {
    for (const Slot& slot : start.slots)
      book_slot(spec, lint_name(start.element), slot, nodes, findings);
    book_port(lint_name(start.element), start.rendezvous_port, start.slots, nodes, findings);
    const WorkloadEntry* entry = input.state.workloads.find(start.element.workload.value());
    if (!entry) continue;
    for (std::string& finding : lint_topology(input, entry->workload, start))
      findings.push_back(std::move(finding));
    check_whole(entry->workload, start, findings);
    check_nodes(input, entry->workload, start, findings);
  }
  return findings;
}

std::vector<std::string> lint_word(const PassInput& input, const Plan& plan) {
  Findings findings = lint_evictions(input, plan);
  for (std::string& finding : lint_promises(input, plan)) findings.push_back(std::move(finding));
  for (std::string& finding : lint_quotas(input, plan)) findings.push_back(std::move(finding));
  return findings;
}

std::vector<std::string> lint(const PassInput& input, const Plan& plan) {
  Findings findings = lint_holdings(input, plan);
  for (std::string& finding : lint_word(input, plan)) findings.push_back(std::move(finding));
  return findings;
}

}  // namespace tutti::scheduler
