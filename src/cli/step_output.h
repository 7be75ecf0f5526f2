// StepOutput: what srun prints of its ranks: whole lines, with labels if asked, and the sentences
// about ranks that failed, worded as srun's.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "model/api.h"
#include "model/attach_protocol.h"

namespace tutti::cli {

struct OutputStyle {
  bool label = false;
  bool unbuffered = false;     // pass bytes through as they come
  std::uint32_t total_tasks = 1;
  std::uint32_t job = 0;
  bool quiet = false;
};

class StepOutput {
 public:
  using Write = std::function<void(int fd, std::string_view)>;
  // Where lines of ranks go instead of `write`, when they are labelled and meant for files.
  using WriteRank = std::function<void(int fd, std::uint32_t rank, std::string_view)>;
  StepOutput(OutputStyle style, Write write, WriteRank write_rank = {})
      : style_(style), write_(std::move(write)), write_rank_(std::move(write_rank)) {}

  void output(const to_client::Output& chunk, std::string_view bytes);
  void rank_exited(const to_client::RankExited& exited);
  // Prints what is known of failed ranks since the last call.
  void report_exits();
  // Unfinished lines, failed ranks; then the exit code as srun's.
  void finish(const to_client::StepEnded& ended, const StepReply& reply);
  int exit_code() const { return exit_code_; }
  bool any_failed() const { return any_failed_; }

 private:
  bool report_refusal(const to_client::StepEnded& ended, const StepReply& reply);
  void emit(int fd, std::uint32_t rank, std::string_view line);
  OutputStyle style_;
  Write write_;
  WriteRank write_rank_;
  std::map<std::pair<int, std::uint32_t>, std::string> partial_;
  std::vector<to_client::RankExited> exits_;
  int exit_code_ = 0;
  bool any_exited_ = false, any_failed_ = false, any_signalled_ = false;
};

}  // namespace tutti::cli
