// What `tutti up` does, step by step: each function starts what is missing and changes nothing else.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "cli/state_dir.h"

namespace tutti::cli {

struct UpOptions {
  std::string state_dir;
  std::uint32_t nodes = 0;     // virtual nodes; 0 = this machine is the one node
  std::string slurm_conf;
  std::uint32_t planned = 0;
  std::uint32_t cpus = 0;      // of each virtual or planned node; 0 = default
  std::string gpus;            // "[TYPE:]N"
  std::string memory;          // "1000000", "64G"
  bool any_given() const { return nodes || !slurm_conf.empty() || planned || cpus || !gpus.empty() || !memory.empty(); }
};

// The cluster that the options or the slurm.conf describe. All problems at once in the message.
Result<ClusterSpec> make_spec(const UpOptions& options, std::vector<std::string>& notes);
// Directories with their owners and modes, keys, the controller's user. Needs no running process.
Status make_state_dir(const std::string& dir, ClusterFile& file);
// Starts the holders of virtual nodes that are not alive.
Status start_holders(const std::string& dir, const ClusterFile& file, std::vector<std::string>& notes);
// Starts the controller and the agents that are not alive; waits until all nodes answer.
Status start_daemons(const std::string& dir, const ClusterFile& file);
// Ends agents, controller and holders. The work must have been ended before.
Status stop_daemons(const std::string& dir);
// Whether controller and agents are all there.
bool all_running(const std::string& dir, const ClusterFile& file);

bool is_virtual(const ClusterSpec& spec);
std::string own_executable();

}  // namespace tutti::cli
