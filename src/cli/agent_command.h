// `tutti agent --state DIR --node NAME`: the agent in the foreground, composed of its parts: the
// channel to the controller, cgroups, the node's devices, a log file. The caller has entered the
// node's namespaces already, if it is a virtual one.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "model/cluster.h"
#include "wire/endpoint.h"

namespace tutti::cli {

struct AgentSetup {
  std::string state_dir;  // of the cluster; the agent keeps STATE_DIR/nodes/NODE
  std::string node;
  std::string cluster_id;  // names the cgroups: [A-Za-z0-9_.-]+
  std::string version;
  wire::Endpoint controller;
  std::string key;                  // shown to the controller as a bearer token
  std::vector<DeviceSpec> devices;  // index = the node's device index
  bool is_virtual = false;          // CPUs and GPUs may be declared only: nothing is bound to CPUs
  std::string log_path;             // bounded: two files of 10 MiB; empty = standard error
  std::uint32_t pids_max = 0;       // of a gang; 0 = 512 for each CPU of the machine, 2048 to 32768
};

// Until SIGTERM or SIGINT; running steps go on. Errors: what kept it from starting.
Status run_agent(const AgentSetup& setup);

}  // namespace tutti::cli
