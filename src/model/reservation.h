// An administrator's reservation: nodes that are kept, for a time, for those it names (or for
// nobody: maintenance). Work that may not use it never runs across it. The nodes are chosen when it
// is made. Rules and words: man scontrol (22.05), "RESERVATIONS".
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/archive.h"
#include "base/time.h"

namespace tutti {

enum class ReservationFlag : std::uint8_t {
  kMaint,       // maintenance: may overlap others; nodes are shown as such
  kOverlap,     // may overlap others
  kIgnoreJobs,  // may be made over running work
  kFlex,        // its users may also use other nodes, and start before and end after it
  kDaily,
  kWeekly,
  kWeekday,
  kWeekend,
  kSpecNodes,  // given by name
  kAnyNodes,
  kAllNodes,
  kPartNodes,  // all of a partition
  kPurgeComp,
};
template <>
struct EnumNames<ReservationFlag> {
  using F = ReservationFlag;
  using S = std::string_view;
  static constexpr std::array kTable{std::pair{F::kMaint, S("MAINT")},
                                     std::pair{F::kOverlap, S("OVERLAP")},
                                     std::pair{F::kIgnoreJobs, S("IGNORE_JOBS")},
                                     std::pair{F::kFlex, S("FLEX")},
                                     std::pair{F::kDaily, S("DAILY")},
                                     std::pair{F::kWeekly, S("WEEKLY")},
                                     std::pair{F::kWeekday, S("WEEKDAY")},
                                     std::pair{F::kWeekend, S("WEEKEND")},
                                     std::pair{F::kSpecNodes, S("SPEC_NODES")},
                                     std::pair{F::kAnyNodes, S("ANY_NODES")},
                                     std::pair{F::kAllNodes, S("ALL_NODES")},
                                     std::pair{F::kPartNodes, S("PART_NODES")},
                                     std::pair{F::kPurgeComp, S("PURGE_COMP")}};
};

struct Reservation {
  std::string name;
  Instant start, end;
  std::vector<std::string> nodes;  // in the cluster's order
  std::string partition, features;
  // Who may use it; an entry "-x" keeps x out. All empty = nobody (maintenance).
  std::vector<std::string> users, accounts, groups;
  std::map<std::string, std::uint32_t> licenses;
  std::vector<ReservationFlag> flags;
  Duration purge_after;  // PURGE_COMP: idle for so long
  std::string comment;
  std::uint32_t by_uid = 0;
  std::vector<std::string> not_honoured;
  friend bool operator==(const Reservation&, const Reservation&) = default;

  bool has(ReservationFlag flag) const {
    return std::find(flags.begin(), flags.end(), flag) != flags.end();
  }
  bool is_active(Instant now) const { return start <= now && now < end; }
};
template <class A>
void describe(A& a, Reservation& x) {
  a("name", x.name);
  a("start_ms", x.start);
  a("end_ms", x.end);
  a("nodes", x.nodes);
  a("partition", x.partition);
  a("features", x.features);
  a("users", x.users);
  a("accounts", x.accounts);
  a("groups", x.groups);
  a("licenses", x.licenses);
  a("flags", x.flags);
  a("purge_after_ms", x.purge_after);
  a("comment", x.comment);
  a("by_uid", x.by_uid);
  a("not_honoured", x.not_honoured);
}

// POST /v1/reservations -> ActionReply. Operators only. What is not set stays as it is (update) or
// takes its default (create): from now on, for ever, all nodes that match.
struct ReservationRequest {
  std::string action;  // "create", "update", "delete"
  std::string name;    // "" = created as the first user's or account's name and a number
  std::optional<Instant> start, end;
  std::optional<Duration> duration;
  std::optional<std::string> nodes;  // a host list, "ALL", or empty
  std::optional<std::uint32_t> node_count;
  std::optional<std::string> partition, features, comment;
  std::optional<std::vector<std::string>> users, accounts, groups;
  std::optional<std::vector<ReservationFlag>> flags;
  std::optional<Duration> purge_after;
  std::vector<std::string> not_honoured;
};
template <class A>
void describe(A& a, ReservationRequest& x) {
  a("action", x.action);
  a("name", x.name);
  a("start_ms", x.start);
  a("end_ms", x.end);
  a("duration_ms", x.duration);
  a("nodes", x.nodes);
  a("node_count", x.node_count);
  a("partition", x.partition);
  a("features", x.features);
  a("comment", x.comment);
  a("users", x.users);
  a("accounts", x.accounts);
  a("groups", x.groups);
  a("flags", x.flags);
  a("purge_after_ms", x.purge_after);
  a("not_honoured", x.not_honoured);
}

// By name.
struct ReservationList {
  std::vector<Reservation> all;
  const Reservation* find(std::string_view name) const {
    for (const Reservation& each : all)
      if (each.name == name) return &each;
    return nullptr;
  }
};

// Made or changed: the whole record. Repeats (DAILY...) move by this event too.
struct ReservationSet {
  static constexpr std::string_view kName = "reservation_set";
  Reservation reservation;
};
void describe(auto& a, ReservationSet& x) { a("reservation", x.reservation); }

struct ReservationRemoved {
  static constexpr std::string_view kName = "reservation_removed";
  std::string name;
  std::optional<std::uint32_t> by_uid;  // none = it was over
};
void describe(auto& a, ReservationRemoved& x) {
  a("name", x.name);
  a("by_uid", x.by_uid);
}

}  // namespace tutti
