// RollCalls: who has answered in the roll calls under way, and what the nodes of running steps have
// reported. Bookkeeping only, never persisted: after a restart the gangs that are `preparing` are
// called again, and agents report the rest. A turn that could not be made durable is undone here as
// it is in the state, for its messages are heard again.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/time.h"
#include "model/agent_protocol.h"
#include "model/gang.h"
#include "model/launch.h"

namespace tutti::controller {

struct GangCall {
  Epoch epoch;
  std::set<NodeIndex> missing;  // not ready yet
  Instant deadline;
};

struct StepRun {
  StepKey key;
  bool running = false;          // "go" was said
  std::vector<NodeIndex> nodes;  // of the step, in its order
  // Per node; kept until every node is ready. Null in a book that was opened after a restart.
  std::shared_ptr<const std::vector<StepOrder>> orders;
  std::set<NodeIndex> missing;     // not ready yet
  std::set<NodeIndex> unfinished;  // have not reported the end yet
  Instant deadline;                // of the roll call
  ExitStatus worst;
  Usage usage;
  bool out_of_memory = false;
  bool ending = false;              // its nodes were told to end it
  Outcome forced = Outcome::kNone;  // cancelled, timed out, refused: wins over the exit status
  std::optional<std::uint32_t> by_uid;
  std::string why;
  std::vector<std::uint64_t> output_sizes;  // per node, once it has ended
  // Nodes of a step that was over before a restart and that have not said yet how much it printed:
  // its end is told after its output.
  std::set<NodeIndex> unsized;
};

class RollCalls {
 public:
  using Gangs = std::map<GangId, GangCall>;
  using Steps = std::map<StepKey, StepRun>;

  const Gangs& gangs() const { return gangs_; }
  const Steps& steps() const { return steps_; }
  const StepRun* peek(const StepKey& key) const {
    auto it = steps_.find(key);
    return it == steps_.end() ? nullptr : &it->second;
  }
  // To be changed: what was before the turn is kept until the turn is over.
  GangCall* edit(GangId gang) { return edit_in(gangs_, gangs_before_, gang); }
  StepRun* edit(const StepKey& key) { return edit_in(steps_, steps_before_, key); }
  GangCall& open(GangId gang) { return open_in(gangs_, gangs_before_, gang); }
  StepRun& open(const StepKey& key) { return open_in(steps_, steps_before_, key); }
  void close(GangId gang) {
    if (edit(gang)) gangs_.erase(gang);
  }
  void close(const StepKey& key) {
    if (edit(key)) steps_.erase(key);
  }

  void begin_turn() {
    gangs_before_.clear();
    steps_before_.clear();
  }
  void undo_turn() {
    undo(gangs_, gangs_before_);
    undo(steps_, steps_before_);
  }

  // The earliest deadline of all roll calls.
  Instant next_deadline() const {
    Instant next = Instant::never();
    for (const auto& [gang, call] : gangs_) next = std::min(next, call.deadline);
    for (const auto& [key, run] : steps_)
      if (!run.running && !run.ending) next = std::min(next, run.deadline);
    return next;
  }

 private:
  template <class Key, class Book>
  using Before = std::map<Key, std::optional<Book>>;

  template <class Key, class Book>
  static Book* edit_in(std::map<Key, Book>& books, Before<Key, Book>& before, const Key& key) {
    auto it = books.find(key);
    if (it == books.end()) return nullptr;
    if (!before.contains(key)) before.emplace(key, it->second);
    return &it->second;
  }
  template <class Key, class Book>
  static Book& open_in(std::map<Key, Book>& books, Before<Key, Book>& before, const Key& key) {
    if (Book* known = edit_in(books, before, key)) return *known;
    before.emplace(key, std::nullopt);
    return books[key];
  }
  template <class Key, class Book>
  static void undo(std::map<Key, Book>& books, Before<Key, Book>& before) {
    for (auto& [key, book] : before) {
      if (book)
        books[key] = std::move(*book);
      else
        books.erase(key);
    }
    before.clear();
  }

  Gangs gangs_;
  Steps steps_;
  Before<GangId, GangCall> gangs_before_;
  Before<StepKey, StepRun> steps_before_;
};

// The worse of two ends: a signal counts as 128 + its number.
inline ExitStatus worse(const ExitStatus& a, const ExitStatus& b) {
  auto rank = [](const ExitStatus& s) { return s.signal ? 128 + s.signal : s.code; };
  return rank(a) >= rank(b) ? a : b;
}

}  // namespace tutti::controller
