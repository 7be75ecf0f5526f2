// Which jobs squeue shows and in which order.
#include <algorithm>
#include <array>
#include <charconv>
#include <numeric>

#include "base/text.h"
#include "frontend/slurm/squeue_fields.h"
#include "frontend/slurm/squeue_order.h"
#include "frontend/slurm/squeue_render.h"

namespace tutti::slurm {
namespace {

constexpr std::size_t kIdKeys = 3;

bool contains(const std::vector<std::string>& list, std::string_view value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}
bool empty_or_contains(const std::vector<std::string>& list, std::string_view value) {
  return list.empty() || contains(list, value);
}

bool passes_jobs(const JobRow& row, const std::vector<JobSelector>& jobs) {
  if (jobs.empty()) return true;
  for (const JobSelector& s : jobs) {
    if (s.job != row.workload().id.value() && s.job != row.job_id()) continue;
    if (!s.array_index || row.array_index == s.array_index) return true;
    if (!row.array_index && !row.array_text.empty()) {
      auto set = parse_index_set(row.array_text, 0xFFFFFFFE);
      if (set && set->contains(*s.array_index)) return true;
    }
  }
  return false;
}

bool passes_user(const Workload& w, const std::vector<std::string>& users) {
  if (users.empty() || contains(users, w.user)) return true;
  char buffer[12];
  auto end = std::to_chars(buffer, buffer + sizeof buffer, w.uid).ptr;
  return contains(users, std::string_view(buffer, end));
}

bool passes_licenses(const Workload& w, const std::vector<std::string>& licenses) {
  if (licenses.empty()) return true;
  for (std::string_view piece : split(w.extras->licenses, ',', EmptyPieces::kDrop))
    if (contains(licenses, piece.substr(0, piece.find_first_of(":@")))) return true;
  return false;
}

std::string_view shown_partition(const JobRow& row) {
  if (row.gang && !row.is_pending() && !row.gang->gang.partition.empty())
    return row.gang->gang.partition;
  return row.view->partition;
}

bool passes_partition(const JobRow& row, const std::vector<std::string>& partitions) {
  if (partitions.empty() || contains(partitions, shown_partition(row))) return true;
  if (!row.is_pending()) return false;
  const std::vector<std::string>& asked = row.workload().partitions;
  return std::any_of(asked.begin(), asked.end(),
                     [&](const std::string& p) { return contains(partitions, p); });
}

bool passes_nodes(const JobRow& row, const std::vector<std::string>& nodes) {
  if (nodes.empty()) return true;
  std::vector<std::string> held = node_names(row);
  return std::any_of(held.begin(), held.end(),
                     [&](const std::string& n) { return contains(nodes, n); });
}

// Unset times sort last, as squeue --start has it.
std::int64_t time_value(Instant at) { return at.is_set() ? at.ms() : Instant::never().ms(); }

// Numbers keep their order as unsigned ones when the sign bit is turned.
std::uint64_t ordered(std::int64_t value) { return static_cast<std::uint64_t>(value) ^ (std::uint64_t{1} << 63); }

// What a letter sorts by, where that is a number.
std::optional<std::uint64_t> sort_number(char letter, const JobRow& row, const JobContext& context) {
  const Instant now = context.times->now();
  switch (letter) {
    case 'p':
    case 'Q':
      return shown_priority(row);
    case 'U':
      return row.workload().uid;
    case 'G':
      return row.workload().gid;
    case 'S':
      return ordered(time_value(start_time(row)));
    case 'V':
      return ordered(row.workload().submitted.ms());
    case 'e':
      return ordered(time_value(end_time(row)));
    case 'M':
      return ordered(time_used(row, now).ms());
    case 'L':
      return ordered(time_left(row, now).ms());
    case 'l':
      return ordered(row.view->time_limit.ms());
    case 'C':
      return job_amounts(row).cpus;
    case 'c':
      return min_cpus_per_node(row.ask());
    case 'D':
      return job_amounts(row).nodes;
    case 'm':
      return memory_ask(row, *context.view).mib;
    case 'K':
      return row.array_index.value_or(0);
    case 'y':
      return ordered(row.workload().nice);
    default:
      return std::nullopt;
  }
}

// And where it is a text. `space` holds it if nothing else does.
std::string_view sort_text(char letter, const JobRow& row, const JobContext& context, std::string& space) {
  switch (letter) {
    case 'P':
      return shown_partition(row);
    case 't':
    case 'T':
      return state_word(row.state);
    case 'u':
      return row.workload().user;
    case 'j':
      return row.workload().name;
    default:
      space.clear();
      job_fields()[job_field_by_letter(letter)].write(context, row, space);
      return space;
  }
}

// What decides between equals: workload, the waiting rest of an array before its elements, element,
// job, component.
std::array<std::uint64_t, kIdKeys> id_keys(const JobRow& row) {
  const bool rest = !row.array_index && !row.array_text.empty();
  const std::uint64_t workload = row.workload().id.value();
  return {workload << 32 | (rest ? 0 : 1), std::uint64_t{row.array_index.value_or(0)} << 32 | row.job_id(), row.role};
}

}  // namespace

RowOrder::RowOrder(std::string_view spec) {
  bool descending = false;
  for (char c : spec) {
    if (c == '-' || c == '+') {
      descending = c == '-';
    } else if (c == ',' || is_space(c)) {
      descending = false;
    } else if (job_field_by_letter(c) == kTextOnly) {
      unknown_ += c;
    } else {
      // The job id follows the keys anyway, and is unique.
      if (!by_id_ && (c == 'i' || c == 'A'))
        by_id_ = true, ids_descending_ = descending;
      else if (!by_id_)
        keys_.push_back({c, descending, {}, nullptr});
      descending = false;
    }
  }
}

void RowOrder::expect(std::size_t rows) {
  values_.reserve(rows * (keys_.size() + kIdKeys));
}

void RowOrder::add(const JobContext& context, const JobRow& row) {
  for (Key& key : keys_) {
    if (auto number = sort_number(key.letter, row, context)) {
      values_.push_back(*number);
      continue;
    }
    std::string_view text = sort_text(key.letter, row, context, space_);
    // Rows in a row often have the same text.
    if (!key.last || key.last->first != text)
      key.last = &*key.texts.try_emplace(std::string(text), static_cast<std::uint64_t>(key.texts.size())).first;
    values_.push_back(key.last->second);
  }
  for (std::uint64_t value : id_keys(row)) values_.push_back(value);
  ++rows_;
}

std::vector<std::uint32_t> RowOrder::take() {
  const std::size_t width = keys_.size() + kIdKeys;
  for (std::size_t k = 0; k < keys_.size(); ++k) {
    Key& key = keys_[k];
    std::vector<std::uint64_t> rank(key.texts.size());
    std::uint64_t next = 0;
    for (const auto& [text, number] : key.texts) rank[number] = next++;
    for (std::size_t i = k; i < values_.size(); i += width) {
      if (!rank.empty()) values_[i] = rank[values_[i]];
      if (key.descending) values_[i] = ~values_[i];
    }
  }
  if (ids_descending_)
    for (std::size_t i = 0; i < values_.size(); i += width)
      for (std::size_t k = keys_.size(); k < width; ++k) values_[i + k] = ~values_[i + k];
  std::vector<std::uint32_t> order(rows_);
  std::iota(order.begin(), order.end(), 0U);
  auto less = [&](std::uint32_t a, std::uint32_t b) {
    const auto* x = values_.data() + a * width;
    const auto* y = values_.data() + b * width;
    return std::lexicographical_compare(x, x + width, y, y + width);
  };
  if (!std::is_sorted(order.begin(), order.end(), less)) std::sort(order.begin(), order.end(), less);
  return order;
}

bool passes(const JobRow& row, const JobFilter& f) {
  if (f.states.empty()) {
    if (!f.all_states && !is_active(row.state)) return false;
  } else if (std::find(f.states.begin(), f.states.end(), row.state) == f.states.end()) {
    return false;
  }
  const Workload& w = row.workload();
  return passes_jobs(row, f.jobs) && passes_user(w, f.users) &&
         passes_partition(row, f.partitions) && empty_or_contains(f.accounts, w.account) &&
         empty_or_contains(f.qos, w.qos) && empty_or_contains(f.names, w.name) &&
         empty_or_contains(f.reservations, w.extras->reservation) &&
         passes_licenses(w, f.licenses) && passes_nodes(row, f.nodes);
}

std::string sort_jobs(std::vector<JobRow>& rows, std::string_view spec, const StateView& view,
                      const TimeText& times) {
  RowOrder order(spec);
  JobContext context{&view, &times, Units::kKeep, {}};
  for (const JobRow& row : rows) order.add(context, row);
  std::vector<JobRow> sorted;
  sorted.reserve(rows.size());
  for (std::uint32_t index : order.take()) sorted.push_back(rows[index]);
  rows = std::move(sorted);
  return order.unknown();
}

}  // namespace tutti::slurm
