// TraceBuilder: what all readers do with a job they have read: words get a number, problems are
// counted, jobs are put in order. Internal to simulator/.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "simulator/trace.h"

namespace tutti::simulator {

class TraceBuilder {
 public:
  std::uint32_t word(std::string_view text);  // 0 for none
  void problem(TraceProblemKind kind, std::uint32_t line, std::string text) {
    trace_.problems.add(kind, line, std::move(text));
  }
  void header(std::string key, std::string value) {
    trace_.header[std::move(key)] = std::move(value);
  }
  // Looks at the job as a whole and keeps it unless something is wrong with it.
  void add(TraceJob job);
  Trace take();

 private:
  Trace trace_;
  std::unordered_map<std::string, std::uint32_t> numbers_;  // looked up, never iterated
  std::unordered_set<std::uint64_t> known_;                 // looked up, never iterated
};

// "12", "-1", "3.5" as thousandths, rounded to the nearest; nullopt when it is no number. Exact for
// up to 15 digits.
std::optional<std::int64_t> parse_thousandths(std::string_view text);

}  // namespace tutti::simulator
