// Virtual nodes: one machine looks like several. Each node is a *holder*, a tiny process that owns
// a network, host name and mount namespace and waits; one more, the *switch*, owns a network
// namespace with the bridge. The host's own links, namespaces' list and mounts never change; two
// clusters can use the same addresses; everything vanishes with the holders (and whoever entered).
//
// Inside a node: lo; eth0 with 10.77.X.Y/16 and an IPv6 ULA, no route to the outside; its host
// name; /etc/hosts with every node; /etc/hostname; a /dev of its own with the standard nodes, the
// host's terminals, an own /dev/shm and only the GPUs it declares. All else is the host's.
//
// As an ordinary user the switch owns a user namespace too and the nodes live in it. Device nodes
// cannot be made there: plain files stand in for GPUs, and the handle's `missing` says so;
// terminals are the node's own then.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "agent/process.h"
#include "base/error.h"

namespace tutti::agent {

// Where the controller listens (listen_in_switch) and the agents dial.
inline constexpr std::string_view kSwitchAddress = "10.77.0.1";
inline constexpr std::string_view kSwitchHostName = "tutti-controller";
inline constexpr std::uint32_t kMaxVirtualNodes = 16384;
// Of the node with this index (0...): "10.77.1.1", "fd54:7574:7469::2".
std::string node_address(std::uint32_t index);
std::string node_address6(std::uint32_t index);
// The text of /etc/hosts for a cluster whose nodes have these names, in the order of their index
// ("" = no node has it).
std::string hosts_text(const std::vector<std::string>& names);

// A device file in a node's /dev.
struct NodeDevice {
  static constexpr std::string_view kName = "node_device";
  std::string path;  // below /dev/, as gres.conf names it
  // Of a declared device: unique over the cluster, on pick_gpu_major(). Ignored for `real`.
  std::uint32_t major = 0;
  std::uint32_t minor = 0;
  bool real = false;  // the machine has it at this path: show that one
};
template <class A>
void describe(A& a, NodeDevice& x) {
  a("path", x.path);
  a("major", x.major);
  a("minor", x.minor);
  a("real", x.real);
}

// A running holder; kept in the cluster's state.
struct HolderHandle {
  static constexpr std::string_view kName = "holder";
  ProcessRef process;
  std::vector<std::string> missing;  // what it could not give, for people
};
template <class A>
void describe(A& a, HolderHandle& x) {
  a("process", x.process);
  a("missing", x.missing);
}

struct SwitchSpec {
  // What is run as a holder, e.g. {"/usr/bin/tutti", "node-holder"}; it must call
  // run_node_holder(). The node's name is added for `ps`.
  std::vector<std::string> command;
  // From probe_namespaces().through_user_namespace.
  bool user_namespace = false;
};
struct VirtualNodeSpec {
  std::vector<std::string> command;
  ProcessRef switch_holder;
  std::string name;
  std::uint32_t index = 0;  // < kMaxVirtualNodes, unique in the cluster
  // An existing directory of this node's own, absolute; used for mount points and generated files.
  std::string directory;
  // File with hosts_text(), absolute; read at every look-up, so it can be rewritten in place.
  std::string hosts_path;
  std::vector<NodeDevice> devices;
};

// Returns when the bridge is up. The holder keeps none of the caller's descriptors and outlives it.
Result<HolderHandle> start_switch(const SwitchSpec& spec);
// Starts all at once and returns when each is ready, in the order of the specs. All or nothing: if
// one fails, the others are stopped and the error names the node.
Result<std::vector<HolderHandle>> start_nodes(const std::vector<VirtualNodeSpec>& specs);
// Ends holders (SIGTERM, then SIGKILL after 2 s); returns when they are gone. Their namespaces go
// when no process is left in them.
Status stop_holders(const std::vector<ProcessRef>& holders);

// The body of `tutti node-holder NAME`: reads its orders from standard input, answers on standard
// output, then waits for SIGTERM. Returns the exit code.
int run_node_holder();

}  // namespace tutti::agent
