// Fair Tree and limits with exact numbers.
#include "scheduler/fair_share.h"

#include <gtest/gtest.h>

#include "scheduler/limits.h"

namespace tutti::scheduler {
namespace {

class FairTree : public ::testing::Test {
 protected:
  ClusterState state;
  AccountBook book;

  AssociationId add(const std::string& account, const std::string& user, const std::string& parent,
                    std::uint32_t shares, std::uint64_t usage = 0) {
    Association a;
    a.id = book.next_association++;
    a.account = account;
    a.user = user;
    a.parent = book.find(parent, "")->id;
    a.shares = shares;
    book.associations[a.id] = a;
    book.by_key[key_of(a)] = a.id;
    if (usage > 0) {
      UsageRecord record;
      record.at = Instant::from_ms(1000);
      record.amount["billing"] = usage;
      state.usage.put(a.id, std::make_shared<const UsageRecord>(record));
    }
    return a.id;
  }
  FairShares shares() {
    state.accounts = std::make_shared<AccountBook>(book);
    return fair_shares(state, Instant::from_ms(1000));
  }
};

TEST_F(FairTree, LevelShareIsTheRatio) {
  // 1/2 of the shares, 1/4 of the usage: 2 = 2^63 * 2^-62.
  EXPECT_EQ(level_share(1, 2, 1, 4), (LevelShare{LevelShare::Kind::kFinite, -62, 1ull << 63}));
  EXPECT_EQ(level_share(3, 6, 25, 100), level_share(1, 2, 1, 4));
  EXPECT_LT(level_share(1, 2, 26, 100), level_share(1, 2, 25, 100));
  EXPECT_LT(level_share(1, 2, (1ull << 62) - 1, 1ull << 62), level_share(1, 2, (1ull << 62) - 2, 1ull << 62));
  EXPECT_EQ(level_share(1, 2, 0, 4).kind, LevelShare::Kind::kInfinite);
  EXPECT_EQ(level_share(0, 2, 0, 4).kind, LevelShare::Kind::kZero);
}

TEST_F(FairTree, TheBetterAccountComesBeforeTheBetterUser) {
  add("a", "", "root", 1);
  add("b", "", "root", 1);
  auto a1 = add("a", "a1", "a", 1, 900), a2 = add("a", "a2", "a", 1, 0);
  auto b1 = add("b", "b1", "b", 1, 50), b2 = add("b", "b2", "b", 1, 150);
  FairShares s = shares();
  // b has used less, so both of its users come first, whatever a2 has.
  EXPECT_EQ(s.factor(b1), 1'000'000'000u);
  EXPECT_EQ(s.factor(b2), 750'000'000u);
  EXPECT_EQ(s.factor(a2), 500'000'000u);
  EXPECT_EQ(s.factor(a1), 250'000'000u);
  EXPECT_EQ(s.of[kRootAssociation].usage, 1100u);
}

TEST_F(FairTree, SharesWeigh) {
  add("a", "", "root", 3);
  add("b", "", "root", 1);
  auto a = add("a", "ann", "a", 1, 290), b = add("b", "bob", "b", 1, 100);
  FairShares s = shares();
  EXPECT_GT(s.factor(a), s.factor(b));
  add("c", "", "root", 1);
  auto c = add("c", "cat", "c", 1, 99);
  s = shares();
  EXPECT_GT(s.factor(c), s.factor(b));
  EXPECT_LT(s.factor(c), s.factor(a)) << "3 shares for 290 are better than one for 99";
}

TEST_F(FairTree, UsersThatTieShareARank) {
  auto a = add("root", "ann", "root", 1, 10), b = add("root", "bob", "root", 1, 10);
  auto c = add("root", "cat", "root", 1, 20);
  FairShares s = shares();
  EXPECT_EQ(s.factor(a), 1'000'000'000u);
  EXPECT_EQ(s.factor(b), 1'000'000'000u);
  EXPECT_EQ(s.factor(c), 333'333'333u);
}

TEST_F(FairTree, AccountsThatTieAreOne) {
  add("a", "", "root", 1);
  add("b", "", "root", 1);
  auto a1 = add("a", "a1", "a", 1, 60), a2 = add("a", "a2", "a", 1, 40);
  auto b1 = add("b", "b1", "b", 1, 70), b2 = add("b", "b2", "b", 1, 30);
  FairShares s = shares();
  EXPECT_GT(s.factor(b2), s.factor(a2));
  EXPECT_GT(s.factor(a2), s.factor(a1));
  EXPECT_GT(s.factor(a1), s.factor(b1));
}

TEST_F(FairTree, AUserThatTiesWithAnAccountRanksAsItsFirst) {
  add("a", "", "root", 1);
  auto u = add("root", "u", "root", 1, 100);
  auto a1 = add("a", "a1", "a", 1, 60), a2 = add("a", "a2", "a", 1, 40);
  FairShares s = shares();
  EXPECT_EQ(s.factor(u), 1'000'000'000u);
  EXPECT_EQ(s.factor(a2), 1'000'000'000u);
  EXPECT_EQ(s.factor(a1), 333'333'333u);
}

TEST_F(FairTree, SharesOfTheParent) {
  add("a", "", "root", kSharesOfParent);
  auto a1 = add("a", "a1", "a", 1, 10);
  auto u = add("root", "u", "root", 1, 30);
  FairShares s = shares();
  EXPECT_EQ(s.of[a1].all_shares, 2u) << "a1 is a sibling of u";
  EXPECT_GT(s.factor(a1), s.factor(u));
  add("b", "", "root", 1);
  auto b1 = add("b", "b1", "b", kSharesOfParent, 5), b2 = add("b", "b2", "b", kSharesOfParent, 1);
  s = shares();
  EXPECT_EQ(s.factor(b1), s.factor(b2)) << "no fairness among users that have the account's share";
}

TEST(Limits, LicencesAreParsed) {
  EXPECT_EQ(parse_licenses("matlab:2,foo"), (TresAmounts{{"license/matlab", 2}, {"license/foo", 1}}));
  EXPECT_FALSE(parse_licenses("matlab:x"));
}

}  // namespace
}  // namespace tutti::scheduler
