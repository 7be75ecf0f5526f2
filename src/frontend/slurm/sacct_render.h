// sacct's output from what history keeps: a row per job and one per step of it.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/slurm/squeue_render.h"
#include "frontend/slurm/view_job.h"
#include "frontend/slurm/view_text.h"

namespace tutti::slurm {

inline constexpr std::string_view kSacctDefault =
    "jobid,jobname,partition,account,alloccpus,state,exitcode";
inline constexpr std::string_view kSacctBrief = "jobid,state,exitcode";  // -b

struct SacctOptions {
  std::string format;  // -o; "" = kSacctDefault
  bool no_header = false;
  bool allocations = false;  // -X: no steps
  bool duplicates = false;   // -D: earlier lives of a requeued job too
  enum class Layout : std::uint8_t { kTable, kParsable, kParsable2 } layout = Layout::kTable;
  std::string delimiter = "|";
  char units = 0;  // --units: K M G T P; 0 = the greatest without loss
  Units convert = Units::kConvert;
  // `states` here is sacct's -s; empty means every state, whatever all_states says.
  JobFilter filter;
  std::optional<Instant> from, to;  // jobs that existed in between
  TimeText times;
};

// Errors: an unknown field is "Invalid field requested", exit 1, and nothing is printed. Unknown
// jobs are a header only, exit 0, as Slurm has it. Cost: linear in records and their steps.
Output render_sacct(HistoryView history, const SacctOptions& options);
Output render_sacct_json(HistoryView history, const SacctOptions& options);
// The names that -o takes, four a line (sacct -e).
std::string sacct_help_format();

// A row: a job, or one of its steps.
struct SacctRow {
  JobRow job;
  const Step* step = nullptr;
  std::string_view gpu_type;  // of what it holds
  std::string_view cluster;
};
// The records as rows to print, selected and in order. `store` keeps what the rows point into.
struct SacctStore {
  std::deque<WorkloadView> views;
  std::deque<std::string> texts;
};
std::vector<SacctRow> sacct_rows(HistoryView history, const SacctOptions& options,
                                 SacctStore& store);
JobState step_state(const SacctRow& row);

struct SacctField {
  std::string_view name;
  std::int32_t width = 10;  // negative: left-justified
  void (*write)(const SacctOptions&, const SacctRow&, std::string& out) = nullptr;
};
std::span<const SacctField> sacct_fields();
// Any case; an unambiguous or first-matching beginning is enough, as in sacct.
const SacctField* find_sacct_field(std::string_view name);

}  // namespace tutti::slurm
