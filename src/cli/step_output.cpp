#include "cli/step_output.h"

#include <algorithm>
#include <csignal>
#include <cstring>
#include <fmt/format.h>

#include "base/index_set.h"

namespace tutti::cli {

namespace {
int code_of(const ExitStatus& exit) { return exit.signal ? 128 + exit.signal : exit.code; }
}  // namespace

void StepOutput::emit(int fd, std::uint32_t rank, std::string_view line) {
  if (!style_.label) return write_(fd, line);
  int width = static_cast<int>(std::to_string(style_.total_tasks - 1).size());
  std::string labelled = fmt::format("{:{}}: {}{}", rank, width, line, line.ends_with('\n') ? "" : "\n");
  if (write_rank_)
    write_rank_(fd, rank, labelled);
  else
    write_(fd, labelled);
}

void StepOutput::output(const to_client::Output& chunk, std::string_view bytes) {
  int fd = chunk.is_error ? 2 : 1;
  if (!style_.label && (style_.unbuffered || style_.total_tasks == 1)) {
    if (!bytes.empty()) write_(fd, bytes);
    return;
  }
  std::string& rest = partial_[{fd, chunk.rank}];
  std::string whole;
  while (!bytes.empty()) {
    std::size_t end = bytes.find('\n');
    if (end == std::string_view::npos) {
      rest.append(bytes);
      break;
    }
    rest.append(bytes.substr(0, end + 1));
    bytes.remove_prefix(end + 1);
    if (style_.label) {
      emit(fd, chunk.rank, rest);
    } else {
      whole += rest;  // one write for all whole lines of a chunk
    }
    rest.clear();
  }
  if (!whole.empty()) write_(fd, whole);
  // A line without end is not kept back for ever.
  if (rest.size() > 65536 || (chunk.end && !rest.empty())) {
    emit(fd, chunk.rank, rest);
    rest.clear();
  }
}

void StepOutput::rank_exited(const to_client::RankExited& exited) {
  if (!exited.message.empty() && !style_.quiet)
    write_(2, fmt::format("slurmstepd-{}: error: {}\n", exited.node, exited.message));
  any_exited_ = true;
  exit_code_ = std::max(exit_code_, code_of(exited.exit));
  if (exited.exit == ExitStatus{}) return;
  any_failed_ = true;
  any_signalled_ |= exited.exit.signal != 0;
  exits_.push_back(exited);
}

void StepOutput::report_exits() {
  auto exits = std::exchange(exits_, {});
  std::sort(exits.begin(), exits.end(), [](const auto& a, const auto& b) { return a.rank < b.rank; });
  while (!exits.empty()) {
    to_client::RankExited first = exits.front();
    IndexSet ranks;
    std::erase_if(exits, [&](const to_client::RankExited& e) {
      bool same = e.node == first.node && e.exit == first.exit;
      if (same) ranks.insert(e.rank);
      return same;
    });
    if (style_.quiet) continue;
    std::string how = first.exit.signal ? std::string(strsignal(first.exit.signal))
                                        : fmt::format("Exited with exit code {}", first.exit.code);
    write_(2, fmt::format("srun: error: {}: task{} {}: {}\n", first.node, ranks.count() > 1 ? "s" : "", ranks.to_string(), how));
  }
}

// No rank of the step ran because a node could not start its own: told as Slurm tells it, where each
// rank would have found out by itself.
bool StepOutput::report_refusal(const to_client::StepEnded& ended, const StepReply& reply) {
  std::size_t colon = ended.reason.find(": ");
  if (ended.outcome != Outcome::kFailed || any_exited_ || colon == std::string::npos) return false;
  auto node = std::find(reply.nodes.begin(), reply.nodes.end(), ended.reason.substr(0, colon));
  if (node == reply.nodes.end()) return false;
  if (!style_.quiet)
    write_(2, fmt::format("slurmstepd-{}: error: {}\n", *node, ended.reason.substr(colon + 2)));
  // The "signal" of a file that could not be opened has no name that would help anybody.
  ExitStatus exit = ended.exit.signal ? ExitStatus{1, 0} : ended.exit;
  for (std::uint32_t rank : reply.ranks[static_cast<std::size_t>(node - reply.nodes.begin())])
    rank_exited({ended.step, *node, rank, exit, {}});
  report_exits();
  return true;
}

void StepOutput::finish(const to_client::StepEnded& ended, const StepReply& reply) {
  for (auto& [key, rest] : partial_) {
    if (rest.empty()) continue;
    emit(key.first, key.second, rest);
    rest.clear();
  }
  report_exits();
  if (report_refusal(ended, reply)) return;
  exit_code_ = std::max(exit_code_, code_of(ended.exit));
  bool terminated = any_signalled_ || ended.outcome == Outcome::kCancelled || ended.outcome == Outcome::kTimeout;
  if (terminated && !style_.quiet) write_(2, fmt::format("srun: Force Terminated StepId={}.{}\n", style_.job, reply.step));
  if (!ended.reason.empty() && ended.outcome != Outcome::kCancelled && !style_.quiet)
    write_(2, fmt::format("srun: error: {}\n", ended.reason));
  if (exit_code_ == 0 && ended.outcome != Outcome::kCompleted && ended.outcome != Outcome::kNone) exit_code_ = 1;
}

}  // namespace tutti::cli
