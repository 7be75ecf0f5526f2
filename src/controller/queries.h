// Answers to readers, from a published picture. Pure: picture and query in, JSON out.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "controller/published.h"
#include "model/views.h"

namespace tutti::controller {

using Query = std::map<std::string, std::string>;

struct About {  // of this controller
  std::string version, host;
  Instant started;
};

// GET /v1/state as JSON text. Errors: kInvalid for a malformed parameter.
Result<std::string> state_json(const Published& picture, const Query& query, const About& about,
                               Instant now);
// One workload as readers see it
// (without its resource limits and its environment's name). The first form makes the basis each time.
WorkloadView view_of(const Published& picture, const WorkloadEntry& entry, Instant now);
WorkloadView view_of(const Published& picture, const WorkloadEntry& entry, Instant now,
                     const scheduler::PriorityBasis& basis);

// The record that history keeps of a gang, or of what never started (gang == nullptr).
JobRecord record_of(const ClusterState& state, const WorkloadEntry& entry, const Gang* gang, Instant now);
// Records of everything that is still in memory and passes the filter of GET /v1/history.
std::vector<JobRecord> live_records(const Published& picture, const Query& query, Instant now);

// GET /v1/why. `ended`: what history has of the job, its earlier lives among it, oldest first.
// Errors: kNotFound.
Result<WhyReply> why(const Published& picture, std::uint32_t job, std::optional<std::uint32_t> index,
                     const std::vector<JobRecord>& ended, Instant now);

// "12", "12_3", "12_[1-4]"; a comma-separated list of such. Errors: kInvalid.
struct JobName {
  std::uint32_t job = 0;
  std::string array;  // index set or ""
};
Result<std::vector<JobName>> parse_job_names(const std::string& text);

}  // namespace tutti::controller
