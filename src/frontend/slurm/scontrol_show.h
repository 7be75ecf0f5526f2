// scontrol show: the long texts about jobs, nodes, partitions, steps and the configuration.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/slurm/squeue_render.h"
#include "frontend/slurm/view_node.h"

namespace tutti::slurm {

struct ShowOptions {
  bool one_line = false;  // -o
  bool details = false;   // -d
  UserNames users;
  TimeText times;
};

// `jobs` empty: every one. A job that does not exist: "Invalid job id specified", exit 1.
Output show_jobs(const StateView& view, const std::vector<JobSelector>& jobs, const ShowOptions& o);
Output show_jobs_json(const StateView& view, const std::vector<JobSelector>& jobs,
                      const ShowOptions& o);
// Steps that are not over; a selector without step: all of that job.
Output show_steps(const StateView& view, const std::vector<JobSelector>& jobs,
                  const ShowOptions& o);
// `names` empty: every one. "Node X not found" on stdout, exit 1.
Output show_nodes(const StateView& view, const std::vector<std::string>& names,
                  const ShowOptions& o);
Output show_partitions(const StateView& view, const std::vector<std::string>& names,
                       const ShowOptions& o);
// "Key = value" of what is in force and of what was only given; needs view.spec.
Output show_config(const StateView& view, const ShowOptions& o);
// "Reservation X not found", exit 1; "No reservations in the system".
Output show_reservations(const StateView& view, const std::vector<std::string>& names,
                         const ShowOptions& o);
Output show_licenses();
// "Slurmctld(primary) at HOST is UP"; down: exit 1.
enum class Reachable : std::uint8_t { kUp, kDown };
Output show_ping(std::string_view host, Reachable reachable);
// One name a line; folded; folded after sorting. A malformed list: message, exit 1.
Output show_hostnames(std::string_view list);
Output show_hostlist(std::string_view list);
Output show_hostlistsorted(std::string_view list);

}  // namespace tutti::slurm
