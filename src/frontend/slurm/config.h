// slurm.conf and the files beside it (gres.conf, cgroup.conf, topology.conf) read into a
// ClusterSpec. Everything that is wrong is reported in one go, each with file, line and column;
// what is understood but has no effect here is a warning, once. Source of the rules: slurm.conf(5)
// and gres.conf(5) of 22.05. Files are read through a callback.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/error.h"
#include "model/cluster.h"

namespace tutti::slurm {

// The text of a file. kNotFound is no error for the files beside slurm.conf.
using ReadConfigFile = std::function<Result<std::string>(const std::string& path)>;

struct ClusterConfig {
  ClusterSpec spec;
  // In the order of the files; codes "config-syntax", "config-unknown-key", "config-value",
  // "config-node", "config-partition", "config-gres", "config-topology", "config-include",
  // "config-unsupported".
  std::vector<Diagnostic> diagnostics;
  bool auto_detect = false;  // gres.conf asks for devices to be found on the nodes

  // No diagnostic is an error: `spec` may be used.
  bool usable() const;
};

// Reads slurm.conf at `path`, what it includes (relative to its folder), and gres.conf, cgroup.conf
// and topology.conf in the same folder. Includes are followed eight levels deep, 4 MiB in all.
// Nodes are kReal, those of State=CLOUD kPlanned, those of State=FUTURE left out; which real ones
// are virtual is the caller's to decide.
ClusterConfig read_cluster_config(const std::string& path, const ReadConfigFile& read_file);

}  // namespace tutti::slurm
