// The JSON forms, read back the way clients read them.
#include "base/json.h"

#include "frontend/slurm/sacct_render.h"
#include "frontend/slurm/scontrol_show.h"
#include "frontend/slurm/sdiag_render.h"
#include "frontend/slurm/sinfo_render.h"
#include "frontend/slurm/squeue_render.h"
#include "tests/unit/frontend/golden_support.h"

namespace tutti::slurm::golden {
namespace {

JsonDocument parse(const Output& out) {
  EXPECT_EQ(out.exit_code, 0) << out.errors;
  auto document = JsonDocument::parse(out.text);
  EXPECT_TRUE(document) << (document ? "" : document.error().message);
  return std::move(*document);
}

JsonNode find_job(JsonNode root, std::uint64_t id) {
  JsonNode jobs = root.find("jobs");
  for (std::size_t i = 0; i < jobs.size(); ++i)
    if (jobs.at(i).find("job_id").as_uint() == id) return jobs.at(i);
  return {};
}

TEST(Json, SqueueAsTorchxReadsIt) {
  StateView view = jobs_31_to_35();
  SqueueOptions o;
  o.times = times(at(20, 1, 19));
  JsonDocument document = parse(render_squeue_json(view, o));
  JsonNode root = document.root();
  EXPECT_EQ(root.find("jobs").size(), 5u);
  EXPECT_TRUE(root.find("errors").is_array());
  EXPECT_TRUE(root.find("meta").find("slurm").find("release").is_string());

  JsonNode job = find_job(root, 31);
  ASSERT_TRUE(job);
  EXPECT_EQ(job.find("job_state").at(0).as_string(), "RUNNING");
  JsonNode allocation = job.find("job_resources").find("nodes").find("allocation");
  ASSERT_EQ(allocation.size(), 2u);
  EXPECT_EQ(allocation.at(1).find("name").as_string(), "node02");
  EXPECT_EQ(allocation.at(0).find("cpus").find("used").as_uint(), 8u);
  EXPECT_EQ(allocation.at(0).find("memory").find("allocated").as_uint(), 65536u);
  // CPUs 0-3,64-67 of 2 x 32 x 2: the first cores of the first socket, both threads.
  JsonNode sockets = allocation.at(0).find("sockets");
  ASSERT_EQ(sockets.size(), 1u);
  EXPECT_EQ(sockets.at(0).find("cores").size(), 4u);
  EXPECT_EQ(job.find("end_time").find("number").as_uint(), 1796076042u);
  EXPECT_TRUE(job.find("end_time").find("set").as_bool());
  EXPECT_EQ(job.find("time_limit").find("number").as_uint(), 120u);
  EXPECT_EQ(job.find("tres_alloc_str").as_string(),
            "cpu=16,mem=128G,node=2,billing=16,gres/gpu=8,gres/gpu:rtxpro6000=8");

  JsonNode waiting = find_job(root, 32);
  EXPECT_EQ(waiting.find("job_state").at(0).as_string(), "PENDING");
  EXPECT_TRUE(waiting.find("job_resources").is_null());
  EXPECT_EQ(waiting.find("state_description").as_string().substr(0, 18), "Nodes required for");
}

TEST(Json, OneJobOfScontrol) {
  StateView view = array_19();
  ShowOptions o;
  o.times = times(view.now);
  JsonDocument document = parse(show_jobs_json(view, {{19, 1, {}}}, o));
  ASSERT_EQ(document.root().find("jobs").size(), 1u);
  JsonNode job = document.root().find("jobs").at(0);
  EXPECT_EQ(job.find("array_job_id").find("number").as_uint(), 19u);
  EXPECT_EQ(job.find("array_task_id").find("number").as_uint(), 1u);
  EXPECT_EQ(show_jobs_json(view, {{7, {}, {}}}, o).exit_code, 1);
}

TEST(Json, InfiniteLimitIsNotANumber) {
  StateView view = jobs_31_to_35();
  view.workloads[0].time_limit = Duration::infinite();
  view.workloads[0].gangs[0].gang.limit_end = {};
  JsonDocument document = parse(render_squeue_json(view, {}));
  JsonNode job = find_job(document.root(), 31);
  EXPECT_TRUE(job.find("time_limit").find("infinite").as_bool());
  EXPECT_FALSE(job.find("time_limit").find("set").as_bool());
}

TEST(Json, SinfoHasBothLists) {
  StateView view = jobs_31_to_35();
  view.nodes[3].state.drained = true;
  view.nodes[3].state.reason = "bad fan";
  JsonDocument document = parse(render_sinfo_json(view, {}));
  JsonNode nodes = document.root().find("nodes");
  ASSERT_EQ(nodes.size(), 4u);
  EXPECT_EQ(nodes.at(0).find("state").at(0).as_string(), "MIXED");
  EXPECT_EQ(nodes.at(0).find("gres_used").as_string(), "gpu:rtxpro6000:4(IDX:0-3)");
  EXPECT_EQ(nodes.at(3).find("state").at(1).as_string(), "DRAIN");
  EXPECT_EQ(nodes.at(3).find("reason_set_by_user").as_string(), "root");
  JsonNode lines = document.root().find("sinfo");
  ASSERT_EQ(lines.size(), 8u);  // 4 nodes in 2 partitions
  EXPECT_EQ(lines.at(0).find("cpus").find("idle").as_uint(), 120u);
  EXPECT_EQ(lines.at(0).find("partition").find("name").as_string(), "batch");
}

TEST(Json, SacctWithSteps) {
  StateView view = jobs_31_to_35();
  HistoryView history;
  history.now = at(20, 1, 19);
  JobRecord r;
  r.workload = view.workloads[0].workload;
  r.gang = view.workloads[0].gangs[0].gang;
  r.nodes = view.workloads[0].gangs[0].nodes;
  r.gpu_types = {"rtxpro6000", "rtxpro6000"};
  r.partition = "batch";
  r.cluster = "lab";
  r.time_limit = Duration::minutes(120);
  history.records.push_back(r);
  SacctOptions o;
  o.times = times(history.now);
  JsonDocument document = parse(render_sacct_json(history, o));
  JsonNode job = find_job(document.root(), 31);
  ASSERT_TRUE(job);
  EXPECT_EQ(job.find("state").find("current").at(0).as_string(), "RUNNING");
  EXPECT_EQ(job.find("time").find("elapsed").as_uint(), 37u);
  EXPECT_EQ(job.find("nodes").as_string(), "node[01-02]");
  ASSERT_EQ(job.find("steps").size(), 2u);
  EXPECT_EQ(job.find("steps").at(0).find("step").find("id").as_string(), "31.batch");
  JsonNode allocated = job.find("tres").find("allocated");
  EXPECT_EQ(allocated.at(allocated.size() - 1).find("name").as_string(), "gpu:rtxpro6000");
}

TEST(Json, Sdiag) {
  DiagView d;
  d.jobs_running = 3;
  JsonDocument document = parse(render_sdiag_json(d));
  EXPECT_EQ(document.root().find("statistics").find("jobs_running").as_uint(), 3u);
}

}  // namespace
}  // namespace tutti::slurm::golden
