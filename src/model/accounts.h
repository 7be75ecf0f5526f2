// The account book: accounts as a tree, users' places in it, qualities of service, and the limits of
// each, as an administrator configures them (sacctmgr, the native file). Kept in
// ClusterState::accounts and changed by AccountsConfigured, so that it changes on a running cluster.
// Words and rules are Slurm's (man sacctmgr): an association is an account, or a user in an account,
// perhaps in one partition only. What they have used is in model/usage.h.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "base/archive.h"
#include "base/time.h"
#include "model/terms.h"

namespace tutti {

// Amounts by resource: "cpu", "mem" (MiB), "node", "billing", "gres/gpu" (all types together),
// "gres/gpu:h100" (one type), "license/NAME".
using TresAmounts = std::map<std::string, std::uint64_t>;

// Limits of an association. Those of a group hold for all below it together, at every level of the
// tree; the others for each job or user, and the nearest one on the way to the root counts.
struct AssociationLimits {
  TresAmounts group;              // GrpTRES: in use at once
  TresAmounts group_minutes;      // GrpTRESMins: used, decayed like all usage
  TresAmounts group_run_minutes;  // GrpTRESRunMins: what runs, times its remaining limit
  TresAmounts per_job;            // MaxTRESPerJob
  TresAmounts per_node;           // MaxTRESPerNode
  TresAmounts job_minutes;        // MaxTRESMinsPerJob
  std::optional<std::uint32_t> group_jobs, group_submitted;  // GrpJobs, GrpSubmitJobs
  std::optional<std::uint32_t> jobs, submitted;              // MaxJobs, MaxSubmitJobs
  std::optional<Duration> group_wall, wall;                  // GrpWall, MaxWallDurationPerJob
  bool empty() const { return *this == AssociationLimits(); }
  friend bool operator==(const AssociationLimits&, const AssociationLimits&) = default;
};
template <class A>
void describe(A& a, AssociationLimits& x) {
  a("group", x.group);
  a("group_minutes", x.group_minutes);
  a("group_run_minutes", x.group_run_minutes);
  a("per_job", x.per_job);
  a("per_node", x.per_node);
  a("job_minutes", x.job_minutes);
  a("group_jobs", x.group_jobs);
  a("group_submitted", x.group_submitted);
  a("jobs", x.jobs);
  a("submitted", x.submitted);
  a("group_wall_ms", x.group_wall);
  a("wall_ms", x.wall);
}

using AssociationId = std::uint32_t;  // 0 = none; never given twice
inline constexpr AssociationId kRootAssociation = 1;
inline constexpr std::string_view kRootAccount = "root";
// Fairshare=parent: it has no share of its own and counts as a child of its parent's parent.
inline constexpr std::uint32_t kSharesOfParent = 0x7FFFFFFF;

struct Association {
  AssociationId id = 0;    // given by the fold
  std::string account;     // it belongs to, or is
  std::string user;        // "" = the account itself
  std::string partition;   // "" = in all of them
  AssociationId parent = 0;  // of an account: the account above; of a user: the account. 0 = root
  std::uint32_t shares = 1;
  std::uint32_t priority = 0;    // the association factor, of all such numbers the share
  std::vector<std::string> qos;  // it may use; empty = as its parent, at the root: all
  std::string default_qos;
  AssociationLimits limits;
  friend bool operator==(const Association&, const Association&) = default;
};
template <class A>
void describe(A& a, Association& x) {
  a("id", x.id);
  a("account", x.account);
  a("user", x.user);
  a("partition", x.partition);
  a("parent", x.parent);
  a("shares", x.shares);
  a("priority", x.priority);
  a("qos", x.qos);
  a("default_qos", x.default_qos);
  a("limits", x.limits);
}

struct Account {
  std::string name, description, organization;
  friend bool operator==(const Account&, const Account&) = default;
};
template <class A>
void describe(A& a, Account& x) {
  a("name", x.name);
  a("description", x.description);
  a("organization", x.organization);
}

enum class AdminLevel : std::uint8_t { kNone, kOperator, kAdministrator };
template <>
struct EnumNames<AdminLevel> {
  static constexpr std::array kTable{
      std::pair{AdminLevel::kNone, std::string_view("none")},
      std::pair{AdminLevel::kOperator, std::string_view("operator")},
      std::pair{AdminLevel::kAdministrator, std::string_view("administrator")}};
};

struct AccountUser {
  std::string name, default_account;
  AdminLevel admin = AdminLevel::kNone;
  friend bool operator==(const AccountUser&, const AccountUser&) = default;
};
template <class A>
void describe(A& a, AccountUser& x) {
  a("name", x.name);
  a("default_account", x.default_account);
  a("admin", x.admin);
}

// UsageFactor is counted in millionths: 1'000'000 = 1.0.
inline constexpr std::uint64_t kFactorOne = 1'000'000;

struct Qos {
  std::uint32_t id = 0;  // given by the fold
  std::string name, description;
  std::uint32_t priority = 0;
  std::vector<std::string> preempt;  // QOSs whose jobs may make room for its jobs
  ReclaimMode preempt_mode = ReclaimMode::kDefault;
  Duration grace;                         // from the notice to the end of its own jobs
  std::optional<Duration> exempt;         // PreemptExemptTime
  bool deny_on_limit = false;             // refused at submit instead of waiting
  bool no_decay = false;                  // its own usage does not fade
  bool part_overrides = false;            // OverPartQOS
  std::uint64_t usage_factor = kFactorOne;
  TresAmounts group, group_minutes, group_run_minutes;          // GrpTRES...
  TresAmounts per_job, per_node, per_user, per_account;         // MaxTRESPerJob...
  TresAmounts job_minutes, min_per_job;                         // MaxTRESMinsPerJob, MinTRES
  std::optional<std::uint32_t> group_jobs, group_submitted;     // GrpJobs, GrpSubmitJobs
  std::optional<std::uint32_t> jobs_per_user, submitted_per_user;
  std::optional<std::uint32_t> jobs_per_account, submitted_per_account;
  std::optional<Duration> group_wall, wall;
  friend bool operator==(const Qos&, const Qos&) = default;
};
template <class A>
void describe(A& a, Qos& x) {
  a("id", x.id);
  a("name", x.name);
  a("description", x.description);
  a("priority", x.priority);
  a("preempt", x.preempt);
  a("preempt_mode", x.preempt_mode);
  a("grace_ms", x.grace);
  a("exempt_ms", x.exempt);
  a("deny_on_limit", x.deny_on_limit);
  a("no_decay", x.no_decay);
  a("part_overrides", x.part_overrides);
  a("usage_factor", x.usage_factor);
  a("group", x.group);
  a("group_minutes", x.group_minutes);
  a("group_run_minutes", x.group_run_minutes);
  a("per_job", x.per_job);
  a("per_node", x.per_node);
  a("per_user", x.per_user);
  a("per_account", x.per_account);
  a("job_minutes", x.job_minutes);
  a("min_per_job", x.min_per_job);
  a("group_jobs", x.group_jobs);
  a("group_submitted", x.group_submitted);
  a("jobs_per_user", x.jobs_per_user);
  a("submitted_per_user", x.submitted_per_user);
  a("jobs_per_account", x.jobs_per_account);
  a("submitted_per_account", x.submitted_per_account);
  a("group_wall_ms", x.group_wall);
  a("wall_ms", x.wall);
}

// How an association is named: account, user ("" = the account), partition ("" = all).
using AssociationKey = std::tuple<std::string, std::string, std::string>;
inline AssociationKey key_of(const Association& x) { return {x.account, x.user, x.partition}; }

// Begins with the account root and the QOS normal. By name or number, so that every reader sees one
// order. Finding costs O(log n); a copy O(n), which 10,000 users take a few milliseconds for.
struct AccountBook {
  std::map<std::string, Account> accounts{{std::string(kRootAccount), {"root", "default root account", "root"}}};
  std::map<std::string, AccountUser> users;
  std::map<std::string, Qos> qos{{"normal", Qos{.id = 1, .name = "normal", .description = "Normal QOS default"}}};
  std::map<AssociationId, Association> associations{{kRootAssociation, {.id = kRootAssociation, .account = "root"}}};
  std::map<AssociationKey, AssociationId> by_key{{{"root", "", ""}, kRootAssociation}};
  std::uint32_t next_association = 2, next_qos = 2;
  std::uint64_t version = 0;  // changes with every change

  const Association* find(AssociationId id) const {
    auto it = associations.find(id);
    return it == associations.end() ? nullptr : &it->second;
  }
  const Association* find(const std::string& account, const std::string& user,
                          const std::string& partition = {}) const {
    auto it = by_key.find({account, user, partition});
    return it == by_key.end() ? nullptr : find(it->second);
  }
  const Qos* find_qos(const std::string& name) const {
    auto it = qos.find(name);
    return it == qos.end() ? nullptr : &it->second;
  }
};

// A user's own row for the partition, else the one for all partitions; nullptr when there is none.
// An account of "" is the user's default account, else root.
inline const Association* association_for(const AccountBook& book, std::string account,
                                          const std::string& user, const std::string& partition) {
  if (account.empty()) {
    auto known = book.users.find(user);
    account = known == book.users.end() || known->second.default_account.empty()
                  ? std::string(kRootAccount)
                  : known->second.default_account;
  }
  const Association* found = partition.empty() ? nullptr : book.find(account, user, partition);
  return found ? found : book.find(account, user);
}

}  // namespace tutti
