// Shared by the sources that read Kubernetes manifests of queues.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "frontend/config/sections.h"

namespace tutti::config {

struct Manifest {
  const YamlNode* object = nullptr;
  const YamlNode* spec = nullptr;  // nullptr = none
  std::string api_version, kind, name, name_space;
  Place place;  // of the name
  std::string title() const { return kind + " " + name; }
};

// A GPU type as a ResourceFlavor names it.
using Flavours = std::map<std::string, std::optional<std::string>>;

// "nvidia.com/gpu" -> "gpu", "cpu", "memory"; nullopt: something that is not counted here.
std::optional<std::string> resource_of_kubernetes(std::string_view name);
std::optional<std::uint64_t> quantity_of(const YamlNode& node, std::string_view resource,
                                         std::string_view key, Findings& findings);
// Names of Kubernetes' objects: lower-case words. The quota of `resource`, new if there is none.
QuotaSpec& quota_of(QueueSpec& queue, const std::string& resource);

// kueue.cpp
void read_resource_flavour(const Manifest& manifest, Findings& findings, Flavours& flavours);
void read_cohort(const Manifest& manifest, Findings& findings, const Flavours& flavours,
                 QueueSource& out);
void read_cluster_queue(const Manifest& manifest, Findings& findings, const Flavours& flavours,
                        QueueSource& out);
void read_local_queue(const Manifest& manifest, Findings& findings, QueueSource& out);
// volcano.cpp
void read_volcano_queue(const Manifest& manifest, Findings& findings, QueueSource& out);

}  // namespace tutti::config
