// Answers to readers, from a published picture. Pure: picture and query in, JSON out.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "controller/published.h"
#include "controller/waits.h"
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
// One workload as readers see it (without its resource limits and its environment's name). The first
// form makes the rest each time.
WorkloadView view_of(const Published& picture, const WorkloadEntry& entry, Instant now);
WorkloadView view_of(const Waits& waits, const WorkloadEntry& entry,
                     const scheduler::PriorityBasis& basis);

// GET /v1/listing: all workloads with something open, or really all of them, as model/listing.h
// packs them. Cost: well below a microsecond a job.
enum class Listed : std::uint8_t { kOpen, kAll };
std::string listing(const Published& picture, Listed which, Instant now);

// The first of the partitions asked for; null if there is none such.
const PartitionSpec* partition_of(const ClusterSpec& spec, const Workload& workload);
// When it was first free to start, by its own wish.
inline Instant eligible_time(const Workload& w) { return std::max(w.submitted, w.begin); }

// The record that history keeps of a gang, or of what never started (gang == nullptr).
// AccountsView as JSON.
std::string accounts_json(const Published& picture, Instant now);
JobRecord record_of(const ClusterState& state, const WorkloadEntry& entry, const Gang* gang, Instant now,
                    const scheduler::PriorityBasis* basis = nullptr);
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
