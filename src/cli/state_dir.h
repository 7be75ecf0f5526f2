// The state directory of a cluster: where it is, what lies in it, and which processes it has.
//
//   cluster.json   what `up` decided; read by controller and agents
//   api.sock       the controller, for local programs (identified by the kernel)
//   pids           a line "name pid" for each process of the cluster, for people and scripts
//   pids.json      the same with start times, so that a pid of somebody else is never taken for ours
//   agent.key      0600: what agents show the controller
//   token          0600: what programs over TCP show
//   journal/       the controller's journal (0700)
//   log/           controller.log, agent.NODE.log
//   nodes/NAME/    what one agent keeps
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "agent/virtual_cluster.h"
#include "base/error.h"
#include "cli/up_options.h"
#include "model/cluster.h"

namespace tutti::cli {

inline constexpr std::uint32_t kStateFormat = 1;
inline constexpr std::uint16_t kAgentPort = 7770;

struct ClusterFile {
  std::uint32_t format = 0;  // written always: a default would be left out of the file
  std::string cluster_id;
  ClusterSpec spec;
  std::string run_as;        // user of the controller; "" = whoever starts it
  bool serves_all_users = false;
  bool user_namespace = false;
  UpOptions asked;           // what it was made from
  std::vector<std::string> listen;  // TCP addresses for programs, "127.0.0.1:7777"; none by default
  // Names of the virtual nodes by the index that gives their address; "" = free again. A node keeps
  // its place as long as it lives.
  std::vector<std::string> places;
};
void describe(auto& a, ClusterFile& x) {
  a("format", x.format);
  a("cluster_id", x.cluster_id);
  a("spec", x.spec);
  a("run_as", x.run_as);
  a("serves_all_users", x.serves_all_users);
  a("user_namespace", x.user_namespace);
  a("asked", x.asked);
  a("listen", x.listen);
  a("places", x.places);
}

struct ClusterProcess {
  std::string name;  // "controller", "agent.node01", "holder.switch"
  agent::ProcessRef process;
};
void describe(auto& a, ClusterProcess& x) {
  a("name", x.name);
  a("process", x.process);
}

// TUTTI_STATE; else the user's own directory, or for root /var/lib/tutti.
std::string default_state_dir();
// For a client: TUTTI_STATE; else the first of the user's own and /var/lib/tutti with a cluster.
std::string client_state_dir();

// Errors: kNotFound; kInvalid (a newer format, naming both).
Result<ClusterFile> read_cluster_file(const std::string& dir);
Status write_cluster_file(const std::string& dir, const ClusterFile& file);

// Writes the text to a new file and puts it in place of `path` in one step. What a reboot makes
// worthless need not reach the disk.
enum class Durability { kThisBoot, kDisk };
Status replace_file(const std::string& path, const std::string& text, unsigned mode,
                    Durability durability = Durability::kDisk);

// The holders of a cluster of virtual nodes: "switch" and one per node.
Result<agent::HolderHandle> read_holder(const std::string& dir, const std::string& name);
Status write_holder(const std::string& dir, const std::string& name, const agent::HolderHandle& holder);

// The processes of the cluster that are alive: those whose start time is the one written down.
std::vector<ClusterProcess> read_pids(const std::string& dir);
// Writes DIR/pids anew with this process added; lines of the dead go.
Status set_pid(const std::string& dir, const std::string& name, pid_t pid);
// Takes the line away if it is still this process'.
Status clear_pid(const std::string& dir, const std::string& name, pid_t pid);
std::optional<pid_t> pid_of(const std::string& dir, const std::string& name);

}  // namespace tutti::cli
