// tutti logs: the output file of a batch job, read as the caller.
#include <ctime>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "agent/output_pattern.h"
#include "cli/api_client.h"
#include "cli/slurm_context.h"
#include "cli/tutti_commands.h"
#include "model/views.h"

namespace tutti::cli {

namespace {

// The record of the job, live or from history; and whether it is over.
Result<JobRecord> find_record(ApiClient& api, const std::string& job) {
  auto view = api.get_as<HistoryView>("/v1/history?jobs=" + job);
  if (!view) return tl::unexpected<Error>(view.error());
  if (view->records.empty()) return fail(ErrorCode::kNotFound, fmt::format("job {} is not known", job));
  return std::move(view->records.back());
}

std::string output_path(const JobRecord& record, bool error) {
  const LaunchAsk& launch = record.workload.launch;
  std::string pattern = error && !launch.stderr_path.empty() ? launch.stderr_path : launch.stdout_path;
  if (pattern.empty()) pattern = record.gang.array_index ? "slurm-%A_%a.out" : "slurm-%j.out";
  JobFacts facts;
  facts.gang = record.gang.id;
  facts.workload = record.workload.id;
  facts.array_index = record.gang.array_index;
  facts.name = record.workload.name;
  facts.user = record.workload.user;
  StepOrder step;
  step.step = kBatchStep;
  std::string node = record.nodes.empty() ? "" : record.nodes.front();
  return agent::absolute_path(launch.work_dir, agent::expand_pattern(pattern, {&facts, &step, node, 0}));
}

}  // namespace

int run_logs(const LogsOptions& options) {
  ApiClient api;
  auto record = find_record(api, options.job);
  if (!record) {
    print_err(fmt::format("tutti logs: {}\n", record.error().message));
    return 1;
  }
  if (!record->workload.is_batch()) {
    print_err(fmt::format("tutti logs: job {} has no batch script: its output went to the terminal that started it\n", options.job));
    return 1;
  }
  int fd = -1;
  std::string path;
  char buffer[65536];
  while (true) {
    bool over = record->gang.state == GangState::kDone;
    if (fd < 0) {
      path = output_path(*record, options.error);
      fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    }
    ssize_t n = 0;
    while (fd >= 0 && (n = read(fd, buffer, sizeof buffer)) > 0) print_out({buffer, static_cast<std::size_t>(n)});
    if (!options.follow || over) break;
    timespec pause{0, 200'000'000};
    nanosleep(&pause, nullptr);
    if (auto next = find_record(api, options.job)) record = std::move(next);
  }
  if (fd >= 0) {
    close(fd);
    return 0;
  }
  print_err(fmt::format("tutti logs: {}: no such file yet\n", path));
  return 1;
}

}  // namespace tutti::cli
