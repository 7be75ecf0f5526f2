#include "frontend/slurm/view_node.h"

#include <fmt/format.h>

#include <array>
#include <utility>
#include <vector>

#include "base/text.h"
#include "frontend/slurm/view_text.h"

namespace tutti::slurm {
namespace {

struct BaseWord {
  std::string_view word, compact;
};
BaseWord base_word(NodeBase base) {
  switch (base) {
    case NodeBase::kUnknown:
      return {"unknown", "unk"};
    case NodeBase::kDown:
      return {"down", "down"};
    case NodeBase::kIdle:
      return {"idle", "idle"};
    case NodeBase::kAllocated:
      return {"allocated", "alloc"};
    case NodeBase::kMixed:
      return {"mixed", "mix"};
  }
  return {"unknown", "unk"};
}

BaseWord state_words(const SlurmNodeState& s) {
  if (s.drain) return s.busy() ? BaseWord{"draining", "drng"} : BaseWord{"drained", "drain"};
  if (s.base == NodeBase::kDown) return base_word(s.base);
  if (s.maintenance && !s.completing) return {"maint", "maint"};
  if (s.completing) return {"completing", "comp"};
  if (s.reserved && s.base == NodeBase::kIdle) return {"reserved", "resv"};
  if (s.planned && s.base == NodeBase::kIdle) return {"planned", "plnd"};
  return base_word(s.base);
}

// Devices by kind and type, in the order of their first device.
struct DeviceGroup {
  std::string kind, type;
  std::vector<std::uint16_t> indices;
};
std::vector<DeviceGroup> device_groups(const NodeSpec& spec) {
  std::vector<DeviceGroup> groups;
  for (std::size_t i = 0; i < spec.devices.size(); ++i) {
    const DeviceSpec& d = spec.devices[i];
    DeviceGroup* found = nullptr;
    for (DeviceGroup& g : groups)
      if (g.kind == d.kind && g.type == d.type) found = &g;
    if (!found) {
      groups.push_back({d.kind, d.type, {}});
      found = &groups.back();
    }
    found->indices.push_back(static_cast<std::uint16_t>(i));
  }
  return groups;
}

std::vector<std::uint16_t> used_of(const DeviceGroup& group, const NodeView& node) {
  std::vector<std::uint16_t> used;
  for (std::uint16_t i : group.indices)
    for (std::uint16_t gpu : node.gpus_allocated)
      if (gpu == i) used.push_back(i);
  return used;
}

void append_group(std::string& out, const DeviceGroup& group, std::size_t count) {
  if (!out.empty()) out += ',';
  out += group.kind;
  if (!group.type.empty()) out += ":" + group.type;
  fmt::format_to(std::back_inserter(out), ":{}", count);
}

void append_gres_tres(std::string& out, const DeviceGroup& group, std::size_t count) {
  if (count == 0) return;
  fmt::format_to(std::back_inserter(out), ",gres/{}={}", group.kind, count);
  if (!group.type.empty())
    fmt::format_to(std::back_inserter(out), ",gres/{}:{}={}", group.kind, group.type, count);
}

constexpr std::array kStateWords{
    std::pair{std::string_view("all"), NodeStateWord::kAll},
    std::pair{std::string_view("unknown"), NodeStateWord::kUnknown},
    std::pair{std::string_view("unk"), NodeStateWord::kUnknown},
    std::pair{std::string_view("down"), NodeStateWord::kDown},
    std::pair{std::string_view("idle"), NodeStateWord::kIdle},
    std::pair{std::string_view("allocated"), NodeStateWord::kAllocated},
    std::pair{std::string_view("alloc"), NodeStateWord::kAllocated},
    std::pair{std::string_view("mixed"), NodeStateWord::kMixed},
    std::pair{std::string_view("mix"), NodeStateWord::kMixed},
    std::pair{std::string_view("drain"), NodeStateWord::kDrain},
    std::pair{std::string_view("drained"), NodeStateWord::kDrained},
    std::pair{std::string_view("draining"), NodeStateWord::kDraining},
    std::pair{std::string_view("drng"), NodeStateWord::kDraining},
    std::pair{std::string_view("no_respond"), NodeStateWord::kNoRespond},
    std::pair{std::string_view("noresp"), NodeStateWord::kNoRespond},
    std::pair{std::string_view("completing"), NodeStateWord::kCompleting},
    std::pair{std::string_view("comp"), NodeStateWord::kCompleting},
    std::pair{std::string_view("planned"), NodeStateWord::kPlanned},
    std::pair{std::string_view("plnd"), NodeStateWord::kPlanned},
    std::pair{std::string_view("reserved"), NodeStateWord::kReserved},
    std::pair{std::string_view("resv"), NodeStateWord::kReserved},
    std::pair{std::string_view("maint"), NodeStateWord::kMaint}};
constexpr std::array<std::string_view, 13> kNeverStates{
    "future", "perfctrs",    "npc",  "cloud",
    "powering_down", "powered_down", "power_down", "powering_up", "fail", "failing",
    "reboot",       "reboot^",    "blocked"};

}  // namespace

std::uint32_t SlurmNodeState::rank() const {
  constexpr std::uint32_t kRankOfBase[] = {0, 1, 2, 3, 5};
  return kRankOfBase[static_cast<std::size_t>(base)] | (drain ? 0x200u : 0u) |
         (completing ? 0x400u : 0u) | (no_respond ? 0x800u : 0u) | (planned ? 0x1000000u : 0u) |
         (reserved ? 0x20u : 0u) | (maintenance ? 0x100u : 0u);
}

SlurmNodeState node_state(const NodeView& node) {
  SlurmNodeState s;
  s.drain = node.state.drained;
  s.no_respond =
      node.state.status == NodeStatus::kUnknown ||
      (node.state.status == NodeStatus::kNeverSeen && node.spec.kind != NodeKind::kPlanned);
  bool used = node.cpus_allocated != 0 || node.memory_mib_allocated != 0 ||
              !node.gpus_allocated.empty() || node.exclusive;
  if (node.state.down || node.state.status == NodeStatus::kLost)
    s.base = NodeBase::kDown;
  else if (used)
    s.base = node.exclusive || node.cpus_allocated >= node.spec.cpus ? NodeBase::kAllocated
                                                                     : NodeBase::kMixed;
  else if (node.state.status == NodeStatus::kNeverSeen && s.no_respond)
    s.base = NodeBase::kUnknown;
  else
    s.base = NodeBase::kIdle;
  s.completing = node.ending;
  // Slurm marks only nodes that hold nothing as planned.
  s.planned = node.planned && !used;
  s.reserved = !node.reservation.empty();
  s.maintenance = node.maintenance;
  return s;
}

std::string node_state_compact(const SlurmNodeState& s) {
  return std::string(state_words(s).compact) + (s.no_respond ? "*" : "");
}
std::string node_state_long(const SlurmNodeState& s) {
  return std::string(state_words(s).word) + (s.no_respond ? "*" : "");
}
std::string node_state_complete(const SlurmNodeState& s) {
  std::string out = upper(base_word(s.base).word);
  if (s.drain) out += "+DRAIN";
  if (s.completing) out += "+COMPLETING";
  if (s.no_respond) out += "+NOT_RESPONDING";
  if (s.planned) out += "+PLANNED";
  if (s.maintenance) out += "+MAINTENANCE";
  if (s.reserved) out += "+RESERVED";
  return out;
}

std::optional<NodeStateWord> parse_node_state(std::string_view text) {
  // A flag letter as printed behind a state does not change which state is meant.
  while (!text.empty() &&
         std::string_view("*~#!%$@+^-").find(text.back()) != std::string_view::npos)
    text.remove_suffix(1);
  for (const auto& [word, state] : kStateWords)
    if (equals_ci(text, word)) return state;
  for (std::string_view word : kNeverStates)
    if (equals_ci(text, word)) return NodeStateWord::kNever;
  return std::nullopt;
}

bool matches(const SlurmNodeState& s, NodeStateWord word) {
  switch (word) {
    case NodeStateWord::kAll:
      return true;
    case NodeStateWord::kUnknown:
      return s.base == NodeBase::kUnknown;
    case NodeStateWord::kDown:
      return s.base == NodeBase::kDown;
    case NodeStateWord::kIdle:
      return s.base == NodeBase::kIdle;
    case NodeStateWord::kAllocated:
      return s.base == NodeBase::kAllocated;
    case NodeStateWord::kMixed:
      return s.base == NodeBase::kMixed;
    case NodeStateWord::kDrain:
      return s.drain;
    case NodeStateWord::kDrained:
      return s.drain && !s.busy();
    case NodeStateWord::kDraining:
      return s.drain && s.busy();
    case NodeStateWord::kNoRespond:
      return s.no_respond;
    case NodeStateWord::kCompleting:
      return s.completing;
    case NodeStateWord::kReserved:
      return s.reserved && !s.maintenance;
    case NodeStateWord::kMaint:
      return s.maintenance;
    case NodeStateWord::kPlanned:
      return s.planned;
    case NodeStateWord::kNever:
      return false;
  }
  return false;
}

std::string node_gres(const NodeSpec& spec) {
  std::string out;
  for (const DeviceGroup& group : device_groups(spec))
    append_group(out, group, group.indices.size());
  return out.empty() ? "(null)" : out;
}

std::string node_gres_used(const NodeView& node) {
  std::string out;
  for (const DeviceGroup& group : device_groups(node.spec)) {
    std::vector<std::uint16_t> used = used_of(group, node);
    append_group(out, group, used.size());
    out += "(IDX:" + index_list(used) + ")";
  }
  return out.empty() ? "gpu:0" : out;
}

std::string node_tres(const NodeSpec& spec) {
  std::string out =
      fmt::format("cpu={},mem={},billing={}", spec.cpus, memory_text(spec.memory_mib), spec.cpus);
  for (const DeviceGroup& group : device_groups(spec))
    append_gres_tres(out, group, group.indices.size());
  return out;
}

std::string node_tres_used(const NodeView& node) {
  if (!node_state(node).busy()) return {};
  std::string out = fmt::format("cpu={}", node.cpus_allocated);
  if (node.memory_mib_allocated != 0) out += ",mem=" + memory_text(node.memory_mib_allocated);
  for (const DeviceGroup& group : device_groups(node.spec))
    append_gres_tres(out, group, used_of(group, node).size());
  return out;
}

std::string user_name(const UserNames& users, std::uint32_t uid) {
  if (auto found = users.find(uid); found != users.end()) return found->second;
  return uid == 0 ? "root" : fmt::format("{}", uid);
}

}  // namespace tutti::slurm
