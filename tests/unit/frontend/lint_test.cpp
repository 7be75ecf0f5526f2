#include "frontend/slurm/lint.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "frontend/slurm/config.h"
#include "frontend/slurm/lint_shell.h"

namespace tutti::slurm {
namespace {

std::string example(const std::string& name) {
  std::ifstream in(TUTTI_SOURCE_DIR "/examples/slurm/" + name);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}
ClusterSpec example_cluster() {
  return read_cluster_config("slurm.conf",
                             [](const std::string& path) -> Result<std::string> {
                               std::string text = example(path);
                               if (text.empty()) return fail(ErrorCode::kNotFound, path);
                               return text;
                             })
      .spec;
}
std::string lint(std::string_view text, const ClusterSpec* cluster = nullptr,
                 bool directories_exist = true) {
  LintRequest request{text, "job.sh", cluster,
                      [=](const std::string&) { return directories_exist; }};
  std::string out;
  for (const Diagnostic& one : lint_script(request))
    out += fmt::format("{}{}:{} {}: {}\n", one.severity == Severity::kError ? "E " : "W ",
                       one.span.line, one.span.column, one.code, one.message);
  return out;
}
// A script of two nodes with eight GPUs each.
std::string two_nodes(std::string_view commands, std::string_view more = "") {
  return fmt::format(
      "#!/bin/bash\n#SBATCH -N 2 --gpus-per-node=8 --time=60 --ntasks-per-node=1 {}\n{}\n", more,
      commands);
}

TEST(LintExamples, TheFineTuneIsPredictedToFailForItsLaunchers) {
  ClusterSpec cluster = example_cluster();
  EXPECT_EQ(lint(example("qwen-finetune.sbatch"), &cluster),
            "E 10:1 launcher-per-task: starts 16 launchers, each for a world of 2 nodes x 8 = 16 "
            "ranks: the job will fail; use --ntasks-per-node=1 on srun or the script\n");
  EXPECT_EQ(lint(example("qwen-finetune-fixed.sbatch"), &cluster, false), "");
}

TEST(LintExamples, TheOtherScriptIsCleanButForItsPartition) {
  EXPECT_EQ(lint(example("train-llm.sbatch")), "");
  ClusterSpec cluster = example_cluster();
  EXPECT_EQ(lint(example("train-llm.sbatch"), &cluster),
            "E 7:9 unknown-partition: the cluster has no partition gpu\n");
}

TEST(LintLaunchers, CountsWhatSrunStarts) {
  EXPECT_EQ(lint(two_nodes("srun torchrun --nnodes 2 --nproc_per_node 8 a.py")), "");
  EXPECT_EQ(lint(two_nodes("srun -n 1 torchrun --nnodes=$SLURM_NNODES a.py")),
            "E 3:1 launcher-missing: starts 1 launcher, each for a world of 2 nodes: it waits for "
            "launchers that are never started\n");
  EXPECT_EQ(lint(two_nodes("torchrun --nnodes=2 --nproc-per-node=gpu a.py")),
            "E 3:1 launcher-on-one-node: torchrun for a world of 2 nodes x 8 = 16 ranks is started "
            "on the first node only: the others are never joined; put srun --ntasks-per-node=1 "
            "before it\n");
  EXPECT_EQ(lint(two_nodes("srun torchrun --standalone --nproc-per-node=8 a.py")),
            "W 3:1 worlds-apart: starts 2 launchers, each for a world of its own (1 node x 8 = 8 "
            "ranks): they do not know of each other; say --nnodes=2 and where to meet\n");
  EXPECT_EQ(lint(two_nodes("srun bash -c \"torchrun --nnodes=2 --nproc-per-node=8 a.py\"",
                           "--ntasks-per-node=8")),
            "E 3:1 launcher-per-task: starts 16 launchers, each for a world of 2 nodes x 8 = 16 "
            "ranks: the job will fail; use --ntasks-per-node=1 on srun or the script\n");
  EXPECT_EQ(
      lint(two_nodes("N=2\nsrun -n 8 accelerate launch --num_machines $N a.py")),
      "E 4:1 launcher-per-task: starts 8 launchers, each for a world of 2 nodes: the job will "
      "fail; use --ntasks-per-node=1 on srun or the script\n");
  EXPECT_EQ(lint(two_nodes("srun -n 16 deepspeed a.py")),
            "E 3:1 launcher-per-task: starts 16 launchers, each for a world of 2 nodes: the job "
            "will fail; use --ntasks-per-node=1 on srun or the script\n");
}

TEST(LintLaunchers, SaysNothingOfWhatItCannotKnow) {
  EXPECT_EQ(lint(two_nodes("srun $OPTIONS torchrun --nnodes=2 a.py", "--ntasks-per-node=8")), "");
  EXPECT_EQ(lint(two_nodes("srun --ntasks=$N torchrun --nnodes=2 a.py")), "");
  EXPECT_EQ(lint(two_nodes("srun torchrun --nnodes=1:2 a.py")), "");
  EXPECT_EQ(lint(two_nodes("srun torchrun --nnodes=$WORLD a.py")), "");
  EXPECT_EQ(lint(two_nodes("echo torchrun --nnodes=2\ncat <<EOF\ntorchrun --nnodes=2\nEOF\n")), "");
}

TEST(LintMeeting, KnowsAddressesAndPortsThatDoNotWork) {
  EXPECT_EQ(lint(two_nodes("export MASTER_ADDR=localhost MASTER_PORT=29500")),
            "E 3:8 address-not-reachable: the job has 2 nodes, and localhost means another machine "
            "on each of them: use $(scontrol show hostnames | head -n 1)\n");
  EXPECT_EQ(lint(two_nodes("srun torchrun --nnodes=2 --rdzv-endpoint=127.0.0.1:29500 a.py")),
            "E 3:1 address-not-reachable: the job has 2 nodes, and 127.0.0.1 means another machine "
            "on each of them: use $(scontrol show hostnames | head -n 1)\n");
  EXPECT_EQ(lint("#!/bin/sh\n#SBATCH -t 5 --gpus-per-node=2\nMASTER_ADDR=localhost\n"
                 "MASTER_PORT=29500\ntorchrun --master-port $MASTER_PORT a.py\n"),
            "W 4:1 fixed-port: port 29500 is the same for every job: two of them on one node "
            "collide. Derive it from the job: $((20000 + SLURM_JOB_ID % 20000))\n");
  EXPECT_EQ(lint("#!/bin/sh\n#SBATCH -t 5 --exclusive\nexport MASTER_PORT=29500\n"), "");
  EXPECT_EQ(lint("#!/bin/sh\nexport MASTER_PORT=$((20000 + SLURM_JOB_ID % 20000))\n"), "");
}

TEST(LintMeeting, MoreRanksThanGpus) {
  EXPECT_EQ(lint("#!/bin/sh\n#SBATCH --gpus-per-node=2\ntorchrun --nproc-per-node=4 a.py\n"),
            "W 3:1 more-ranks-than-gpus: starts 4 ranks on a node, the job holds 2 GPUs there\n");
}

TEST(LintRequest, IsComparedWithTheCluster) {
  ClusterSpec cluster = example_cluster();
  EXPECT_EQ(lint("#!/bin/sh\n#SBATCH -N 4\n#SBATCH -t 3-0\n", &cluster),
            "E 2:9 never-fits: asks for 4 nodes: partition train has 3 that can serve it\n"
            "E 3:9 over-partition-limit: asks for 3-00:00:00, partition train allows 2-00:00:00: "
            "the job will wait for ever\n");
  EXPECT_EQ(lint("#!/bin/sh\n#SBATCH --gres=gpu:h100:1\n", &cluster),
            "E 2:9 never-fits: asks for 1 GPUs of type h100 on a node: no node of partition train "
            "has that\n");
  EXPECT_EQ(lint("#!/bin/sh\n#SBATCH -c 200\n", &cluster),
            "E 1:1 never-fits: asks for 200 CPUs on a node: no node of partition train has that\n");
  cluster.partitions[0].max_time.reset();
  cluster.partitions[0].max_nodes = 1;
  EXPECT_EQ(lint("#!/bin/sh\n#SBATCH -N 2\n", &cluster),
            "W 1:1 no-time-limit: no --time, and partition train has no limit of its own: nothing "
            "can be planned behind this job\n"
            "E 2:9 over-partition-limit: asks for 2 nodes, partition train allows 1: the job will "
            "wait for ever\n");
}

TEST(LintRequest, SaysWhatSbatchWouldRefuseAllAtOnce) {
  EXPECT_EQ(lint("#!/bin/sh\n#SBATCH --nosuch\n#SBATCH -t banana\n#SBATCH --mem-bind=local -n 2\n"),
            "E 2:9 option-invalid: unrecognized option '--nosuch'\n"
            "E 3:9 option-invalid: Invalid --time specification\n"
            "W 4:9 option-not-honoured: --mem-bind is accepted but has no effect here\n");
  EXPECT_EQ(lint("echo hi\n").substr(0, 24), "E 1:1 script-invalid: Th");
  EXPECT_EQ(lint("#!/bin/sh\nsrun -n x hostname\n"),
            "E 2:1 option-invalid: srun: error: Invalid numeric value \"x\" for --ntasks.\n");
}

TEST(LintRequest, OutputWhereThereIsNoDirectory) {
  EXPECT_EQ(lint("#!/bin/sh\n#SBATCH -o logs/%x/%j.out\n", nullptr, false),
            "W 2:9 output-directory-missing: there is no directory logs: the job will be accepted "
            "and fail at once. Make it before submitting; the script is too late\n");
  EXPECT_EQ(lint("#!/bin/sh\n#SBATCH -o %j/out -e err.txt\n", nullptr, false), "");
}

TEST(ShellCommands, AreSplitAsAShellWould) {
  auto commands = shell_commands(
      "A=1 B='x y' cmd \"a $B\" 'c $D' e\\ f \\\n  g # remark\n"
      "if true; then one | two && three & fi\n"
      "x=$(echo \"in ) side\" | head) >out 2>&1 last <<END\nbody\nEND\n(sub shell)\n");
  ASSERT_EQ(commands.size(), 7U);
  EXPECT_EQ(commands[0].assignments.size(), 2U);
  ASSERT_EQ(commands[0].words.size(), 5U);
  EXPECT_EQ(commands[0].words[1].text, "a $B");
  EXPECT_TRUE(commands[0].words[1].expands);
  EXPECT_EQ(commands[0].words[2].text, "c $D");
  EXPECT_FALSE(commands[0].words[2].expands);
  EXPECT_EQ(commands[0].words[3].text, "e f");
  EXPECT_EQ(commands[0].words[4].line, 2U);
  EXPECT_EQ(commands[0].words[4].column, 3U);
  EXPECT_EQ(commands[4].words[0].text, "three");
  EXPECT_TRUE(commands[4].in_background);
  EXPECT_EQ(commands[5].assignments[0].text, "x=$(echo \"in ) side\" | head)");
  EXPECT_EQ(commands[5].words[0].text, "last");
  EXPECT_EQ(commands[6].words[0].text, "sub");
}

}  // namespace
}  // namespace tutti::slurm
