// What a batch script will not do that its author thinks it does: found by reading it, before it
// has waited in a queue. Errors are certain failures, warnings likely surprises. The codes:
//   script-invalid, option-invalid       sbatch would refuse it
//   option-not-honoured                  accepted, but without effect
//   launcher-per-task                    more launchers than the world has places for
//   launcher-missing                     fewer; the world never comes together
//   launcher-on-one-node                 a launcher for several nodes that only the first one runs
//   worlds-apart                         several launchers that know nothing of each other
//   more-ranks-than-gpus, fixed-port, address-not-reachable
//   unknown-partition, over-partition-limit, never-fits, no-time-limit, output-directory-missing
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "model/cluster.h"

namespace tutti::slurm {

struct LintRequest {
  std::string_view text;
  std::string file;                      // as shown
  const ClusterSpec* cluster = nullptr;  // null: nothing about the cluster is checked
  // Whether a directory is there, seen from where the job would start; empty: not checked.
  std::function<bool(const std::string& path)> directory_exists;
};
// All findings, by line. Cost: linear in the text, up to the size a script may have.
std::vector<Diagnostic> lint_script(const LintRequest& request);

}  // namespace tutti::slurm
