// Kueue's objects as queues. Source of the fields: Kueue's API reference, v1beta1.
#include <algorithm>

#include "frontend/config/gpu_types.h"
#include "frontend/config/manifest_parts.h"

namespace tutti::config {

namespace {

struct Reading {
  const Manifest& manifest;
  Findings& findings;
  const Flavours& flavours;
  QueueSource& out;
  QueueSpec queue;

  void place(const std::string& key, Place at) { note_place(out, findings, queue.name, key, at); }

  // The resource of a quota under a flavour: "gpu:h100" where the flavour is of one GPU type.
  std::optional<std::string> resource_under(const YamlNode& name, const YamlNode& flavour) {
    auto resource = resource_of_kubernetes(name.text);
    if (!resource) {
      findings.no_effect(name.place,
                         fmt::format("{}: {} is not counted here", manifest.title(), name.text));
      return std::nullopt;
    }
    if (*resource != "gpu") return resource;
    auto found = flavours.find(flavour.text);
    if (found == flavours.end()) {
      findings.error(flavour.place,
                     fmt::format("{}: ResourceFlavor {} is not in this file, so that its GPU type "
                                 "is unknown: put both into one file",
                                 manifest.title(), flavour.text));
      return std::nullopt;
    }
    if (!found->second) return resource;  // a flavour without a product: any GPU
    const std::string& type = *found->second;
    if (std::find(queue.gpu_types.begin(), queue.gpu_types.end(), type) == queue.gpu_types.end())
      queue.gpu_types.push_back(type);
    return "gpu:" + type;
  }

  void resource(const YamlNode& node, const YamlNode& flavour) {
    if (!node.is_map()) return findings.expected(node, "a resource with its quota", "resources");
    Keys keys(node, findings, manifest.title());
    const YamlNode* name = keys.take("name");
    if (!name) return findings.error(node.place, manifest.title() + ": a resource without a name");
    auto what = resource_under(*name, flavour);
    if (!what) return;
    QuotaSpec& quota = quota_of(queue, *what);
    const std::string key = "quotas." + *what;
    place(key, name->place);
    // Flavours that are one thing here (memory under each of them) add up.
    auto amount = [&](std::string_view from, const char* to, std::optional<std::uint64_t>& into) {
      const YamlNode* value = keys.take(from);
      if (!value) return;
      auto more = quantity_of(*value, *what, from, findings);
      place(key + "." + to, value->place);
      if (more) into = into.value_or(0) + *more;
    };
    amount("nominalQuota", "nominal", quota.nominal);
    amount("borrowingLimit", "borrowing_limit", quota.borrowing_limit);
    amount("lendingLimit", "lending_limit", quota.lending_limit);
    keys.leave_rest();
  }

  void groups(Keys& spec) {
    const YamlNode* groups = spec.take("resourceGroups");
    if (!groups) return;
    if (!groups->is_list()) return findings.expected(*groups, "a list", "resourceGroups");
    for (const YamlNode& group : groups->items) {
      const YamlNode* list = group.is_map() ? group.find("flavors") : nullptr;
      if (!list || !list->is_list()) {
        findings.expected(group, "coveredResources and flavors", "resourceGroups");
        continue;
      }
      for (const YamlNode& flavour : list->items) {
        const YamlNode* name = flavour.is_map() ? flavour.find("name") : nullptr;
        const YamlNode* resources = flavour.is_map() ? flavour.find("resources") : nullptr;
        if (!name || !resources || !resources->is_list()) {
          findings.expected(flavour, "name and resources", "flavors");
          continue;
        }
        for (const YamlNode& one : resources->items) resource(one, *name);
      }
    }
  }

  void preemption(Keys& spec) {
    const YamlNode* node = spec.take("preemption");
    queue.reclaims = queue.preempts_lower_priority = false;  // Kueue's defaults are Never
    if (!node || !node->is_map()) return;
    Keys keys(*node, findings, manifest.title() + ", preemption");
    if (auto within = keys.text("withinClusterQueue")) {
      queue.preempts_lower_priority = *within != "Never";
      if (*within == "LowerOrNewerEqualPriority")
        findings.no_effect(
            node->find("withinClusterQueue")->place,
            manifest.title() +
                ": newer gangs of equal priority are not evicted here: read as LowerPriority");
    }
    if (auto cohort = keys.text("reclaimWithinCohort")) {
      queue.reclaims = *cohort != "Never";
      if (*cohort == "LowerPriority")
        findings.no_effect(
            node->find("reclaimWithinCohort")->place,
            manifest.title() +
                ": what is one's own is reclaimed whatever the priority: read as Any");
    }
    keys.leave_rest();
  }

  void rest(Keys& spec) {
    if (auto strategy = spec.text("queueingStrategy"))
      queue.strictness =
          *strategy == "StrictFIFO" ? QueueStrictness::kStrict : QueueStrictness::kBestEffort;
    else
      queue.strictness = QueueStrictness::kBestEffort;  // Kueue's default
    if (auto stop = spec.text("stopPolicy"); stop && *stop != "None") {
      queue.state = QueueState::kHeld;
      if (*stop == "HoldAndDrain")
        findings.no_effect(manifest.spec->find("stopPolicy")->place,
                           manifest.title() + ": what runs goes on: HoldAndDrain is read as Hold");
    }
    if (const YamlNode* sharing = spec.take("fairSharing"); sharing && sharing->is_map()) {
      Keys keys(*sharing, findings, manifest.title() + ", fairSharing");
      if (const YamlNode* weight = keys.take("weight"))
        if (auto value = quantity_of(*weight, "weight", "weight", findings))
          queue.weight = static_cast<std::uint32_t>(std::min<std::uint64_t>(*value, 1'000'000));
      keys.leave_rest();
    }
  }

  bool begin() {
    queue.name = manifest.name;
    place("", manifest.place);
    if (manifest.spec) return true;
    if (manifest.kind != "Cohort")
      findings.error(manifest.place, manifest.title() + ": spec is missing");
    return false;
  }
};

}  // namespace

void read_resource_flavour(const Manifest& manifest, Findings& findings, Flavours& flavours) {
  std::optional<std::string>& type = flavours[manifest.name];
  if (!manifest.spec) return;
  Keys spec(*manifest.spec, findings, manifest.title());
  if (const YamlNode* labels = spec.take("nodeLabels"); labels && labels->is_map())
    for (std::size_t i = 0; i < labels->keys.size(); ++i) {
      if (labels->keys[i].text == kProductLabel && labels->items[i].is_scalar())
        type = gpu_type_of_product(labels->items[i].text);
      else
        findings.no_effect(labels->keys[i].place,
                           fmt::format("{}: only the label {} tells flavours apart here",
                                       manifest.title(), kProductLabel));
    }
  spec.leave_rest();
}

void read_cohort(const Manifest& manifest, Findings& findings, const Flavours& flavours,
                 QueueSource& out) {
  Reading reading{manifest, findings, flavours, out, {}};
  if (reading.begin()) {
    Keys spec(*manifest.spec, findings, manifest.title());
    for (std::string_view key : {"parentName", "parent"})
      if (auto parent = spec.text(key)) {
        reading.queue.parent = *parent;
        reading.place("parent", manifest.spec->find(key)->place);
        reading.place("cohort", manifest.spec->find(key)->place);
      }
    reading.groups(spec);
    reading.rest(spec);
    spec.leave_rest();
  }
  // Types are tried in the order of the queue that a workload is in.
  reading.queue.gpu_types.clear();
  reading.queue.strictness = QueueStrictness::kStrict;
  out.queues.push_back(std::move(reading.queue));
}

void read_cluster_queue(const Manifest& manifest, Findings& findings, const Flavours& flavours,
                        QueueSource& out) {
  Reading reading{manifest, findings, flavours, out, {}};
  if (!reading.begin()) return;
  Keys spec(*manifest.spec, findings, manifest.title());
  for (std::string_view key : {"cohort", "cohortName"})
    if (auto cohort = spec.text(key)) {
      reading.queue.parent = *cohort;
      reading.place("parent", manifest.spec->find(key)->place);
      reading.place("cohort", manifest.spec->find(key)->place);
    }
  reading.groups(spec);
  reading.preemption(spec);
  reading.rest(spec);
  spec.leave_rest();
  out.queues.push_back(std::move(reading.queue));
}

void read_local_queue(const Manifest& manifest, Findings& findings, QueueSource& out) {
  const YamlNode* of = manifest.spec ? manifest.spec->find("clusterQueue") : nullptr;
  if (!of || !of->is_scalar())
    return findings.error(manifest.place, manifest.title() + ": spec.clusterQueue is missing");
  const std::string alias =
      (manifest.name_space.empty() ? std::string("default") : manifest.name_space) + "/" +
      manifest.name;
  for (QueueSpec& queue : out.queues)
    if (queue.name == of->text) {
      queue.aliases.push_back(alias);
      note_place(out, findings, queue.name, "aliases", manifest.place);
      return;
    }
  findings.error(of->place,
                 fmt::format("{}: ClusterQueue {} is not in this file: put both into one file",
                             manifest.title(), of->text));
}

}  // namespace tutti::config
