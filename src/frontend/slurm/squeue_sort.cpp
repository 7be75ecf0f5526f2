// Which jobs squeue shows and in which order.
#include <algorithm>
#include <charconv>
#include <compare>

#include "base/text.h"
#include "frontend/slurm/squeue_fields.h"
#include "frontend/slurm/squeue_render.h"

namespace tutti::slurm {
namespace {

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

struct SortKey {
  char letter = 'i';
  bool descending = false;
};

std::strong_ordering by_id(const JobRow& a, const JobRow& b) {
  if (auto c = a.workload().id.value() <=> b.workload().id.value(); c != 0) return c;
  // The waiting rest of an array comes before its elements.
  bool rest_a = !a.array_index && !a.array_text.empty();
  bool rest_b = !b.array_index && !b.array_text.empty();
  if (rest_a != rest_b) return rest_a ? std::strong_ordering::less : std::strong_ordering::greater;
  if (auto c = a.array_index.value_or(0) <=> b.array_index.value_or(0); c != 0) return c;
  if (auto c = a.job_id() <=> b.job_id(); c != 0) return c;
  return a.role <=> b.role;
}

// Unset times sort last, as squeue --start has it.
std::strong_ordering by_time(Instant a, Instant b) {
  std::int64_t x = a.is_set() ? a.ms() : Instant::never().ms();
  std::int64_t y = b.is_set() ? b.ms() : Instant::never().ms();
  return x <=> y;
}

class RowOrder {
 public:
  RowOrder(std::vector<SortKey> keys, const StateView& view, const TimeText& times)
      : keys_(std::move(keys)), context_{&view, &times, Units::kKeep, {}} {}
  bool operator()(const JobRow& a, const JobRow& b) const {
    for (const SortKey& key : keys_) {
      auto c = compare(key.letter, a, b);
      if (c != 0) return key.descending ? c > 0 : c < 0;
    }
    return by_id(a, b) < 0;
  }

 private:
  std::strong_ordering compare(char letter, const JobRow& a, const JobRow& b) const {
    Instant now = context_.times->now();
    switch (letter) {
      case 'P':
        return shown_partition(a) <=> shown_partition(b);
      case 't':
      case 'T':
        return state_word(a.state) <=> state_word(b.state);
      case 'p':
      case 'Q':
        return shown_priority(a) <=> shown_priority(b);
      case 'i':
      case 'A':
        return by_id(a, b);
      case 'u':
        return a.workload().user <=> b.workload().user;
      case 'U':
        return a.workload().uid <=> b.workload().uid;
      case 'G':
        return a.workload().gid <=> b.workload().gid;
      case 'j':
        return a.workload().name <=> b.workload().name;
      case 'S':
        return by_time(start_time(a), start_time(b));
      case 'V':
        return a.workload().submitted <=> b.workload().submitted;
      case 'e':
        return by_time(end_time(a), end_time(b));
      case 'M':
        return time_used(a, now) <=> time_used(b, now);
      case 'L':
        return time_left(a, now) <=> time_left(b, now);
      case 'l':
        return a.view->time_limit <=> b.view->time_limit;
      case 'C':
        return job_amounts(a).cpus <=> job_amounts(b).cpus;
      case 'c':
        return min_cpus_per_node(a.ask()) <=> min_cpus_per_node(b.ask());
      case 'D':
        return job_amounts(a).nodes <=> job_amounts(b).nodes;
      case 'm':
        return memory_ask(a, *context_.view).mib <=> memory_ask(b, *context_.view).mib;
      case 'K':
        return a.array_index.value_or(0) <=> b.array_index.value_or(0);
      case 'y':
        return a.workload().nice <=> b.workload().nice;
      default:
        return by_text(letter, a, b);
    }
  }
  std::strong_ordering by_text(char letter, const JobRow& a, const JobRow& b) const {
    const JobField& field = job_fields()[job_field_by_letter(letter)];
    std::string x, y;
    field.write(context_, a, x);
    field.write(context_, b, y);
    return x <=> y;
  }
  std::vector<SortKey> keys_;
  JobContext context_;
};

}  // namespace

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
  std::vector<SortKey> keys;
  std::string unknown;
  bool descending = false;
  for (char c : spec) {
    if (c == '-' || c == '+') {
      descending = c == '-';
    } else if (c == ',' || is_space(c)) {
      descending = false;
    } else if (job_field_by_letter(c) == kTextOnly) {
      unknown += c;
    } else {
      keys.push_back({c, descending});
      descending = false;
    }
  }
  std::sort(rows.begin(), rows.end(), RowOrder(std::move(keys), view, times));
  return unknown;
}

}  // namespace tutti::slurm
