// Timeline: what will be free on each node later. Room comes back when running gangs reach their
// limits, and is taken by what waiting gangs are promised. Sparse: a node on which nothing will
// change costs nothing.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "base/time.h"
#include "scheduler/free_map.h"

namespace tutti::scheduler {

class Timeline {
 public:
  // Who gives room back, or is promised it. A number of the caller's choice.
  using Owner = std::uint32_t;
  struct Release {
    Instant at;  // never() for work without an end
    Owner owner = 0;
    Capacity amount;
  };
  struct Promised {
    Instant from, until;
    Owner owner = 0;
    Capacity amount;
  };

  // Reads the present from `free`, which may go on changing.
  explicit Timeline(const FreeMap& free);

  void add_release(NodeIndex node, const Release& release);
  // Changes when the owner's room on the node comes back; gives the time of before. Who asks for
  // release_times() afterwards calls note_time() as well.
  Instant set_release(NodeIndex node, Owner owner, Instant at);
  void note_time(Instant at);
  void add_promise(NodeIndex node, const Promised& promise);
  void remove_promise(NodeIndex node, Owner owner);

  // Nothing below the present changes what is promised: whether any promise lies on the node.
  bool is_promised(NodeIndex node) const { return !promises_[node].empty(); }
  bool has_promises() const { return promised_nodes_ > 0; }
  std::span<const Release> releases(NodeIndex node) const { return releases_[node]; }
  std::span<const Promised> promises(NodeIndex node) const { return promises_[node]; }

  // Promises of these owners do not exist for whoever asks from here on (reservations that it may
  // use). Few, so a list.
  const std::vector<Owner>& unseen() const { return unseen_; }
  void set_unseen(std::vector<Owner> owners) { unseen_ = std::move(owners); }

  // What is free at `at`, the promises counted or not.
  Capacity at(NodeIndex node, Instant at) const;
  Capacity at_without_promises(NodeIndex node, Instant at) const;
  // What is free throughout [from, until). `from` = the present when it is not after `now`.
  Capacity throughout(NodeIndex node, Instant from, Instant until) const;

  // When room comes back, strictly after `after`, ascending and without repetition; never() is not
  // in it. Cost: sorted once after the last add_release().
  const std::vector<Instant>& release_times();
  // Ends of promises on the nodes, ascending.
  std::vector<Instant> promise_ends(const NodeSet& nodes, Instant after) const;

  bool is_seen(const Promised& promise) const {
    return std::find(unseen_.begin(), unseen_.end(), promise.owner) == unseen_.end();
  }

 private:
  const FreeMap& free_;
  std::vector<std::vector<Release>> releases_;
  std::vector<std::vector<Promised>> promises_;
  std::size_t promised_nodes_ = 0;
  std::vector<Owner> unseen_;
  std::vector<Instant> times_;
  bool times_sorted_ = true;
};

}  // namespace tutti::scheduler
