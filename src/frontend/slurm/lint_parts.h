// Shared by the sources of lint.
#pragma once

#include <map>

#include "frontend/slurm/lint.h"
#include "frontend/slurm/lint_shell.h"
#include "frontend/slurm/options.h"
#include "model/workload.h"

namespace tutti::slurm {

struct Lint {
  const LintRequest& request;
  Workload workload;  // as lowered; defaults when an option was invalid
  // Where an option is written in the script, by its full name.
  std::map<std::string, Span> places;
  std::vector<Diagnostic> found;

  void add(Severity severity, std::string_view code, const Span& span, std::string message);
  Span place_of(std::string_view option) const;
};

// The request against the cluster, and the places its output goes to.
void lint_request(Lint& lint);
// The commands of the script.
void lint_commands(Lint& lint);

}  // namespace tutti::slurm
