// The fields of squeue: which letter of -o and which name of -O means what, the header word, and
// the text for a row. Source: squeue(1) of 22.05 and the output of that version.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/slurm/view_format.h"
#include "frontend/slurm/view_job.h"

namespace tutti::slurm {

// What every field may need besides the row.
struct JobContext {
  const StateView* view = nullptr;
  const TimeText* times = nullptr;
  Units units = Units::kConvert;
  std::vector<std::uint32_t> arrays;  // array_ids(), when a field asks for dependencies
};

struct JobField {
  char letter = 0;          // 0: only by name
  std::string_view name;    // of -O, lower case; "" = only by letter
  std::string_view header;  // the word in the first line
  void (*write)(const JobContext&, const JobRow&, std::string& out) = nullptr;
};
std::span<const JobField> job_fields();
// Indices into job_fields(), kTextOnly when unknown. Some fields have several names.
std::uint32_t job_field_by_letter(char letter);
std::uint32_t job_field_by_name(std::string_view lower_name);
inline constexpr std::string_view kAllJobLetters =
    "abcdefghjklmnopqrstuvwxyziABCDEFGHIJKLMNOPQRSTUVWXYZ";

// A step of a gang that runs, for squeue -s and scontrol show step.
struct StepRow {
  JobRow job;
  const Step* step = nullptr;
};
struct StepField {
  char letter = 0;
  std::string_view name;
  std::string_view header;
  void (*write)(const JobContext&, const StepRow&, std::string& out) = nullptr;
};
std::span<const StepField> step_fields();
std::uint32_t step_field_by_letter(char letter);
std::uint32_t step_field_by_name(std::string_view lower_name);
// Steps that are not over, by gang: numbered ones first, then batch, extern, interactive.
std::vector<StepRow> step_rows(const StateView& view);
// "31.0", "26_1.batch".
std::string step_id(const StepRow& row);
std::string_view step_name_word(StepId id);  // "batch", "extern", "interactive", "" for a number
std::vector<std::string> step_nodes(const StepRow& row);
std::uint32_t step_tasks(const Step& step);

}  // namespace tutti::slurm
