// Forecaster: when a gang that does not fit now will, given the limits of what runs and the
// promises made; and if never, what would have to change.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "scheduler/place.h"
#include "scheduler/timeline.h"

namespace tutti::scheduler {

struct Forecast {
  Instant at;
  Placement placement;
  bool room_is_free = false;  // it would fit now but for promises to others
};

// What stands between a gang and a start, beyond waiting.
enum class Outlook : std::uint8_t {
  kLater,    // fits once what runs has ended
  kEndless,  // only if work without a time limit ends
  kAvoided,  // only on nodes that refused its last launches
  kNoNodes,  // only if nodes that are down or drained return
  kNever,    // not on this cluster
};

struct Judgement {
  Outlook outlook = Outlook::kLater;
  Placement placement;  // where it would go if that changed (not for kLater and kNever)
};

class Forecaster {
 public:
  Forecaster(const FreeMap& free, Timeline& timeline);

  // The earliest time after `now` at which the shape fits for `duration` beside all promises.
  // nullopt if no end of running work frees the room, or the search was given up. Cost: O(log of
  // the releases) placements on the shape's candidates; with promises in the way up to kMostTries.
  std::optional<Forecast> earliest(const Shape& shape, Instant now, Duration duration);

  // Whether it fits on these nodes throughout, beside all promises. Cost: O(nodes) and a placement.
  std::optional<Placement> place_on(const Shape& shape, const NodeSet& nodes, Instant from,
                                    Duration duration);

  // Cost: O(classes of nodes) in the common case, else up to four placements.
  Judgement judge(const Shape& shape);

  // Work without an end has started on the node.
  void note_endless(NodeIndex node) {
    if (ending_nodes_) ending_nodes_->remove(node);
  }

  std::uint64_t looked() const { return looked_; }

  static constexpr std::uint32_t kMostTries = 64;

 private:
  bool fits_at(const Shape& shape, Instant at);
  std::optional<Placement> place_throughout(const Shape& shape, Instant from, Instant until);
  bool surely_fits_later(const Shape& shape);
  std::optional<Placement> place_when_empty(const Shape& shape, const NodeSet& nodes);

  const FreeMap& free_;
  Timeline& timeline_;
  RoomThen room_;                        // scratch
  std::optional<NodeSet> ending_nodes_;  // usable and without endless work
  std::uint64_t looked_ = 0;
};

}  // namespace tutti::scheduler
