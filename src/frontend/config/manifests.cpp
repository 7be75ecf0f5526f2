// Kubernetes manifests: which kinds are read, and by whom.
#include <algorithm>

#include "frontend/config/manifest_parts.h"

namespace tutti::config {

namespace {

constexpr std::string_view kKueue = "kueue.x-k8s.io/";
constexpr std::string_view kVolcano = "scheduling.volcano.sh/";

std::optional<Manifest> manifest_of(const YamlNode& object, Findings& findings) {
  Manifest out;
  out.object = &object;
  auto text_at = [](const YamlNode* map, std::string_view key) {
    const YamlNode* node = map && map->is_map() ? map->find(key) : nullptr;
    return node && node->is_scalar() ? node->text : std::string();
  };
  out.api_version = text_at(&object, "apiVersion");
  out.kind = text_at(&object, "kind");
  if (out.api_version.empty() || out.kind.empty()) {
    findings.error(
        object.place,
        "a manifest has apiVersion and kind; Tutti's own file is read by `tutti queue apply`");
    return std::nullopt;
  }
  const YamlNode* metadata = object.find("metadata");
  out.name = text_at(metadata, "name");
  out.name_space = text_at(metadata, "namespace");
  if (out.name.empty()) {
    findings.error(metadata ? metadata->place : object.place,
                   fmt::format("{}: metadata.name is missing", out.kind));
    return std::nullopt;
  }
  out.place = metadata->find("name")->place;
  const YamlNode* spec = object.find("spec");
  if (spec && spec->is_map()) out.spec = spec;
  return out;
}

// "kind: List" holds objects.
void gather(const YamlNode& root, Findings& findings, std::vector<Manifest>& out) {
  if (!root.is_map()) return findings.expected(root, "a Kubernetes object", "the document");
  const YamlNode* kind = root.find("kind");
  const YamlNode* items = root.find("items");
  if (kind && kind->text == "List" && items && items->is_list()) {
    for (const YamlNode& item : items->items) gather(item, findings, out);
    return;
  }
  if (auto manifest = manifest_of(root, findings)) out.push_back(*manifest);
}

}  // namespace

std::optional<std::string> resource_of_kubernetes(std::string_view name) {
  if (name == "cpu" || name == "memory") return std::string(name);
  if (name == "nvidia.com/gpu" || name == "amd.com/gpu") return "gpu";
  return std::nullopt;
}

std::optional<std::uint64_t> quantity_of(const YamlNode& node, std::string_view resource,
                                         std::string_view key, Findings& findings) {
  std::optional<std::uint64_t> amount;
  if (node.is_scalar())
    amount = resource == "memory" ? parse_memory_quantity(node.text) : parse_quantity(node.text);
  if (!amount) findings.expected(node, "a quantity such as 16, 500m or 64Gi", key);
  return amount;
}

QuotaSpec& quota_of(QueueSpec& queue, const std::string& resource) {
  for (QuotaSpec& quota : queue.quotas)
    if (quota.resource == resource) return quota;
  queue.quotas.emplace_back().resource = resource;
  return queue.quotas.back();
}

QueueSource read_manifests(std::string_view text, const std::string& file) {
  QueueSource out;
  auto documents = read_documents(text, file, out);
  if (!documents) return out;
  Findings findings(file);
  std::vector<Manifest> manifests;
  for (const YamlNode& root : *documents) gather(root, findings, manifests);
  if (documents->empty()) findings.error({1, 1}, "the file holds no object");
  auto is = [](const Manifest& m, std::string_view group, std::string_view kind) {
    return m.api_version.starts_with(group) && m.kind == kind;
  };
  // What others refer to comes first, wherever it stands.
  Flavours flavours;
  for (const Manifest& m : manifests)
    if (is(m, kKueue, "ResourceFlavor")) read_resource_flavour(m, findings, flavours);
  for (const Manifest& m : manifests) {
    if (is(m, kKueue, "Cohort")) read_cohort(m, findings, flavours, out);
    if (is(m, kKueue, "ClusterQueue")) read_cluster_queue(m, findings, flavours, out);
    if (is(m, kVolcano, "Queue")) read_volcano_queue(m, findings, out);
  }
  for (const Manifest& m : manifests)
    if (is(m, kKueue, "LocalQueue")) read_local_queue(m, findings, out);
  for (const Manifest& m : manifests) {
    const bool known = is(m, kKueue, "ResourceFlavor") || is(m, kKueue, "Cohort") ||
                       is(m, kKueue, "ClusterQueue") || is(m, kKueue, "LocalQueue") ||
                       is(m, kVolcano, "Queue");
    if (known) continue;
    out.left_alone.push_back(m.title());
    findings.no_effect(m.place, fmt::format("{} ({}) is left alone: only queues are read so far",
                                            m.title(), m.api_version));
  }
  // A cohort that nobody declares exists by being named.
  std::vector<QueueSpec> implied;
  for (const QueueSpec& queue : out.queues) {
    auto named = [&](const QueueSpec& other) { return other.name == queue.parent; };
    if (queue.parent.empty() || std::any_of(out.queues.begin(), out.queues.end(), named) ||
        std::any_of(implied.begin(), implied.end(), named) ||
        !out.places.contains({queue.name, "cohort"}))
      continue;
    implied.emplace_back().name = queue.parent;
    out.places.emplace(std::pair(queue.parent, std::string()),
                       out.places.at({queue.name, "cohort"}));
  }
  out.queues.insert(out.queues.begin(), implied.begin(), implied.end());
  out.has_queues = !out.queues.empty();
  out.diagnostics = findings.take();
  return out;
}

}  // namespace tutti::config
