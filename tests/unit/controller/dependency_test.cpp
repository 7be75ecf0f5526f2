// What a job waits for stays known as long as it waits; a step that is asked for twice is one; the
// story of a job has all of its lives.
#include "controller/queries.h"
#include "model/attach_protocol.h"
#include "model/reasons.h"
#include "tests/unit/controller/support.h"

namespace tutti::controller {
namespace {

Submission after(DependencyKind kind, std::uint32_t job, std::optional<std::uint32_t> element = {}) {
  Submission submission = Cluster::job(1);
  Dependency dependency;
  dependency.kind = kind;
  dependency.job = job;
  dependency.array_index = element;
  submission.workload.extras.edit().dependencies.push_back(dependency);
  return submission;
}

struct Depends : ::testing::Test {
  Cluster cluster{3};
  void SetUp() override { cluster.connect_all(); }
  bool knows(std::uint32_t job) { return cluster.core->state().workloads.find(job) != nullptr; }
  std::string refusal(Submission submission) {
    SubmitResult result = cluster.submit(std::move(submission));
    return result.error ? result.error->reason : "accepted";
  }
};

TEST_F(Depends, OnlyOnJobsThatAreKnown) {
  std::uint32_t job = cluster.must_submit(Cluster::job(1));
  EXPECT_EQ(refusal(after(DependencyKind::kAfterOk, 4711)), reason::kInvalidDependency);
  EXPECT_EQ(refusal(after(DependencyKind::kAfterOk, job, 3)), reason::kInvalidDependency);
  EXPECT_EQ(refusal(after(DependencyKind::kAfterOk, job)), "accepted");
  Submission array = Cluster::job(1);
  array.workload.array = "1-3";
  std::uint32_t elements = cluster.must_submit(array);
  EXPECT_EQ(refusal(after(DependencyKind::kAfterOk, elements, 3)), "accepted");
  EXPECT_EQ(refusal(after(DependencyKind::kAfterOk, elements, 4)), reason::kInvalidDependency);
  EXPECT_EQ(refusal(after(DependencyKind::kSingleton, 0)), "accepted");
  // Also when it is changed later.
  std::uint32_t waits = cluster.must_submit(after(DependencyKind::kAfterOk, job));
  WorkloadChanged change;
  change.dependencies = {Dependency{DependencyKind::kAfterOk, 4711, {}, 0, false}};
  ActionRequest request;
  request.change = to_json(change);
  ActionResult result = cluster.act(Verb::kUpdate, waits, kAnn, request);
  ASSERT_TRUE(result.error);
  EXPECT_EQ(result.error->reason, reason::kInvalidDependency);
  change.dependencies->front().job = waits;
  request.change = to_json(change);
  EXPECT_TRUE(cluster.act(Verb::kUpdate, waits, kAnn, request).error);
}

// A job that is over and forgotten is judged by its history.
TEST_F(Depends, OnAForgottenJobIsDecidedAtOnce) {
  std::uint32_t good = cluster.must_submit(Cluster::job(1)), bad = cluster.must_submit(Cluster::job(1));
  cluster.run(good);
  cluster.run(bad);
  cluster.complete(good);
  cluster.complete(bad, {3, 0});
  cluster.pass_time(Duration::minutes(120));
  ASSERT_FALSE(knows(good) || knows(bad));
  for (auto [kind, job] : {std::pair(DependencyKind::kAfterOk, good), std::pair(DependencyKind::kAfterAny, bad),
                           std::pair(DependencyKind::kAfterNotOk, bad)}) {
    std::uint32_t next = cluster.must_submit(after(kind, job));
    EXPECT_TRUE(cluster.entry(next).workload.extras->dependencies.empty());
  }
  EXPECT_EQ(refusal(after(DependencyKind::kAfterOk, bad)), reason::kInvalidDependency);
  EXPECT_EQ(refusal(after(DependencyKind::kAfterNotOk, good)), reason::kInvalidDependency);
  Submission either = after(DependencyKind::kAfterOk, bad);
  either.workload.extras.edit().any_dependency = true;
  EXPECT_EQ(refusal(either), reason::kInvalidDependency);
  either.workload.extras.edit().dependencies.push_back({DependencyKind::kAfterOk, good, {}, 0, false});
  EXPECT_EQ(refusal(either), "accepted");
}

// The one that failed is remembered as long as the one that waits for its success.
TEST_F(Depends, WhatIsNamedIsNotForgotten) {
  std::uint32_t job = cluster.must_submit(Cluster::job(1));
  std::uint32_t waits = cluster.must_submit(after(DependencyKind::kAfterOk, job));
  std::uint32_t also = cluster.must_submit(after(DependencyKind::kAfterOk, job));
  cluster.run(job);
  cluster.complete(job, {3, 0});
  cluster.pass_time(Duration::minutes(120));
  ASSERT_TRUE(knows(job));
  EXPECT_TRUE(cluster.entry(waits).simple_unstarted);
  cluster.restart();
  cluster.connect_all();
  cluster.pass_time(Duration::minutes(120));
  ASSERT_TRUE(knows(job));
  EXPECT_TRUE(cluster.entry(waits).simple_unstarted) << "it started although job failed";
  ASSERT_FALSE(cluster.act(Verb::kCancel, waits).error);
  cluster.pass_time(Duration::seconds(1));
  EXPECT_TRUE(knows(job)) << "another job still names it";
  // A changed dependency names it no more.
  WorkloadChanged change;
  change.dependencies = std::vector<Dependency>();
  ActionRequest request;
  request.change = to_json(change);
  ASSERT_FALSE(cluster.act(Verb::kUpdate, also, kAnn, request).error);
  cluster.pass_time(Duration::seconds(1));
  EXPECT_FALSE(knows(job));
  EXPECT_TRUE(knows(also));
}

StepRequest step_of(std::uint32_t job, const std::string& key) {
  StepRequest request;
  request.gang = GangId(job);
  request.tasks = 1;
  request.order.name = "srun";
  request.key = key;
  return request;
}

TEST_F(Depends, AStepAskedForAgainIsTheSameStep) {
  std::uint32_t job = cluster.must_submit(Cluster::job(1));
  cluster.run(job);
  auto ask = [&](const std::string& key) {
    HttpAnswer answer = cluster.call("/v1/steps", to_json(step_of(job, key)), kAnn);
    auto reply = from_json<StepReply>(std::string_view(answer.body));
    return answer.status == 200 && reply ? reply->step : -100;
  };
  EXPECT_EQ(ask("00000000deadbeef"), 0);
  EXPECT_EQ(ask("00000000deadbeef"), 0);
  EXPECT_EQ(ask("00000000deadbee1"), 1);
  EXPECT_EQ(ask("nonsense"), -100);
  EXPECT_EQ(cluster.gang(job).steps.size(), 3u);  // the batch step, and two
  cluster.restart();
  EXPECT_EQ(ask("00000000deadbeef"), 0);
  // Nobody had started it: who follows it is told so, and asks for another.
  const Step& lost = cluster.gang(job).steps[1];
  EXPECT_EQ(lost.outcome, Outcome::kLaunchFailed);
  EXPECT_EQ(lost.reason, kStepLostAtRestart);
}

// A step ended, the controller died before its output was passed on: the end is told after it.
TEST_F(Depends, OutputOfAnEndedStepSurvivesARestart) {
  std::uint32_t job = cluster.must_submit(Cluster::job(1));
  cluster.run(job);
  std::uint32_t node = cluster.nodes_of(job).front();
  ASSERT_EQ(cluster.call("/v1/steps", to_json(step_of(job, "")), kAnn).status, 200);
  cluster.ready(node, job, 0);
  cluster.ended(node, cluster.key(job, 0), {}, 5);
  ASSERT_EQ(cluster.gang(job).steps.back().state, StepState::kDone);
  cluster.restart();
  auto client = cluster.attach(job);
  cluster.client_says(client, from_client::Follow{0, {0}});
  EXPECT_TRUE(client->take<to_client::StepEnded>().empty());
  from_agent::StepReport batch, step;
  batch.key = cluster.key(job, kBatchStep);
  batch.state = StepState::kRunning;
  step.key = cluster.key(job, 0);
  step.state = StepState::kDone;
  step.output_size = 5;
  cluster.hello(node, {cluster.report(job, true, {batch, step})});
  EXPECT_TRUE(client->take<to_client::StepEnded>().empty());
  from_agent::Output output;
  output.key = step.key;
  output.next = 5;
  cluster.say(node, output, "hello");
  EXPECT_EQ(client->take<to_client::Output>().size(), 1u);
  EXPECT_EQ(client->take<to_client::StepEnded>().size(), 1u);
}

TEST_F(Depends, TwoTerminalsInOneJobAreTwoSteps) {
  std::uint32_t job = cluster.must_submit(Cluster::job(1));
  cluster.run(job);
  StepRequest request = step_of(job, "");
  request.interactive = true;
  for (StepId want : {kInteractiveStep, StepId{0}, StepId{1}}) {
    HttpAnswer answer = cluster.call("/v1/steps", to_json(request), kAnn);
    auto reply = from_json<StepReply>(std::string_view(answer.body));
    ASSERT_TRUE(answer.status == 200 && reply) << answer.body;
    EXPECT_EQ(reply->step, want);
  }
}

std::vector<std::string> story_of(Cluster& cluster, std::uint32_t job) {
  auto reply = why(*cluster.core->published(), job, std::nullopt, cluster.history(job), cluster.now);
  return reply ? reply->story : std::vector<std::string>{reply.error().message};
}
bool has_line(const std::vector<std::string>& story, const std::string& part) {
  for (const std::string& line : story)
    if (line.find(part) != std::string::npos) return true;
  return false;
}

TEST_F(Depends, TheStoryHasEarlierLives) {
  std::uint32_t job = cluster.must_submit(Cluster::job(1));
  cluster.run(job);
  EXPECT_FALSE(has_line(story_of(cluster, job), "life 1"));
  for (int life = 1; life <= 2; ++life) {
    cluster.pass_time(Duration::seconds(30));
    std::uint32_t node = cluster.nodes_of(job).front();
    ASSERT_FALSE(cluster.act(Verb::kRequeue, job).error);
    cluster.clean(node, job);
    cluster.run(job);
  }
  auto story = story_of(cluster, job);
  EXPECT_TRUE(has_line(story, "life 1: on ")) << ::testing::PrintToString(story);
  EXPECT_TRUE(has_line(story, "ran 30 s, ended 30 s ago: requeued")) << ::testing::PrintToString(story);
  EXPECT_TRUE(has_line(story, "life 2: on "));
  EXPECT_TRUE(has_line(story, "life 3:"));
  cluster.complete(job);
  story = story_of(cluster, job);
  EXPECT_TRUE(has_line(story, "life 3:"));
  EXPECT_FALSE(has_line(story, "life 4"));
}

TEST_F(Depends, TheStoryOfAnArrayIsShort) {
  Submission array = Cluster::job(1);
  array.workload.array = "0-19";
  array.workload.roles.edit()[0] = RoleAsk{};
  std::uint32_t job = cluster.must_submit(array);
  auto story = story_of(cluster, job);
  EXPECT_LE(story.size(), 14u) << ::testing::PrintToString(story);
  EXPECT_TRUE(has_line(story, std::to_string(job) + "_0: preparing on n0")) << ::testing::PrintToString(story);
  EXPECT_TRUE(has_line(story, "more elements"));
}

// Elements that never started share their array's number in history; each cancellation has its row.
TEST_F(Depends, CancelledElementsKeepTheirRows) {
  Submission array = Cluster::job(1);
  array.workload.array = "0-9";
  array.workload.hold = Hold::kUser;
  std::uint32_t job = cluster.must_submit(array);
  for (const char* elements : {"2", "4-5"}) {
    ActionRequest request;
    request.jobs = {JobRef{job, elements}};
    ASSERT_FALSE(cluster.act(Verb::kCancel, job, kAnn, request).error);
  }
  journal::HistoryFilter filter;
  filter.ids = {{job, std::nullopt}};
  EXPECT_EQ(cluster.journal->query_history(filter)->size(), 2u);
  filter.ids = {{job, 4}};
  EXPECT_EQ(cluster.journal->query_history(filter)->size(), 2u);  // who asks looks into them
}

}  // namespace
}  // namespace tutti::controller
