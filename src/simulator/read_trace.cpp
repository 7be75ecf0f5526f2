#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "simulator/trace.h"

namespace tutti::simulator {

namespace {

std::string_view first_line(std::string_view text) {
  while (!text.empty()) {
    auto end = text.find('\n');
    std::string_view line = trim(text.substr(0, end));
    if (!line.empty()) return line;
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return {};
}

bool looks_like_swf(std::string_view line) {
  if (line.starts_with(';')) return true;
  auto words = split(line, ' ', EmptyPieces::kDrop);
  return words.size() >= 9 && std::all_of(words.begin(), words.end(), [](std::string_view word) {
           return std::all_of(word.begin(), word.end(), [](char c) {
             return is_digit(c) || c == '-' || c == '.' || c == '\t';
           });
         });
}

// The first ready mapping whose columns are all in the header, with the most columns.
const CsvMapping* mapping_for(std::string_view header) {
  const CsvMapping* best = nullptr;
  auto names = split(header, ',');
  for (const CsvMapping& mapping : ready_mappings()) {
    if (!mapping.has_header) continue;
    bool all = std::all_of(mapping.columns.begin(), mapping.columns.end(), [&](const auto& column) {
      return std::find(names.begin(), names.end(), std::string_view(column.column)) != names.end();
    });
    if (all && (!best || mapping.columns.size() > best->columns.size())) best = &mapping;
  }
  return best;
}

}  // namespace

Result<Trace> read_trace(std::string_view text, std::string source, TraceFormat format,
                         const CsvMapping* mapping) {
  std::string_view line = first_line(text);
  if (line.empty()) return invalid(fmt::format("{}: an empty file", source));
  if (format == TraceFormat::kAuto && mapping) format = TraceFormat::kCsv;
  if (format == TraceFormat::kAuto) {
    if (looks_like_swf(line)) {
      format = TraceFormat::kSwf;
    } else if (starts_with_ci(line, "JobID") && line.find('|') != std::string_view::npos) {
      format = TraceFormat::kSacct;
    } else {
      mapping = mapping_for(line);
      format = TraceFormat::kCsv;
    }
  }
  Result<Trace> trace = Trace{};
  switch (format) {
    case TraceFormat::kSwf:
      trace = read_swf(text);
      break;
    case TraceFormat::kSacct:
      trace = read_sacct(text);
      break;
    case TraceFormat::kAuto:
    case TraceFormat::kCsv:
      if (!mapping) {
        std::vector<std::string_view> names;
        for (const CsvMapping& ready : ready_mappings()) names.push_back(ready.name);
        return invalid(fmt::format(
            "{}: neither SWF nor sacct's, and no public trace has these columns: {}; say "
            "--columns 'submit=COLUMN run=COLUMN gpus=COLUMN ...' or --columns {}",
            source, quote(line), join(names, "|")));
      }
      trace = read_csv(text, *mapping);
  }
  if (!trace) {
    Error error = trace.error();
    error.span.file = source;
    return tl::make_unexpected(std::move(error));
  }
  trace->source = std::move(source);
  return trace;
}

}  // namespace tutti::simulator
