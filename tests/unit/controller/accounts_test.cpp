// The account book over the interface: who may change it, what it says to submissions.
#include "model/accounts_api.h"
#include "model/reasons.h"
#include "tests/unit/controller/support.h"

namespace tutti::controller {
namespace {

struct Accounts : ::testing::Test {
  Cluster cluster{3, [](ClusterSpec& spec) { spec.licenses["matlab"] = 2; }};
  void SetUp() override { cluster.connect_all(); }

  std::string change(AccountsConfigured what, bool is_operator = true, std::uint64_t back = 0) {
    HttpAnswer got;
    ApiCall call;
    call.method = "POST";
    call.path = "/v1/accounts";
    call.caller = kAnn;
    call.caller.is_operator = is_operator;
    call.body = to_json(AccountsRequest{cluster.core->state().accounts->version - back, std::move(what)});
    call.reply = [&](HttpAnswer answer) { got = std::move(answer); };
    EXPECT_TRUE(cluster.turn([&] { cluster.core->on_call(std::move(call)); }));
    if (got.status == 200) return "done";
    return from_json<ApiError>(std::string_view(got.body))->reason;
  }
  AccountsConfigured limit(std::uint32_t submitted) {
    AccountsConfigured what;
    Association root = *cluster.core->state().accounts->find(kRootAssociation);
    root.limits.submitted = submitted;
    what.associations = {root};
    return what;
  }
  std::string refusal(Submission submission) {
    SubmitResult result = cluster.submit(std::move(submission));
    return result.error ? result.error->reason : "accepted";
  }
};

TEST_F(Accounts, AreChangedByOperatorsWhoKnowThem) {
  EXPECT_EQ(change(limit(5), false), reason::kNotOperator);
  EXPECT_EQ(change(limit(5)), "done");
  EXPECT_EQ(change(limit(6), true, 1), "book_changed");
  AccountsConfigured lost;
  lost.associations = {Association{.account = "a", .parent = 77}};
  EXPECT_EQ(change(lost), reason::kMalformed);
  EXPECT_EQ(cluster.core->state().accounts->find(kRootAssociation)->limits.submitted, 5u);
}

TEST_F(Accounts, LimitSubmissions) {
  ASSERT_EQ(change(limit(1)), "done");
  EXPECT_EQ(refusal(Cluster::job(1)), "accepted");
  EXPECT_EQ(refusal(Cluster::job(1)), reason::kPolicyViolated);
}

TEST_F(Accounts, NameQosAndLicences) {
  Submission job = Cluster::job(1);
  job.workload.qos = "high";
  EXPECT_EQ(refusal(job), reason::kInvalidQos);
  AccountsConfigured what;
  what.qos = {Qos{.name = "high"}};
  ASSERT_EQ(change(what), "done");
  EXPECT_EQ(refusal(job), "accepted");
  job.workload.extras.edit().licenses = "matlab:2";
  EXPECT_EQ(refusal(job), "accepted");
  job.workload.extras.edit().licenses = "matlab:3";
  EXPECT_EQ(refusal(job), reason::kInvalidLicense);
  job.workload.extras.edit().licenses = "other";
  EXPECT_EQ(refusal(job), reason::kInvalidLicense);
}

TEST(AccountsEnforced, OnlyWhoIsInTheBook) {
  Cluster cluster(1, [](ClusterSpec& spec) { spec.accounting.associations = true; });
  cluster.connect_all();
  SubmitResult result = cluster.submit(Cluster::job(1));
  ASSERT_TRUE(result.error);
  EXPECT_EQ(result.error->reason, reason::kInvalidAccount);
}

}  // namespace
}  // namespace tutti::controller
