// sinfo's output: nodes of partitions, those with equal values folded into one line.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/slurm/view_node.h"
#include "frontend/slurm/view_text.h"

namespace tutti::slurm {

// A line of sinfo: nodes that agree in every field that is asked for.
struct SinfoRow {
  const PartitionSpec* partition = nullptr;
  std::vector<const NodeView*> nodes;  // may be empty: a partition without (matching) nodes
};
struct SinfoContext {
  const StateView* view = nullptr;
  const TimeText* times = nullptr;
  const UserNames* users = nullptr;
  Units units = Units::kKeep;
};

// kPartition and kMatch fields tell lines apart; kSummary fields sum up the nodes of a line.
enum class SinfoFieldKind : std::uint8_t { kPartition, kMatch, kSummary };
struct SinfoField {
  char letter = 0;
  std::string_view name;  // of -O, lower case
  std::string_view header;
  SinfoFieldKind kind = SinfoFieldKind::kSummary;
  void (*write)(const SinfoContext&, const SinfoRow&, std::string& out) = nullptr;
};
std::span<const SinfoField> sinfo_fields();
std::uint32_t sinfo_field_by_letter(char letter);
std::uint32_t sinfo_field_by_name(std::string_view lower_name);
inline constexpr std::string_view kAllSinfoLetters = "abcdefghlmnoprstuvwzABCDEFGHILMNOPRSTUVXYZ";

struct SinfoOptions {
  std::string format;       // -o; "" = what the flags say
  std::string name_format;  // -O; wins
  bool long_form = false, by_node = false, summarize = false, reasons = false;
  bool exact = false;  // -e: lines also differ in sizes that are otherwise shown as "64+"
  bool no_header = false;
  bool all = false;                            // -a: hidden partitions too
  bool responding = false, dead = false;       // -r, -d
  std::vector<std::string> partitions, nodes;  // empty = every one
  std::vector<NodeStateWord> states;           // empty = every one
  std::string sort;                            // -S
  UserNames users;
  TimeText times;
};
// Unknown letters stay in the text and are told on stderr, unknown names are left out, as sinfo
// does. Needs nodes and partitions in the view. Cost: nodes x partitions x fields.
Output render_sinfo(const StateView& view, const SinfoOptions& options);
Output render_sinfo_json(const StateView& view, const SinfoOptions& options);
// The nodes of `view` that the options select, in the view's order.
std::vector<const NodeView*> selected_nodes(const StateView& view, const SinfoOptions& options);

// sinfo -T.
Output render_sinfo_reservations(const StateView& view, const TimeText& times, bool no_header);

}  // namespace tutti::slurm
