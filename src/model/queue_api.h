// Requests and replies about queues:
//
//   POST /v1/queues   QueuesRequest -> QueuesReply   operator: the tree changes whole, or not at all
//   GET  /v1/queues                 -> QueuesView    the tree with what is used of it
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/archive.h"
#include "model/queues.h"

namespace tutti {

// Something wrong with a queue. `key` says where: "parent", "quotas.gpu:h100.nominal"; "" = the
// queue as such. A warning does not keep the tree from coming into force.
struct QueueProblem {
  std::string queue, key, text;
  bool is_warning = false;
  friend bool operator==(const QueueProblem&, const QueueProblem&) = default;
};
void describe(auto& a, QueueProblem& x) {
  a("queue", x.queue);
  a("key", x.key);
  a("text", x.text);
  a("is_warning", x.is_warning);
}

struct QueuesRequest {
  bool replace = false;           // `queues` are all there are; else those of the same name change
  std::vector<QueueSpec> queues;  // in any order
  std::vector<std::string> remove;
  std::optional<std::string> default_queue;
  bool check_only = false;  // says what it would say, changes nothing
};
void describe(auto& a, QueuesRequest& x) {
  a("replace", x.replace);
  a("queues", x.queues);
  a("remove", x.remove);
  a("default_queue", x.default_queue);
  a("check_only", x.check_only);
}

struct QueuesReply {
  bool in_force = false;  // false: the tree is as before, because of `problems` or check_only
  std::vector<QueueProblem> problems;
  std::vector<std::string> added, changed, removed;
};
void describe(auto& a, QueuesReply& x) {
  a("in_force", x.in_force);
  a("problems", x.problems);
  a("added", x.added);
  a("changed", x.changed);
  a("removed", x.removed);
}

// One resource of one queue as it stands.
struct QuotaUse {
  std::string resource;
  std::uint64_t used = 0;
  std::optional<std::uint64_t> amount;  // its nominal or its deserved share; none = no limit
};
void describe(auto& a, QuotaUse& x) {
  a("resource", x.resource);
  a("used", x.used);
  a("amount", x.amount);
}

struct QueueUse {
  std::string queue;
  std::uint64_t pending = 0, running = 0;  // gangs of the queue itself
  std::vector<QuotaUse> uses;              // with its subtree
};
void describe(auto& a, QueueUse& x) {
  a("queue", x.queue);
  a("pending", x.pending);
  a("running", x.running);
  a("uses", x.uses);
}

struct QueuesView {
  QueueTree tree;
  std::vector<QueueUse> uses;  // as the queues of the tree
};
void describe(auto& a, QueuesView& x) {
  a("tree", x.tree);
  a("uses", x.uses);
}

}  // namespace tutti
