// "queues:" of Tutti's own file. docs/quotas.md describes the keys.
#include "base/size_text.h"
#include "frontend/config/sections.h"

namespace tutti::config {

namespace {

std::optional<std::uint64_t> amount_of(const YamlNode& node, std::string_view resource,
                                       std::string_view key, Findings& findings) {
  const bool memory = resource == "memory";
  if (node.is_scalar()) {
    if (memory) {
      if (auto mib = parse_memory_mib(node.text)) return *mib;
    } else if (auto count = parse_integer<std::uint64_t>(node.text);
               count && *count <= 1ull << 40) {
      return count;
    }
  }
  findings.expected(node, memory ? "an amount of memory such as 64G or 512000M" : "a whole number",
                    key);
  return std::nullopt;
}

struct Reading {
  Findings& findings;
  QueueSource& out;

  QuotaSpec quota(const std::string& queue, const YamlNode::Key& resource, const YamlNode& node) {
    QuotaSpec quota;
    quota.resource = lower(resource.text);
    const std::string key = "quotas." + quota.resource;
    note_place(out, findings, queue, key, resource.place);
    if (node.is_scalar() && equals_ci(node.text, "shared")) return quota;
    if (node.is_scalar()) {
      quota.nominal = amount_of(node, quota.resource, resource.text, findings);
      note_place(out, findings, queue, key + ".nominal", node.place);
      return quota;
    }
    if (!node.is_map()) {
      findings.expected(node,
                        "a number, \"shared\", or nominal, borrowing_limit, lending_limit, limit",
                        resource.text);
      return quota;
    }
    Keys keys(node, findings, fmt::format("queue {}, {}", queue, resource.text));
    auto amount = [&](std::string_view name, std::optional<std::uint64_t>& into) {
      const YamlNode* value = keys.take(name);
      if (!value) return;
      into = amount_of(*value, quota.resource, name, findings);
      note_place(out, findings, queue, key + "." + std::string(name), value->place);
    };
    amount("nominal", quota.nominal);
    amount("borrowing_limit", quota.borrowing_limit);
    amount("lending_limit", quota.lending_limit);
    amount("limit", quota.limit);
    keys.finish();
    return quota;
  }

  void rest(const YamlNode& node, Keys& keys, QueueSpec& queue) {
    if (auto weight = keys.count("weight", 1'000'000))
      queue.weight = static_cast<std::uint32_t>(*weight);
    if (auto tier = keys.count("tier", 1'000'000)) queue.tier = static_cast<std::uint32_t>(*tier);
    if (const YamlNode* given = node.find("order"))
      if (auto order = keys.choice<QueueOrder>("order")) {
        queue.order = *order;
        if (*order != QueueOrder::kMultifactor)
          findings.no_effect(given->place,
                             fmt::format("queue {}: order {} has no effect yet: its jobs "
                                         "stand in multifactor order",
                                         queue.name, enum_name(*order)));
      }
    if (auto strict = keys.choice<QueueStrictness>("strictness")) queue.strictness = *strict;
    if (auto state = keys.choice<QueueState>("state")) queue.state = *state;
    if (auto reclaims = keys.flag("reclaims")) queue.reclaims = *reclaims;
    if (auto preempts = keys.flag("preempts_lower_priority"))
      queue.preempts_lower_priority = *preempts;
    if (const YamlNode* given = node.find("reclaim"))
      if (auto mode = keys.choice<ReclaimMode>("reclaim")) {
        queue.reclaim = *mode;
        if (*mode == ReclaimMode::kSuspend)
          findings.no_effect(given->place,
                             fmt::format("queue {}: reclaim suspend is not there yet: its "
                                         "jobs are never taken back",
                                         queue.name));
      }
    queue.notice = keys.duration("notice");
    if (auto runtime = keys.duration("min_runtime")) queue.min_runtime = *runtime;
    queue.loss_budget_gpu_seconds = keys.count("loss_budget_gpu_seconds", 1ull << 50);
    queue.gpu_types = keys.names("gpu_types");
    queue.accounts = keys.names("accounts");
    queue.aliases = keys.names("aliases");
  }

  void queue(const YamlNode& node, const std::string& above, int depth) {
    if (!node.is_map()) return findings.expected(node, "a queue (name, quotas, ...)", "queues");
    if (depth > 32) return findings.error(node.place, "queues: more than 32 levels of queues");
    QueueSpec queue;
    const YamlNode* name = node.find("name");
    if (!name || !name->is_scalar() || name->text.empty())
      return findings.error(name ? name->place : node.place, "a queue without a name");
    Keys keys(node, findings, "queue " + quote(name->text));
    queue.name = *keys.text("name");
    note_place(out, findings, queue.name, "", name->place);
    for (std::size_t i = 0; i < node.keys.size(); ++i)
      note_place(out, findings, queue.name, node.keys[i].text, node.items[i].place);
    queue.parent = above;
    if (auto parent = keys.text("parent")) {
      if (!above.empty() && *parent != above)
        findings.error(node.find("parent")->place,
                       fmt::format("queue {} lies inside {} and says that its parent is {}",
                                   queue.name, above, *parent));
      queue.parent = *parent;
    }
    if (const YamlNode* quotas = keys.take("quotas")) {
      if (!quotas->is_map())
        findings.expected(*quotas, "resources with their amounts (gpu:h100: 8)", "quotas");
      for (std::size_t i = 0; i < quotas->keys.size(); ++i)
        queue.quotas.push_back(quota(queue.name, quotas->keys[i], quotas->items[i]));
    }
    rest(node, keys, queue);
    const YamlNode* children = keys.take("queues");
    keys.finish();
    const std::string own = queue.name;
    out.queues.push_back(std::move(queue));
    if (children) list(*children, own, depth + 1);
  }

  void list(const YamlNode& node, const std::string& above, int depth) {
    if (!node.is_list()) return findings.expected(node, "a list of queues", "queues");
    for (const YamlNode& item : node.items) queue(item, above, depth);
  }
};

}  // namespace

void note_place(QueueSource& out, const Findings& findings, const std::string& queue,
                const std::string& key, Place place) {
  out.places.emplace(std::pair(queue, key), findings.span(place));
}

void read_queues_section(const YamlNode& node, Findings& findings, QueueSource& out) {
  Reading{findings, out}.list(node, "", 0);
}

}  // namespace tutti::config
