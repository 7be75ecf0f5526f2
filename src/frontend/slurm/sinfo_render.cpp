#include "frontend/slurm/sinfo_render.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <unordered_map>

#include "base/text.h"
#include "frontend/slurm/view_format.h"

namespace tutti::slurm {
namespace {

bool contains(const std::vector<std::string>& list, std::string_view value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

bool selects(const SinfoOptions& o, const NodeView& node) {
  if (!o.nodes.empty() && !contains(o.nodes, node.spec.name)) return false;
  SlurmNodeState s = node_state(node);
  if (o.dead && !s.no_respond && s.base != NodeBase::kUnknown) return false;
  if (o.responding && s.no_respond) return false;
  if (o.reasons && node.state.reason.empty() && !s.drain && s.base != NodeBase::kDown) return false;
  if (o.states.empty()) return true;
  return std::any_of(o.states.begin(), o.states.end(),
                     [&](NodeStateWord word) { return matches(s, word); });
}

bool shows(const SinfoOptions& o, const PartitionSpec& p) {
  if (!o.partitions.empty()) return contains(o.partitions, p.name);
  return o.all || !p.hidden;
}

// The width that '#' stands for in Slurm's own formats.
std::size_t widest_partition(const StateView& view, const SinfoOptions& o) {
  std::size_t width = 9;
  for (const PartitionSpec& p : view.partitions)
    if (shows(o, p)) width = std::max(width, p.name.size() + (p.is_default ? 1 : 0));
  return width;
}

std::string default_format(const StateView& view, const SinfoOptions& o) {
  std::size_t partition = widest_partition(view, o);
  if (o.summarize) return fmt::format("%{}P %.5a %.10l %.16F %N", partition);
  if (o.reasons) return o.long_form ? "%20E %12U %19H %6t %N" : "%20E %9u %19H %N";
  if (o.by_node) {
    std::size_t node = 9;
    for (const NodeView& n : view.nodes) node = std::max(node, n.spec.name.size());
    if (o.long_form)
      return fmt::format("%{}N %.6D %.{}P %.11T %4c %.8z %.6m %.8d %.6w %.8f %20E", node,
                         partition);
    return fmt::format("%{}N %.6D %.{}P %6t", node, partition);
  }
  if (o.long_form)
    return fmt::format("%{}P %.5a %.10l %.10s %.4r %.8h %.10g %.6D %.11T %N", partition);
  return fmt::format("%{}P %.5a %.10l %.6D %.6t %N", partition);
}

ParsedFormat parse_format(const StateView& view, const SinfoOptions& o) {
  if (!o.name_format.empty()) {
    std::string names = o.name_format;
    if (equals_ci(trim(names), "all"))
      return parse_letter_format("%all", sinfo_field_by_letter, kAllSinfoLetters);
    return parse_name_format(names, sinfo_field_by_name);
  }
  return parse_letter_format(o.format.empty() ? default_format(view, o) : o.format,
                             sinfo_field_by_letter, kAllSinfoLetters);
}

// Folds (partition, node) pairs into lines.
class Grouping {
 public:
  Grouping(const SinfoContext& context, const ParsedFormat& format, const SinfoOptions& o)
      : context_(context), options_(o) {
    for (const FormatColumn& column : format.columns) {
      if (column.field == kTextOnly) continue;
      const SinfoField& field = sinfo_fields()[column.field];
      if (field.kind == SinfoFieldKind::kPartition) partition_fields_.push_back(&field);
      // -e keeps sizes exact: whatever a single node would show must be equal.
      bool size = options_.exact &&
                  std::string_view("cdmwXYZz").find(field.letter) != std::string_view::npos;
      if (field.kind == SinfoFieldKind::kMatch || size) node_fields_.push_back(&field);
    }
  }
  bool has_partition_fields() const { return !partition_fields_.empty(); }

  void add(const PartitionSpec& partition, const NodeView* node) {
    SinfoRow one{&partition, {}};
    if (node) one.nodes.push_back(node);
    std::string key;
    for (const SinfoField* field : partition_fields_) append_key(*field, one, key);
    if (node)
      for (const SinfoField* field : node_fields_) append_key(*field, one, key);
    if (options_.by_node) key += partition.name + '\n' + (node ? node->spec.name : std::string());
    auto [at, added] = index_.try_emplace(std::move(key), rows_.size());
    if (added) {
      rows_.push_back(std::move(one));
    } else if (node) {
      // Partitions share nodes: a line counts each once. Those of one partition come in a run.
      std::vector<const NodeView*>& nodes = rows_[at->second].nodes;
      if (rows_[at->second].partition == &partition ||
          std::find(nodes.begin(), nodes.end(), node) == nodes.end())
        nodes.push_back(node);
    }
  }
  std::vector<SinfoRow> take() { return std::move(rows_); }

 private:
  void append_key(const SinfoField& field, const SinfoRow& row, std::string& key) {
    field.write(context_, row, key);
    key += '\n';
  }
  const SinfoContext& context_;
  const SinfoOptions& options_;
  std::vector<const SinfoField*> partition_fields_, node_fields_;
  std::unordered_map<std::string, std::size_t> index_;
  std::vector<SinfoRow> rows_;
};

std::vector<SinfoRow> make_rows(const StateView& view, const SinfoContext& context,
                                const ParsedFormat& format, const SinfoOptions& o) {
  std::unordered_map<std::string_view, const NodeView*> by_name;
  for (const NodeView* node : selected_nodes(view, o)) by_name.emplace(node->spec.name, node);
  Grouping groups(context, format, o);
  for (const PartitionSpec& p : view.partitions) {
    if (!shows(o, p)) continue;
    bool any = false;
    for (const std::string& name : p.nodes) {
      auto found = by_name.find(name);
      if (found == by_name.end()) continue;
      any = true;
      groups.add(p, found->second);
    }
    if (!any && !o.by_node && !o.reasons && o.nodes.empty() && groups.has_partition_fields())
      groups.add(p, nullptr);
  }
  return groups.take();
}

std::uint32_t rank_of(const SinfoRow& row) {
  return row.nodes.empty() ? 0 : node_state(*row.nodes.front()).rank();
}

// Names order by their numbers: node2 before node10.
std::strong_ordering by_name(std::string_view a, std::string_view b) {
  std::size_t i = 0, j = 0;
  while (i < a.size() && j < b.size()) {
    if (is_digit(a[i]) && is_digit(b[j])) {
      std::size_t ia = i, jb = j;
      while (i < a.size() && is_digit(a[i])) ++i;
      while (j < b.size() && is_digit(b[j])) ++j;
      std::string_view x = a.substr(ia, i - ia), y = b.substr(jb, j - jb);
      while (x.size() > 1 && x.front() == '0') x.remove_prefix(1);
      while (y.size() > 1 && y.front() == '0') y.remove_prefix(1);
      if (x.size() != y.size()) return x.size() <=> y.size();
      if (auto c = x <=> y; c != 0) return c;
    } else if (a[i] != b[j]) {
      return a[i] <=> b[j];
    } else {
      ++i;
      ++j;
    }
  }
  return (a.size() - i) <=> (b.size() - j);
}

std::strong_ordering compare(char letter, const SinfoContext& context, const SinfoRow& a,
                             const SinfoRow& b) {
  if (letter == 't' || letter == 'T') return rank_of(a) <=> rank_of(b);
  if (letter == 'D') return a.nodes.size() <=> b.nodes.size();
  if (letter == 'N' || letter == 'n') {
    if (a.nodes.empty() || b.nodes.empty()) return a.nodes.size() <=> b.nodes.size();
    return by_name(a.nodes.front()->spec.name, b.nodes.front()->spec.name);
  }
  const SinfoField& field = sinfo_fields()[sinfo_field_by_letter(letter)];
  std::string x, y;
  field.write(context, a, x);
  field.write(context, b, y);
  return by_name(x, y);
}

// Without a sort of the user: partitions as configured and states falling; nodes by name under -N.
void sort_rows(std::vector<SinfoRow>& rows, const StateView& view, const SinfoContext& context,
               const SinfoOptions& o, std::string& errors) {
  auto position = [&](const SinfoRow& row) { return row.partition - view.partitions.data(); };
  std::string spec = !o.sort.empty() ? o.sort : o.by_node ? "N" : o.reasons ? "-t" : "#P,-t";
  struct Key {
    char letter;
    bool descending, configured;
  };
  std::vector<Key> keys;
  Key next{};
  for (char c : spec) {
    if (c == '+' || c == '-') {
      next.descending = c == '-';
    } else if (c == '#') {
      next.configured = true;
    } else if (c == ',' || is_space(c)) {
      next = {};
    } else if (sinfo_field_by_letter(c) == kTextOnly) {
      errors += fmt::format("sinfo: error: Invalid sort specification: {}\n", c);
    } else {
      keys.push_back({c, next.descending, next.configured});
      next = {};
    }
  }
  std::stable_sort(rows.begin(), rows.end(), [&](const SinfoRow& a, const SinfoRow& b) {
    for (const Key& key : keys) {
      auto c = key.configured ? position(a) <=> position(b) : compare(key.letter, context, a, b);
      if (c != 0) return key.descending ? c > 0 : c < 0;
    }
    return false;
  });
}

}  // namespace

std::vector<const NodeView*> selected_nodes(const StateView& view, const SinfoOptions& options) {
  std::vector<const NodeView*> out;
  for (const NodeView& node : view.nodes)
    if (selects(options, node)) out.push_back(&node);
  return out;
}

Output render_sinfo(const StateView& view, const SinfoOptions& o) {
  Output out;
  ParsedFormat format = parse_format(view, o);
  for (const std::string& word : format.unknown)
    out.errors += o.name_format.empty()
                      ? fmt::format("Invalid node format specification: {}\n", word)
                      : fmt::format("sinfo: error: Invalid job format specification: {}\n", word);
  SinfoContext context{&view, &o.times, &o.users, Units::kKeep};
  std::vector<SinfoRow> rows = make_rows(view, context, format, o);
  sort_rows(rows, view, context, o, out.errors);
  if (o.long_form && !o.no_header) out.text += o.times.ctime(o.times.now()) + "\n";
  if (!o.no_header) {
    for (const FormatColumn& column : format.columns) {
      if (column.field != kTextOnly)
        append_cell(out.text, sinfo_fields()[column.field].header, column.shape);
      out.text += column.suffix;
    }
    out.text += '\n';
  }
  std::string cell;
  for (const SinfoRow& row : rows) {
    for (const FormatColumn& column : format.columns) {
      if (column.field != kTextOnly) {
        cell.clear();
        sinfo_fields()[column.field].write(context, row, cell);
        append_cell(out.text, cell, column.shape);
      }
      out.text += column.suffix;
    }
    out.text += '\n';
  }
  return out;
}

}  // namespace tutti::slurm
