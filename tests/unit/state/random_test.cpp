// Random lives of many jobs: the agenda stays what it would be from scratch, events that do not fit
// change nothing, and a snapshot in the middle gives the same state as having seen every event.
#include <malloc.h>

#include <random>

#include "tests/unit/state/support.h"

namespace tutti::state {
namespace {

struct Life {
  World world;
  std::mt19937 random;
  explicit Life(unsigned seed) : random(seed) {}
  std::uint32_t pick(std::uint32_t below) { return random() % below; }

  GangId any_gang() {
    std::vector<std::uint32_t> ids;
    world.state.gangs.for_each([&](std::uint32_t id, const Gang&) { ids.push_back(id); });
    return GangId(ids.empty() ? 77 : ids[pick(static_cast<std::uint32_t>(ids.size()))]);
  }
  WorkloadId any_workload() {
    std::vector<std::uint32_t> ids;
    world.state.workloads.for_each(
        [&](std::uint32_t id, const WorkloadEntry&) { ids.push_back(id); });
    return WorkloadId(ids.empty() ? 77 : ids[pick(static_cast<std::uint32_t>(ids.size()))]);
  }
  EventBody allocate() {
    WorkloadId id = any_workload();
    const WorkloadEntry* entry = world.state.workloads.find(id.value());
    if (entry && !entry->unstarted.empty())
      return world.allocation(id, GangId(world.state.next_id), {pick(3)},
                              entry->unstarted.first());
    GangId gang(id.value());
    if (entry && !entry->gangs.empty())
      gang = entry->gangs[pick(static_cast<std::uint32_t>(entry->gangs.size()))];
    GangAllocated event = world.allocation(id, gang, {pick(3), pick(3)});
    if (const Gang* known = world.state.gangs.find(gang.value()))
      event.array_index = known->array_index;
    return event;
  }
  EventBody next() {
    switch (pick(14)) {
      case 0:
      case 1: {
        Workload w;
        w.id = WorkloadId(world.state.next_id);
        if (pick(3) == 0) w.array = "1-3";
        if (pick(2)) w.launch.script = BlobId{3, pick(9) + 1};
        return WorkloadSubmitted{w};
      }
      case 2:
      case 3:
        return allocate();
      case 4:
        return GangStarted{any_gang(), world.now + Duration::minutes(1)};
      case 5:
        return RollCallFailed{any_gang(), "a", "late", {}, pick(2) == 0, pick(4) == 0};
      case 6: {
        GangEnding event = ending(any_gang(), Outcome::kFailed);
        event.requeue = pick(3) == 0;
        return event;
      }
      case 7:
      case 8:
        return SlotReleased{any_gang(), pick(2)};
      case 9:
        return StepCreated{any_gang(), world.step(static_cast<StepId>(pick(3)))};
      case 10:
        return StepStarted{any_gang(), static_cast<StepId>(pick(3))};
      case 11:
        return StepEnded{any_gang(), static_cast<StepId>(pick(3)), {1, 0}, Outcome::kFailed, {}, {}};
      case 12:
        return ElementsCancelled{any_workload(), pick(2) ? "" : "2", Outcome::kCancelled, 1};
      default:
        return WorkloadForgotten{any_workload()};
    }
  }
};

TEST(RandomLives, AgendaAndSnapshotsAgreeWithTheFold) {
  std::size_t fitted = 0, refused = 0;
  for (unsigned seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Life life(seed);
    std::optional<ClusterState> copy;
    Agenda copy_agenda;
    for (int i = 0; i < 400; ++i) {
      Event event{life.world.now, life.next()};
      life.world.now = life.world.now + Duration::milliseconds(1);
      std::string before = encode_snapshot(life.world.state);
      bool fits = apply(life.world.state, life.world.agenda, event).has_value();
      (fits ? fitted : refused)++;
      if (!fits) {
        ASSERT_EQ(encode_snapshot(life.world.state), before) << to_json(event);
      }
      ASSERT_EQ(life.world.agenda, derive_agenda(life.world.state)) << to_json(event);
      if (copy) {
        // As recovery does it: from a snapshot on, events as text.
        auto decoded = from_json<Event>(std::string_view(to_json(event)));
        ASSERT_TRUE(decoded) << decoded.error().message;
        ASSERT_EQ(apply(*copy, copy_agenda, *decoded).has_value(), fits);
      }
      if (i == 200) {
        auto decoded = decode_snapshot(encode_snapshot(life.world.state));
        ASSERT_TRUE(decoded) << decoded.error().message;
        copy = std::move(*decoded);
        copy_agenda = derive_agenda(*copy);
      }
    }
    EXPECT_EQ(encode_snapshot(*copy), encode_snapshot(life.world.state));
    EXPECT_EQ(copy_agenda, life.world.agenda);
  }
  // Both kinds occur often enough to mean something.
  EXPECT_GT(fitted, 4000u);
  EXPECT_GT(refused, 4000u);
}

TEST(Snapshot, RefusesWhatItDoesNotKnow) {
  World world;
  std::string text = encode_snapshot(world.state);
  EXPECT_FALSE(decode_snapshot(text.substr(0, text.size() / 2)));
  EXPECT_FALSE(decode_snapshot("[]"));
  std::size_t at = text.find("\"format\":1");
  ASSERT_NE(at, std::string::npos);
  text.replace(at, 10, "\"format\":2");
  auto newer = decode_snapshot(text);
  ASSERT_FALSE(newer);
  EXPECT_NE(newer.error().message.find("format 2"), std::string::npos);
}

Workload typical_job(std::uint32_t id) {
  Workload w;
  w.id = WorkloadId(id);
  w.name = "train-llm";
  w.user = "annabelle";
  w.group = "research";
  w.account = "nlp";
  w.uid = w.gid = 1000;
  w.partitions = {"batch"};
  RoleAsk& role = w.roles.edit()[0];
  role.nodes_min = role.nodes_max = 8;
  role.tasks = 64;
  role.gpu_type = "rtxpro6000";
  role.gpus_per_node = 8;
  w.time_limit = Duration::minutes(600);
  w.launch.script = BlobId{id, 1};
  w.launch.environment = BlobId{id, 2};
  w.launch.command = "/home/annabelle/project/train-llm.sbatch";
  w.launch.work_dir = "/home/annabelle/project";
  w.launch.stdout_path = "logs/%x-%j.out";
  for (const char* name : {"as", "core", "cpu", "data", "fsize", "memlock", "nofile", "nproc",
                           "rss", "stack"})
    w.launch.limits.edit().push_back({name, ~0ull});
  w.extras.edit().submit_host = "login1";
  w.submission_key = id * 77ull + 1;
  return w;
}

// The measure of the design: controller memory per pending job, scripts and environments on disk.
TEST(Memory, APendingJobStaysSmall) {
  constexpr std::uint32_t kJobs = 20'000;
  World world;
  auto used = [] { return mallinfo2().uordblks + mallinfo2().hblkhd; };
  std::size_t before = used();
  for (std::uint32_t i = 1; i <= kJobs; ++i) {
    // As it comes from the wire, so that nothing has room to spare by luck.
    auto event = from_json<Event>(std::string_view(to_json(Event{world.now, WorkloadSubmitted{typical_job(i)}})));
    ASSERT_TRUE(event);
    ASSERT_TRUE(apply(world.state, world.agenda, *event));
  }
  std::size_t each = (used() - before) / kJobs;
  std::printf("a pending job: %zu bytes (entry %zu, workload %zu, role %zu, extras %zu)\n", each,
              sizeof(WorkloadEntry), sizeof(Workload), sizeof(RoleAsk), sizeof(WorkloadExtras));
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  if (used() == before) GTEST_SKIP() << "this allocator does not tell what is in use";
  EXPECT_LE(each, 1024u);
#endif
}

}  // namespace
}  // namespace tutti::state
