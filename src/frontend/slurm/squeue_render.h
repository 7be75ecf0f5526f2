// squeue's output from the controller's tables. Which rows, in which order, in which format.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "frontend/slurm/view_job.h"
#include "frontend/slurm/view_text.h"
#include "model/listing_reader.h"

namespace tutti::slurm {

inline constexpr std::string_view kSqueueDefault = "%.18i %.9P %.8j %.8u %.2t %.10M %.6D %R";
inline constexpr std::string_view kSqueueLong = "%.18i %.9P %.8j %.8u %.8T %.10M %.9l %.6D %R";
inline constexpr std::string_view kSqueueStart = "%.18i %.9P %.8j %.8u %.2t %.19S %.6D %20Y %R";
inline constexpr std::string_view kSqueueSteps = "%.15i %.8j %.9P %.8u %.9M %N";

struct JobSelector {
  std::uint32_t job = 0;  // workload or gang number
  std::optional<std::uint32_t> array_index;
  std::optional<std::int32_t> step;  // of squeue -s
};
// Empty lists select everything. Applied whether or not the controller did so already.
struct JobFilter {
  std::vector<JobSelector> jobs;
  std::vector<std::string> users;  // names or numbers
  std::vector<std::string> partitions, accounts, qos, names, nodes, reservations, licenses;
  std::vector<JobState> states;  // empty: the active ones, unless all_states
  bool all_states = false;
};

struct SqueueOptions {
  enum class Kind : std::uint8_t { kJobs, kSteps, kStart } kind = Kind::kJobs;
  std::string format;       // -o; "" = what kind and long_form say
  std::string name_format;  // -O; wins over format when not empty
  bool long_form = false;   // -l: also the line with the time
  bool no_header = false;
  bool only_job_state = false;  // newer squeue: "%i %t" of every row
  Units units = Units::kConvert;
  ArrayRows arrays = ArrayRows::kFolded;
  std::string sort;  // -S: letters with '+' or '-' before, commas between; "" = the kind's own
  JobFilter filter;
  TimeText times;
};

// Errors are in the output as squeue gives them: unknown letters and names are told on stderr and
// the rest is printed; a single job id that is unknown is "Invalid job id specified", exit 1.
// Cost: linear in rows plus their sort; about a microsecond a row in the default format.
Output render_squeue(const StateView& view, const SqueueOptions& options);
Output render_squeue_json(const StateView& view, const SqueueOptions& options);

// The same table from a listing, a job at a time; for what listing_suffices() says yes to: the
// columns, order and filters of everyday use. All of the text but the last piece goes through `print`.
// Errors: kInvalid (the listing is damaged), before anything is printed.
using Print = std::function<void(std::string_view)>;
bool listing_suffices(const SqueueOptions& options);
Result<Output> render_squeue(ListingReader& listing, const SqueueOptions& options, const Print& print);

// Rows that pass, in squeue's order; also the base of scontrol show job and the JSON form.
bool passes(const JobRow& row, const JobFilter& filter);
// Sorts by `spec`; unknown letters are returned. Ties: job id, array index, component.
std::string sort_jobs(std::vector<JobRow>& rows, std::string_view spec, const StateView& view,
                      const TimeText& times);

// Which parts of the state a format needs (the `with=` of the request), so that the everyday
// listing asks for no nodes.
struct ViewNeeds {
  bool nodes = false, partitions = false, spec = false;
};
ViewNeeds squeue_needs(const SqueueOptions& options);

}  // namespace tutti::slurm
