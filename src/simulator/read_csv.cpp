#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/civil_time.h"
#include "base/text.h"
#include "base/time_text.h"
#include "simulator/delimited.h"
#include "simulator/trace_builder.h"

namespace tutti::simulator {

namespace {

// A column of the mapping found in the text.
struct Source {
  const CsvMapping::Column* column = nullptr;
  std::size_t at = 0;
};

Result<std::vector<Source>> find_columns(const CsvMapping& mapping,
                                         const std::vector<std::string_view>& header) {
  std::vector<Source> out;
  std::vector<std::string> missing;
  for (const auto& column : mapping.columns) {
    if (column.column.starts_with('#')) {
      auto position = parse_integer<std::size_t>(std::string_view(column.column).substr(1));
      if (!position || *position == 0)
        return invalid(fmt::format("{}: a column is its name or #1, #2...", quote(column.column)));
      out.push_back({&column, *position - 1});
      continue;
    }
    auto found = std::find(header.begin(), header.end(), std::string_view(column.column));
    if (found == header.end()) {
      // Some lists of a trace leave out what the pods of others have.
      if (mapping.name == "own" || column.field == "submit") missing.push_back(column.column);
      continue;
    }
    out.push_back({&column, static_cast<std::size_t>(found - header.begin())});
  }
  if (missing.empty()) return out;
  Error error{ErrorCode::kInvalid,
              "no_such_column",
              fmt::format("the header has no column {}; it has {}", join(missing, ", "),
                          join(header, ", ")),
              {}};
  error.span.line = 1;
  return tl::make_unexpected(std::move(error));
}

class RowReader {
 public:
  RowReader(TraceBuilder& out, const std::vector<Source>& sources) : out_(out), sources_(sources) {}

  void read(const std::vector<std::string_view>& fields, std::uint32_t line,
            std::uint64_t position) {
    job_ = {};
    job_.line = line;
    job_.number = position;
    start_.reset();
    end_.reset();
    has_run_ = false;
    for (const Source& source : sources_) {
      std::string_view text = source.at < fields.size() ? fields[source.at] : "";
      if (text.empty()) {
        if (!is_needed(source.column->field)) continue;
        return out_.problem(TraceProblemKind::kMissingField, line,
                            fmt::format("no {}", source.column->column));
      }
      if (!read_field(*source.column, text)) return;
    }
    if (!has_run_ && start_ && end_) job_.run = *end_ - *start_;
    if (job_.cpus_milli == 0 && job_.gpus == 0 && tasks_given_) job_.cpus_milli = 1000;
    out_.add(job_);
  }

 private:
  static bool is_needed(std::string_view field) { return field == "submit" || field == "run"; }

  bool wrong(const CsvMapping::Column& column, std::string_view text, std::string_view expected) {
    out_.problem(TraceProblemKind::kNotANumber, job_.line,
                 fmt::format("{} is {}, expected {}", column.column, quote(text), expected));
    return false;
  }

  std::optional<std::int64_t> time_ms(const CsvMapping::Column& column, std::string_view text) {
    if (column.unit == "iso") {
      bool zoned = text.ends_with('Z');
      if (zoned) text.remove_suffix(1);
      if (seen_zone_ && *seen_zone_ != zoned) {
        out_.problem(TraceProblemKind::kMixedTimeZones, job_.line,
                     fmt::format("{} is {}", column.column, quote(text)));
        return std::nullopt;
      }
      seen_zone_ = zoned;
      auto dot = text.find('.');
      auto whole = parse_time(text.substr(0, dot), Instant(), UtcZone());
      if (!whole) {
        wrong(column, text, "a time such as 2024-01-02T03:04:05");
        return std::nullopt;
      }
      auto rest = dot == std::string_view::npos
                      ? std::optional<std::int64_t>(0)
                      : parse_thousandths("0" + std::string(text.substr(dot)));
      return whole->ms() + rest.value_or(0);
    }
    auto value = parse_thousandths(text);
    if (!value) {
      wrong(column, text, "a number");
      return std::nullopt;
    }
    if (column.unit == "ms") return *value / 1000;
    if (column.unit == "us") return *value / 1'000'000;
    if (column.unit == "min") return *value * 60;
    if (column.unit == "h") return *value * 3600;
    return *value;
  }

  // Whole, not negative.
  bool number(const CsvMapping::Column& column, std::string_view text, auto& target,
              std::int64_t multiply = 1000, std::int64_t divide = 1000) {
    using Target = std::decay_t<decltype(target)>;
    auto value = parse_thousandths(text);
    if (!value || *value < 0) return wrong(column, text, "a number from 0");
    std::int64_t scaled = (*value * multiply / 1000 + divide - 1) / divide;
    if (static_cast<std::uint64_t>(scaled) > std::numeric_limits<Target>::max())
      return wrong(column, text, "a smaller number");
    target = static_cast<Target>(scaled);
    return true;
  }

  bool read_time(const CsvMapping::Column& column, std::string_view text) {
    auto ms = time_ms(column, text);
    if (!ms) return false;
    const std::string& field = column.field;
    if (*ms < 0 && (field == "submit" || field == "run")) {
      out_.problem(TraceProblemKind::kNegativeTime, job_.line,
                   fmt::format("{} is {}", column.column, quote(text)));
      return false;
    }
    if (field == "submit") job_.submit = Instant::from_ms(*ms);
    if (field == "start") start_ = Instant::from_ms(*ms);
    if (field == "end") end_ = Instant::from_ms(*ms);
    if (field == "limit" && *ms > 0) job_.limit = Duration::milliseconds(*ms);
    if (field == "iteration_time") job_.iteration_ms = static_cast<std::uint64_t>(*ms);
    if (field == "run") {
      job_.run = Duration::milliseconds(*ms);
      has_run_ = true;
    }
    return true;
  }

  bool read_field(const CsvMapping::Column& column, std::string_view text) {
    const std::string& field = column.field;
    if (field == "submit" || field == "start" || field == "end" || field == "run" ||
        field == "limit" || field == "iteration_time")
      return read_time(column, text);
    if (field == "nodes") return number(column, text, job_.nodes);
    if (field == "tasks") {
      tasks_given_ = true;
      return number(column, text, job_.tasks);
    }
    if (field == "cpus")
      return number(column, text, job_.cpus_milli, column.unit == "milli" ? 1000 : 1'000'000);
    if (field == "memory") return read_memory(column, text);
    if (field == "gpus") return number(column, text, job_.gpus);
    if (field == "gpus_per_node") return number(column, text, job_.gpus_per_node);
    if (field == "gpu_share") {
      std::int64_t multiply = column.unit == "percent" ? 10'000
                              : column.unit == "one"   ? 1'000'000
                                                       : 1000;
      return number(column, text, job_.gpu_permille, multiply);
    }
    if (field == "iterations") return number(column, text, job_.iterations);
    if (field == "number") return number(column, text, job_.number);
    if (field == "priority") {
      auto value = parse_thousandths(text);
      if (!value) return wrong(column, text, "a number");
      job_.priority = static_cast<std::int32_t>(*value / 1000);
      return true;
    }
    read_word(field, text);
    return true;
  }

  bool read_memory(const CsvMapping::Column& column, std::string_view text) {
    if (column.unit == "gib") return number(column, text, job_.memory_mib, 1'024'000);
    if (column.unit == "kib") return number(column, text, job_.memory_mib, 1000, 1'024'000);
    if (column.unit == "bytes") return number(column, text, job_.memory_mib, 1000, 1'048'576'000);
    return number(column, text, job_.memory_mib);
  }

  void read_word(std::string_view field, std::string_view text) {
    if (field == "gpu_type") job_.gpu_types = out_.word(text);
    if (field == "user") job_.user = out_.word(text);
    if (field == "account") job_.account = out_.word(text);
    if (field == "partition") job_.partition = out_.word(text);
    if (field == "application") job_.application = out_.word(text);
    if (field != "state") return;
    std::string state = lower(text);
    if (state.starts_with("compl") || state.starts_with("succ")) job_.end = TraceEnd::kCompleted;
    if (state.starts_with("fail")) job_.end = TraceEnd::kFailed;
    if (state.starts_with("cancel") || state.starts_with("kill")) job_.end = TraceEnd::kCancelled;
  }

  TraceBuilder& out_;
  const std::vector<Source>& sources_;
  TraceJob job_;
  std::optional<Instant> start_, end_;
  bool has_run_ = false, tasks_given_ = false;
  std::optional<bool> seen_zone_;
};

}  // namespace

Result<Trace> read_csv(std::string_view text, const CsvMapping& mapping) {
  DelimitedRows rows(text, mapping.separator);
  std::vector<std::string_view> header;
  std::string kept;
  if (mapping.has_header) {
    if (!rows.next()) return invalid("an empty file, expected a line of column names");
    kept = join(rows.fields(), "\n");
    header = split(kept, '\n');
  }
  auto sources = find_columns(mapping, header);
  if (!sources) return tl::make_unexpected(sources.error());
  TraceBuilder out;
  RowReader reader(out, *sources);
  std::uint64_t position = 0;
  while (rows.next()) reader.read(rows.fields(), rows.line(), ++position);
  return out.take();
}

}  // namespace tutti::simulator
