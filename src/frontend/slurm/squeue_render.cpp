#include "frontend/slurm/squeue_render.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "frontend/slurm/squeue_fields.h"
#include "frontend/slurm/squeue_order.h"
#include "frontend/slurm/view_format.h"

namespace tutti::slurm {
namespace {

using Kind = SqueueOptions::Kind;

constexpr std::string_view kInvalidJobId = "slurm_load_jobs error: Invalid job id specified\n";

template <class Field>
void print_header(std::span<const Field> fields, const ParsedFormat& format, std::string& out) {
  for (const FormatColumn& column : format.columns) {
    if (column.field != kTextOnly) append_cell(out, fields[column.field].header, column.shape);
    out += column.suffix;
  }
  out += '\n';
}

template <class Field, class Row>
void print_row(std::span<const Field> fields, const ParsedFormat& format, const JobContext& context,
               const Row& row, std::string& cell, std::string& out) {
  for (const FormatColumn& column : format.columns) {
    if (column.field != kTextOnly) {
      cell.clear();
      fields[column.field].write(context, row, cell);
      append_cell(out, cell, column.shape);
    }
    out += column.suffix;
  }
  out += '\n';
}

// One table of fields (jobs or steps) with a parsed format; Row is JobRow or StepRow.
template <class Field, class Row>
void print_table(std::span<const Field> fields, const ParsedFormat& format,
                 const JobContext& context, const std::vector<Row>& rows, bool header,
                 std::string& out) {
  if (header) print_header(fields, format, out);
  std::string cell;
  for (const Row& row : rows) print_row(fields, format, context, row, cell, out);
}

std::string_view row_order(const SqueueOptions& o) {
  if (!o.sort.empty()) return o.sort;
  return o.kind == Kind::kStart ? "S" : "P,t,-p";
}

JobFilter row_filter(const SqueueOptions& o) {
  JobFilter filter = o.filter;
  if (o.kind == Kind::kStart && filter.states.empty() && !filter.all_states)
    filter.states = {JobState::kPending};
  return filter;
}

constexpr std::size_t kPrintBytes = std::size_t{64} << 10;

// What a listing (model/listing.h) has: letters of -o.
constexpr std::string_view kListedLetters = "aABcCDeFgGijKlLMNpPqQrRStTuUVy";

void report_unknown_order(std::string_view letters, std::string& errors) {
  for (char c : letters) errors += fmt::format("squeue: error: Invalid sort specification: {}\n", c);
}

std::string_view letter_format(const SqueueOptions& o) {
  if (!o.format.empty()) return o.format;
  if (o.kind == Kind::kSteps) return kSqueueSteps;
  if (o.only_job_state) return "%i %t";
  if (o.kind == Kind::kStart) return kSqueueStart;
  return o.long_form ? kSqueueLong : kSqueueDefault;
}

ParsedFormat parse_job_format(const SqueueOptions& o) {
  if (!o.name_format.empty()) return parse_name_format(o.name_format, job_field_by_name);
  return parse_letter_format(letter_format(o), job_field_by_letter, kAllJobLetters);
}

void report_unknown(const ParsedFormat& format, std::string_view kind, std::string& errors) {
  for (const std::string& word : format.unknown)
    errors += fmt::format("squeue: error: Invalid {} format specification: {}\n", kind, word);
}

// A single id that names nothing; more than one is silence, as Slurm has it.
bool single_job_unknown(const StateView& view, const JobFilter& filter) {
  if (filter.jobs.size() != 1) return false;
  std::uint32_t id = filter.jobs.front().job;
  for (const WorkloadView& w : view.workloads) {
    if (w.workload.id.value() == id) return false;
    for (const GangView& g : w.gangs)
      if (g.gang.id.value() == id) return false;
  }
  return true;
}

bool step_passes(const StepRow& row, const JobFilter& filter) {
  JobFilter of_job = filter;
  of_job.jobs.clear();
  of_job.states.clear();
  of_job.all_states = true;
  // With steps, -n and -A name nothing of the step itself; Slurm ignores the account.
  of_job.accounts.clear();
  of_job.names.clear();
  if (!passes(row.job, of_job)) return false;
  if (!filter.names.empty() &&
      std::find(filter.names.begin(), filter.names.end(), row.step->name) == filter.names.end())
    return false;
  if (filter.jobs.empty()) return true;
  return std::any_of(filter.jobs.begin(), filter.jobs.end(), [&](const JobSelector& s) {
    JobFilter one;
    one.all_states = true;
    one.jobs.push_back(s);
    return passes(row.job, one) && (!s.step || *s.step == row.step->id);
  });
}

Output render_steps(const StateView& view, const SqueueOptions& o) {
  Output out;
  JobContext context{&view, &o.times, o.units, {}};
  ParsedFormat format =
      o.name_format.empty()
          ? parse_letter_format(letter_format(o), step_field_by_letter, "AbijlMNPSuU")
          : parse_name_format(o.name_format, step_field_by_name);
  report_unknown(format, "job step", out.errors);
  std::vector<StepRow> rows = step_rows(view);
  std::erase_if(rows, [&](const StepRow& row) { return !step_passes(row, o.filter); });
  std::stable_sort(rows.begin(), rows.end(), [](const StepRow& a, const StepRow& b) {
    return a.job.gang->gang.partition < b.job.gang->gang.partition;
  });
  if (o.long_form && !o.no_header) out.text += o.times.ctime(o.times.now()) + "\n";
  print_table(step_fields(), format, context, rows, !o.no_header, out.text);
  return out;
}

}  // namespace

Output render_squeue(const StateView& view, const SqueueOptions& o) {
  if (o.kind == Kind::kSteps) return render_steps(view, o);
  Output out;
  if (single_job_unknown(view, o.filter)) {
    out.errors += kInvalidJobId;
    out.exit_code = 1;
    return out;
  }
  ParsedFormat format = parse_job_format(o);
  report_unknown(format, "job", out.errors);
  JobContext context{&view, &o.times, o.units, {}};
  std::uint32_t dependency = job_field_by_letter('E');
  if (std::any_of(format.columns.begin(), format.columns.end(),
                  [&](const FormatColumn& c) { return c.field == dependency; }))
    context.arrays = array_ids(view);

  JobFilter filter = row_filter(o);
  std::vector<JobRow> rows = job_rows(view, o.arrays);
  std::erase_if(rows, [&](const JobRow& row) { return !passes(row, filter); });
  report_unknown_order(sort_jobs(rows, row_order(o), view, o.times), out.errors);

  out.text.reserve(rows.size() * 96);
  if (o.long_form && !o.no_header) out.text += o.times.ctime(o.times.now()) + "\n";
  print_table(job_fields(), format, context, rows, !o.no_header, out.text);
  return out;
}

bool listing_suffices(const SqueueOptions& o) {
  if (o.kind == Kind::kSteps) return false;
  const JobFilter& f = o.filter;
  if (!f.jobs.empty() || !f.reservations.empty() || !f.licenses.empty()) return false;
  for (const FormatColumn& column : parse_job_format(o).columns) {
    if (column.field == kTextOnly) continue;
    const char letter = job_fields()[column.field].letter;
    if (letter == 0 || kListedLetters.find(letter) == std::string_view::npos) return false;
  }
  for (char c : row_order(o))
    if (job_field_by_letter(c) != kTextOnly && kListedLetters.find(c) == std::string_view::npos)
      return false;
  return true;
}

Result<Output> render_squeue(ListingReader& listing, const SqueueOptions& o, const Print& print) {
  Output out;
  const ParsedFormat format = parse_job_format(o);
  report_unknown(format, "job", out.errors);
  StateView view;
  view.now = listing.now();
  view.cluster = listing.cluster();
  const JobContext context{&view, &o.times, o.units, {}};
  const JobFilter filter = row_filter(o);
  RowOrder order(row_order(o));
  report_unknown_order(order.unknown(), out.errors);
  // What is touched for the first time costs more than what is written to it.
  const std::size_t expected = std::min<std::size_t>(listing.jobs(), listing.bytes_left()) + 16;
  order.expect(expected);
  std::string lines, cell;
  lines.reserve(listing.bytes_left() + 1024);
  std::vector<std::uint32_t> ends{0};
  ends.reserve(expected);
  std::vector<JobRow> rows;
  WorkloadView job;
  while (true) {
    Result<bool> more = listing.next(job);
    if (!more) return tl::unexpected<Error>(more.error());
    if (!*more) break;
    rows.clear();
    add_job_rows(job, o.arrays, rows);
    for (const JobRow& row : rows) {
      if (!passes(row, filter)) continue;
      order.add(context, row);
      print_row(job_fields(), format, context, row, cell, lines);
      ends.push_back(static_cast<std::uint32_t>(lines.size()));
    }
  }
  if (o.long_form && !o.no_header) out.text += o.times.ctime(o.times.now()) + "\n";
  if (!o.no_header) print_header(job_fields(), format, out.text);
  out.text.reserve(kPrintBytes + 4096);
  for (std::uint32_t row : order.take()) {
    out.text.append(lines, ends[row], ends[row + 1] - ends[row]);
    if (out.text.size() < kPrintBytes) continue;
    print(out.text);
    out.text.clear();
  }
  return out;
}

ViewNeeds squeue_needs(const SqueueOptions& o) {
  ViewNeeds needs;
  if (o.kind == Kind::kSteps) return needs;
  for (const FormatColumn& column : parse_job_format(o).columns) {
    if (column.field == kTextOnly) continue;
    std::string_view name = job_fields()[column.field].name;
    if (name == "tres-alloc") needs = {true, true, true};
    if (name == "minmemory") needs.partitions = needs.spec = true;
  }
  return needs;
}

}  // namespace tutti::slurm
