// The fields of sinfo. Source: sinfo(1) of 22.05 and the output of that version.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/duration_text.h"
#include "base/text.h"
#include "frontend/slurm/sinfo_render.h"
#include "frontend/slurm/view_format.h"

namespace tutti::slurm {
namespace {

using Context = const SinfoContext&;
using Row = const SinfoRow&;
using Out = std::string&;
using Kind = SinfoFieldKind;

void number(Out out, std::uint64_t n) { fmt::format_to(std::back_inserter(out), "{}", n); }

const NodeView* first(Row row) { return row.nodes.empty() ? nullptr : row.nodes.front(); }

// A size that may differ between the nodes of a line: the least, with "+" when others have more.
template <class Get>
void least(Row row, Out out, Get get) {
  if (row.nodes.empty()) {
    out += '0';
    return;
  }
  std::uint64_t low = get(*row.nodes.front()), high = low;
  for (const NodeView* node : row.nodes) {
    low = std::min<std::uint64_t>(low, get(*node));
    high = std::max<std::uint64_t>(high, get(*node));
  }
  number(out, low);
  if (high != low) out += '+';
}

struct Counts {
  std::uint64_t allocated = 0, idle = 0, other = 0, total = 0;
};
Counts count_nodes(Row row) {
  Counts c;
  for (const NodeView* node : row.nodes) {
    SlurmNodeState s = node_state(*node);
    ++c.total;
    if (s.drain || s.base == NodeBase::kDown || s.base == NodeBase::kUnknown)
      ++c.other;
    else if (s.busy())
      ++c.allocated;
    else
      ++c.idle;
  }
  return c;
}
Counts count_cpus(Row row) {
  Counts c;
  for (const NodeView* node : row.nodes) {
    SlurmNodeState s = node_state(*node);
    std::uint64_t used = std::min(node->cpus_allocated, node->spec.cpus);
    std::uint64_t rest = node->spec.cpus - used;
    c.total += node->spec.cpus;
    c.allocated += used;
    if (s.drain || s.base == NodeBase::kDown || s.base == NodeBase::kUnknown)
      c.other += rest;
    else
      c.idle += rest;
  }
  return c;
}
void write_counts(Out out, const Counts& c) {
  fmt::format_to(std::back_inserter(out), "{}/{}/{}/{}", c.allocated, c.idle, c.other, c.total);
}

std::vector<std::string> names(Row row) {
  std::vector<std::string> out;
  out.reserve(row.nodes.size());
  for (const NodeView* node : row.nodes) out.push_back(node->spec.name);
  return out;
}
const std::string& address(const NodeView& node) {
  return node.spec.address.empty() ? node.spec.name : node.spec.address;
}
void write_addresses(Context, Row row, Out out) {
  std::vector<std::string> list;
  for (const NodeView* node : row.nodes)
    if (std::find(list.begin(), list.end(), address(*node)) == list.end())
      list.push_back(address(*node));
  out += fold_nodes(list);
}
void write_features(Context, Row row, Out out) {
  const NodeView* node = first(row);
  out += node && !node->spec.features.empty() ? join(node->spec.features, ",") : "(null)";
}
void write_limit(Out out, const std::optional<Duration>& limit, std::string_view none) {
  if (!limit || limit->is_infinite())
    out += none;
  else
    out += format_duration_short(*limit);
}
void write_reason_user(Context c, Row row, Out out) {
  const NodeView* node = first(row);
  if (!node || node->state.reason.empty())
    out += "Unknown";
  else
    out += user_name(*c.users, node->state.reason_uid);
}
void write_reason_user_long(Context c, Row row, Out out) {
  write_reason_user(c, row, out);
  const NodeView* node = first(row);
  if (node && !node->state.reason.empty())
    fmt::format_to(std::back_inserter(out), "({})", node->state.reason_uid);
}
std::string_view availability(const PartitionSpec& p) {
  switch (p.state) {
    case PartitionState::kUp:
      return "up";
    case PartitionState::kDown:
      return "down";
    case PartitionState::kDrain:
      return "drain";
    case PartitionState::kInactive:
      return "inact";
  }
  return "up";
}
void write_job_size(Context, Row row, Out out) {
  const PartitionSpec& p = *row.partition;
  std::uint32_t least_nodes = std::max<std::uint32_t>(p.min_nodes, 1);
  if (p.max_nodes == kNoLimit)
    fmt::format_to(std::back_inserter(out), "{}-infinite", least_nodes);
  else if (p.max_nodes == least_nodes)
    number(out, least_nodes);
  else
    fmt::format_to(std::back_inserter(out), "{}-{}", least_nodes, p.max_nodes);
}
void write_sct(Context, Row row, Out out) {
  least(row, out, [](const NodeView& n) { return n.spec.sockets; });
  out += ':';
  least(row, out, [](const NodeView& n) { return n.spec.cores_per_socket; });
  out += ':';
  least(row, out, [](const NodeView& n) { return n.spec.threads_per_core; });
}

template <std::size_t N>
struct Literal {
  char text[N];
  constexpr Literal(const char (&given)[N]) { std::copy_n(given, N, text); }
};
template <Literal kText>
void fixed(Context, Row, Out out) {
  out += kText.text;
}
// A text of the line's nodes, "n/a" when it has none.
template <auto kText>
void of_first(Context, Row row, Out out) {
  const NodeView* node = first(row);
  out += node ? kText(*node) : std::string("n/a");
}
std::string compact_of(const NodeView& n) { return node_state_compact(node_state(n)); }
std::string long_of(const NodeView& n) { return node_state_long(node_state(n)); }
std::string complete_of(const NodeView& n) { return lower(node_state_complete(node_state(n))); }
std::string gres_of(const NodeView& n) { return node_gres(n.spec); }
std::string reason_of(const NodeView& n) {
  return n.state.reason.empty() ? "none" : n.state.reason;
}
std::string memory_used_of(const NodeView& n) { return fmt::format("{}", n.memory_mib_allocated); }
std::string version_of(const NodeView& n) {
  return n.state.agent_version.empty() ? "(null)" : n.state.agent_version;
}

constexpr std::array kFields{
    SinfoField{'a', "available", "AVAIL", Kind::kPartition,
               [](Context, Row r, Out o) { o += availability(*r.partition); }},
    SinfoField{'A', "nodeai", "NODES(A/I)", Kind::kSummary,
               [](Context, Row r, Out o) {
                 Counts c = count_nodes(r);
                 fmt::format_to(std::back_inserter(o), "{}/{}", c.allocated, c.idle);
               }},
    SinfoField{'b', "features_act", "ACTIVE_FEATURES", Kind::kMatch, write_features},
    SinfoField{'B', "maxcpuspernode", "MAX_CPUS_PER_NODE", Kind::kPartition, fixed<"UNLIMITED">},
    SinfoField{
        'c', "cpus", "CPUS", Kind::kSummary,
        [](Context, Row r, Out o) { least(r, o, [](const NodeView& n) { return n.spec.cpus; }); }},
    SinfoField{'C', "cpusstate", "CPUS(A/I/O/T)", Kind::kSummary,
               [](Context, Row r, Out o) { write_counts(o, count_cpus(r)); }},
    SinfoField{'d', "disk", "TMP_DISK", Kind::kSummary, fixed<"0">},
    SinfoField{'D', "nodes", "NODES", Kind::kSummary,
               [](Context, Row r, Out o) { number(o, r.nodes.size()); }},
    SinfoField{'e', "freemem", "FREE_MEM", Kind::kSummary, fixed<"N/A">},
    SinfoField{'E', "reason", "REASON", Kind::kMatch, of_first<reason_of>},
    SinfoField{'f', "features", "AVAIL_FEATURES", Kind::kMatch, write_features},
    SinfoField{'F', "nodeaiot", "NODES(A/I/O/T)", Kind::kSummary,
               [](Context, Row r, Out o) { write_counts(o, count_nodes(r)); }},
    SinfoField{'g', "groups", "GROUPS", Kind::kPartition,
               [](Context, Row r, Out o) {
                 const std::vector<std::string>& groups = r.partition->allow_groups;
                 o += groups.empty() ? "all" : join(groups, ",");
               }},
    SinfoField{'G', "gres", "GRES", Kind::kMatch, of_first<gres_of>},
    SinfoField{'h', "oversubscribe", "OVERSUBSCRIBE", Kind::kPartition,
               [](Context, Row r, Out o) { o += r.partition->exclusive ? "EXCLUSIVE" : "NO"; }},
    SinfoField{'H', "timestamp", "TIMESTAMP", Kind::kMatch,
               [](Context c, Row r, Out o) {
                 const NodeView* n = first(r);
                 c.times->append(o, n && !n->state.reason.empty() ? n->state.reason_at : Instant{},
                                 "Unknown");
               }},
    SinfoField{'I', "priorityjobfactor", "PRIO_JOB_FACTOR", Kind::kPartition,
               [](Context, Row r, Out o) { number(o, r.partition->priority_job_factor); }},
    SinfoField{'l', "time", "TIMELIMIT", Kind::kPartition,
               [](Context, Row r, Out o) { write_limit(o, r.partition->max_time, "infinite"); }},
    SinfoField{'L', "defaulttime", "DEFAULTTIME", Kind::kPartition,
               [](Context, Row r, Out o) { write_limit(o, r.partition->default_time, "n/a"); }},
    SinfoField{'m', "memory", "MEMORY", Kind::kSummary,
               [](Context, Row r, Out o) {
                 least(r, o, [](const NodeView& n) { return n.spec.memory_mib; });
               }},
    SinfoField{'M', "preemptmode", "PREEMPT_MODE", Kind::kPartition, fixed<"OFF">},
    SinfoField{'n', "nodehost", "HOSTNAMES", Kind::kMatch,
               [](Context, Row r, Out o) { o += fold_nodes(names(r)); }},
    SinfoField{'N', "nodelist", "NODELIST", Kind::kSummary,
               [](Context, Row r, Out o) { o += fold_nodes(names(r)); }},
    SinfoField{'o', "nodeaddr", "NODE_ADDR", Kind::kMatch, write_addresses},
    SinfoField{'O', "cpusload", "CPU_LOAD", Kind::kSummary, fixed<"N/A">},
    SinfoField{'p', "prioritytier", "PRIO_TIER", Kind::kPartition,
               [](Context, Row r, Out o) { number(o, r.partition->priority_tier); }},
    SinfoField{'P', "partition", "PARTITION", Kind::kPartition,
               [](Context, Row r, Out o) {
                 o += r.partition->name;
                 if (r.partition->is_default) o += '*';
               }},
    SinfoField{'r', "root", "ROOT", Kind::kPartition,
               [](Context, Row r, Out o) { o += r.partition->root_only ? "yes" : "no"; }},
    SinfoField{'R', "partitionname", "PARTITION", Kind::kPartition,
               [](Context, Row r, Out o) { o += r.partition->name; }},
    SinfoField{'s', "size", "JOB_SIZE", Kind::kPartition, write_job_size},
    SinfoField{'S', "allocnodes", "ALLOCNODES", Kind::kPartition, fixed<"all">},
    SinfoField{'t', "statecompact", "STATE", Kind::kMatch, of_first<compact_of>},
    SinfoField{'T', "statelong", "STATE", Kind::kMatch, of_first<long_of>},
    SinfoField{'u', "user", "USER", Kind::kMatch, write_reason_user},
    SinfoField{'U', "userlong", "USER", Kind::kMatch, write_reason_user_long},
    SinfoField{'v', "version", "VERSION", Kind::kMatch, of_first<version_of>},
    SinfoField{'V', "cluster", "CLUSTER", Kind::kPartition, fixed<"N/A">},
    SinfoField{'w', "weight", "WEIGHT", Kind::kSummary,
               [](Context, Row r, Out o) {
                 least(r, o, [](const NodeView& n) { return n.spec.weight; });
               }},
    SinfoField{'X', "sockets", "SOCKETS", Kind::kSummary,
               [](Context, Row r, Out o) {
                 least(r, o, [](const NodeView& n) { return n.spec.sockets; });
               }},
    SinfoField{'Y', "cores", "CORES", Kind::kSummary,
               [](Context, Row r, Out o) {
                 least(r, o, [](const NodeView& n) { return n.spec.cores_per_socket; });
               }},
    SinfoField{'z', "socketcorethread", "S:C:T", Kind::kSummary, write_sct},
    SinfoField{'Z', "threads", "THREADS", Kind::kSummary,
               [](Context, Row r, Out o) {
                 least(r, o, [](const NodeView& n) { return n.spec.threads_per_core; });
               }},
    SinfoField{0, "allocmem", "ALLOCMEM", Kind::kMatch, of_first<memory_used_of>},
    SinfoField{0, "comment", "COMMENT", Kind::kMatch, fixed<"(null)">},
    SinfoField{0, "extra", "EXTRA", Kind::kMatch, fixed<"(null)">},
    SinfoField{0, "gresused", "GRES_USED", Kind::kMatch, of_first<node_gres_used>},
    SinfoField{0, "port", "PORT", Kind::kMatch, fixed<"N/A">},
    SinfoField{0, "statecomplete", "STATECOMPLETE", Kind::kMatch, of_first<complete_of>},
};

}  // namespace

std::span<const SinfoField> sinfo_fields() { return kFields; }

std::uint32_t sinfo_field_by_letter(char letter) {
  for (std::size_t i = 0; i < kFields.size(); ++i)
    if (letter != 0 && kFields[i].letter == letter) return static_cast<std::uint32_t>(i);
  return kTextOnly;
}

std::uint32_t sinfo_field_by_name(std::string_view lower_name) {
  if (lower_name == "priority") lower_name = "prioritytier";
  for (std::size_t i = 0; i < kFields.size(); ++i)
    if (kFields[i].name == lower_name) return static_cast<std::uint32_t>(i);
  return kTextOnly;
}

}  // namespace tutti::slurm
