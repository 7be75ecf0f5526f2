// The account book in the state, and usage with exact numbers.
#include "tests/unit/state/support.h"

namespace tutti::state {
namespace {

Association account(AccountBook const& book, std::string name, std::string parent,
                    std::uint32_t shares = 1) {
  Association a;
  a.account = std::move(name);
  a.parent = book.find(parent, "")->id;
  a.shares = shares;
  return a;
}

std::uint64_t billed(const World& world, const std::string& account, const std::string& user) {
  const Association* association = world.state.accounts->find(account, user);
  const UsageRecord* record = association ? world.state.usage.find(association->id) : nullptr;
  return record ? record->amount.at("billing") : 0;
}

void half_life(World& world, Duration half_life) {
  ClusterSpec spec = *world.state.spec;
  spec.priority.half_life = half_life;
  world.must(ClusterConfigured{spec});
}

GangId run(World& world, Workload w, std::int64_t seconds) {
  w.id = WorkloadId(world.state.next_id);
  WorkloadId id = w.id;
  world.must(WorkloadSubmitted{std::move(w)});
  GangId gang(id.value());
  world.must(world.allocation(id, gang, {0}));
  world.must(GangStarted{gang, world.now + Duration::minutes(10)});
  world.now = world.gang(gang).started + Duration::milliseconds(seconds * 1000 - 1);
  world.must(ending(gang, Outcome::kCompleted));
  world.must(SlotReleased{gang, 0});
  return gang;
}

TEST(Accounts, WhoSubmitsFirstGetsOneShare) {
  World world;
  Workload w;
  w.user = "ann";
  w.account = "vision";
  w.id = WorkloadId(world.state.next_id);
  world.must(WorkloadSubmitted{w});
  const AccountBook& book = *world.state.accounts;
  const Association* ann = book.find("vision", "ann");
  ASSERT_TRUE(ann);
  EXPECT_EQ(ann->shares, 1u);
  EXPECT_EQ(ann->parent, book.find("vision", "")->id);
  EXPECT_EQ(book.find("vision", "")->parent, kRootAssociation);
  EXPECT_EQ(book.users.at("ann").default_account, "") << "only an administrator says which";
  EXPECT_EQ(world.entry(w.id).association, ann->id);
  // Without an account it is the default one; of somebody without one, root.
  AccountsConfigured e;
  e.users = {{"ann", "vision", AdminLevel::kNone}};
  world.must(e);
  w.account.clear();
  w.id = WorkloadId(world.state.next_id);
  world.must(WorkloadSubmitted{w});
  EXPECT_EQ(world.entry(w.id).association, world.state.accounts->find("vision", "ann")->id);
  w.user = "bob";
  w.id = WorkloadId(world.state.next_id);
  world.must(WorkloadSubmitted{w});
  EXPECT_EQ(world.entry(w.id).association, world.state.accounts->find("root", "bob")->id);
}

TEST(Accounts, NumbersStayAndAreNotGivenTwice) {
  World world;
  AccountsConfigured e;
  e.accounts = {{"a", "", ""}};
  e.associations = {account(*world.state.accounts, "a", "root", 3)};
  world.must(e);
  const AssociationId first = world.state.accounts->find("a", "")->id;
  e.associations[0].shares = 5;
  world.must(e);
  EXPECT_EQ(world.state.accounts->find("a", "")->id, first);
  EXPECT_EQ(world.state.accounts->find("a", "")->shares, 5u);
  AccountsConfigured gone;
  gone.gone_accounts = {"a"};
  gone.gone_associations = {first};
  world.must(gone);
  EXPECT_FALSE(world.state.accounts->find("a", ""));
  world.must(e);
  EXPECT_EQ(world.state.accounts->find("a", "")->id, first + 1);
  auto again = decode_snapshot(encode_snapshot(world.state));
  ASSERT_TRUE(again);
  EXPECT_EQ(encode_snapshot(*again), encode_snapshot(world.state));
  EXPECT_EQ(again->accounts->find("a", "")->id, first + 1);
}

TEST(Accounts, ATreeIsATree) {
  World world;
  AccountsConfigured e;
  e.associations = {account(*world.state.accounts, "a", "root")};
  world.must(e);
  e.associations = {account(*world.state.accounts, "b", "a")};
  world.must(e);
  e.associations = {account(*world.state.accounts, "a", "b")};
  world.refused(e);
  AccountsConfigured gone;
  gone.gone_associations = {world.state.accounts->find("a", "")->id};
  world.refused(gone);
}

TEST(Usage, IsWhatWasHeldTimesTheWeight) {
  World world;
  half_life(world, Duration());
  Workload w;
  w.user = "ann";
  run(world, w, 100);
  // Two CPUs of a thousandth each for 100 s.
  EXPECT_EQ(billed(world, "root", "ann"), 200u);
  const UsageRecord& record =
      *world.state.usage.find(world.state.accounts->find("root", "ann")->id);
  EXPECT_EQ(record.amount.at("cpu"), 200'000u);
  EXPECT_EQ(record.amount.at("node"), 100'000u);
  EXPECT_EQ(record.wall_ms, 100'000u);
}

TEST(Usage, WeightsOfThePartitionAndTheFactorOfTheQos) {
  World world;
  ClusterSpec spec = *world.state.spec;
  spec.priority.half_life = Duration();
  spec.partitions[0].billing_weights = {{"cpu", 1'500'000}, {"node", 250'000}};
  world.must(ClusterConfigured{spec});
  AccountsConfigured e;
  Qos low;
  low.name = "low";
  low.usage_factor = 500'000;
  e.qos = {low};
  world.must(e);
  Workload w;
  w.user = "ann";
  w.qos = "normal";
  run(world, w, 100);
  EXPECT_EQ(billed(world, "root", "ann"), 325'000u);  // (2 * 1.5 + 0.25) * 100 s
  w.qos = "low";
  run(world, w, 100);
  EXPECT_EQ(billed(world, "root", "ann"), 487'500u);
  EXPECT_EQ(world.state.qos_usage.find(world.state.accounts->find_qos("low")->id)->amount.at("billing"),
            162'500u);
  // MAX_TRES: only the larger part.
  spec.priority.bill_largest = true;
  world.must(ClusterConfigured{spec});
  run(world, w, 100);
  EXPECT_EQ(billed(world, "root", "ann"), 637'500u);
}

TEST(Usage, HalvesInAHalfLife) {
  World world;
  half_life(world, Duration::seconds(1000));
  Workload w;
  w.user = "ann";
  run(world, w, 1000);
  // The integral over one half-life: 1000 s / ln 2 / 2 = 721'348 ms of 2 CPUs, in thousandths.
  EXPECT_EQ(billed(world, "root", "ann"), 1442u);
  UsageRecord record = *world.state.usage.find(world.state.accounts->find("root", "ann")->id);
  EXPECT_EQ(record.amount.at("cpu"), 1'442'696u);
  fade(record, world.state.spec->priority, record.at + Duration::seconds(1000));
  EXPECT_EQ(record.amount.at("cpu"), 721'348u);
}

TEST(Usage, RunningWorkIsChargedByTheRulesThatWereInForce) {
  World world;
  half_life(world, Duration());
  GangId gang = world.start();
  const Instant started = world.gang(gang).started;
  ClusterSpec spec = *world.state.spec;
  spec.partitions[0].billing_weights = {{"cpu", 1'000'000}};
  world.now = started + Duration::milliseconds(10 * 1000 - 1);
  world.must(ClusterConfigured{spec});
  EXPECT_EQ(billed(world, "root", "ann"), 20u);
  world.now = started + Duration::milliseconds(20 * 1000 - 1);
  world.must(ending(gang, Outcome::kCompleted));
  EXPECT_EQ(billed(world, "root", "ann"), 20'020u);
  EXPECT_FALSE(world.gang(gang).charged_from.is_set());
}

TEST(Usage, ANewPeriodBeginsAtZero) {
  World world;
  ClusterSpec spec = *world.state.spec;
  spec.priority.half_life = Duration();
  spec.priority.reset_period = ResetPeriod::kDaily;
  world.must(ClusterConfigured{spec});
  Workload w;
  w.user = "ann";
  run(world, w, 100);
  EXPECT_EQ(billed(world, "root", "ann"), 200u);
  // A job over midnight: only what comes after it counts.
  GangId gang = world.start();
  world.now = Instant::from_ms(86'400'000) + Duration::milliseconds(50 * 1000 - 1);
  world.must(ending(gang, Outcome::kCompleted));
  EXPECT_EQ(billed(world, "root", "ann"), 100u);
}

}  // namespace
}  // namespace tutti::state
