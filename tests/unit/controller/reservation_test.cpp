// Administrators' reservations: who may make them, of which nodes, who may use
// them, when they end.
#include "controller/reservation_rules.h"

#include "controller/whatif.h"
#include "model/reasons.h"
#include "tests/unit/controller/support.h"

namespace tutti::controller {
namespace {

struct Reservations : ::testing::Test {
  Cluster cluster{3};
  void SetUp() override { cluster.connect_all(); }

  const ClusterState &state() { return cluster.core->state(); }
  ReservationRequest request(const std::string &nodes) {
    ReservationRequest out;
    out.action = "create";
    out.name = "r";
    out.start = cluster.now;
    out.duration = Duration::minutes(60);
    out.nodes = nodes;
    out.users = std::vector<std::string>{"u1000"};
    return out;
  }
  // The name of the reservation, or the reason of the refusal.
  std::string ask(const ReservationRequest &request, Caller caller = kRoot) {
    HttpAnswer answer =
        cluster.call("/v1/reservations", to_json(request), caller);
    if (answer.status == 200)
      return from_json<ActionReply>(std::string_view(answer.body))
          ->results.at(0)
          .job;
    return from_json<ApiError>(std::string_view(answer.body))->reason;
  }
  Submission job_in(const std::string &reservation, std::int64_t minutes = 10) {
    Submission out = Cluster::job(1);
    out.workload.extras.edit().reservation = reservation;
    out.workload.time_limit = Duration::minutes(minutes);
    return out;
  }
  std::string submit(Submission submission, Caller caller = kAnn) {
    SubmitResult result = cluster.submit(std::move(submission), caller);
    return result.error ? result.error->reason : "accepted";
  }
  std::string fold_all() {
    std::string out;
    for (const NodeSpec &node : state().spec->nodes)
      out += (out.empty() ? "" : ",") + node.name;
    return out;
  }
  std::string first_node() { return state().spec->nodes[0].name; }
};

TEST_F(Reservations, AreMadeByOperatorsOnNodesThatExistInTimesThatMakeSense) {
  EXPECT_EQ(ask(request(first_node()), kAnn), reason::kNotOperator);
  EXPECT_EQ(ask(request("nosuch")), reason::kInvalidNode);
  ReservationRequest past = request(first_node());
  past.start = cluster.now + Duration::seconds(-3600);
  EXPECT_EQ(ask(past), reason::kInvalidTime);
  ReservationRequest backwards = request(first_node());
  backwards.duration.reset();
  backwards.end = cluster.now + Duration::seconds(-1);
  EXPECT_EQ(ask(backwards), reason::kInvalidTime);
  EXPECT_TRUE(state().reservations->all.empty());
  EXPECT_EQ(ask(request(first_node())), "r");
  EXPECT_EQ(ask(request(first_node())), reason::kReservationName);
  ReservationRequest over = request(first_node());
  over.name.clear();
  EXPECT_EQ(ask(over), reason::kReservationOverlap);
  over.flags = std::vector{ReservationFlag::kMaint};
  EXPECT_EQ(ask(over), "u1000_1");
  ReservationRequest all = request("ALL");
  all.name = "all";
  all.start = cluster.now + Duration::minutes(500);
  EXPECT_EQ(ask(all), "all");
  EXPECT_EQ(state().reservations->find("all")->nodes.size(), 3u);
}

TEST_F(Reservations, TakeFreeNodesUnlessJobsAreIgnored) {
  Submission running = Cluster::job(3);
  running.workload.time_limit = Duration::minutes(600);
  cluster.run(cluster.must_submit(running));
  ReservationRequest wants = request(first_node());
  EXPECT_EQ(ask(wants), reason::kNodesBusy);
  wants.nodes.reset();
  wants.node_count = 1;
  EXPECT_EQ(ask(wants), reason::kNodesBusy);
  wants.flags = std::vector{ReservationFlag::kIgnoreJobs};
  EXPECT_EQ(ask(wants), "r");
  EXPECT_EQ(state().reservations->find("r")->nodes.size(), 1u);
}

TEST_F(Reservations, AreUsedByThoseTheyName) {
  ASSERT_EQ(ask(request(first_node())), "r");
  EXPECT_EQ(submit(job_in("nosuch")), reason::kInvalidReservation);
  EXPECT_EQ(submit(job_in("r"), kBob), reason::kReservationAccess);
  std::uint32_t job = cluster.must_submit(job_in("r"));
  EXPECT_EQ(cluster.nodes_of(job), std::vector<std::uint32_t>{0});
  // Others go elsewhere.
  Submission other = Cluster::job(2);
  other.workload.time_limit = Duration::minutes(10);
  EXPECT_EQ(cluster.nodes_of(cluster.must_submit(other)),
            (std::vector<std::uint32_t>{1, 2}));
  ReservationRequest gone = request("");
  gone.action = "delete";
  EXPECT_EQ(ask(gone), reason::kReservationBusy);
}

TEST_F(Reservations, GroupsAndAccountsAndThoseKeptOut) {
  auto allowed = [&](const std::string &account, std::uint32_t uid,
                     auto... lists) {
    Reservation r;
    r.name = "r";
    r.start = cluster.now;
    r.end = cluster.now + Duration::minutes(10);
    std::tie(r.users, r.accounts, r.groups) =
        std::tuple<std::vector<std::string>, std::vector<std::string>,
                   std::vector<std::string>>(lists...);
    ClusterState with = state();
    with.reservations =
        std::make_shared<const ReservationList>(ReservationList{{r}});
    Workload w;
    w.user = "u" + std::to_string(uid);
    w.account = account;
    w.extras.edit().reservation = "r";
    auto in_group = [&](const std::string &group) {
      return group == "g" + std::to_string(uid);
    };
    return may_use(with, w, in_group, cluster.now).has_value();
  };
  using L = std::vector<std::string>;
  EXPECT_FALSE(allowed("a", 1, L{}, L{}, L{})) << "maintenance is for nobody";
  EXPECT_TRUE(allowed("a", 1, L{"u1"}, L{}, L{}));
  EXPECT_FALSE(allowed("a", 2, L{"u1"}, L{}, L{}));
  EXPECT_TRUE(allowed("a", 2, L{"-u1"}, L{}, L{}));
  EXPECT_FALSE(allowed("a", 1, L{"-u1"}, L{}, L{}));
  EXPECT_TRUE(allowed("a", 1, L{"u1"}, L{"a"}, L{}));
  EXPECT_FALSE(allowed("b", 1, L{"u1"}, L{"a"}, L{}));
  EXPECT_TRUE(allowed("b", 1, L{}, L{}, L{"g1"}));
  EXPECT_FALSE(allowed("b", 1, L{}, L{}, L{"g2"}));
}

TEST_F(Reservations, EndAndRepeat) {
  ASSERT_EQ(ask(request(first_node())), "r");
  ReservationRequest daily = request(state().spec->nodes[1].name);
  daily.name = "d";
  daily.flags = std::vector{ReservationFlag::kDaily};
  ASSERT_EQ(ask(daily), "d");
  Instant start = state().reservations->find("d")->start;
  cluster.pass_time(Duration::minutes(61));
  EXPECT_FALSE(state().reservations->find("r"));
  ASSERT_TRUE(state().reservations->find("d"));
  EXPECT_EQ(state().reservations->find("d")->start,
            start + Duration::seconds(86400));
  cluster.restart();
  EXPECT_TRUE(state().reservations->find("d"));
}

TEST_F(Reservations, AChangeKeepsWhatIsNotSet) {
  ASSERT_EQ(ask(request(first_node())), "r");
  ReservationRequest change;
  change.action = "update";
  change.name = "r";
  change.duration = Duration::minutes(5);
  ASSERT_EQ(ask(change), "r");
  const Reservation &r = *state().reservations->find("r");
  EXPECT_EQ(r.end - r.start, Duration::minutes(5));
  EXPECT_EQ(r.users, std::vector<std::string>{"u1000"});
  change.name = "nosuch";
  EXPECT_EQ(ask(change), reason::kInvalidReservation);
}

struct WhatIf : Reservations {};

TEST_F(WhatIf, TellsTheDifferenceAndChangesNothing) {
  Submission running = Cluster::job(3);
  running.workload.time_limit = Duration::minutes(60);
  cluster.run(cluster.must_submit(running));
  Submission waits = Cluster::job(1);
  waits.workload.time_limit = Duration::minutes(10);
  std::uint32_t job = cluster.must_submit(waits);
  std::string before = state::encode_snapshot(state());
  WhatIfRequest more;
  more.add_nodes = 1;
  more.node = state().spec->nodes[0];
  more.node.name = "more";
  auto reply = what_if(*cluster.core->published(), more, cluster.now);
  ASSERT_TRUE(reply) << reply.error().message;
  ASSERT_EQ(reply->rows.size(), 1u);
  EXPECT_EQ(reply->rows[0].job, std::to_string(job));
  EXPECT_GT(reply->rows[0].before, cluster.now);
  EXPECT_EQ(reply->rows[0].after, cluster.now);
  EXPECT_EQ(reply->rows[0].nodes, std::vector<std::string>{"more1"});

  WhatIfRequest drained;
  drained.drain = fold_all();
  reply = what_if(*cluster.core->published(), drained, cluster.now);
  ASSERT_TRUE(reply) << reply.error().message;
  ASSERT_EQ(reply->rows.size(), 1u);
  EXPECT_FALSE(reply->rows[0].after.is_set());
  EXPECT_EQ(reply->rows[0].reason, reason::kNodesDown);
  EXPECT_EQ(reply->notes.size(), 3u);

  WhatIfRequest another;
  another.submissions.push_back(waits);
  reply = what_if(*cluster.core->published(), another, cluster.now);
  ASSERT_TRUE(reply) << reply.error().message;
  ASSERT_EQ(reply->rows.size(), 1u);
  EXPECT_TRUE(reply->rows[0].is_new);
  EXPECT_GT(reply->rows[0].after, cluster.now);
  EXPECT_EQ(state::encode_snapshot(state()), before);
}

TEST_F(WhatIf, AllThatIsWrongIsSaidAtOnce) {
  WhatIfRequest wrong;
  wrong.drain = "nosuch";
  wrong.quotas = {"queue:gpu=1", "nonsense"};
  auto reply = what_if(*cluster.core->published(), wrong, cluster.now);
  ASSERT_FALSE(reply);
  for (const char *part : {"nosuch", "no queue queue", "nonsense"})
    EXPECT_NE(reply.error().message.find(part), std::string::npos)
        << reply.error().message;
}

} // namespace
} // namespace tutti::controller
