// The refusals of the real sbatch, line by line: what the client decides by itself, and what it
// makes of the controller's answer.
#include <gtest/gtest.h>

#include <fstream>
#include <map>

#include "base/text.h"
#include "frontend/slurm/lint_shell.h"
#include "frontend/slurm/lowering.h"
#include "model/reasons.h"

namespace tutti::slurm {
namespace {

struct Recorded {
  std::string command, error;
  int exit_code = 0;
};

std::vector<Recorded> recorded() {
  std::ifstream in(TUTTI_SOURCE_DIR "/tests/golden/slurm/sbatch-errors.txt");
  std::vector<Recorded> out;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("$ ")) out.push_back({line.substr(2), "", 0});
    if (line.starts_with("2> ")) out.back().error += line.substr(3) + "\n";
    if (line.starts_with("[exit "))
      out.back().exit_code = *parse_integer<int>(line.substr(6, line.size() - 7));
  }
  return out;
}

// What the controller of the recording's cluster refuses, by the command.
const std::map<std::string, std::string_view> kRefusals{
    {"sbatch -p nosuch ok.sh", reason::kInvalidPartition},
    {"sbatch --gres=gpu:h100:1 ok.sh", reason::kNeverFits},
    {"sbatch --gres=gpu:9 ok.sh", reason::kNeverFits},
    {"sbatch --mem=99999G ok.sh", reason::kMemoryNeverFits},
    {"sbatch -w node99 ok.sh", reason::kInvalidNode},
    {"sbatch -C nofeature ok.sh", reason::kInvalidFeature},
    {"sbatch -A nosuch ok.sh", reason::kInvalidAccount},
    {"sbatch --qos=nosuch ok.sh", reason::kInvalidQos},
    {"sbatch --reservation=nosuch ok.sh", reason::kInvalidReservation}};

ClientContext context() {
  ClientContext out;
  out.work_dir = "/home/alice";
  out.now = Instant::from_ms(1'796'068'800'000);
  out.open_file = [](const std::string& path) -> Result<ReadSome> {
    const std::map<std::string, std::string> files{
        {"/home/alice/ok.sh", "#!/bin/bash\n#SBATCH --time=10\necho hello\n"},
        {"/home/alice/noshebang.sh", "echo hi\n"},
        {"/home/alice/empty.sh", ""},
        {"/home/alice/dos.sh", "#!/bin/bash\r\necho hi\r\n"}};
    auto found = files.find(path);
    if (found == files.end()) return fail(ErrorCode::kNotFound, path);
    return ReadSome([text = found->second, at = std::size_t{0}](std::span<char> into) mutable {
      std::size_t n = text.copy(into.data(), std::min(into.size(), text.size() - at), at);
      at += n;
      return Result<std::size_t>(n);
    });
  };
  return out;
}

TEST(SbatchErrors, AreThoseOfSlurm) {
  std::size_t equal = 0;
  std::vector<Recorded> all = recorded();
  ASSERT_EQ(all.size(), 28U);
  for (const Recorded& one : all) {
    // The last words of the line are sbatch's ("printf ... >dos.sh; sbatch dos.sh").
    std::vector<std::string> words;
    std::vector<ShellCommand> commands = shell_commands(one.command);
    for (const ShellWord& word : commands.back().words) words.push_back(word.text);
    ASSERT_EQ(words.front(), "sbatch") << one.command;
    words.erase(words.begin());
    auto lowered = lower_sbatch(words, context());
    CommandError got{0, "", {}};
    if (!lowered)
      got = lowered.error();
    else if (auto refusal = kRefusals.find(one.command); refusal != kRefusals.end())
      got = submit_error("sbatch", {ErrorCode::kInvalid, std::string(refusal->second), ""},
                         lowered->refused);
    EXPECT_EQ(got.text, one.error) << one.command;
    EXPECT_EQ(got.exit_code, one.exit_code) << one.command;
    equal += got.text == one.error && got.exit_code == one.exit_code;
  }
  std::printf("golden sbatch-errors: %zu equal of %zu compared\n", equal, all.size());
}

TEST(SbatchErrors, AControllerThatIsDownIsSaidAsClientsExpect) {
  ApiError down{ErrorCode::kUnavailable, "", "connection refused"};
  EXPECT_EQ(submit_error("sbatch", down, {}).text,
            "sbatch: error: Batch job submission failed: Unable to contact slurm controller "
            "(connect failure)\n");
  EXPECT_EQ(submit_error("srun", down, {}).text,
            "srun: error: Unable to allocate resources: Unable to contact slurm controller "
            "(connect failure)\n");
  EXPECT_EQ(read_error(Reader::kSqueue, down).text,
            "slurm_load_jobs error: Unable to contact slurm controller (connect failure)\n");
  EXPECT_EQ(read_error(Reader::kSinfo, down).text,
            "slurm_load_partitions: Unable to contact slurm controller (connect failure)\n");
}

TEST(SbatchErrors, OtherCommandsHaveTheirOwnWords) {
  ApiError partition{ErrorCode::kInvalid, std::string(reason::kInvalidPartition), ""};
  EXPECT_EQ(submit_error("srun", partition, {"nosuch", ""}).text,
            "srun: error: invalid partition specified: nosuch\n"
            "srun: error: Unable to allocate resources: Invalid partition name specified\n");
  ApiError denied{ErrorCode::kDenied, std::string(reason::kNotOwner), ""};
  EXPECT_EQ(scancel_error(denied, {"", "36"}).text,
            "scancel: error: Kill job error on job id 36: Access/permission denied\n");
  EXPECT_EQ(scancel_error(denied, {"", "36"}).exit_code, 210);
  EXPECT_EQ(scontrol_error(denied, {"", "36"}).text, "Invalid user id for job 36\n");
  ApiError unknown{ErrorCode::kNotFound, std::string(reason::kUnknownJob), ""};
  EXPECT_EQ(scancel_error(unknown, {"", "99999"}).exit_code, 0);
  EXPECT_EQ(scancel_error(unknown, {"", "99999"}).text, "");
  ApiError pending{ErrorCode::kConflict, std::string(reason::kStillPending), ""};
  EXPECT_EQ(scontrol_error(pending, {"", "31"}).text, "Job is pending execution for job 31\n");
}

}  // namespace
}  // namespace tutti::slurm
