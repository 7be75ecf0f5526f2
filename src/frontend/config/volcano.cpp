// Volcano's Queue as a queue. Source of the fields: Volcano's API, scheduling.volcano.sh/v1beta1:
// capability is what a queue never exceeds, deserved what it gets when others want too, guarantee
// what it never lends.
#include <algorithm>

#include "frontend/config/manifest_parts.h"

namespace tutti::config {

namespace {

struct Reading {
  const Manifest& manifest;
  Findings& findings;
  QueueSource& out;
  QueueSpec queue;

  void amounts(const YamlNode* node, const std::string& key, const char* to,
               std::optional<std::uint64_t> QuotaSpec::* member) {
    if (!node) return;
    if (!node->is_map()) return findings.expected(*node, "resources with their amounts", key);
    for (std::size_t i = 0; i < node->keys.size(); ++i) {
      const YamlNode::Key& name = node->keys[i];
      auto resource = resource_of_kubernetes(name.text);
      if (!resource) {
        findings.no_effect(name.place,
                           fmt::format("{}: {} is not counted here", manifest.title(), name.text));
        continue;
      }
      auto amount = quantity_of(node->items[i], *resource, name.text, findings);
      if (!amount) continue;
      quota_of(queue, *resource).*member = *amount;
      note_place(out, findings, queue.name, "quotas." + *resource, name.place);
      note_place(out, findings, queue.name, "quotas." + *resource + "." + to, node->items[i].place);
    }
  }
};

constexpr const char* kRoot = "root";

// The root owns all of what those below it count.
void add_root(QueueSource& out, const QueueSpec& below) {
  QueueSpec* root = nullptr;
  for (QueueSpec& queue : out.queues)
    if (queue.name == kRoot) root = &queue;
  if (!root) {
    out.queues.insert(out.queues.begin(), QueueSpec());
    root = &out.queues.front();
    root->name = kRoot;
  }
  for (const QuotaSpec& quota : below.quotas) quota_of(*root, quota.resource);
}

}  // namespace

void read_volcano_queue(const Manifest& manifest, Findings& findings, QueueSource& out) {
  Reading reading{manifest, findings, out, {}};
  QueueSpec& queue = reading.queue;
  queue.name = manifest.name;
  note_place(out, findings, queue.name, "", manifest.place);
  if (manifest.spec) {
    Keys spec(*manifest.spec, findings, manifest.title());
    if (auto weight = spec.count("weight", 1'000'000))
      queue.weight = static_cast<std::uint32_t>(*weight);
    if (auto priority = spec.count("priority", 1'000'000))
      queue.tier = static_cast<std::uint32_t>(*priority);
    if (auto parent = spec.text("parent")) queue.parent = *parent;
    if (auto reclaimable = spec.flag("reclaimable"); reclaimable && !*reclaimable)
      queue.reclaim = ReclaimMode::kOff;
    reading.amounts(spec.take("deserved"), "deserved", "nominal", &QuotaSpec::nominal);
    reading.amounts(spec.take("capability"), "capability", "limit", &QuotaSpec::limit);
    if (const YamlNode* guarantee = spec.take("guarantee"); guarantee && guarantee->is_map()) {
      QueueSpec kept;
      std::swap(kept, queue);
      queue.name = kept.name;
      reading.amounts(guarantee->find("resource"), "guarantee", "lending_limit",
                      &QuotaSpec::lending_limit);
      std::swap(kept, queue);
      // It lends what is above the guarantee.
      for (const QuotaSpec& one : kept.quotas) {
        QuotaSpec& quota = quota_of(queue, one.resource);
        if (!quota.nominal) quota.nominal = one.lending_limit;
        quota.lending_limit = *quota.nominal - std::min(*quota.nominal, *one.lending_limit);
      }
    }
    spec.leave_rest();
  }
  queue.strictness = QueueStrictness::kBestEffort;
  // Volcano shares everything by weight and has everybody below a queue "root": the cluster.
  quota_of(queue, "gpu");
  if (queue.name != kRoot && queue.parent.empty()) queue.parent = kRoot;
  if (manifest.spec && manifest.spec->find("parent"))
    note_place(out, findings, queue.name, "parent", manifest.spec->find("parent")->place);
  add_root(out, queue);
  if (queue.name != kRoot) out.queues.push_back(std::move(queue));
}

}  // namespace tutti::config
