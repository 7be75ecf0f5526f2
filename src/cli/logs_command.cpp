// tutti logs: the output file of a batch job, read as the caller.
#include <ctime>
#include <fcntl.h>
#include <fmt/format.h>
#include <map>
#include <unistd.h>

#include "agent/output_pattern.h"
#include "cli/api_client.h"
#include "cli/slurm_context.h"
#include "cli/tutti_commands.h"
#include "model/views.h"
#include "wire/http.h"

namespace tutti::cli {

namespace {

// The job's records, live or from history: one, or of an array one for each element that started.
Result<std::vector<JobRecord>> find_records(ApiClient& api, const std::string& job) {
  auto view = api.get_as<HistoryView>("/v1/history?jobs=" + wire::encode_url(job));
  if (!view) return tl::unexpected<Error>(view.error());
  if (view->records.empty()) return fail(ErrorCode::kNotFound, fmt::format("job {} is not known", job));
  bool array = view->records.front().workload.is_array();
  if (!array) return std::vector<JobRecord>{std::move(view->records.back())};
  std::map<std::uint32_t, JobRecord> elements;  // the last life of each
  for (JobRecord& record : view->records)
    if (record.gang.array_index) elements[*record.gang.array_index] = std::move(record);
  std::vector<JobRecord> found;
  for (auto& [index, record] : elements) found.push_back(std::move(record));
  if (found.empty()) return fail(ErrorCode::kNotFound, fmt::format("no element of array {} has started yet", job));
  return found;
}
Result<JobRecord> find_record(ApiClient& api, const std::string& job) {
  auto records = find_records(api, job);
  if (!records) return tl::unexpected<Error>(records.error());
  return std::move(records->back());
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

// Why there is no file at that path.
std::string no_file(const JobRecord& record, const std::string& path) {
  if (record.gang.state == GangState::kPending && record.gang.outcome == Outcome::kNone) return fmt::format("{}: the job waits; it has no output yet", path);
  if (record.gang.state != GangState::kDone) return fmt::format("{}: no such file yet", path);
  if (!record.gang.last_failure.empty()) return fmt::format("{}: no such file; the job ended with: {}", path, record.gang.last_failure);
  if (!record.gang.started.is_set()) return fmt::format("{}: no such file; the job ended before it started", path);
  return fmt::format("{}: no such file; the job is over, so that it was moved or deleted", path);
}

// Each file under a head line, as tail(1) shows several.
int show_array(const std::vector<JobRecord>& records, bool error) {
  bool any = false;
  for (const JobRecord& record : records) {
    std::string path = output_path(record, error);
    int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) continue;
    print_out(fmt::format("{}==> {}_{}: {} <==\n", any ? "\n" : "", record.workload.id.value(), *record.gang.array_index, path));
    any = true;
    char buffer[65536];
    ssize_t n = 0;
    while ((n = read(fd, buffer, sizeof buffer)) > 0) print_out({buffer, static_cast<std::size_t>(n)});
    close(fd);
  }
  if (any) return 0;
  print_err(fmt::format("tutti logs: {}\n", no_file(records.front(), output_path(records.front(), error))));
  return 1;
}

}  // namespace

int run_logs(const LogsOptions& options) {
  ApiClient api;
  auto records = find_records(api, options.job);
  if (!records) {
    print_err(fmt::format("tutti logs: {}\n", records.error().message));
    return 1;
  }
  if (records->size() > 1 && options.follow) {
    print_err(fmt::format("tutti logs: {0} is an array: follow one of its elements, as {0}_{1}\n", options.job, *records->front().gang.array_index));
    return 1;
  }
  if (records->size() > 1) return show_array(*records, options.error);
  std::optional<JobRecord> record = std::move(records->front());
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
    if (auto next = find_record(api, options.job)) record = std::move(*next);
  }
  if (fd >= 0) {
    close(fd);
    return 0;
  }
  print_err(fmt::format("tutti logs: {}\n", no_file(*record, path)));
  return 1;
}

}  // namespace tutti::cli
