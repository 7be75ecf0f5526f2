// Queues change whole or not at all, and survive; the gangs of a group go together or not at all.
#include "model/queue_api.h"
#include "model/reasons.h"
#include "tests/unit/controller/support.h"

namespace tutti::controller {
namespace {

struct Queues : ::testing::Test {
  Cluster cluster{3};
  void SetUp() override { cluster.connect_all(); }
  QueuesReply ask(const QueuesRequest& request) {
    HttpAnswer answer = cluster.call("/v1/queues", to_json(request), kRoot);
    EXPECT_EQ(answer.status, 200);
    auto reply = from_json<QueuesReply>(std::string_view(answer.body));
    return reply ? *reply : QueuesReply();
  }
  static QueueSpec queue(std::string name, std::string parent = {}) {
    QueueSpec out;
    out.name = std::move(name);
    out.parent = std::move(parent);
    return out;
  }
  std::size_t count() { return cluster.core->state().queues->queues.size(); }
};

TEST_F(Queues, AreLaidOverReplacedAndRemoved) {
  QueuesRequest request;
  request.queues = {queue("leaf", "top"), queue("top")};
  EXPECT_TRUE(ask(request).in_force);
  EXPECT_EQ(cluster.core->state().queues->queues[0].name, "top");  // parents first
  request.queues = {queue("other")};
  request.check_only = true;
  EXPECT_FALSE(ask(request).in_force);
  EXPECT_EQ(count(), 2u);
  request.check_only = false;
  EXPECT_EQ(ask(request).added, std::vector<std::string>{"other"});
  EXPECT_EQ(count(), 3u);
  cluster.restart();
  EXPECT_EQ(count(), 3u);
  request.replace = true;
  EXPECT_EQ(ask(request).removed, (std::vector<std::string>{"top", "leaf"}));
  // What is wrong changes nothing.
  request.queues = {queue("a", "nobody")};
  QueuesReply wrong = ask(request);
  EXPECT_FALSE(wrong.in_force);
  EXPECT_EQ(wrong.problems.size(), 1u);
  EXPECT_EQ(count(), 1u);
  EXPECT_EQ(cluster.call("/v1/queues", to_json(request), kAnn).status, 403);
}

TEST_F(Queues, OneThatJobsNameStays) {
  QueuesRequest request;
  request.queues = {queue("a")};
  ask(request);
  Submission job = Cluster::job(1);
  job.workload.extras.edit().terms.queue = "b";
  SubmitResult refused = cluster.submit(job);
  ASSERT_TRUE(refused.error);
  EXPECT_EQ(refused.error->reason, reason::kInvalidQueue);
  job.workload.extras.edit().terms.queue = "a";
  cluster.must_submit(job);
  QueuesRequest remove;
  remove.remove = {"a"};
  EXPECT_FALSE(ask(remove).in_force);
  EXPECT_EQ(count(), 1u);
}

Submission member(std::uint32_t size = 2) {
  Submission job = Cluster::job(1);
  job.workload.extras.edit().terms.group = "g";
  job.workload.extras.edit().terms.group_size = size;
  return job;
}

TEST_F(Queues, AGroupGoesTogether) {
  std::uint32_t first = cluster.must_submit(member());
  EXPECT_EQ(cluster.core->state().gangs.find(first), nullptr);  // holds nothing alone
  SubmitResult other_size = cluster.submit(member(3));
  ASSERT_TRUE(other_size.error);
  EXPECT_EQ(other_size.error->reason, reason::kInvalidGroup);
  std::uint32_t second = cluster.must_submit(member());
  ASSERT_EQ(cluster.gang(first).state, GangState::kPreparing);
  ASSERT_EQ(cluster.gang(second).state, GangState::kPreparing);
  EXPECT_TRUE(cluster.submit(member()).error);  // it is complete
  cluster.ready(cluster.nodes_of(first)[0], first);
  EXPECT_EQ(cluster.gang(first).state, GangState::kPreparing);
  cluster.ready(cluster.nodes_of(second)[0], second);
  EXPECT_EQ(cluster.gang(first).state, GangState::kRunning);
  EXPECT_EQ(cluster.gang(second).state, GangState::kRunning);
}

TEST_F(Queues, IfOneOfAGroupCannotAllLetGo) {
  std::uint32_t first = cluster.must_submit(member());
  std::uint32_t second = cluster.must_submit(member());
  const Epoch before = cluster.gang(first).epoch;
  cluster.ready(cluster.nodes_of(first)[0], first);
  const std::uint32_t bad = cluster.nodes_of(second)[0];
  cluster.refuse(bad, cluster.key(second), "no such image");
  // Both are tried again at once, in a new life.
  ASSERT_EQ(cluster.gang(first).state, GangState::kPreparing);
  ASSERT_EQ(cluster.gang(second).state, GangState::kPreparing);
  EXPECT_GT(cluster.gang(first).epoch, before);
  EXPECT_NE(cluster.gang(first).last_failure.find("of its group"), std::string::npos);
  EXPECT_TRUE(cluster.gang(first).avoid_nodes.empty());
}

TEST_F(Queues, WhoeverIsCancelledIsNotWaitedFor) {
  std::uint32_t first = cluster.must_submit(member());
  std::uint32_t second = cluster.must_submit(member());
  cluster.ready(cluster.nodes_of(first)[0], first);
  cluster.act(Verb::kCancel, second);
  EXPECT_EQ(cluster.gang(first).state, GangState::kRunning);
}

}  // namespace
}  // namespace tutti::controller
