// tutti why.
#include <fmt/format.h>

#include "base/hostlist.h"
#include "base/local_time.h"
#include "cli/api_client.h"
#include "cli/slurm_context.h"
#include "cli/tutti_commands.h"
#include "model/views.h"

namespace tutti::cli {

namespace {

void print_wait(const Wait& wait, std::string_view who, const TimeZone& zone) {
  print_out(fmt::format("{}waits: {}{}\n", who, wait.reason, wait.text.empty() ? "" : " - " + wait.text));
  for (const std::string& blocker : wait.blockers) print_out(fmt::format("  held up by {}\n", blocker));
  if (wait.planned_start.is_set()) {
    std::string nodes = wait.planned_nodes.empty() ? "" : " on " + fold_hostlist(wait.planned_nodes);
    print_out(fmt::format("  planned to start {}{}\n", format_time(wait.planned_start, zone), nodes));
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
  print_out(fmt::format("job {} \"{}\" of {} in partition {}\n", options.job, w.name, w.user, reply->job.partition));
  for (const std::string& line : reply->story) print_out(fmt::format("  {}\n", line));
  if (reply->job.wait) print_wait(*reply->job.wait, "", zone);
  for (const GangView& gang : reply->job.gangs)
    if (gang.wait) print_wait(*gang.wait, reply->job.gangs.size() > 1 ? fmt::format("job {} ", gang.gang.id.value()) : "", zone);
  for (const std::string& change : reply->changes) print_out(fmt::format("would help: {}\n", change));
  for (const std::string& option : reply->not_honoured) print_out(fmt::format("accepted without effect: {}\n", option));
  return 0;
}

}  // namespace tutti::cli
