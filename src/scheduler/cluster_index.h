// ClusterIndex: the configured machines in the form the planner computes with. Nodes that are alike
// (CPUs, memory, devices in order, features, weight) share a class, so that what depends on the
// kind of a node is decided once per class. Built from the ClusterSpec at each pass; it refers to
// the spec and must not outlive it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "model/cluster.h"
#include "scheduler/capacity.h"
#include "scheduler/node_set.h"
#include "scheduler/topology.h"

namespace tutti::scheduler {

using GpuType = std::uint16_t;  // position in ClusterIndex::gpu_types()

// What the devices of one type of a node are like, as far as it matters to sharing them.
struct SharedDevice {
  std::string_view type_name;
  std::uint64_t memory_mib = 0;  // usable; 0 = unknown
  bool mig = false;
};

struct NodeClass {
  Capacity full;              // of an empty node
  std::uint32_t threads = 1;  // logical CPUs per core
  std::uint32_t weight = 1;
  std::uint32_t devices = 0;                          // of all kinds, for the width of bit sets
  std::vector<GpuType> types;                         // which GPUs, in order of first appearance
  std::vector<std::vector<std::uint16_t>> device_of;  // per entry of types: device indexes
  std::vector<SharedDevice> shared;                   // per entry of types
  NodeIndex example = 0;                              // a member; its NodeSpec has the features
  NodeSet members;

  std::uint32_t cpus() const { return static_cast<std::uint32_t>(full.cores) * threads; }
  // Position of a type in `types`; nullopt when such a node has none of it.
  std::optional<std::size_t> slot_of(GpuType type) const;
};

class ClusterIndex {
 public:
  // Cost: O(nodes x devices + sum of the partitions' lists).
  explicit ClusterIndex(const ClusterSpec& spec);

  const ClusterSpec& spec() const { return spec_; }
  std::size_t size() const { return class_of_.size(); }
  const NodeClass& of(NodeIndex node) const { return classes_[class_of_[node]]; }
  std::uint32_t class_id(NodeIndex node) const { return class_of_[node]; }
  const std::vector<NodeClass>& classes() const { return classes_; }
  const std::string& name(NodeIndex node) const { return spec_.nodes[node].name; }
  std::optional<NodeIndex> find(std::string_view name) const;

  std::uint32_t most_threads() const { return most_threads_; }  // per core, of any node
  const std::vector<std::string>& gpu_types() const { return gpu_types_; }
  std::optional<GpuType> gpu_type(std::string_view name) const;

  // Position in spec().partitions; the default one for "".
  std::optional<std::size_t> partition(std::string_view name) const;
  const NodeSet& partition_nodes(std::size_t partition) const { return partitions_[partition]; }
  const Topology& topology() const { return topology_; }

 private:
  void classify(NodeIndex node, std::unordered_multimap<std::uint64_t, std::uint32_t>& known);
  NodeClass make_class(NodeIndex node);

  const ClusterSpec& spec_;
  std::uint32_t most_threads_ = 1;
  std::vector<std::uint32_t> class_of_;
  std::vector<NodeClass> classes_;
  std::unordered_map<std::string_view, NodeIndex> by_name_;  // looked up, never iterated
  std::vector<std::string> gpu_types_;
  std::vector<NodeSet> partitions_;
  Topology topology_;
};

}  // namespace tutti::scheduler
