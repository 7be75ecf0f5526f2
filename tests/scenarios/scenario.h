// A scenario: a cluster, what happens to it when, and the log that must come out. The syntax is
// described in docs/guides/write-a-scenario.md.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "model/accounts.h"
#include "model/cluster.h"
#include "model/queues.h"
#include "model/workload.h"

namespace tutti::scenarios {

// A job line. Times in seconds since the scenario's start.
struct JobLine {
  std::string name;
  Workload workload;                 // without id, times and dependencies
  std::string dependencies;          // with names of jobs: "afterok:a,after:b+5"
  std::optional<std::int64_t> runs;  // seconds; else until its limit, else for ever
  std::int64_t begin = 0;
  std::optional<std::int64_t> checkpoints;  // saves every so many seconds, and goes on from there
  std::optional<std::int64_t> answers;      // seconds after a notice in which it ends itself
  bool fails = false;  // its script ends with exit code 1
};

struct Happening {
  std::int64_t at = 0;
  enum class Kind {
    kSubmit,
    kRunning,  // placed by itself before anything else is looked at
    kEnd,
    kFail,
    kCancel,
    kHold,
    kRelease,
    kPriority,
    kNice,
    kLimit,  // of what runs too
    kRefuse,  // the roll call of a job fails on a node
    kDrain,
    kDown,
    kResume,
    kPartition,
    kReserve,
    kUnreserve,
    kWhy,
    kLook,  // a pass without any event
  };
  Kind kind = Kind::kSubmit;
  JobLine job;                // kSubmit, kRunning
  std::string subject, text;  // job, node or partition; reason, node or state
};

struct Scenario {
  ClusterSpec spec;
  QueueTree queues;
  std::vector<Association> associations;  // as they are given; their parent is their account or
  std::map<std::string, std::string> above;  // of an account: the one above it
  std::vector<Qos> qos;
  std::string profile = "tutti";
  std::int64_t until = 1'000'000;
  bool with_devices = false;          // log tasks, CPUs and GPUs of every slot
  bool with_promises = false;         // log what becomes firm, moves and is dropped
  std::vector<Happening> happenings;  // by time, else as written
  std::string input, expected;        // the text above and below the line "----"
};

// Errors: kInvalid with the line.
Result<Scenario> parse_scenario(const std::string& text);

// Plays it with the production planner and the production state fold; gives the log.
std::string play(const Scenario& scenario);

}  // namespace tutti::scenarios
