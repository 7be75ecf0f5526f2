#include "scheduler/step_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "model/reasons.h"

namespace tutti::scheduler {

namespace {

struct Room {
  std::uint32_t slot = 0;
  std::uint32_t cpus = 0;  // not taken by other steps
  std::uint32_t cpus_total = 0;
  std::vector<std::uint16_t> gpus;  // not taken by steps that asked for GPUs
  std::uint32_t tasks = 0;          // laid out here
  bool has_parts = false;           // of devices: all steps use them together
};

tl::unexpected<Error> never(std::string message) {
  return fail(ErrorCode::kInvalid, std::move(message), std::string(reason::kStepNeverFits));
}
tl::unexpected<Error> busy(std::string message) {
  return fail(ErrorCode::kConflict, std::move(message), std::string(reason::kStepBusy));
}

std::vector<Room> free_room(const Gang& gang, bool overlap) {
  std::vector<Room> rooms;
  for (std::uint32_t i = 0; i < gang.slots.size(); ++i) {
    Room room;
    room.slot = i;
    room.cpus = room.cpus_total = static_cast<std::uint32_t>(gang.slots[i].cpu_ids.size());
    room.gpus = gang.slots[i].gpus;
    room.has_parts = !gang.slots[i].parts.empty();
    rooms.push_back(std::move(room));
  }
  if (overlap) return rooms;
  for (const Step& step : gang.steps) {
    if (step.state == StepState::kDone || step.overlap) continue;
    for (const StepSlot& used : step.slots) {
      if (used.done || used.slot >= rooms.size()) continue;
      Room& room = rooms[used.slot];
      room.cpus -= std::min(room.cpus, used.cpus);
      if (!step.takes_gpus) continue;
      std::erase_if(room.gpus, [&](std::uint16_t gpu) {
        return std::find(used.gpus.begin(), used.gpus.end(), gpu) != used.gpus.end();
      });
    }
  }
  return rooms;
}

// The nodes of the allocation the request may use, in order.
Result<std::vector<Room>> candidates(const ClusterSpec& spec, const Gang& gang,
                                     const StepRequest& request) {
  auto name_of = [&](const Room& room) -> const std::string& {
    return spec.nodes[gang.slots[room.slot].node].name;
  };
  std::vector<Room> rooms = free_room(gang, request.overlap || request.interactive);
  std::set<std::string> in(request.nodes_in.begin(), request.nodes_in.end());
  std::set<std::string> out(request.nodes_out.begin(), request.nodes_out.end());
  for (const std::string& name : in) {
    bool held =
        std::any_of(rooms.begin(), rooms.end(), [&](const Room& r) { return name_of(r) == name; });
    if (!held) return never(fmt::format("node {} is not part of the allocation", name));
  }
  if (request.relative != kNoLimit) {
    if (request.relative >= rooms.size())
      return never(fmt::format("--relative={}: the allocation has {} nodes", request.relative,
                               rooms.size()));
    rooms.erase(rooms.begin(), rooms.begin() + request.relative);
  }
  std::erase_if(rooms, [&](const Room& r) { return out.contains(name_of(r)); });
  // Named nodes come first; others only if more nodes are wanted than were named.
  if (!in.empty()) {
    std::stable_partition(rooms.begin(), rooms.end(),
                          [&](const Room& r) { return in.contains(name_of(r)); });
    std::size_t wanted = std::max<std::size_t>(in.size(), request.nodes_min);
    if (rooms.size() > wanted) rooms.resize(wanted);
    std::sort(rooms.begin(), rooms.end(),
              [](const Room& a, const Room& b) { return a.slot < b.slot; });
  }
  return rooms;
}

std::uint32_t capacity(const Room& room, const StepRequest& request, std::uint32_t cpus_per_task) {
  std::uint32_t n = room.cpus / std::max(1u, cpus_per_task);
  if (request.tasks_per_node) n = std::min(n, request.tasks_per_node);
  if (room.has_parts) return n;
  if (request.gpus_per_task)
    n = std::min(n, static_cast<std::uint32_t>(room.gpus.size()) / request.gpus_per_task);
  if (request.gpus_per_node && *request.gpus_per_node > room.gpus.size()) n = 0;
  return n;
}

// Shares `tasks` over the first `nodes` rooms evenly in order, no room above its capacity.
bool share_tasks(std::vector<Room>& rooms, std::size_t nodes, std::uint32_t tasks,
                 const std::vector<std::uint32_t>& capacities) {
  std::uint64_t sum =
      std::accumulate(capacities.begin(), capacities.begin() + static_cast<std::ptrdiff_t>(nodes),
                      std::uint64_t{0});
  if (sum < tasks || tasks < nodes) return false;
  std::uint32_t left = tasks;
  for (std::size_t i = 0; i < nodes; ++i) {
    auto rest = static_cast<std::uint32_t>(nodes - i);
    rooms[i].tasks = std::min(capacities[i], (left + rest - 1) / rest);
    if (rooms[i].tasks == 0) return false;
    left -= rooms[i].tasks;
  }
  for (std::size_t i = 0; i < nodes && left > 0; ++i) {
    std::uint32_t more = std::min(left, capacities[i] - rooms[i].tasks);
    rooms[i].tasks += more;
    left -= more;
  }
  return left == 0;
}

void number_ranks(std::vector<StepSlot>& slots, const std::vector<std::uint32_t>& tasks,
                  bool cyclic) {
  std::uint32_t rank = 0;
  if (!cyclic) {
    for (std::size_t i = 0; i < slots.size(); ++i)
      for (std::uint32_t t = 0; t < tasks[i]; ++t) slots[i].ranks.push_back(rank++);
    return;
  }
  std::uint32_t total = std::accumulate(tasks.begin(), tasks.end(), 0u);
  while (rank < total)
    for (std::size_t i = 0; i < slots.size(); ++i)
      if (slots[i].ranks.size() < tasks[i]) slots[i].ranks.push_back(rank++);
}

struct Wanted {
  std::uint32_t tasks = 1, cpus_per_task = 1;
  std::size_t nodes_min = 1, nodes_max = 1;
};

Wanted wanted(const Workload& workload, const Gang& gang, const StepRequest& request,
              std::size_t rooms) {
  const RoleAsk& role = workload.roles[gang.slots.empty() ? 0 : gang.slots[0].role];
  Wanted w;
  w.cpus_per_task = request.cpus_per_task ? request.cpus_per_task : 1;
  w.nodes_min = request.nodes_min ? request.nodes_min : 0;
  w.nodes_max = request.nodes_max ? request.nodes_max : rooms;
  if (request.tasks) {
    w.tasks = request.tasks;
  } else if (request.tasks_per_node) {
    w.tasks =
        request.tasks_per_node * static_cast<std::uint32_t>(w.nodes_min ? w.nodes_min : rooms);
  } else if (w.nodes_min && w.nodes_min != gang.slots.size()) {
    w.tasks = static_cast<std::uint32_t>(w.nodes_min);
  } else {
    w.tasks = 0;
    for (const Slot& slot : gang.slots) w.tasks += slot.tasks;
    w.tasks = std::max(w.tasks, std::max(1u, role.nodes_min));
  }
  if (request.interactive) w.tasks = 1, w.nodes_min = w.nodes_max = 1;
  if (w.nodes_min == 0) {
    // As many nodes as the tasks can fill; all of the allocation when tasks are its own.
    w.nodes_min = request.tasks ? 1 : std::min<std::size_t>(rooms, w.tasks);
    if (request.tasks && request.tasks >= rooms && request.nodes_in.empty()) w.nodes_min = rooms;
    if (!request.nodes_in.empty()) w.nodes_min = std::min<std::size_t>(rooms, w.tasks);
  }
  w.nodes_max = std::max(w.nodes_min, std::min(w.nodes_max, rooms));
  return w;
}

StepLayout build(std::vector<Room>& rooms, std::size_t nodes, const Wanted& w,
                 const StepRequest& request) {
  StepLayout layout;
  std::vector<std::uint32_t> tasks;
  for (std::size_t i = 0; i < nodes; ++i) {
    const Room& room = rooms[i];
    StepSlot slot;
    slot.slot = room.slot;
    slot.cpus = std::min(room.cpus_total, room.tasks * w.cpus_per_task);
    std::size_t gpus = room.gpus.size();
    if (request.gpus_per_task)
      gpus = std::size_t{room.tasks} * request.gpus_per_task;
    else if (request.gpus_per_node)
      gpus = *request.gpus_per_node;
    else if (request.gpus_total)
      gpus = std::max<std::size_t>(1, request.gpus_total / nodes);
    slot.gpus.assign(room.gpus.begin(), room.gpus.begin() + static_cast<std::ptrdiff_t>(
                                                                std::min(gpus, room.gpus.size())));
    layout.slots.push_back(std::move(slot));
    tasks.push_back(room.tasks);
  }
  number_ranks(layout.slots, tasks, request.distribution.starts_with("cyclic"));
  layout.total_tasks = std::accumulate(tasks.begin(), tasks.end(), 0u);
  layout.cpus_per_task = w.cpus_per_task;
  return layout;
}

}  // namespace

Result<StepLayout> lay_out_step(const ClusterSpec& spec, const Workload& workload, const Gang& gang,
                                const StepRequest& request) {
  auto found = candidates(spec, gang, request);
  if (!found) return tl::unexpected<Error>(found.error());
  std::vector<Room> rooms = std::move(*found);
  if (rooms.empty()) return never("no node of the allocation is left by --nodelist and --exclude");
  Wanted w = wanted(workload, gang, request, rooms.size());
  if (w.nodes_min > rooms.size())
    return never(
        fmt::format("the step wants {} nodes, the allocation has {}", w.nodes_min, rooms.size()));
  if (w.tasks < w.nodes_min) w.nodes_min = w.nodes_max = w.tasks;

  // Would it fit if no other step ran? Tells "wait" from "never".
  StepRequest alone = request;
  alone.overlap = true;
  auto all = candidates(spec, gang, alone);
  if (!all) return tl::unexpected<Error>(all.error());
  auto try_rooms = [&](std::vector<Room>& r, std::size_t nodes) {
    std::vector<std::uint32_t> capacities;
    for (const Room& room : r) capacities.push_back(capacity(room, request, w.cpus_per_task));
    return share_tasks(r, nodes, w.tasks, capacities);
  };
  for (std::size_t nodes = w.nodes_min; nodes <= w.nodes_max; ++nodes) {
    if (try_rooms(rooms, nodes)) return build(rooms, nodes, w, request);
    // The first free rooms may be elsewhere than in front.
    std::vector<Room> by_room = rooms;
    std::stable_sort(by_room.begin(), by_room.end(), [&](const Room& a, const Room& b) {
      return capacity(a, request, w.cpus_per_task) > capacity(b, request, w.cpus_per_task);
    });
    by_room.resize(nodes);
    std::sort(by_room.begin(), by_room.end(),
              [](const Room& a, const Room& b) { return a.slot < b.slot; });
    if (try_rooms(by_room, nodes)) return build(by_room, nodes, w, request);
  }
  for (std::size_t nodes = w.nodes_min; nodes <= w.nodes_max; ++nodes)
    if (try_rooms(*all, nodes))
      return busy("the step waits for CPUs or GPUs that other steps of the job use");
  return never(
      fmt::format("{} tasks of {} CPUs{} do not fit into the allocation", w.tasks, w.cpus_per_task,
                  request.gpus_per_task ? fmt::format(" and {} GPUs", request.gpus_per_task) : ""));
}

}  // namespace tutti::scheduler
