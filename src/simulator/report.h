// Reports of a comparison: a table for a terminal, JSON for programs, a self-contained page with
// plots for people who decide.
#pragma once

#include <string>
#include <vector>

#include "simulator/metrics.h"

namespace tutti::simulator {

struct Comparison {
  std::string trace, cluster;                // as given
  std::vector<Metrics> profiles;             // as asked for
  std::vector<std::vector<Sample>> samples;  // of each, in the same order
  double price = 0;                          // of a GPU-hour; 0 = not given
  std::string currency = "$";
};

// Which profile serves the load best, by the three numbers that decide it, and what the worst
// costs. One to four sentences; empty for fewer than two profiles. The best has the least mean
// bounded slowdown; where two are within 2 %, the one with the lower 95th percentile of waits.
std::string verdict(const Comparison& comparison);

// Rows are measures, columns profiles. `width`: of the terminal, 0 = no limit.
std::string render_table(const Comparison& comparison, std::size_t width);
std::string render_json(const Comparison& comparison);
// No scripts, no links: what it shows is in it.
std::string render_html(const Comparison& comparison);

}  // namespace tutti::simulator
