#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "simulator/trace.h"

namespace tutti::simulator {

namespace {

using std::string_view_literals::operator""sv;

struct Field {
  std::string_view name;
  std::string_view units;  // by blanks, the first is the default; "" = none
};
constexpr std::string_view kTimeUnits = "s ms us min h iso";
constexpr std::array kFields{
    Field{"number", ""},
    Field{"name", ""},
    Field{"submit", kTimeUnits},
    Field{"start", kTimeUnits},
    Field{"end", kTimeUnits},
    Field{"run", kTimeUnits},
    Field{"limit", kTimeUnits},
    Field{"nodes", ""},
    Field{"tasks", ""},
    Field{"cpus", "each milli"},
    Field{"memory", "mib kib gib bytes"},
    Field{"gpus", ""},
    Field{"gpus_per_node", ""},
    Field{"gpu_share", "milli percent one"},
    Field{"gpu_type", ""},
    Field{"user", ""},
    Field{"account", ""},
    Field{"partition", ""},
    Field{"application", ""},
    Field{"priority", ""},
    Field{"iterations", ""},
    Field{"iteration_time", kTimeUnits},
    Field{"state", ""},
};

Result<CsvMapping::Column> parse_column(std::string_view word) {
  auto parts = split_once(word, '=');
  if (!parts || parts->second.empty())
    return invalid(fmt::format("{}: expected FIELD=COLUMN[:UNIT]", quote(word)));
  const auto* field = std::find_if(kFields.begin(), kFields.end(),
                                   [&](const Field& f) { return f.name == parts->first; });
  if (field == kFields.end()) {
    std::vector<std::string_view> names;
    for (const Field& known : kFields) names.push_back(known.name);
    auto near = closest_match(parts->first, names);
    return invalid(fmt::format(
        "{}: no field of a job; {}", quote(parts->first),
        near ? fmt::format("did you mean {}?", quote(*near)) : "there are " + join(names, ", ")));
  }
  CsvMapping::Column column{std::string(field->name), std::string(parts->second), ""};
  if (field->units.empty()) return column;
  auto units = split(field->units, ' ');
  column.unit = std::string(units.front());
  auto colon = parts->second.rfind(':');
  if (colon == std::string_view::npos) return column;
  std::string_view unit = parts->second.substr(colon + 1);
  if (std::find(units.begin(), units.end(), unit) == units.end())
    return invalid(fmt::format("{}: no unit of {}; there are {}", quote(unit), field->name,
                               join(units, ", ")));
  column.unit = std::string(unit);
  column.column = std::string(parts->second.substr(0, colon));
  return column;
}

struct Ready {
  std::string_view name, sentence, columns;
  char separator = ',';
  bool has_header = true;
};
constexpr std::array kReady{
    Ready{"batsim", "Batsim's out_jobs.csv: resources are processors",
          "number=job_id submit=submission_time run=execution_time limit=requested_time "
          "tasks=requested_number_of_resources"},
    Ready{"elasticflow", "ElasticFlow's Philly traces",
          "number=job_id submit=submit_time run=duration gpus=num_gpu application=model_name"},
    Ready{"muri", "Muri's Philly traces: milliseconds, with iterations beside the duration",
          "number=job_id submit=submit_time:ms run=duration:ms gpus=num_gpu "
          "iterations=iterations iteration_time=iteration_time:ms application=model_name "
          "priority=priority"},
    Ready{"openb", "Alibaba's cluster-trace-gpu-v2023: pods with parts of GPUs",
          "name=name submit=creation_time start=scheduled_time end=deletion_time "
          "cpus=cpu_milli:milli memory=memory_mib gpus=num_gpu gpu_share=gpu_milli "
          "gpu_type=gpu_spec account=qos"},
    Ready{"shockwave", "Shockwave's dynamic traces: durations and arrival times, no header",
          "submit=#12 run=#11 gpus=#7 iterations=#6 application=#1", '\t', false},
    Ready{"tiresias", "Tiresias' 60-job trace",
          "number=job_id submit=submit_time run=duration gpus=num_gpu iterations=iterations "
          "application=model_name"},
};

}  // namespace

Result<CsvMapping> parse_csv_mapping(std::string_view text) {
  CsvMapping mapping;
  mapping.name = "own";
  std::string blanks(text);
  std::replace(blanks.begin(), blanks.end(), ',', ' ');
  for (std::string_view word : split(blanks, ' ', EmptyPieces::kDrop)) {
    auto column = parse_column(word);
    if (!column) return tl::make_unexpected(column.error());
    for (const auto& known : mapping.columns)
      if (known.field == column->field)
        return invalid(fmt::format("field {} is mapped twice", quote(column->field)));
    mapping.columns.push_back(std::move(*column));
  }
  auto has = [&](std::string_view field) {
    return std::any_of(mapping.columns.begin(), mapping.columns.end(),
                       [&](const auto& column) { return column.field == field; });
  };
  if (!has("submit")) return invalid("the mapping has no submit=COLUMN");
  return mapping;
}

const std::vector<CsvMapping>& ready_mappings() {
  static const std::vector<CsvMapping> kMappings = [] {
    std::vector<CsvMapping> all;
    for (const Ready& ready : kReady) {
      CsvMapping mapping = *parse_csv_mapping(ready.columns);
      mapping.name = std::string(ready.name);
      mapping.sentence = std::string(ready.sentence);
      mapping.separator = ready.separator;
      mapping.has_header = ready.has_header;
      all.push_back(std::move(mapping));
    }
    return all;
  }();
  return kMappings;
}

const CsvMapping* find_ready_mapping(std::string_view name) {
  for (const CsvMapping& mapping : ready_mappings())
    if (mapping.name == name) return &mapping;
  return nullptr;
}

}  // namespace tutti::simulator
