#include "agent/rank_environment.h"

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <set>

#include "agent/output_pattern.h"
#include "base/text.h"

namespace tutti::agent {
namespace {

using Variables = std::map<std::string, std::string>;

// The lines NAME=VALUE after the command that contains `command`, up to "[exit".
Variables golden(const std::string& command) {
  std::ifstream file(TUTTI_SOURCE_DIR "/tests/golden/slurm/srun-env.txt");
  Variables variables;
  bool inside = false;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("$ ")) inside = line.find(command) != std::string::npos;
    if (line.starts_with("[exit")) inside = false;
    const auto pair = split_once(line, '=');
    if (inside && pair && !line.starts_with("$ ")) {
      variables.emplace(std::string(pair->first), std::string(pair->second));
    }
  }
  return variables;
}

Variables as_map(const std::vector<std::string>& environment) {
  Variables variables;
  for (const auto& entry : environment) {
    const auto pair = split_once(entry, '=');
    EXPECT_TRUE(pair);
    EXPECT_TRUE(variables.emplace(std::string(pair->first), std::string(pair->second)).second)
        << entry << " twice";
  }
  return variables;
}

// Variables of the daemon's own ports and files, which Tutti has not: docs/slurm-compatibility.md.
const std::set<std::string> kWithout{"SLURM_CONF", "SLURM_SRUN_COMM_PORT",
                                     "SLURM_STEP_LAUNCHER_PORT", "SLURM_WORKING_CLUSTER"};

void compare(const std::string& what, const Variables& expected, const Variables& actual) {
  int equal = 0;
  int compared = 0;
  for (const auto& [name, value] : expected) {
    if (kWithout.contains(name)) continue;
    ++compared;
    const auto found = actual.find(name);
    if (found == actual.end()) {
      ADD_FAILURE() << what << ": " << name << " is missing";
    } else if (found->second != value) {
      ADD_FAILURE() << what << ": " << name << "=" << found->second << ", Slurm has " << value;
    } else {
      ++equal;
    }
  }
  std::printf("golden srun-env (%s): %d equal / %d compared, %zu left out\n", what.c_str(), equal,
              compared, expected.size() - static_cast<std::size_t>(compared));
}

JobFacts two_nodes() {
  JobFacts job;
  job.gang = GangId(56);
  job.workload = WorkloadId(56);
  job.cluster = "lab";
  job.name = "bash";
  job.user = "alice";
  job.account = "research";
  job.qos = "normal";
  job.partition = "batch";
  job.uid = job.gid = 2001;
  job.nodes = {"node01", "node02"};
  job.cpus = {8, 8};
  job.tasks = {4, 4};
  job.gpus = {4, 4};
  job.total_tasks = 8;
  job.tasks_per_node = 4;
  job.cpus_per_task = 2;
  job.cpus_per_task_given = true;
  job.submit_dir = "~alice/g";
  job.submit_host = "HOST";
  return job;
}

StepOrder eight_ranks(std::uint32_t node) {
  StepOrder step;
  step.nodes = {"node01", "node02"};
  step.tasks = {4, 4};
  step.node_id = node;
  for (std::uint32_t i = 0; i < 4; ++i) step.ranks.push_back(node * 4 + i);
  step.total_tasks = 8;
  step.tasks_per_node = 4;
  step.cpus_per_task = 2;
  step.cpus_per_task_given = true;
  step.gpus = {0, 1, 2, 3};
  step.launcher_host = "127.0.0.1";
  return step;
}

SlotOrder slot_of(std::uint32_t node) {
  SlotOrder slot;
  slot.slot = node;
  slot.gpus = {0, 1, 2, 3};
  return slot;
}

TEST(RankEnvironment, StepsAreAsInSlurm) {
  const auto job = two_nodes();
  compare("rank 0", golden("cat env-0.txt"),
          as_map(rank_environment(job, slot_of(0), eight_ranks(0), {"node01", 0, 9203, ""})));
  compare("rank 5", golden("cat env-5.txt"),
          as_map(rank_environment(job, slot_of(1), eight_ranks(1), {"node02", 1, 9209, ""})));
}

TEST(RankEnvironment, BatchScriptIsAsInSlurm) {
  auto job = two_nodes();
  job.gang = GangId(58);
  job.name = "wrap";
  job.memory_mib_per_cpu = 1000;
  StepOrder batch;
  batch.step = kBatchStep;
  batch.ranks = {0};
  compare("batch", golden("env | grep -E \\\"^(SLURM|CUDA|GPU|ENVIRONMENT)\\\""),
          as_map(rank_environment(job, slot_of(0), batch, {"node01", 0, 9381, ""})));
}

TEST(RankEnvironment, ArrayElementIsAsInSlurm) {
  auto job = two_nodes();
  job.gang = GangId(60);
  job.workload = WorkloadId(59);
  job.array_index = 4;
  job.array_count = 2;
  job.array_min = 4;
  job.array_max = 6;
  job.array_step = 2;
  StepOrder batch;
  batch.step = kBatchStep;
  compare("array", golden("cat aenv-*_4.txt"),
          as_map(rank_environment(job, slot_of(0), batch, {"node01", 0, 1, ""})));
}

TEST(RankEnvironment, EachTaskSeesItsOwnGpu) {
  auto step = eight_ranks(1);
  step.gpus_per_task = 1;
  const auto environment =
      as_map(rank_environment(two_nodes(), slot_of(1), step, {"node02", 2, 1, ""}));
  EXPECT_EQ(environment.at("CUDA_VISIBLE_DEVICES"), "2");
  EXPECT_EQ(environment.at("SLURM_STEP_GPUS"), "2");
  EXPECT_EQ(environment.at("ROCR_VISIBLE_DEVICES"), "2");
  EXPECT_FALSE(environment.contains("SLURM_JOB_GPUS"));
}

TEST(RankEnvironment, KeepsTheUsersVariablesAndDropsStaleOnes) {
  StepOrder batch;
  batch.step = kBatchStep;
  batch.environment = {"TMPDIR=/scratch",
                       "SLURM_STEP_ID=9",
                       "SLURM_EXPORT_ENV=ALL",
                       "EMPTY=",
                       "SLURM_PROCID=77",
                       "TUTTI_STATE=/s",
                       "A=b=c",
                       "SLURM_CONF=/etc/s",
                       "CUDA_VISIBLE_DEVICES=5",
                       "BASH_FUNC_f%%=() { :; }"};
  auto job = two_nodes();
  job.limit_end = Instant::from_ms(1'700'000'000'000);
  const auto environment =
      as_map(rank_environment(job, SlotOrder{}, batch, {"node01", 0, 1, "/x/notify"}));
  EXPECT_EQ(environment.at("TMPDIR"), "/scratch");
  EXPECT_EQ(environment.at("A"), "b=c");
  EXPECT_EQ(environment.at("EMPTY"), "");
  EXPECT_EQ(environment.at("SLURM_EXPORT_ENV"), "ALL");
  EXPECT_EQ(environment.at("SLURM_CONF"), "/etc/s");
  EXPECT_EQ(environment.at("TUTTI_STATE"), "/s");
  EXPECT_EQ(environment.at("BASH_FUNC_f%%"), "() { :; }");
  EXPECT_EQ(environment.at("SLURM_PROCID"), "0");
  EXPECT_FALSE(environment.contains("SLURM_STEP_ID"));
  EXPECT_FALSE(environment.contains("CUDA_VISIBLE_DEVICES"));  // holds no device
  EXPECT_EQ(environment.at("SLURM_JOB_END_TIME"), "1700000000");
  EXPECT_EQ(environment.at("TUTTI_DEADLINE"), "1700000000");
  EXPECT_EQ(environment.at("NOTIFY_SOCKET"), "/x/notify");
}

TEST(RankEnvironment, StepInsideAScriptHasItsOwnNodesIndices) {
  auto step = eight_ranks(1);
  step.environment = {"SLURM_JOB_GPUS=0,1,2,3", "SLURM_MEM_PER_CPU=1000", "ENVIRONMENT=BATCH"};
  auto slot = slot_of(1);
  slot.gpus = {4, 5, 6, 7};
  const auto environment = as_map(rank_environment(two_nodes(), slot, step, {"node02", 0, 1, ""}));
  EXPECT_EQ(environment.at("SLURM_JOB_GPUS"), "4,5,6,7");
  EXPECT_EQ(environment.at("SLURM_MEM_PER_CPU"), "1000");
}

TEST(StepWords, RoundTrip) {
  for (const StepId step : {StepId{0}, StepId{17}, kBatchStep, kExternStep, kInteractiveStep}) {
    EXPECT_EQ(step_from_word(step_word(step)), step);
  }
  EXPECT_FALSE(step_from_word("-1"));
  EXPECT_FALSE(step_from_word("../x"));
}

TEST(OutputPattern, ExpandsAsSlurmDoes) {
  auto job = two_nodes();
  job.array_index = 7;
  job.workload = WorkloadId(50);
  auto step = eight_ranks(1);
  step.step = 3;
  const PatternValues values{&job, &step, "node02", 5};
  const auto expand = [&](const char* pattern) { return expand_pattern(pattern, values); };
  EXPECT_EQ(expand("slurm-%A_%a.out"), "slurm-50_7.out");
  EXPECT_EQ(expand("%j %J %s %t %n %N %x %u"), "56 56.3 3 5 1 node02 bash alice");
  EXPECT_EQ(expand("%4t-%8j-%20j"), "0005-00000056-0000000056");
  EXPECT_EQ(expand("100%%-%q-%"), "100%-%q-%");
  EXPECT_EQ(expand("a\\%j"), "a%j");
  job.array_index.reset();
  EXPECT_EQ(expand("%A_%a"), "56_4294967294");
  step.step = kBatchStep;
  EXPECT_EQ(expand("%J"), "56");
  EXPECT_EQ(absolute_path("/w", "x/y"), "/w/x/y");
  EXPECT_EQ(absolute_path("/w", "/x"), "/x");
}

}  // namespace
}  // namespace tutti::agent
