#include "scheduler/fair_share.h"

#include <algorithm>
#include <bit>
#include <tuple>

#include "base/wide.h"

namespace tutti::scheduler {

namespace {

std::uint64_t sum(std::uint64_t a, std::uint64_t b) { return std::min(a + b, kMostUsage); }

// What runs, from when it was charged last.
void add_running(const ClusterState& state, Instant now, std::vector<ShareOf>& of) {
  const PriorityWeights& rules = state.spec->priority;
  state.gangs.for_each([&](std::uint32_t, const Gang& gang) {
    if (!gang.charged_from.is_set() || gang.charged_from >= now) return;
    const WorkloadEntry* entry = state.workloads.find(gang.workload.value());
    if (!entry || entry->association >= of.size()) return;
    const auto& partitions = state.spec->partitions;
    auto where = std::find_if(partitions.begin(), partitions.end(), [&](const PartitionSpec& p) {
      return p.name == gang.partition;
    });
    UsageRecord record;
    record.at = now;
    const Qos* qos = state.accounts->find_qos(entry->workload.qos);
    const std::uint64_t billed =
        billing_milli(rules, where == partitions.end() ? nullptr : &*where,
                      tres_of(*state.spec, gang.slots));
    charge(record, rules, {}, billed, gang.charged_from, qos ? qos->usage_factor : kFactorOne);
    std::uint64_t& usage = of[entry->association].usage;
    usage = sum(usage, record.amount["billing"]);
  });
}

class Tree {
 public:
  Tree(const AccountBook& book, FairShares& out)
      : book_(book), of_(out.of), children_(out.of.size()), above_(out.of.size()), out_(out) {}

  void rank() {
    gather_usage();
    hang_up();
    for (const auto& [id, association] : book_.associations) measure(id);
    for (const auto& [id, association] : book_.associations)
      if (is_user(id) && book_.find(id)->shares == kSharesOfParent) as_account(id);
    left_ = out_.users;
    rank_ = out_.users;
    rank_level(children_[kRootAssociation], false);
  }

 private:
  bool is_user(AssociationId id) const { return !book_.find(id)->user.empty(); }

  // An account has used what its users have.
  void gather_usage() {
    for (const auto& [id, association] : book_.associations) {
      if (association.user.empty()) continue;
      ++out_.users;
      const std::uint64_t used = of_[id].usage;
      for (AssociationId up = association.parent; up != 0; up = book_.find(up)->parent)
        of_[up].usage = sum(of_[up].usage, used);
    }
  }

  // Children of an account without a share of its own count as children of the one above it.
  AssociationId above(AssociationId id) const {
    AssociationId up = book_.find(id)->parent;
    while (up != kRootAssociation && book_.find(up)->shares == kSharesOfParent)
      up = book_.find(up)->parent;
    return up;
  }
  void hang_up() {
    std::vector<std::uint64_t> shares_below(of_.size());
    for (const auto& [id, association] : book_.associations) {
      if (id == kRootAssociation) continue;
      above_[id] = above(id);
      const bool of_parent = association.shares == kSharesOfParent;
      if (of_parent && !is_user(id)) continue;
      children_[above_[id]].push_back(id);
      of_[id].shares = of_parent ? 0 : association.shares;
      shares_below[above_[id]] += of_[id].shares;
    }
    for (const auto& [id, association] : book_.associations) {
      of_[id].all_shares = shares_below[above_[id]];
      of_[id].parent_usage = of_[above_[id]].usage;
    }
    of_[kRootAssociation].shares = of_[kRootAssociation].all_shares = 1;
    of_[kRootAssociation].parent_usage = of_[kRootAssociation].usage;
  }

  void measure(AssociationId id) {
    ShareOf& x = of_[id];
    x.level = level_share(x.shares, x.all_shares, x.usage, x.parent_usage);
  }
  // A user without a share of its own stands where the account stands.
  void as_account(AssociationId id) {
    const ShareOf& account = of_[above_[id]];
    of_[id].shares = account.shares;
    of_[id].all_shares = account.all_shares;
    of_[id].level = account.level;
  }

  // Ties: users share a rank; accounts are ranked as one; a user and an account rank the first of
  // the account as the user. `tied`: the first here ranks as whoever was ranked last.
  void rank_level(std::vector<AssociationId> siblings, bool tied) {
    std::sort(siblings.begin(), siblings.end(), [this](AssociationId a, AssociationId b) {
      return std::make_tuple(of_[b].level, is_user(b), a) <
             std::make_tuple(of_[a].level, is_user(a), b);
    });
    for (std::size_t i = 0; i < siblings.size(); ++i) {
      const AssociationId id = siblings[i];
      if (i > 0) tied = of_[siblings[i - 1]].level == of_[id].level;
      if (is_user(id)) {
        if (!tied) rank_ = left_;
        of_[id].factor = (rank_ * kFactor + out_.users / 2) / out_.users;
        --left_;
        continue;
      }
      std::vector<AssociationId> merged = children_[id];
      while (i + 1 < siblings.size() && of_[siblings[i + 1]].level == of_[id].level) {
        const auto& more = children_[siblings[++i]];
        merged.insert(merged.end(), more.begin(), more.end());
      }
      rank_level(std::move(merged), tied);
    }
  }

  const AccountBook& book_;
  std::vector<ShareOf>& of_;
  std::vector<std::vector<AssociationId>> children_;
  std::vector<AssociationId> above_;
  FairShares& out_;
  std::uint64_t left_ = 0, rank_ = 0;
};

}  // namespace

LevelShare level_share(std::uint64_t shares, std::uint64_t all_shares, std::uint64_t usage,
                       std::uint64_t parent_usage) {
  if (shares == 0 || all_shares == 0) return {};
  if (usage == 0 || parent_usage == 0) return {LevelShare::Kind::kInfinite, 0, 0};
  Wide above = Wide{shares} * parent_usage, below = Wide{all_shares} * usage;
  auto width = [](Wide x) {
    const auto high = static_cast<std::uint64_t>(x >> 64);
    return high ? 64 + std::bit_width(high) : std::bit_width(static_cast<std::uint64_t>(x));
  };
  LevelShare level{LevelShare::Kind::kFinite, 0, 0};
  const int up = 128 - static_cast<int>(width(above)), down = static_cast<int>(width(below)) - 64;
  above <<= up;
  below = down >= 0 ? below >> down : below << -down;
  Wide ratio = above / below;  // between 2^63 and 2^65
  level.exponent = -up - down;
  if (ratio >> 64) {
    ratio >>= 1;
    ++level.exponent;
  }
  level.mantissa = static_cast<std::uint64_t>(ratio);
  return level;
}

FairShares fair_shares(const ClusterState& state, Instant now) {
  FairShares out;
  out.of.resize(state.accounts->next_association);
  const PriorityWeights& rules = state.spec->priority;
  state.usage.for_each([&](std::uint32_t id, const UsageRecord& kept) {
    auto billed = kept.amount.find("billing");
    if (id >= out.of.size() || billed == kept.amount.end()) return;
    UsageRecord record;
    record.at = kept.at;
    record.amount["billing"] = billed->second;
    fade(record, rules, now);
    out.of[id].usage = record.amount["billing"];
  });
  add_running(state, now, out.of);
  Tree(*state.accounts, out).rank();
  return out;
}

}  // namespace tutti::scheduler
