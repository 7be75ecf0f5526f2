// What start_switch() and start_nodes() tell a holder on its standard input, and its answer on its
// standard output: one JSON record each. Private to virtual_cluster.cpp and node_holder.cpp, which
// are always of the same build.
#pragma once

#include <string>
#include <vector>

#include "agent/virtual_cluster.h"
#include "base/archive.h"

namespace tutti::agent {

struct HolderOrder {
  static constexpr std::string_view kName = "holder_order";
  bool user_namespace = false;  // of a switch
  ProcessRef switch_holder;     // none: this is the switch
  std::string name;
  std::uint32_t index = 0;
  std::string directory;
  std::string hosts_path;
  std::vector<NodeDevice> devices;
};
template <class A>
void describe(A& a, HolderOrder& x) {
  a("user_namespace", x.user_namespace);
  a("switch_holder", x.switch_holder);
  a("name", x.name);
  a("index", x.index);
  a("directory", x.directory);
  a("hosts_path", x.hosts_path);
  a("devices", x.devices);
}

struct HolderAnswer {
  static constexpr std::string_view kName = "holder_answer";
  bool ready = false;
  std::string error;
  std::vector<std::string> missing;
};
template <class A>
void describe(A& a, HolderAnswer& x) {
  a("ready", x.ready);
  a("error", x.error);
  a("missing", x.missing);
}

}  // namespace tutti::agent
