// tutti compare: a job log under several profiles, side by side.
#include <fmt/format.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <fstream>
#include <mutex>
#include <sstream>
#include <thread>

#include "base/text.h"
#include "cli/slurm_context.h"
#include "cli/tutti_commands.h"
#include "frontend/slurm/config.h"
#include "scheduler/plan.h"
#include "simulator/gunzip.h"
#include "simulator/lowering.h"
#include "simulator/report.h"

namespace tutti::cli {

namespace {

using namespace tutti::simulator;

std::atomic<bool> interrupted{false};
void on_interrupt(int) { interrupted = true; }

Result<std::string> read_whole(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return fail(ErrorCode::kNotFound, path + ": cannot be read");
  std::ostringstream bytes;
  bytes << in.rdbuf();
  std::string text = bytes.str();
  if (!is_gzip(text)) return text;
  auto unpacked = gunzip(text);
  if (!unpacked) return fail(unpacked.error().code, path + ": " + unpacked.error().message);
  return unpacked;
}

Result<Trace> read_input(const CompareOptions& options) {
  auto text = read_whole(options.trace);
  if (!text) return tl::make_unexpected(text.error());
  if (options.columns.empty()) return read_trace(*text, options.trace);
  if (const CsvMapping* ready = find_ready_mapping(options.columns))
    return read_trace(*text, options.trace, TraceFormat::kCsv, ready);
  auto own = parse_csv_mapping(options.columns);
  if (!own) return invalid("--columns: " + own.error().message);
  return read_trace(*text, options.trace, TraceFormat::kCsv, &*own);
}

Result<ClusterSpec> from_slurm_conf(const std::string& path) {
  slurm::ClusterConfig config = slurm::read_cluster_config(path, read_whole);
  std::string errors;
  for (const Diagnostic& d : config.diagnostics)
    if (d.severity == Severity::kError)
      errors += fmt::format("\n  {}:{}:{}: {}", d.span.file, d.span.line, d.span.column, d.message);
  if (!errors.empty()) return invalid(path + " has errors:" + errors);
  return config.spec;
}

Result<ClusterSpec> read_cluster(const CompareOptions& options, const Trace& trace) {
  const std::string& name = options.cluster;
  if (name.empty()) {
    auto processors = trace.header.find("MaxProcs");
    if (processors == trace.header.end())
      return invalid(
          "the log does not say how large its cluster was: --cluster 8x8:h100, a slurm.conf, or a "
          "node list (.csv)");
    return parse_cluster_text(fmt::format("1x{}c", processors->second));
  }
  if (name.ends_with(".conf")) return from_slurm_conf(name);
  if (name.ends_with(".csv") || name.ends_with(".csv.gz")) {
    auto text = read_whole(name);
    if (!text) return tl::make_unexpected(text.error());
    auto spec = read_node_csv(*text);
    if (!spec) return invalid(name + ": " + spec.error().message);
    return spec;
  }
  auto spec = parse_cluster_text(name);
  if (!spec) return invalid("--cluster " + spec.error().message);
  return spec;
}

Result<std::vector<std::string>> chosen_profiles(const std::string& text) {
  std::vector<std::string> known, out;
  for (const auto& [name, sentence] : scheduler::profiles()) known.push_back(name);
  for (std::string_view name : split(text, ',', EmptyPieces::kDrop)) {
    if (std::find(known.begin(), known.end(), name) == known.end())
      return invalid(
          fmt::format("--profiles: no profile {}; there are {}", quote(name), join(known, ", ")));
    if (std::find(out.begin(), out.end(), name) == out.end()) out.emplace_back(name);
  }
  if (out.empty()) return invalid("--profiles: expected names, as in tutti,easy");
  return out;
}

void print_problems(const std::string& source, const TraceProblems& problems) {
  for (const auto& [kind, of_kind] : problems.kinds) {
    print_err(fmt::format("{}: {}: {} of them\n", source, trace_problem_text(kind), of_kind.count));
    for (const TraceProblem& problem : of_kind.first)
      print_err(fmt::format("  {}:{}: {}\n", source, problem.line, problem.text));
  }
}

// Refuses a log with jobs that cannot be used unless asked to leave them out.
bool acceptable(const CompareOptions& options, const Trace& trace) {
  if (trace.problems.dropped() > 0 && !options.skip_bad) {
    print_problems(options.trace, trace.problems);
    print_err(
        fmt::format("tutti compare: {} of {} jobs cannot be used; --skip-bad leaves them out\n",
                    trace.problems.dropped(), trace.problems.dropped() + trace.jobs.size()));
    return false;
  }
  for (const auto& [kind, of_kind] : trace.problems.kinds)
    print_err(fmt::format("note: {}: {}: {} of them\n", options.trace, trace_problem_text(kind),
                          of_kind.count));
  if (!trace.jobs.empty()) return true;
  print_err(fmt::format("tutti compare: {} has no jobs\n", options.trace));
  return false;
}

struct Sweep {
  const Trace& trace;
  const ClusterSpec& spec;
  const CompareOptions& options;
  const std::vector<std::string>& profiles;
  std::vector<Result<ReplayResult>> results;
  std::atomic<std::size_t> next{0};
  std::atomic<std::uint64_t> over{0};

  void work() {
    for (std::size_t i = next++; i < profiles.size(); i = next++) {
      ReplayOptions replay_options;
      replay_options.world.profile = profiles[i];
      replay_options.world.start_delay = Duration::milliseconds(options.start_delay_ms);
      replay_options.world.release_delay = Duration::milliseconds(options.release_delay_ms);
      replay_options.interrupted = [] { return interrupted.load(); };
      replay_options.progress = [this](std::uint64_t) { ++over; };
      results[i] = replay(trace, spec, replay_options);
    }
  }
};

void run_sweep(Sweep& sweep) {
  struct sigaction action{}, before{};
  action.sa_handler = on_interrupt;
  ::sigaction(SIGINT, &action, &before);
  const std::size_t workers = std::min<std::size_t>(
      sweep.profiles.size(), std::max(std::thread::hardware_concurrency(), 1u));
  std::atomic<std::size_t> busy{workers};
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < workers; ++i)
    threads.emplace_back([&] {
      sweep.work();
      --busy;
    });
  const bool shows = ::isatty(STDERR_FILENO) == 1;
  const std::uint64_t all = sweep.trace.jobs.size() * sweep.profiles.size();
  while (busy > 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    if (shows) print_err(fmt::format("\r{} of {} jobs replayed", sweep.over.load(), all));
  }
  if (shows) print_err("\r\x1b[K");
  for (std::thread& thread : threads) thread.join();
  ::sigaction(SIGINT, &before, nullptr);
}

std::size_t output_width() {
  winsize size{};
  return ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 0;
}

int print_report(const CompareOptions& options, const Comparison& comparison) {
  if (!options.html.empty()) {
    std::ofstream out(options.html, std::ios::binary);
    out << render_html(comparison);
    if (!out.flush()) {
      print_err(fmt::format("tutti compare: {}: cannot be written\n", options.html));
      return 1;
    }
  }
  if (options.json) {
    print_out(render_json(comparison) + "\n");
    return 0;
  }
  print_out(render_table(comparison, output_width()));
  if (std::string text = verdict(comparison); !text.empty()) print_out("\n" + text + "\n");
  return 0;
}

int failed(const Error& error) {
  print_err("tutti compare: " + to_string(error) + "\n");
  return 1;
}

}  // namespace

int run_compare(const CompareOptions& options) {
  auto profiles = chosen_profiles(options.profiles);
  if (!profiles) return failed(profiles.error());
  auto trace = read_input(options);
  if (!trace) return failed(trace.error());
  auto spec = read_cluster(options, *trace);
  if (!spec) return failed(spec.error());
  if (!acceptable(options, *trace)) return 1;
  Sweep sweep{*trace, *spec, options, *profiles, {}};
  sweep.results.assign(profiles->size(), ReplayResult{});
  run_sweep(sweep);
  Comparison comparison;
  comparison.trace = options.trace;
  comparison.cluster = options.cluster.empty() ? "the log's own" : options.cluster;
  comparison.price = options.price;
  bool refused = false;
  for (auto& result : sweep.results) {
    if (!result) return failed(result.error());
    if (result->was_interrupted)
      print_err(fmt::format("note: {} was interrupted after {} jobs\n", result->profile,
                            result->jobs.size()));
    if (!refused && result->refused.dropped() > 0) {
      refused = true;
      print_problems(options.trace, result->refused);
      if (!options.skip_bad) {
        print_err(
            "tutti compare: the cluster cannot hold these jobs; --skip-bad leaves them out\n");
        return 1;
      }
    }
    comparison.profiles.push_back(measure(*trace, *result));
    comparison.samples.push_back(std::move(result->samples));
  }
  return print_report(options, comparison);
}

}  // namespace tutti::cli
