// sprio's output: the parts of the priority of every job that could start.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "frontend/slurm/squeue_render.h"

namespace tutti::slurm {

struct SprioOptions {
  std::string format;  // -o; "" = what the flags say
  bool long_form = false;
  bool weights = false;     // -w: the weights instead of jobs
  bool normalized = false;  // -n: parts as shares of their weight
  bool no_header = false;
  std::string sort;  // -S: letters of squeue's sort
  JobFilter filter;  // jobs, users, partitions
};
// Columns whose weight is 0 are left out of the default form, as sprio does. Needs view.spec for
// the weights. When a filter selects nothing: "Unable to find jobs...", exit 0.
Output render_sprio(const StateView& view, const SprioOptions& options);

}  // namespace tutti::slurm
