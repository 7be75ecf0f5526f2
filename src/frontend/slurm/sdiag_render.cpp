#include "frontend/slurm/sdiag_render.h"

#include <fmt/format.h>

#include <algorithm>

namespace tutti::slurm {
namespace {

std::uint64_t mean(std::uint64_t total, std::uint64_t count) {
  return count == 0 ? 0 : total / count;
}

std::string moment(const TimeText& times, Instant at) {
  if (!at.is_set()) return "Thu Jan  1 00:00:00 1970 (0)";
  return fmt::format("{} ({})", times.ctime(at), at.whole_seconds());
}

}  // namespace

Output render_sdiag(const DiagView& d, const TimeText& times) {
  Output out;
  std::string& o = out.text;
  auto line = [&](std::string_view label, auto value) { o += fmt::format("{}{}\n", label, value); };
  std::int64_t minutes = std::max<std::int64_t>((d.now - d.since).whole_seconds() / 60, 1);
  constexpr std::string_view kStars = "*******************************************************\n";
  o += kStars;
  line("sdiag output at ", moment(times, d.now));
  line("Data since      ", moment(times, d.since));
  o += kStars;
  line("Server thread count:  ", std::max<std::uint64_t>(d.channels, 1));
  line("Agent queue size:     ", 0);
  line("Agent count:          ", d.agents_connected);
  line("Agent thread count:   ", 0);
  line("DBD Agent queue size: ", 0);
  o += '\n';
  line("Jobs submitted: ", d.jobs_submitted);
  line("Jobs started:   ", d.jobs_started);
  line("Jobs completed: ", d.jobs_completed);
  line("Jobs canceled:  ", d.jobs_cancelled);
  line("Jobs failed:    ", d.jobs_failed);
  o += '\n';
  line("Job states ts:  ", moment(times, d.now));
  line("Jobs pending:   ", d.jobs_pending);
  line("Jobs running:   ", d.jobs_running);
  o += "\nMain schedule statistics (microseconds):\n";
  line("\tLast cycle:   ", d.pass_us_last);
  line("\tMax cycle:    ", d.pass_us_max);
  line("\tTotal cycles: ", d.passes);
  line("\tMean cycle:   ", mean(d.pass_us_total, d.passes));
  line("\tMean depth cycle:  ", d.depth_last);
  line("\tCycles per minute: ", d.passes / static_cast<std::uint64_t>(minutes));
  line("\tLast queue length: ", d.queue_last);
  o += "\nBackfilling stats\n";
  line("\tTotal backfilled jobs (since last slurm start): ", d.backfilled);
  line("\tTotal backfilled jobs (since last stats cycle start): ", d.backfilled);
  line("\tTotal backfilled heterogeneous job components: ", 0);
  line("\tTotal cycles: ", d.backfill_passes);
  line("\tLast cycle when: ", moment(times, d.last_pass));
  line("\tLast cycle: ", d.pass_us_last);
  line("\tMax cycle:  ", d.pass_us_max);
  line("\tMean cycle: ", mean(d.pass_us_total, d.passes));
  line("\tLast depth cycle: ", d.depth_last);
  line("\tLast depth cycle (try sched): ", d.depth_last);
  line("\tDepth Mean: ", d.depth_last);
  line("\tDepth Mean (try depth): ", d.depth_last);
  line("\tLast queue length: ", d.queue_last);
  line("\tQueue length mean: ", d.queue_last);
  line("\tLast table size: ", 0);
  line("\tMean table size: ", 0);
  o += "\nLatency for 1000 calls to gettimeofday(): 0 microseconds\n";
  o += "\nRemote Procedure Call statistics by message type\n";
  o += fmt::format("\t{:<40}({:5}) count:{:<6} ave_time:{:<6} total_time:{}\n", "REQUEST_ALL", 0,
                   d.requests, 0, 0);
  o += fmt::format("\t{:<40}({:5}) count:{:<6} ave_time:{:<6} total_time:{}\n", "JOURNAL_COMMIT", 1,
                   d.commits, mean(d.commit_us_total, d.commits), d.commit_us_total);
  o += "\nRemote Procedure Call statistics by user\n";
  o += "\nPending RPC statistics\n\tNo pending RPCs\n";
  return out;
}

}  // namespace tutti::slurm
