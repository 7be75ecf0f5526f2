// What `tutti up` does, step by step: each function starts what is missing and changes nothing else.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "cli/state_dir.h"
#include "cli/up_options.h"

namespace tutti::cli {

// The cluster that the options or the slurm.conf describe. All problems at once in the message.
Result<ClusterSpec> make_spec(const UpOptions& options, std::vector<std::string>& notes);
// Whether this machine and user may have virtual nodes, and how (file.user_namespace). kDenied: why
// not.
Status allow_virtual_nodes(ClusterFile& file);
// "[ADDRESS:]PORT" as the server wants it; without an address a loopback that this machine has.
Result<std::string> listen_address(const std::string& text);
// The directory itself and those above it; for an ordinary user it is 0755, inside all has its mode.
Status make_top_dir(const std::string& dir);
// Directories with their owners and modes, keys, the controller's user. Needs no running process.
Status make_state_dir(const std::string& dir, ClusterFile& file);
// Starts the holders of virtual nodes that are not alive; an agent in the namespaces of a dead one is
// ended. Places of new nodes are kept in the file on disk.
Status start_holders(const std::string& dir, ClusterFile& file, std::vector<std::string>& notes);
// Starts the controller and the agents that are not alive; waits until all nodes answer.
Status start_daemons(const std::string& dir, const ClusterFile& file);
// Ends agents, controller and holders. The work must have been ended before.
Status stop_daemons(const std::string& dir);
// After the controller has taken a new spec into force: keeps it, ends the agents of nodes that are
// gone, starts those of new ones.
Status follow_spec(const std::string& dir, ClusterFile& file, std::vector<std::string>& notes);
// One `up`, `down` or reconfiguration at a time: held until the descriptor is closed.
Result<agent::Descriptor> lock_setup(const std::string& dir);
// Whether controller and agents are all there.
bool all_running(const std::string& dir, const ClusterFile& file);

bool is_virtual(const ClusterSpec& spec);
std::string own_executable();

}  // namespace tutti::cli
