#include "simulator/metrics.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "base/enum_names.h"

namespace tutti::simulator {

namespace {

struct ClassBound {
  std::uint32_t most;
  const char* name;
};
constexpr std::array kClasses{ClassBound{1, "1"}, ClassBound{8, "2-8"}, ClassBound{64, "9-64"},
                              ClassBound{0xFFFFFFFF, "65+"}};

double seconds(Duration duration) { return static_cast<double>(duration.ms()) / 1000; }

double hours(ledger::Units units) {
  return static_cast<double>(units) / static_cast<double>(ledger::kUnitsPerGpuSecond) / 3600;
}

std::uint32_t size_of(const TraceJob& job) {
  if (job.gpus > 0) return job.gpus;
  return job.tasks * std::max(job.cpus_milli / 1000, 1u);
}

double slowdown_of(double wait, double run) {
  constexpr double kBound = 10;
  return std::max(1.0, (wait + run) / std::max(kBound, run));
}

double jain(const std::map<std::uint32_t, std::pair<double, std::uint64_t>>& users) {
  double sum = 0, squares = 0;
  for (const auto& [user, total] : users) {
    const double mean = total.first / static_cast<double>(total.second);
    sum += mean;
    squares += mean * mean;
  }
  return squares == 0 ? 1 : sum * sum / (static_cast<double>(users.size()) * squares);
}

struct Samples {
  std::vector<double> wait, slowdown;
};

void measure_ledger(const ReplayResult& result, Metrics& out) {
  std::array<ledger::Units, ledger::kLevels> levels{};
  ledger::Units capacity = 0;
  for (const ledger::TypeTotals& type : result.ledger) {
    capacity += type.capacity;
    for (std::size_t i = 0; i < levels.size(); ++i) levels[i] += type.levels[i];
  }
  auto at = [&](ledger::Level level) { return levels[static_cast<std::size_t>(level)]; };
  for (std::size_t i = 0; i < levels.size(); ++i)
    if (levels[i] > 0)
      out.levels.push_back(
          {std::string(enum_name(static_cast<ledger::Level>(i))), hours(levels[i])});
  out.lost_hours = hours(at(ledger::Level::kLost));
  out.idle_hours = hours(result.idle_while_waiting);
  if (capacity == 0) return;
  const ledger::Units idle = at(ledger::Level::kFree) + at(ledger::Level::kDown);
  out.allocated = static_cast<double>(capacity - idle) / static_cast<double>(capacity);
  out.useful = static_cast<double>(at(ledger::Level::kProgressing)) / static_cast<double>(capacity);
}

}  // namespace

Distribution distribution_of(std::vector<double>& values) {
  Distribution out;
  if (values.empty()) return out;
  std::sort(values.begin(), values.end());
  const auto count = static_cast<double>(values.size());
  out.mean = std::accumulate(values.begin(), values.end(), 0.0) / count;
  auto rank = [&](double share) {
    auto position = static_cast<std::size_t>(std::ceil(share * count));
    return values[std::max<std::size_t>(position, 1) - 1];
  };
  out.p50 = rank(0.50);
  out.p95 = rank(0.95);
  out.p99 = rank(0.99);
  out.max = values.back();
  return out;
}

Metrics measure(const Trace& trace, const ReplayResult& result) {
  Metrics out;
  out.profile = result.profile;
  out.unit = result.unit;
  out.passes = result.passes;
  out.refused = result.refused.dropped();
  out.interrupted = result.was_interrupted;
  Samples all;
  std::vector<double> completion;
  std::array<Samples, kClasses.size()> by_class;
  std::map<std::uint32_t, std::pair<double, std::uint64_t>> users;
  Instant first = Instant::never(), last;
  for (const JobResult& job : result.jobs) {
    const TraceJob& asked = trace.jobs[job.job];
    if (!job.started.is_set() || !job.ended.is_set()) {
      ++out.unfinished;
      continue;
    }
    ++out.jobs;
    out.restarts += job.starts - 1;
    const double wait = seconds(job.started - job.submitted);
    const double slowdown = slowdown_of(wait, seconds(job.ended - job.started));
    all.wait.push_back(wait);
    all.slowdown.push_back(slowdown);
    completion.push_back(seconds(job.ended - job.submitted));
    std::size_t of_class = 0;
    while (size_of(asked) > kClasses[of_class].most) ++of_class;
    by_class[of_class].wait.push_back(wait);
    by_class[of_class].slowdown.push_back(slowdown);
    auto& user = users[asked.user];
    user.first += slowdown;
    ++user.second;
    first = std::min(first, job.submitted);
    last = std::max(last, job.ended);
  }
  out.wait = distribution_of(all.wait);
  out.slowdown = distribution_of(all.slowdown);
  out.completion = distribution_of(completion);
  for (std::size_t i = 0; i < kClasses.size(); ++i) {
    if (by_class[i].wait.empty()) continue;
    out.classes.push_back({kClasses[i].name, by_class[i].wait.size(),
                           distribution_of(by_class[i].wait),
                           distribution_of(by_class[i].slowdown)});
  }
  if (last.is_set()) out.makespan_s = seconds(last - first);
  out.fairness = jain(users);
  measure_ledger(result, out);
  return out;
}

}  // namespace tutti::simulator
