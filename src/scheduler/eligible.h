// Eligible: which elements may be considered at all, before anybody looks for room. Holds, begin
// times, back-offs, dependencies, array throttles.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "scheduler/plan.h"

namespace tutti::scheduler {

// Answers about one state at one time; keeps what several elements ask for.
class Eligibility {
 public:
  Eligibility(const ClusterState& state, Instant now) : state_(state), now_(now) {}

  // `array_index`: of an element that has no gang yet.
  std::optional<Ineligible> check(const WorkloadEntry& entry, const Gang* gang,
                                  std::optional<std::uint32_t> array_index);
  // How many more elements of the array may start beside those that hold slots; no bound without a
  // throttle.
  std::uint32_t throttle_room(const WorkloadEntry& entry) const;

 private:
  enum class Outlook : std::uint8_t { kMet, kOpen, kNever };
  struct Finding {
    Outlook outlook = Outlook::kMet;
    Instant until;  // when a delay ends, for kOpen
  };
  std::optional<Ineligible> check_dependencies(const WorkloadEntry& entry,
                                               std::optional<std::uint32_t> array_index);
  Finding judge(const WorkloadEntry& entry, const Dependency& dependency,
                std::optional<std::uint32_t> array_index);
  // A whole job or array: judged when the last element is over (afterok and its like).
  Finding judge_all(const Dependency& dependency, const WorkloadEntry& on) const;
  Finding judge_singleton(const WorkloadEntry& entry);
  Finding judge_element(const Dependency& dependency, const WorkloadEntry& on,
                        std::uint32_t index) const;
  Finding judge_gang(const Dependency& dependency, const Gang& gang) const;

  const ClusterState& state_;
  Instant now_;
  // Lowest number of an open workload by (uid, name); made at the first singleton.
  std::optional<std::map<std::pair<std::uint32_t, std::string>, WorkloadId>> first_of_name_;
};

}  // namespace tutti::scheduler
