// tutti why.
#include <algorithm>
#include <cstdlib>
#include <fmt/format.h>
#include <sys/ioctl.h>

#include "base/hostlist.h"
#include "base/local_time.h"
#include "base/text.h"
#include "cli/api_client.h"
#include "cli/slurm_context.h"
#include "cli/tutti_commands.h"
#include "model/views.h"

namespace tutti::cli {

namespace {

// The terminal's width, or what COLUMNS says; 80 where there is neither.
std::size_t columns() {
  if (const char* text = std::getenv("COLUMNS"); text && *text)
    if (auto number = parse_integer<std::size_t>(text); number && *number >= 40) return *number;
  winsize size{};
  return ioctl(1, TIOCGWINSZ, &size) == 0 && size.ws_col >= 40 ? size.ws_col : 80;
}

// One line, continued below itself where it is too long for the terminal.
void print_line(std::string_view text) {
  const std::size_t width = columns();
  const std::string indent(std::min(text.find_first_not_of(' '), width / 2) + 4, ' ');
  std::string line(text);
  while (line.size() > width) {
    std::size_t blank = line.rfind(' ', width);
    if (blank == std::string::npos || blank < indent.size()) break;
    print_out(line.substr(0, blank) + "\n");
    line = indent + line.substr(blank + 1);
  }
  print_out(line + "\n");
}

void print_wait(const Wait& wait, std::string_view who, const TimeZone& zone) {
  print_line(fmt::format("{}waits: {}{}", who, wait.reason, wait.text.empty() ? "" : " - " + wait.text));
  for (const std::string& blocker : wait.blockers) print_line(fmt::format("  held up by {}", blocker));
  if (wait.planned_start.is_set()) {
    std::string nodes = wait.planned_nodes.empty() ? "" : " on " + fold_hostlist(wait.planned_nodes);
    print_line(fmt::format("  planned to start {}{}", format_time(wait.planned_start, zone), nodes));
  }
}

}  // namespace

int run_why(const WhyOptions& options) {
  ApiClient api;
  auto text = api.get("/v1/why?job=" + options.job);
  if (!text) {
    print_err(fmt::format("tutti why: {}\n", text.error().message));
    return 1;
  }
  if (options.json) {
    print_out(*text + "\n");
    return 0;
  }
  auto reply = from_json<WhyReply>(std::string_view(*text));
  if (!reply) {
    print_err(fmt::format("tutti why: {}\n", reply.error().message));
    return 1;
  }
  LocalZone zone;
  const Workload& w = reply->job.workload;
  print_line(fmt::format("job {} \"{}\" of {} in partition {}", options.job, w.name, w.user, reply->job.partition));
  for (const std::string& line : reply->story) print_line(fmt::format("  {}", line));
  if (reply->job.wait) print_wait(*reply->job.wait, "", zone);
  for (const GangView& gang : reply->job.gangs)
    if (gang.wait) print_wait(*gang.wait, reply->job.gangs.size() > 1 ? fmt::format("job {} ", gang.gang.id.value()) : "", zone);
  if (reply->promise && reply->promise->firm) {
    const PromiseRecord& promise = *reply->promise;
    print_line(fmt::format("  promised: it starts by {}{}", format_time(promise.at, zone),
                           promise.moves == 0 ? "" : fmt::format("; moved {} times, last because of: {}", promise.moves, promise.cause)));
  }
  for (const std::string& change : reply->changes) print_line(fmt::format("would help: {}", change));
  for (const std::string& option : reply->not_honoured) print_line(fmt::format("accepted without effect: {}", option));
  return 0;
}

}  // namespace tutti::cli
