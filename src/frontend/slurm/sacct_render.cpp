#include "frontend/slurm/sacct_render.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "base/text.h"
#include "frontend/slurm/squeue_fields.h"

namespace tutti::slurm {
namespace {

struct Column {
  const SacctField* field = nullptr;
  CellShape shape;
};

// "jobid,state%20,nodelist%-256". Errors: the name that is no field.
tl::expected<std::vector<Column>, std::string> parse_columns(std::string_view format) {
  std::vector<Column> columns;
  auto add = [&](const SacctField& field, std::int32_t width) {
    columns.push_back({&field, {static_cast<std::uint32_t>(std::abs(width)), width > 0}});
  };
  for (std::string_view piece : split(format, ',', EmptyPieces::kDrop)) {
    piece = trim(piece);
    std::size_t percent = piece.find('%');
    std::string_view name = piece.substr(0, percent);
    if (equals_ci(name, "all")) {
      for (const SacctField& field : sacct_fields()) add(field, field.width);
      continue;
    }
    const SacctField* field = find_sacct_field(name);
    if (!field) return tl::unexpected<std::string>(std::string(name));
    std::int32_t width = field->width;
    if (percent != std::string_view::npos)
      width = parse_integer<std::int32_t>(piece.substr(percent + 1)).value_or(width);
    if (width == 0 || width < -100'000 || width > 100'000) width = field->width;
    // A width of its own justifies as it says: JobID is left only by default.
    add(*field, width);
  }
  return columns;
}

// Cut to the width with '+' as the last character, as sacct marks it.
void append_table_cell(std::string& out, std::string_view value, CellShape shape) {
  if (value.size() <= shape.width) {
    append_cell(out, value, shape);
  } else {
    std::string cut(cut_utf8(value, shape.width - 1));
    cut += '+';
    append_cell(out, cut, {shape.width, false});
  }
  out += ' ';
}

void print_header(std::string& out, const std::vector<Column>& columns, const SacctOptions& o) {
  using Layout = SacctOptions::Layout;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (o.layout == Layout::kTable) {
      append_cell(out, columns[i].field->name, columns[i].shape);
      out += ' ';
    } else {
      out += columns[i].field->name;
      if (o.layout == Layout::kParsable || i + 1 < columns.size()) out += o.delimiter;
    }
  }
  out += '\n';
  if (o.layout != Layout::kTable) return;
  for (const Column& column : columns) {
    out.append(column.shape.width, '-');
    out += ' ';
  }
  out += '\n';
}

void print_row(std::string& out, std::string& cell, const SacctRow& row,
               const std::vector<Column>& columns, const SacctOptions& o) {
  using Layout = SacctOptions::Layout;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    cell.clear();
    columns[i].field->write(o, row, cell);
    if (o.layout == Layout::kTable) {
      append_table_cell(out, cell, columns[i].shape);
    } else {
      out += cell;
      if (o.layout == Layout::kParsable || i + 1 < columns.size()) out += o.delimiter;
    }
  }
  out += '\n';
}

bool in_window(const JobRow& row, const SacctOptions& o) {
  const Gang* gang = row.gang ? &row.gang->gang : nullptr;
  if (o.to && row.workload().submitted > *o.to) return false;
  if (o.from && gang && is_done(row.state) && gang->ended.is_set() && gang->ended < *o.from)
    return false;
  return true;
}

// Of the lives of one job only the last counts, unless all are asked for.
void keep_last_lives(std::vector<JobRecord>& records) {
  // Records of elements that never started have their array's number and are all different.
  std::map<std::uint32_t, std::size_t> last;
  for (std::size_t i = 0; i < records.size(); ++i)
    if (records[i].unstarted.empty()) last[records[i].gang.id.value()] = i;
  std::size_t i = 0;
  std::erase_if(records, [&](const JobRecord& r) {
    std::size_t at = i++;
    return r.unstarted.empty() && last[r.gang.id.value()] != at;
  });
}

// By job; of an array by element, a row of several by its first.
void sort_records(std::vector<JobRecord>& records) {
  using Key = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>;
  std::vector<std::pair<Key, std::size_t>> order;
  for (std::size_t i = 0; i < records.size(); ++i) {
    const JobRecord& r = records[i];
    std::uint32_t element = r.gang.array_index.value_or(0);
    if (!r.unstarted.empty()) {
      auto set = parse_index_set(r.unstarted, 0xFFFFFFFE);
      if (set && !set->empty()) element = *set->first();
    }
    order.push_back({Key{r.workload.id.value(), element, r.gang.id.value()}, i});
  }
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<JobRecord> sorted;
  sorted.reserve(records.size());
  for (const auto& [key, i] : order) sorted.push_back(std::move(records[i]));
  records = std::move(sorted);
}

WorkloadView to_view(JobRecord& record) {
  WorkloadView view;
  view.workload = std::move(record.workload);
  view.unstarted = std::move(record.unstarted);
  view.priority = record.priority;
  view.time_limit = record.time_limit;
  view.partition = std::move(record.partition);
  view.eligible = record.eligible;
  if (view.unstarted.empty() || record.gang.state == GangState::kDone) {
    GangView gang;
    gang.gang = std::move(record.gang);
    gang.nodes = std::move(record.nodes);
    view.gangs.push_back(std::move(gang));
  }
  return view;
}

JobRow row_of(const WorkloadView& view) {
  JobRow row;
  row.view = &view;
  if (!view.gangs.empty()) {
    row.gang = &view.gangs.front();
    row.array_index = row.gang->gang.array_index;
    row.state = state_of(row.gang->gang);
  }
  if (!view.unstarted.empty()) {
    row.array_text = view.unstarted;
    auto set = parse_index_set(view.unstarted, 0xFFFFFFFE);
    if (set && set->count() == 1) row.array_index = set->first();
  }
  return row;
}

void add_rows(const JobRow& job, std::string_view type, std::string_view cluster,
              const SacctOptions& o, std::vector<SacctRow>& rows) {
  for (std::uint32_t role = 0; role < job.workload().roles.size(); ++role) {
    JobRow part = job;
    part.role = role;
    rows.push_back({part, nullptr, type, cluster});
    if (o.allocations || !job.gang || role != 0) continue;
    std::vector<const Step*> steps;
    for (const Step& step : job.gang->gang.steps) steps.push_back(&step);
    auto rank = [](const Step* s) {
      return s->id == kBatchStep         ? -3
             : s->id == kExternStep      ? -2
             : s->id == kInteractiveStep ? -1
                                         : s->id;
    };
    std::stable_sort(steps.begin(), steps.end(),
                     [&](const Step* a, const Step* b) { return rank(a) < rank(b); });
    for (const Step* step : steps) rows.push_back({part, step, type, cluster});
  }
}

}  // namespace

JobState step_state(const SacctRow& row) {
  if (!row.step) return row.job.state;
  if (row.step->state != StepState::kDone) return JobState::kRunning;
  if (row.step->outcome != Outcome::kNone) return state_of(row.step->outcome);
  if (row.step->exit == ExitStatus{}) return JobState::kCompleted;
  return row.job.state == JobState::kCancelled ? JobState::kCancelled : JobState::kFailed;
}

std::vector<SacctRow> sacct_rows(HistoryView history, const SacctOptions& o, SacctStore& store) {
  if (!o.duplicates) keep_last_lives(history.records);
  sort_records(history.records);
  JobFilter filter = o.filter;
  filter.all_states = true;
  std::vector<SacctRow> rows;
  for (JobRecord& record : history.records) {
    std::string cluster = std::move(record.cluster);
    std::string type = record.gpu_types.empty() ? std::string() : record.gpu_types.front();
    store.views.push_back(to_view(record));
    JobRow row = row_of(store.views.back());
    if (!passes(row, filter) || !in_window(row, o)) {
      store.views.pop_back();
      continue;
    }
    if (type.empty()) type = row.workload().roles.empty() ? "" : row.ask().gpu_type;
    std::string_view kept_type = store.texts.emplace_back(std::move(type));
    std::string_view kept_cluster = store.texts.emplace_back(std::move(cluster));
    add_rows(row, kept_type, kept_cluster, o, rows);
  }
  return rows;
}

namespace {
// "-j 12.0": that step alone, without the row of its job.
bool is_named(const SacctRow& row, const SacctOptions& o) {
  bool job_named = false, only_steps = true, step_named = false;
  for (const JobSelector& one : o.filter.jobs) {
    const JobRow& job = row.job;
    bool same = one.job == job.workload().id.value() || one.job == job.job_id();
    if (!same || (one.array_index && one.array_index != job.array_index)) continue;
    job_named = true;
    if (!one.step) only_steps = false;
    if (row.step && one.step == row.step->id) step_named = true;
  }
  return !job_named || !only_steps || step_named || o.allocations;
}
}  // namespace

Output render_sacct(HistoryView history, const SacctOptions& o) {
  Output out;
  auto columns = parse_columns(o.format.empty() ? kSacctDefault : std::string_view(o.format));
  if (!columns) {
    out.errors = fmt::format("sacct: error: Invalid field requested: \"{}\"\n", columns.error());
    out.exit_code = 1;
    return out;
  }
  if (!o.no_header) print_header(out.text, *columns, o);
  SacctStore store;
  std::string cell;
  for (const SacctRow& row : sacct_rows(std::move(history), o, store))
    if (is_named(row, o)) print_row(out.text, cell, row, *columns, o);
  return out;
}

std::string sacct_help_format() {
  std::string out;
  std::span<const SacctField> fields = sacct_fields();
  for (std::size_t i = 0; i < fields.size(); ++i) {
    append_cell(out, fields[i].name, {19, false});
    out += i % 4 == 3 || i + 1 == fields.size() ? '\n' : ' ';
  }
  return out;
}

}  // namespace tutti::slurm
