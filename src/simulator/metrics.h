// Metrics: what people compare schedulers by, computed from a replay. Times are in seconds.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/archive.h"
#include "simulator/replay.h"

namespace tutti::simulator {

struct Distribution {
  double mean = 0, p50 = 0, p95 = 0, p99 = 0, max = 0;
};
template <class A>
void describe(A& a, Distribution& x) {
  a("mean", x.mean);
  a("p50", x.p50);
  a("p95", x.p95);
  a("p99", x.p99);
  a("max", x.max);
}

// Nearest-rank percentiles; all 0 for no values. Sorts `values`.
Distribution distribution_of(std::vector<double>& values);

struct SizeClass {
  std::string name;  // "1", "2-8", "9-64", "65+" GPUs
  std::uint64_t jobs = 0;
  Distribution wait, slowdown;
};
template <class A>
void describe(A& a, SizeClass& x) {
  a("name", x.name);
  a("jobs", x.jobs);
  a("wait_s", x.wait);
  a("bounded_slowdown", x.slowdown);
}

struct LevelHours {
  std::string level;
  double hours = 0;
};
template <class A>
void describe(A& a, LevelHours& x) {
  a("level", x.level);
  a("hours", x.hours);
}

struct Metrics {
  std::string profile, unit;
  std::uint64_t jobs = 0, unfinished = 0, refused = 0;
  Distribution wait, slowdown, completion;
  std::vector<SizeClass> classes;
  double allocated = 0;   // share of capacity x time that was held
  double useful = 0;      // ... that progressed and was not lost
  double makespan_s = 0;  // from the first submission to the last end
  double idle_hours = 0;  // GPU-hours free while somebody waited
  double lost_hours = 0;
  std::uint64_t restarts = 0;  // starts beyond each job's first
  // Jain's index over users of the mean bounded slowdown: 1 = all alike.
  double fairness = 1;
  std::vector<LevelHours> levels;
  std::uint64_t passes = 0;
  bool interrupted = false;
};
template <class A>
void describe(A& a, Metrics& x) {
  a("profile", x.profile);
  a("unit", x.unit);
  a("jobs", x.jobs);
  a("unfinished", x.unfinished);
  a("refused", x.refused);
  a("wait_s", x.wait);
  a("bounded_slowdown", x.slowdown);
  a("completion_s", x.completion);
  a("classes", x.classes);
  a("allocated", x.allocated);
  a("useful", x.useful);
  a("makespan_s", x.makespan_s);
  a("idle_while_waiting_hours", x.idle_hours);
  a("lost_hours", x.lost_hours);
  a("restarts", x.restarts);
  a("fairness", x.fairness);
  a("ledger_hours", x.levels);
  a("passes", x.passes);
  a("interrupted", x.interrupted);
}

// Bounded slowdown = max(1, (wait + run) / max(10 s, run)); Feitelson's, over jobs that ended.
Metrics measure(const Trace& trace, const ReplayResult& result);

}  // namespace tutti::simulator
