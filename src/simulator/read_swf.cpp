// Source of the format: "The Standard Workload Format", Parallel Workloads Archive, version 2.2.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "simulator/trace_builder.h"

namespace tutti::simulator {

namespace {

constexpr std::size_t kFields = 18;
constexpr std::array<std::string_view, kFields> kNames{"job number",
                                                       "submit time",
                                                       "wait time",
                                                       "run time",
                                                       "processors allocated",
                                                       "CPU time",
                                                       "memory used",
                                                       "processors asked",
                                                       "time asked",
                                                       "memory asked",
                                                       "status",
                                                       "user",
                                                       "group",
                                                       "executable",
                                                       "queue",
                                                       "partition",
                                                       "preceding job",
                                                       "think time"};

void read_header(TraceBuilder& out, std::string_view line) {
  line.remove_prefix(1);
  auto parts = split_once(line, ':');
  if (!parts) return;
  std::string_view key = trim(parts->first);
  if (key.empty() || key.find(' ') != std::string_view::npos) return;
  out.header(std::string(key), std::string(trim(parts->second)));
}

// The fields in thousandths; false with the problem noted.
bool read_fields(TraceBuilder& out, std::string_view line, std::uint32_t number,
                 std::array<std::int64_t, kFields>& fields) {
  std::size_t at = 0, count = 0;
  while (at < line.size()) {
    while (at < line.size() && is_space(line[at])) ++at;
    std::size_t end = at;
    while (end < line.size() && !is_space(line[end])) ++end;
    if (end == at) break;
    if (count < kFields) {
      auto value = parse_thousandths(line.substr(at, end - at));
      if (!value) {
        out.problem(TraceProblemKind::kNotANumber, number,
                    fmt::format("field {} ({}) is {}", count + 1, kNames[count],
                                quote(line.substr(at, end - at))));
        return false;
      }
      fields[count] = *value;
    }
    ++count;
    at = end;
  }
  // Some carriers leave out the last columns, which nothing here needs.
  constexpr std::size_t kNeeded = 9;
  if (count >= kNeeded) return true;
  out.problem(TraceProblemKind::kMissingField, number,
              fmt::format("{} fields, no {}", count, kNames[count]));
  return false;
}

TraceEnd end_of(std::int64_t status) {
  switch (status) {
    case 1:
      return TraceEnd::kCompleted;
    case 0:
      return TraceEnd::kFailed;
    case 5:
      return TraceEnd::kCancelled;
    default:
      return TraceEnd::kUnknown;
  }
}

void read_job(TraceBuilder& out, std::string_view line, std::uint32_t number) {
  std::array<std::int64_t, kFields> fields;
  fields.fill(-1000);
  if (!read_fields(out, line, number, fields)) return;
  auto whole = [&](std::size_t field) { return fields[field - 1] / 1000; };
  TraceJob job;
  job.line = number;
  job.number = static_cast<std::uint64_t>(std::max<std::int64_t>(whole(1), 0));
  job.submit = Instant::from_ms(fields[1]);
  job.run = Duration::milliseconds(fields[3]);
  std::int64_t processors = whole(8) > 0 ? whole(8) : whole(5);
  job.tasks = static_cast<std::uint32_t>(std::clamp<std::int64_t>(processors, 0, 1'000'000'000));
  job.cpus_milli = 1000;
  if (fields[8] > 0) job.limit = Duration::milliseconds(fields[8]);
  if (whole(10) > 0) job.memory_mib = static_cast<std::uint64_t>((whole(10) + 1023) / 1024);
  job.end = end_of(whole(11));
  auto word = [&](std::string_view prefix, std::size_t field) {
    return whole(field) < 0 ? 0 : out.word(fmt::format("{}{}", prefix, whole(field)));
  };
  job.user = word("user", 12);
  job.account = word("group", 13);
  job.application = word("app", 14);
  job.partition = word("queue", 15);
  if (job.tasks == 0)
    return out.problem(TraceProblemKind::kNothingAsked, number,
                       "fields 5 and 8 (processors) are not positive");
  out.add(job);
}

}  // namespace

Trace read_swf(std::string_view text) {
  TraceBuilder out;
  std::uint32_t number = 0;
  while (!text.empty()) {
    auto end = text.find('\n');
    std::string_view line = trim(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    ++number;
    if (line.empty()) continue;
    if (line.front() == ';')
      read_header(out, line);
    else
      read_job(out, line, number);
  }
  return out.take();
}

}  // namespace tutti::simulator
