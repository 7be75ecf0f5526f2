// Source of the columns and their forms: man sacct (22.05).
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "base/civil_time.h"
#include "base/duration_text.h"
#include "base/gres_text.h"
#include "base/size_text.h"
#include "base/text.h"
#include "base/time_text.h"
#include "simulator/delimited.h"
#include "simulator/trace_builder.h"

namespace tutti::simulator {

namespace {

class SacctReader {
 public:
  SacctReader(TraceBuilder& out, const std::vector<std::string_view>& header) : out_(out) {
    for (std::size_t i = 0; i < header.size(); ++i) columns_.emplace(lower(header[i]), i);
  }

  std::vector<std::string> missing() const {
    std::vector<std::string> names;
    for (const char* name : {"JobID", "Submit"})
      if (!has(name)) names.emplace_back(name);
    if (!has("Elapsed") && !has("ElapsedRaw") && !(has("Start") && has("End")))
      names.emplace_back("Elapsed");
    if (!has("NCPUS") && !has("AllocCPUS") && !has("ReqCPUS") && !has("AllocTRES") &&
        !has("ReqTRES") && !has("NNodes"))
      names.emplace_back("ReqTRES");
    return names;
  }

  void read(const std::vector<std::string_view>& fields, std::uint32_t line,
            std::uint64_t position) {
    fields_ = &fields;
    job_ = {};
    job_.line = line;
    job_.number = position;
    std::string_view id = field("JobID");
    if (id.find('.') != std::string_view::npos) return;  // a step
    if (!read_number(id) || !read_times() || !read_amounts()) return;
    job_.user = out_.word(field("User"));
    job_.account = out_.word(field("Account"));
    job_.partition = out_.word(field("Partition"));
    job_.application = out_.word(field("JobName"));
    std::string state = upper(field("State"));
    if (state.starts_with("COMPLETED")) job_.end = TraceEnd::kCompleted;
    if (state.starts_with("CANCELLED")) job_.end = TraceEnd::kCancelled;
    if (state.starts_with("FAILED") || state.starts_with("TIMEOUT") ||
        state.starts_with("NODE_FAIL") || state.starts_with("OUT_OF"))
      job_.end = TraceEnd::kFailed;
    out_.add(job_);
  }

 private:
  bool has(std::string_view name) const { return columns_.count(lower(name)) > 0; }
  std::string_view field(std::string_view name) const {
    auto found = columns_.find(lower(name));
    return found == columns_.end() || found->second >= fields_->size() ? std::string_view()
                                                                       : (*fields_)[found->second];
  }
  bool wrong(TraceProblemKind kind, std::string_view name, std::string_view expected) {
    out_.problem(kind, job_.line,
                 fmt::format("{} is {}, expected {}", name, quote(field(name)), expected));
    return false;
  }

  // "12", "12_3", "12+1"; pending elements of an array "12_[4-7]" never ran.
  bool read_number(std::string_view id) {
    std::uint64_t parts[2] = {0, 0};
    std::size_t part = 0;
    for (char c : id) {
      if ((c == '_' || c == '+') && part == 0) {
        ++part;
      } else if (is_digit(c)) {
        parts[part] = parts[part] * 10 + static_cast<std::uint64_t>(c - '0');
      } else if (c == '[') {
        out_.problem(TraceProblemKind::kNeverRan, job_.line, fmt::format("job {}", id));
        return false;
      } else {
        return wrong(TraceProblemKind::kNotANumber, "JobID", "a job's number");
      }
    }
    if (id.empty()) return wrong(TraceProblemKind::kMissingField, "JobID", "a job's number");
    job_.number = part == 0 ? parts[0] : (parts[0] << 24) + parts[1] + 1;
    return true;
  }

  std::optional<Instant> time(std::string_view name) {
    std::string_view text = field(name);
    if (text.empty() || text == "Unknown" || text == "None") return std::nullopt;
    if (auto seconds = parse_integer<std::int64_t>(text)) return Instant::from_ms(*seconds * 1000);
    auto at = parse_time(text, Instant(), UtcZone());
    if (!at) return std::nullopt;
    return *at;
  }

  bool read_times() {
    std::string_view text = field("Submit");
    // "2024-01-02T03:04:05+01:00" among times without: nobody can tell what the others mean.
    bool zoned = text.ends_with('Z') || (text.size() > 19 && (text[19] == '+' || text[19] == '-'));
    if (zoned) return wrong(TraceProblemKind::kMixedTimeZones, "Submit", "a time without a zone");
    auto submit = time("Submit");
    if (!submit) return wrong(TraceProblemKind::kMissingField, "Submit", "a time");
    job_.submit = *submit;
    auto start = time("Start"), end = time("End");
    if (auto raw = parse_integer<std::int64_t>(field("ElapsedRaw"))) {
      job_.run = Duration::seconds(*raw);
    } else if (auto elapsed = parse_duration(field("Elapsed"));
               !field("Elapsed").empty() && elapsed) {
      job_.run = *elapsed;
    } else if (start && end) {
      job_.run = *end - *start;
    } else {
      out_.problem(TraceProblemKind::kNeverRan, job_.line,
                   fmt::format("job {} has no run time", field("JobID")));
      return false;
    }
    if (auto minutes = parse_integer<std::int64_t>(field("TimelimitRaw")))
      job_.limit = Duration::minutes(*minutes);
    else if (auto limit = parse_duration(field("Timelimit")); !field("Timelimit").empty() && limit)
      job_.limit = *limit;
    // Slurm ends a job at its limit plus a little; that is no run over the limit.
    constexpr std::int64_t kLate = 120'000;
    if (job_.run > job_.limit && (job_.run - job_.limit).ms() <= kLate) job_.run = job_.limit;
    return true;
  }

  std::uint64_t count(std::string_view name) const {
    return parse_integer<std::uint64_t>(field(name)).value_or(0);
  }

  // "billing=8,cpu=8,gres/gpu:h100=8,gres/gpu=8,mem=64G,node=1"
  void read_tres(std::string_view text, std::uint64_t& cpus) {
    std::uint64_t typed = 0;
    for (std::string_view item : split(text, ',', EmptyPieces::kDrop)) {
      auto parts = split_once(item, '=');
      if (!parts) continue;
      std::uint64_t amount = parse_integer<std::uint64_t>(parts->second).value_or(0);
      if (parts->first == "cpu") cpus = amount;
      if (parts->first == "node") job_.nodes = static_cast<std::uint32_t>(amount);
      if (parts->first == "mem")
        if (auto mib = parse_memory_mib(parts->second)) memory_ = *mib;
      if (parts->first == "gres/gpu") job_.gpus = static_cast<std::uint32_t>(amount);
      if (parts->first.starts_with("gres/gpu:")) {
        typed += amount;
        job_.gpu_types = out_.word(parts->first.substr(9));
      }
    }
    if (job_.gpus == 0) job_.gpus = static_cast<std::uint32_t>(typed);
  }

  bool read_amounts() {
    memory_ = 0;
    std::uint64_t cpus = std::max({count("ReqCPUS"), count("NCPUS"), count("AllocCPUS")});
    read_tres(field("AllocTRES").empty() ? field("ReqTRES") : field("AllocTRES"), cpus);
    if (auto nodes = count("NNodes")) job_.nodes = static_cast<std::uint32_t>(nodes);
    auto tasks = std::max<std::uint64_t>(count("NTasks"), std::max(job_.nodes, 1u));
    if (cpus == 0) return wrong(TraceProblemKind::kMissingField, "NCPUS", "a number of CPUs");
    job_.tasks = static_cast<std::uint32_t>(std::min(tasks, cpus));
    job_.cpus_milli = static_cast<std::uint32_t>((cpus + job_.tasks - 1) / job_.tasks * 1000);
    job_.memory_mib = memory_ / job_.tasks;
    if (job_.gpus > 0 && job_.nodes > 0 && job_.gpus % job_.nodes == 0)
      job_.gpus_per_node = job_.gpus / job_.nodes;
    return true;
  }

  TraceBuilder& out_;
  std::map<std::string, std::size_t> columns_;
  const std::vector<std::string_view>* fields_ = nullptr;
  TraceJob job_;
  std::uint64_t memory_ = 0;
};

}  // namespace

Result<Trace> read_sacct(std::string_view text) {
  DelimitedRows rows(text, '|');
  if (!rows.next()) return invalid("an empty file, expected what sacct --parsable2 prints");
  std::string kept = join(rows.fields(), "\n");
  TraceBuilder out;
  SacctReader reader(out, split(kept, '\n'));
  if (auto missing = reader.missing(); !missing.empty())
    return invalid(fmt::format(
        "the header has no column {} (sacct --parsable2 --allusers "
        "--format=JobID,Submit,Elapsed,Timelimit,State,NNodes,NCPUS,ReqMem,AllocTRES,User,Account,"
        "Partition)",
        join(missing, ", ")));
  std::uint64_t position = 0;
  while (rows.next()) reader.read(rows.fields(), rows.line(), ++position);
  return out.take();
}

}  // namespace tutti::simulator
