// What was asked of `tutti up`; kept in the state, so that a later look at the same slurm.conf
// gives the same cluster.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tutti::cli {

struct UpOptions {
  std::string state_dir;
  std::uint32_t nodes = 0;  // virtual nodes; 0 = this machine is the one node
  std::string slurm_conf;   // absolute once it is kept
  std::uint32_t planned = 0;
  std::uint32_t cpus = 0;  // of each virtual or planned node; 0 = default
  std::string gpus;        // "[TYPE:]N"
  std::string memory;      // "1000000", "64G"
  std::vector<std::string> listen;  // "[ADDRESS:]PORT"
  // Whether nodes are described; where to listen is another matter.
  bool any_given() const {
    return nodes || !slurm_conf.empty() || planned || cpus || !gpus.empty() || !memory.empty();
  }
};
void describe(auto& a, UpOptions& x) {
  a("nodes", x.nodes);
  a("slurm_conf", x.slurm_conf);
  a("planned", x.planned);
  a("cpus", x.cpus);
  a("gpus", x.gpus);
  a("memory", x.memory);
}

}  // namespace tutti::cli
