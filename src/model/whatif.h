// "What if": a question about a copy of the live state, and the difference it would make to what
// waits. POST /v1/whatif WhatIfRequest -> WhatIfReply; answered beside the controller's own work,
// changes nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/archive.h"
#include "base/time.h"
#include "model/api.h"
#include "model/cluster.h"

namespace tutti {

struct WhatIfRequest {
  std::vector<Submission> submissions;  // also these
  std::string drain;                    // a host list: these nodes take no new work
  std::vector<std::string> quotas;      // "QUEUE:RESOURCE=AMOUNT": nominal
  std::uint32_t add_nodes = 0;          // so many more of `node`
  NodeSpec node;                        // its name is the prefix of theirs
  std::vector<std::string> partitions;  // they are in; empty = all
};
void describe(auto& a, WhatIfRequest& x) {
  a("submissions", x.submissions);
  a("drain", x.drain);
  a("quotas", x.quotas);
  a("add_nodes", x.add_nodes);
  a("node", x.node);
  a("partitions", x.partitions);
}

// What becomes of something that waits. Unset = no planned start.
struct WhatIfRow {
  std::string job, name, user;
  Instant before, after;  // "now" is the time of the question
  std::vector<std::string> nodes;
  std::string reason, text;  // why it would still wait
  bool is_new = false;       // one of the submissions
};
void describe(auto& a, WhatIfRow& x) {
  a("job", x.job);
  a("name", x.name);
  a("user", x.user);
  a("before_ms", x.before);
  a("after_ms", x.after);
  a("nodes", x.nodes);
  a("reason", x.reason);
  a("text", x.text);
  a("is_new", x.is_new);
}

struct WhatIfReply {
  Instant now;
  std::vector<WhatIfRow> rows;  // that are new or change, by job
  std::uint32_t unchanged = 0;
  std::vector<std::string> notes;  // what else follows: jobs that run on a drained node until...
};
void describe(auto& a, WhatIfReply& x) {
  a("now_ms", x.now);
  a("rows", x.rows);
  a("unchanged", x.unchanged);
  a("notes", x.notes);
}

}  // namespace tutti
