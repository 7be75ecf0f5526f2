// scontrol show reservation, and sinfo -T.
#include <fmt/format.h>

#include <algorithm>

#include "base/duration_text.h"
#include "base/hostlist.h"
#include "base/text.h"
#include "frontend/slurm/scontrol_show.h"
#include "frontend/slurm/sinfo_render.h"

namespace tutti::slurm {

namespace {

std::string list_or_null(const std::vector<std::string>& list) {
  return list.empty() ? "(null)" : join(list, ",");
}

std::string reservation_text(const Reservation& r, const StateView& view, const ShowOptions& o) {
  std::uint64_t cpus = 0, cores = 0;
  for (const NodeView& node : view.nodes) {
    if (std::find(r.nodes.begin(), r.nodes.end(), node.spec.name) == r.nodes.end()) continue;
    cpus += node.spec.cpus;
    cores += node.spec.cpus / std::max(node.spec.threads_per_core, 1u);
  }
  std::vector<std::string> flags;
  for (ReservationFlag flag : r.flags) flags.emplace_back(enum_name(flag));
  std::vector<std::string> lines{
      fmt::format("ReservationName={} StartTime={} EndTime={} Duration={}", r.name,
                  o.times.text(r.start), o.times.text(r.end), format_duration(r.end - r.start)),
      fmt::format("Nodes={} NodeCnt={} CoreCnt={} Features={} PartitionName={} Flags={}",
                  fold_hostlist(r.nodes), r.nodes.size(), cores,
                  r.features.empty() ? "(null)" : r.features,
                  r.partition.empty() ? "(null)" : r.partition, join(flags, ",")),
      fmt::format("TRES=cpu={}", cpus),
      fmt::format("Users={} Groups={} Accounts={} Licenses=(null) State={} BurstBuffer=(null) "
                  "Watts=n/a",
                  list_or_null(r.users), list_or_null(r.groups), list_or_null(r.accounts),
                  r.is_active(view.now) ? "ACTIVE" : "INACTIVE"),
      "MaxStartDelay=(null)"};
  if (!r.comment.empty()) lines.push_back("Comment=" + r.comment);
  return o.one_line ? join(lines, " ") + "\n" : join(lines, "\n   ") + "\n\n";
}

}  // namespace

Output show_reservations(const StateView& view, const std::vector<std::string>& names,
                         const ShowOptions& o) {
  Output out;
  if (names.empty() && view.reservations.empty()) {
    out.text = "No reservations in the system\n";
    return out;
  }
  for (const Reservation& each : view.reservations)
    if (names.empty() || std::find(names.begin(), names.end(), each.name) != names.end())
      out.text += reservation_text(each, view, o);
  for (const std::string& name : names) {
    const bool known = std::any_of(view.reservations.begin(), view.reservations.end(),
                                   [&](const Reservation& each) { return each.name == name; });
    if (known) continue;
    out.text += fmt::format("Reservation {} not found\n", name);
    out.exit_code = 1;
  }
  return out;
}

Output render_sinfo_reservations(const StateView& view, const TimeText& times, bool no_header) {
  Output out;
  if (view.reservations.empty()) {
    out.text = "No reservations in the system\n";
    return out;
  }
  std::size_t width = 10;
  for (const Reservation& each : view.reservations) width = std::max(width, each.name.size());
  auto line = [&](std::string_view name, std::string_view state, std::string_view start,
                  std::string_view end, std::string_view duration, std::string_view nodes) {
    out.text += fmt::format("{:<{}}  {:>8}  {:>19}  {:>19}  {:>11}  {}\n", name, width, state,
                            start, end, duration, nodes);
  };
  if (!no_header) line("RESV_NAME", "STATE", "START_TIME", "END_TIME", "DURATION", "NODELIST");
  for (const Reservation& each : view.reservations)
    line(each.name, each.is_active(view.now) ? "ACTIVE" : "INACTIVE", times.text(each.start),
         times.text(each.end), format_duration(each.end - each.start), fold_hostlist(each.nodes));
  return out;
}

}  // namespace tutti::slurm
