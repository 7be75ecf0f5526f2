// Promises and reservations in the state: who has one, when it goes, what a snapshot keeps.
#include "tests/unit/state/support.h"

namespace tutti::state {
namespace {

PromiseChange change(PromiseStep step, WorkloadId workload, std::int64_t at_s,
                     const std::vector<NodeIndex>& nodes = {}, std::string cause = {}) {
  PromiseChange out;
  out.step = step;
  out.workload = workload;
  out.at = Instant::from_ms(at_s * 1000);
  out.partition = "batch";
  std::vector<PromisedRoom> rooms;
  for (NodeIndex node : nodes) rooms.push_back({node, 0, 1, 2, 10, {1}});
  out.rooms = std::move(rooms);
  out.cause = std::move(cause);
  return out;
}

std::vector<NodeIndex> nodes_of(const PromiseRecord& record) {
  std::vector<NodeIndex> out;
  for (const PromisedRoom& room : record.rooms) out.push_back(room.node);
  return out;
}

TEST(Promises, AreMadeBecomeFirmMoveAndGo) {
  World world;
  WorkloadId id = world.submit();
  world.must(PromisesChanged{{change(PromiseStep::kMade, id, 5000)}});
  const PromiseRecord* record = world.state.promises->find(id, {});
  ASSERT_TRUE(record);
  EXPECT_EQ(record->since, world.now);
  EXPECT_FALSE(record->firm);
  // Only what is firm can be moved.
  world.refused(PromisesChanged{{change(PromiseStep::kMoved, id, 4000)}});
  world.must(PromisesChanged{{change(PromiseStep::kFirm, id, 4500, {1, 2})}});
  world.must(PromisesChanged{{change(PromiseStep::kMoved, id, 4000, {0, 1})}});
  record = world.state.promises->find(id, {});
  EXPECT_EQ(record->moves, 0u) << "earlier is no slip";
  world.must(PromisesChanged{{change(PromiseStep::kMoved, id, 6000, {0, 2}, "node a is down")}});
  record = world.state.promises->find(id, {});
  EXPECT_TRUE(record->firm);
  EXPECT_EQ(record->moves, 1u);
  EXPECT_EQ(record->cause, "node a is down");
  EXPECT_EQ(nodes_of(*record), (std::vector<NodeIndex>{0, 2}));
  auto again = decode_snapshot(encode_snapshot(world.state));
  ASSERT_TRUE(again);
  EXPECT_EQ(*again->promises, *world.state.promises);
  world.must(PromisesChanged{{change(PromiseStep::kDropped, id, 0)}});
  EXPECT_FALSE(world.state.promises->find(id, {}));
  world.refused(PromisesChanged{{change(PromiseStep::kDropped, id, 0)}});
}

TEST(Promises, EndWithTheElementThatHadThem) {
  World world;
  WorkloadId started = world.submit(), cancelled = world.submit(), other = world.submit();
  WorkloadId array = world.submit("1-2");
  world.must(PromisesChanged{
      {change(PromiseStep::kMade, started, 5000), change(PromiseStep::kMade, cancelled, 5000),
       change(PromiseStep::kMade, other, 5000), change(PromiseStep::kMade, array, 5000)}});
  world.must(world.allocation(started, GangId(started.value()), {0}));
  EXPECT_FALSE(world.state.promises->find(started, {}));
  world.must(ElementsCancelled{cancelled, "", Outcome::kCancelled, 1});
  EXPECT_FALSE(world.state.promises->find(cancelled, {}));
  // An array's stands for its next element.
  world.must(world.allocation(array, GangId(array.value()), {0}, 1));
  EXPECT_TRUE(world.state.promises->find(array, {}));
  world.must(world.allocation(array, GangId(world.state.next_id), {0}, 2));
  EXPECT_FALSE(world.state.promises->find(array, {}));
  EXPECT_TRUE(world.state.promises->find(other, {}));
  world.refused(PromisesChanged{{change(PromiseStep::kMade, started, 5000)}});
}

TEST(Promises, EndWhenMoreIsAskedFor) {
  World world;
  WorkloadId id = world.submit();
  auto promised = [&] { return world.state.promises->find(id, {}) != nullptr; };
  auto ask = [&](std::int64_t minutes) {
    WorkloadChanged e;
    e.workload = id;
    e.time_limit = Duration::minutes(minutes);
    world.must(e);
  };
  ask(10);
  world.must(PromisesChanged{{change(PromiseStep::kMade, id, 5000)}});
  ask(5);
  EXPECT_TRUE(promised());
  ask(6);
  EXPECT_FALSE(promised());
}

TEST(Promises, FollowNodesThatAreRenumbered) {
  World world({"a", "b", "c"});
  WorkloadId stays = world.submit(), loses = world.submit();
  world.must(PromisesChanged{{change(PromiseStep::kMade, stays, 5000),
                              change(PromiseStep::kMade, loses, 5000),
                              change(PromiseStep::kFirm, stays, 5000, {1, 2}),
                              change(PromiseStep::kFirm, loses, 5000, {0})}});
  world.must(ClusterConfigured{World::spec_of({"c", "b"})});
  EXPECT_EQ(nodes_of(*world.state.promises->find(stays, {})), (std::vector<NodeIndex>{0, 1}));
  EXPECT_TRUE(world.state.promises->find(loses, {})->rooms.empty());
}

TEST(Reservations, AreKeptByName) {
  World world;
  Reservation r;
  r.name = "night";
  r.start = Instant::from_ms(1000);
  r.end = Instant::from_ms(5000);
  r.nodes = {"a", "b"};
  r.flags = {ReservationFlag::kMaint, ReservationFlag::kDaily};
  world.must(ReservationSet{r});
  r.name = "day";
  world.must(ReservationSet{r});
  r.nodes = {"c"};
  world.must(ReservationSet{r});
  ASSERT_EQ(world.state.reservations->all.size(), 2u);
  EXPECT_EQ(world.state.reservations->all[0].name, "day");
  EXPECT_EQ(world.state.reservations->all[0].nodes, std::vector<std::string>{"c"});
  auto again = decode_snapshot(encode_snapshot(world.state));
  ASSERT_TRUE(again);
  EXPECT_EQ(again->reservations->all, world.state.reservations->all);
  world.must(ReservationRemoved{"day", 0});
  EXPECT_FALSE(world.state.reservations->find("day"));
  world.refused(ReservationRemoved{"day", 0});
}

}  // namespace
}  // namespace tutti::state
