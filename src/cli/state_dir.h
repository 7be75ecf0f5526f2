// The state directory of a cluster: where it is, what lies in it, and which processes it has.
//
//   cluster.json   what `up` decided; read by controller and agents
//   api.sock       the controller, for local programs (identified by the kernel)
//   pids           a line "name pid" for each process of the cluster
//   agent.key      0600: what agents show the controller
//   token          0600: what programs over TCP show
//   journal/       the controller's journal (0700)
//   log/           controller.log, agent.NODE.log
//   nodes/NAME/    what one agent keeps
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "agent/virtual_cluster.h"
#include "base/error.h"
#include "model/cluster.h"

namespace tutti::cli {

inline constexpr std::uint32_t kStateFormat = 1;
inline constexpr std::uint16_t kAgentPort = 7770;

struct ClusterFile {
  std::uint32_t format = kStateFormat;
  std::string cluster_id;
  ClusterSpec spec;
  std::string run_as;        // user of the controller; "" = whoever starts it
  bool serves_all_users = false;
  bool user_namespace = false;
  std::string slurm_conf;    // the file it was made from; "" = from options
  std::string source_digest; // of that file, to notice a change
};
void describe(auto& a, ClusterFile& x) {
  a("format", x.format);
  a("cluster_id", x.cluster_id);
  a("spec", x.spec);
  a("run_as", x.run_as);
  a("serves_all_users", x.serves_all_users);
  a("user_namespace", x.user_namespace);
  a("slurm_conf", x.slurm_conf);
  a("source_digest", x.source_digest);
}

// TUTTI_STATE; else the user's own directory, or for root /var/lib/tutti.
std::string default_state_dir();
// For a client: TUTTI_STATE; else the first of the user's own and /var/lib/tutti with a cluster.
std::string client_state_dir();

// Errors: kNotFound; kInvalid (a newer format, naming both).
Result<ClusterFile> read_cluster_file(const std::string& dir);
Status write_cluster_file(const std::string& dir, const ClusterFile& file);

// Writes the text to a new file and puts it in place of `path` in one step.
Status replace_file(const std::string& path, const std::string& text, unsigned mode);

// The holders of a cluster of virtual nodes: "switch" and one per node.
Result<agent::HolderHandle> read_holder(const std::string& dir, const std::string& name);
Status write_holder(const std::string& dir, const std::string& name, const agent::HolderHandle& holder);

// DIR/pids: entries whose process is gone are left out when it is read.
std::vector<std::pair<std::string, pid_t>> read_pids(const std::string& dir);
Status set_pid(const std::string& dir, const std::string& name, pid_t pid);  // 0 removes the line
std::optional<pid_t> pid_of(const std::string& dir, const std::string& name);

}  // namespace tutti::cli
