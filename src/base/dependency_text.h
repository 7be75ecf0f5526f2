// What a job waits for: the grammar of --dependency. Source of the rules: sbatch(1).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace tutti {

enum class DependencyWord : std::uint8_t {
  kAfter,       // has started (or was cancelled), plus minutes
  kAfterAny,    // has ended, however
  kAfterOk,     // has ended with exit code 0
  kAfterNotOk,  // has ended otherwise
  kAfterCorr,   // the task of the same index of that array has ended with exit code 0
  kSingleton,   // no other job of that name and user is before it
};

struct JobReference {
  std::uint32_t job = 0;
  std::optional<std::uint32_t> task;  // one task of an array; none: the whole job or array
  std::uint32_t minutes = 0;          // kAfter only: that long after its start
  friend bool operator==(const JobReference&, const JobReference&) = default;
};

struct DependencyTerm {
  DependencyWord kind = DependencyWord::kAfterAny;
  std::vector<JobReference> jobs;  // empty for kSingleton alone
  friend bool operator==(const DependencyTerm&, const DependencyTerm&) = default;
};

struct DependencyList {
  std::vector<DependencyTerm> dependencies;
  bool any = false;  // '?' between them: one is enough; ',': all
  friend bool operator==(const DependencyList&, const DependencyList&) = default;
};

// "afterok:12:13_4,afterany:5", "after:5+10?singleton", "12" (afterany), "afterany:12_*". Kinds in
// any case. Errors: kInvalid, reason "invalid_dependency": an unknown kind (with the nearest known
// one), expand and afterburstbuffer, which Tutti does not have, ',' and '?' in one list, job 0.
Result<DependencyList> parse_dependencies(std::string_view text);
std::string_view dependency_word_name(DependencyWord kind);
std::string to_string(const DependencyTerm& dependency);
std::string to_string(const DependencyList& list);

}  // namespace tutti
