#include "scheduler/cluster_index.h"

#include <algorithm>

#include "scheduler/hash.h"

namespace tutti::scheduler {

namespace {

// The threads of a core are allocated together; where the configured numbers do not divide, each
// logical CPU counts as a core.
std::uint32_t threads_of(const NodeSpec& node) {
  std::uint32_t threads = std::max(node.threads_per_core, 1u);
  return node.cpus % threads == 0 ? threads : 1;
}

bool is_gpu(const DeviceSpec& device) { return device.kind == "gpu"; }

bool alike(const NodeSpec& a, const NodeSpec& b) {
  auto same_device = [](const DeviceSpec& x, const DeviceSpec& y) {
    return x.kind == y.kind && x.type == y.type && x.memory_mib == y.memory_mib && x.mig == y.mig &&
           x.numa == y.numa && x.nvlink == y.nvlink;
  };
  return a.cpus == b.cpus && threads_of(a) == threads_of(b) && a.memory_mib == b.memory_mib &&
         a.weight == b.weight && a.features == b.features &&
         std::equal(a.devices.begin(), a.devices.end(), b.devices.begin(), b.devices.end(),
                    same_device);
}

std::uint64_t hash_of(const NodeSpec& node) {
  Hash hash;
  hash.add(node.cpus).add(threads_of(node)).add(node.memory_mib).add(node.weight);
  hash.add(node.devices.size());
  for (const DeviceSpec& device : node.devices) hash.add(device.type);
  for (const std::string& feature : node.features) hash.add(feature);
  return hash.value();
}

}  // namespace

std::optional<std::size_t> NodeClass::slot_of(GpuType type) const {
  auto it = std::find(types.begin(), types.end(), type);
  if (it == types.end()) return std::nullopt;
  return static_cast<std::size_t>(it - types.begin());
}

ClusterIndex::ClusterIndex(const ClusterSpec& spec) : spec_(spec), topology_(spec) {
  std::size_t count = spec.nodes.size();
  class_of_.resize(count);
  by_name_.reserve(count);
  std::unordered_multimap<std::uint64_t, std::uint32_t> known;
  for (NodeIndex node = 0; node < count; ++node) {
    by_name_.emplace(spec.nodes[node].name, node);
    classify(node, known);
  }
  partitions_.reserve(spec.partitions.size());
  for (const PartitionSpec& partition : spec.partitions) {
    NodeSet& nodes = partitions_.emplace_back(count);
    for (const std::string& name : partition.nodes)
      if (auto node = find(name)) nodes.add(*node);
  }
}

void ClusterIndex::classify(NodeIndex node,
                            std::unordered_multimap<std::uint64_t, std::uint32_t>& known) {
  const NodeSpec& spec = spec_.nodes[node];
  // Neighbours are mostly alike.
  if (node > 0 && alike(spec, spec_.nodes[node - 1])) {
    class_of_[node] = class_of_[node - 1];
  } else {
    std::uint64_t hash = hash_of(spec);
    auto [first, last] = known.equal_range(hash);
    auto hit = std::find_if(first, last, [&](const auto& entry) {
      return alike(spec_.nodes[classes_[entry.second].example], spec);
    });
    if (hit != last) {
      class_of_[node] = hit->second;
    } else {
      class_of_[node] = static_cast<std::uint32_t>(classes_.size());
      known.emplace(hash, class_of_[node]);
      classes_.push_back(make_class(node));
    }
  }
  classes_[class_of_[node]].members.add(node);
}

NodeClass ClusterIndex::make_class(NodeIndex node) {
  const NodeSpec& spec = spec_.nodes[node];
  NodeClass out;
  out.example = node;
  out.members = NodeSet(spec_.nodes.size());
  out.threads = threads_of(spec);
  most_threads_ = std::max(most_threads_, out.threads);
  out.weight = spec.weight;
  out.full.cores = static_cast<std::int32_t>(spec.cpus / out.threads);
  out.full.memory_mib = static_cast<std::int64_t>(spec.memory_mib);
  out.devices = static_cast<std::uint32_t>(spec.devices.size());
  for (std::uint16_t i = 0; i < spec.devices.size(); ++i) {
    if (!is_gpu(spec.devices[i])) continue;
    auto known = std::find(gpu_types_.begin(), gpu_types_.end(), spec.devices[i].type);
    auto type = static_cast<GpuType>(known - gpu_types_.begin());
    if (known == gpu_types_.end()) gpu_types_.push_back(spec.devices[i].type);
    auto slot = out.slot_of(type);
    if (!slot) {
      if (out.types.size() == kGpuTypesPerNode) continue;
      slot = out.types.size();
      out.types.push_back(type);
      out.device_of.emplace_back();
      out.shared.push_back(
          {spec.devices[i].type, spec.devices[i].memory_mib, spec.devices[i].mig});
    }
    out.device_of[*slot].push_back(i);
    ++out.full.gpus[*slot];
  }
  return out;
}

std::optional<NodeIndex> ClusterIndex::find(std::string_view name) const {
  auto it = by_name_.find(name);
  return it == by_name_.end() ? std::nullopt : std::optional(it->second);
}

std::optional<GpuType> ClusterIndex::gpu_type(std::string_view name) const {
  auto it = std::find(gpu_types_.begin(), gpu_types_.end(), name);
  if (it == gpu_types_.end()) return std::nullopt;
  return static_cast<GpuType>(it - gpu_types_.begin());
}

std::optional<std::size_t> ClusterIndex::partition(std::string_view name) const {
  for (std::size_t i = 0; i < spec_.partitions.size(); ++i)
    if (name.empty() ? spec_.partitions[i].is_default : spec_.partitions[i].name == name) return i;
  // A cluster with a single partition needs no default.
  if (name.empty() && spec_.partitions.size() == 1) return 0;
  return std::nullopt;
}

}  // namespace tutti::scheduler
