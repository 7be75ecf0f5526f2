// What Slurm says of a node: its state as base, flags and words, and its texts for GRES and TRES.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "model/views.h"

namespace tutti::slurm {

enum class NodeBase : std::uint8_t { kUnknown, kDown, kIdle, kAllocated, kMixed };

struct SlurmNodeState {
  NodeBase base = NodeBase::kUnknown;
  bool drain = false, completing = false, no_respond = false, planned = false;
  bool reserved = false, maintenance = false;

  bool busy() const {
    return base == NodeBase::kAllocated || base == NodeBase::kMixed || completing;
  }
  // Grows as Slurm's state number does (flags above the base), the order of sinfo's lines.
  std::uint32_t rank() const;
};
SlurmNodeState node_state(const NodeView& node);

// "mix", "drng*": %t of sinfo.
std::string node_state_compact(const SlurmNodeState& state);
// "mixed", "draining*": %T.
std::string node_state_long(const SlurmNodeState& state);
// "IDLE+DRAIN": scontrol show node; lower case for sinfo's StateComplete.
std::string node_state_complete(const SlurmNodeState& state);

// The words of sinfo -t. Errors: nullopt for a word that is no state.
enum class NodeStateWord : std::uint8_t {
  kAll,
  kUnknown,
  kDown,
  kIdle,
  kAllocated,
  kMixed,
  kDrain,
  kDrained,
  kDraining,
  kNoRespond,
  kCompleting,
  kPlanned,
  kReserved,
  kMaint,
  kNever,  // a state that exists in Slurm and never here: cloud, fail...
};
std::optional<NodeStateWord> parse_node_state(std::string_view text);
bool matches(const SlurmNodeState& state, NodeStateWord word);

// "gpu:rtxpro6000:8", "(null)" without devices.
std::string node_gres(const NodeSpec& spec);
// "gpu:rtxpro6000:4(IDX:0-3)"; "gpu:0" without devices.
std::string node_gres_used(const NodeView& node);
// "cpu=128,mem=1000000M,billing=128,gres/gpu=8,gres/gpu:rtxpro6000=8".
std::string node_tres(const NodeSpec& spec);
// "cpu=8,mem=64G,gres/gpu=4,gres/gpu:rtxpro6000=4"; "" when idle.
std::string node_tres_used(const NodeView& node);

// Names of users by number, for "who set this reason". 0 is root unless the map says otherwise;
// an unknown number is shown as it is.
using UserNames = std::map<std::uint32_t, std::string>;
std::string user_name(const UserNames& users, std::uint32_t uid);

}  // namespace tutti::slurm
