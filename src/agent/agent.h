// Agent: the node's daemon. It carries out typed orders of the controller (model/to_agent.h): makes
// room for gangs, starts a supervisor per step, passes on what both sides say, streams output,
// cleans up. It decides nothing and keeps nothing that is not also on disk, so it can be killed or
// replaced by another build at any instant: supervisors go on, the next agent finds them.
//
// Owns DIRECTORY (DIR/nodes/NODE): jobs/GANG/gang.json and jobs/GANG/step_NAME/. Users must be able
// to search (not list) the path to it: 0711.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "agent/cgroups.h"
#include "agent/uplink.h"
#include "base/error.h"
#include "base/time.h"

namespace tutti::agent {

struct AgentOptions {
  std::string node;
  std::string directory;  // made if missing
  std::string version;
  // Program and first arguments of a supervisor; /proc/self/exe stays the running build even when
  // the file is replaced.
  std::vector<std::string> supervisor{"/proc/self/exe", "supervisor"};
  std::uint32_t pids_max = 0;  // processes of one gang on this node; 0 = no limit
  bool bind_cpus = false;      // cpusets from SlotOrder::cpu_ids (not where CPUs are declared)
  bool limit_memory = true;
  // What the holder of these GPUs (by the node's indices) may open; empty function = no isolation.
  std::function<std::vector<DeviceRule>(const std::vector<std::uint16_t>& gpus)> device_rules;
  // For people: who still has one of these GPUs open after the gang has gone.
  std::function<std::vector<std::string>(const std::vector<std::uint16_t>& gpus)> strangers;
  std::function<void(const std::string& line)> log;  // one line per event of note
};

class Agent {
 public:
  // Adopts what an earlier agent left in the directory. `uplink` must live longer.
  // Errors: the directory cannot be made or read.
  static Result<std::unique_ptr<Agent>> create(AgentOptions options, Uplink& uplink,
                                               std::unique_ptr<Cgroups> cgroups);
  // Leaves everything running.
  ~Agent();
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;

  // Waits for something to happen, at most `timeout`, and handles it.
  void run_once(Duration timeout);
  // Until `stop_fd` is readable.
  void run(int stop_fd);

 private:
  class Impl;
  explicit Agent(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace tutti::agent
