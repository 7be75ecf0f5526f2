#include "simulator/trace_builder.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace tutti::simulator {

std::string_view trace_problem_text(TraceProblemKind kind) {
  switch (kind) {
    case TraceProblemKind::kMissingField:
      return "missing field";
    case TraceProblemKind::kNotANumber:
      return "not a number";
    case TraceProblemKind::kNegativeTime:
      return "negative time";
    case TraceProblemKind::kNothingAsked:
      return "asks for nothing";
    case TraceProblemKind::kNeverRan:
      return "never ran";
    case TraceProblemKind::kNumberTwice:
      return "number used twice";
    case TraceProblemKind::kMixedTimeZones:
      return "mixed time zones";
    case TraceProblemKind::kLargerThanCluster:
      return "larger than the cluster";
    case TraceProblemKind::kNotInOrder:
      return "not in order of submission (sorted)";
    case TraceProblemKind::kOverLimit:
      return "ran over its limit (cut there)";
  }
  return "";
}

bool drops_the_job(TraceProblemKind kind) {
  return kind != TraceProblemKind::kNotInOrder && kind != TraceProblemKind::kOverLimit;
}

void TraceProblems::add(TraceProblemKind kind, std::uint32_t line, std::string text) {
  constexpr std::size_t kListed = 10;
  OfKind& of_kind = kinds[kind];
  ++of_kind.count;
  if (of_kind.first.size() < kListed) of_kind.first.push_back({line, std::move(text)});
}

std::uint64_t TraceProblems::dropped() const {
  std::uint64_t sum = 0;
  for (const auto& [kind, of_kind] : kinds)
    if (drops_the_job(kind)) sum += of_kind.count;
  return sum;
}

std::uint32_t TraceBuilder::word(std::string_view text) {
  if (text.empty()) return 0;
  auto [it, fresh] =
      numbers_.try_emplace(std::string(text), static_cast<std::uint32_t>(trace_.words.size()));
  if (fresh) trace_.words.emplace_back(text);
  return it->second;
}

void TraceBuilder::add(TraceJob job) {
  using Kind = TraceProblemKind;
  if (job.submit.ms() < 0)
    return problem(Kind::kNegativeTime, job.line,
                   fmt::format("submitted at {} ms", job.submit.ms()));
  if (job.run.ms() <= 0)
    return problem(Kind::kNeverRan, job.line, fmt::format("ran {} ms", job.run.ms()));
  if (job.tasks == 0 || (job.cpus_milli == 0 && job.gpus == 0 && job.nodes == 0))
    return problem(Kind::kNothingAsked, job.line, "neither CPUs, GPUs nor nodes");
  if (!known_.insert(job.number).second)
    return problem(Kind::kNumberTwice, job.line, fmt::format("job {}", job.number));
  if (job.limit < job.run) {
    problem(Kind::kOverLimit, job.line,
            fmt::format("job {} ran {} ms with a limit of {} ms", job.number, job.run.ms(),
                        job.limit.ms()));
    job.run = job.limit;
  }
  trace_.jobs.push_back(job);
}

Trace TraceBuilder::take() {
  auto& jobs = trace_.jobs;
  for (std::size_t i = 1; i < jobs.size(); ++i)
    if (jobs[i].submit < jobs[i - 1].submit)
      problem(TraceProblemKind::kNotInOrder, jobs[i].line,
              fmt::format("job {} was submitted {} ms before the job above it", jobs[i].number,
                          (jobs[i - 1].submit - jobs[i].submit).ms()));
  std::stable_sort(jobs.begin(), jobs.end(),
                   [](const TraceJob& a, const TraceJob& b) { return a.submit < b.submit; });
  if (!jobs.empty()) trace_.first_submit = jobs.front().submit;
  jobs.shrink_to_fit();
  return std::move(trace_);
}

std::optional<std::int64_t> parse_thousandths(std::string_view text) {
  bool negative = !text.empty() && text.front() == '-';
  if (negative) text.remove_prefix(1);
  auto dot = text.find('.');
  std::string_view whole = text.substr(0, dot);
  std::string_view rest = dot == std::string_view::npos ? "" : text.substr(dot + 1);
  if (whole.empty() && rest.empty()) return std::nullopt;
  std::int64_t value = 0;
  if (!whole.empty()) {
    auto number = parse_integer<std::int64_t>(whole);
    constexpr std::int64_t kMost = 1'000'000'000'000'000;
    if (!number || *number < 0 || *number > kMost) return std::nullopt;
    value = *number * 1000;
  }
  std::int64_t unit = 100;
  for (std::size_t i = 0; i < rest.size(); ++i) {
    if (!is_digit(rest[i])) return std::nullopt;
    if (i < 3) value += (rest[i] - '0') * unit;
    if (i == 3 && rest[i] >= '5') ++value;
    unit /= 10;
  }
  return negative ? -value : value;
}

}  // namespace tutti::simulator
