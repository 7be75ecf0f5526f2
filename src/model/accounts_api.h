// What programs ask and say about the account book:
//   GET  /v1/accounts                    -> AccountsView
//   POST /v1/accounts   AccountsRequest  -> ActionReply   operators, administrators of the book
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/archive.h"
#include "model/accounts.h"
#include "model/event.h"

namespace tutti {

// `version`: of the book that the change was made for; another one in force is a conflict.
struct AccountsRequest {
  std::uint64_t version = 0;
  AccountsConfigured change;
};
void describe(auto& a, AccountsRequest& x) {
  a("version", x.version);
  a("change", x.change);
}

// Shares and usage of one association now. Level FS: 0 = zero, 1 = mantissa * 2^exponent, 2 = no
// usage at all.
struct ShareLine {
  AssociationId association = 0;
  std::uint64_t usage_ms = 0, parent_usage_ms = 0, shares = 0, all_shares = 0;
  std::uint32_t level_kind = 0;
  std::int32_t level_exponent = 0;
  std::uint64_t level_mantissa = 0;
  std::uint64_t factor_billionths = 0;
};
void describe(auto& a, ShareLine& x) {
  a("association", x.association);
  a("usage_ms", x.usage_ms);
  a("parent_usage_ms", x.parent_usage_ms);
  a("shares", x.shares);
  a("all_shares", x.all_shares);
  a("level_kind", x.level_kind);
  a("level_exponent", x.level_exponent);
  a("level_mantissa", x.level_mantissa);
  a("factor_billionths", x.factor_billionths);
}

struct AccountsView {
  Instant now;
  std::string cluster;
  std::uint64_t version = 0;
  std::vector<Account> accounts;
  std::vector<AccountUser> users;
  std::vector<Qos> qos;
  std::vector<Association> associations;  // by number
  std::vector<ShareLine> shares;          // the same order
};
void describe(auto& a, AccountsView& x) {
  a("now_ms", x.now);
  a("cluster", x.cluster);
  a("version", x.version);
  a("accounts", x.accounts);
  a("users", x.users);
  a("qos", x.qos);
  a("associations", x.associations);
  a("shares", x.shares);
}

}  // namespace tutti
