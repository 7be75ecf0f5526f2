#include <algorithm>

#include "frontend/config/queue_source.h"
#include "frontend/config/reading.h"

namespace tutti::config {

namespace {

// Plain where YAML takes it so, else quoted.
std::string word(const std::string& text) {
  const bool plain = !text.empty() &&
                     std::all_of(text.begin(), text.end(),
                                 [](char c) {
                                   return is_digit(c) ||
                                          (to_lower(c) >= 'a' && to_lower(c) <= 'z') || c == '_' ||
                                          c == '-' || c == '.' || c == '/';
                                 }) &&
                     to_lower(text[0]) >= 'a' && to_lower(text[0]) <= 'z';
  static constexpr std::string_view kSpecial[] = {"true", "false", "yes", "no", "on",
                                                  "off",  "null",  "y",   "n"};
  bool special = false;
  for (std::string_view one : kSpecial) special = special || equals_ci(text, one);
  if (plain && !special) return text;
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

std::string list(const std::vector<std::string>& names) {
  std::vector<std::string> words;
  for (const std::string& name : names) words.push_back(word(name));
  return "[" + join(words, ", ") + "]";
}

std::string quota_text(const QuotaSpec& quota) {
  const std::string_view unit = quota.resource == "memory" ? "M" : "";
  std::vector<std::string> parts;
  auto add = [&](std::string_view name, const std::optional<std::uint64_t>& amount) {
    if (amount) parts.push_back(fmt::format("{}: {}{}", name, *amount, unit));
  };
  add("nominal", quota.nominal);
  add("borrowing_limit", quota.borrowing_limit);
  add("lending_limit", quota.lending_limit);
  add("limit", quota.limit);
  return parts.empty() ? std::string("shared") : "{" + join(parts, ", ") + "}";
}

std::string queue_text(const QueueSpec& queue) {
  static const QueueSpec kPlain;
  std::string out = fmt::format("  - name: {}\n", word(queue.name));
  auto line = [&](std::string_view key, std::string_view value) {
    out += fmt::format("    {}: {}\n", key, value);
  };
  if (!queue.parent.empty()) line("parent", word(queue.parent));
  if (!queue.quotas.empty()) out += "    quotas:\n";
  for (const QuotaSpec& quota : queue.quotas)
    out += fmt::format("      {}: {}\n", quota.resource, quota_text(quota));
  if (queue.weight != kPlain.weight) line("weight", fmt::format("{}", queue.weight));
  if (queue.tier != kPlain.tier) line("tier", fmt::format("{}", queue.tier));
  if (queue.order != kPlain.order) line("order", enum_name(queue.order));
  if (queue.strictness != kPlain.strictness) line("strictness", enum_name(queue.strictness));
  if (queue.state != kPlain.state) line("state", enum_name(queue.state));
  if (!queue.reclaims) line("reclaims", "false");
  if (!queue.preempts_lower_priority) line("preempts_lower_priority", "false");
  if (queue.reclaim != kPlain.reclaim) line("reclaim", word(std::string(enum_name(queue.reclaim))));
  if (queue.notice) line("notice", span_text(*queue.notice));
  if (queue.min_runtime != kPlain.min_runtime) line("min_runtime", span_text(queue.min_runtime));
  if (queue.loss_budget_gpu_seconds)
    line("loss_budget_gpu_seconds", fmt::format("{}", *queue.loss_budget_gpu_seconds));
  if (!queue.gpu_types.empty()) line("gpu_types", list(queue.gpu_types));
  if (!queue.accounts.empty()) line("accounts", list(queue.accounts));
  if (!queue.aliases.empty()) line("aliases", list(queue.aliases));
  return out;
}

}  // namespace

std::string policy_text(const QueueTree& tree) {
  std::string out;
  if (!tree.default_queue.empty())
    out += fmt::format("default_queue: {}\n", word(tree.default_queue));
  out += tree.queues.empty() ? "queues: []\n" : "queues:\n";
  for (const QueueSpec& queue : tree.queues) out += queue_text(queue);
  return out;
}

}  // namespace tutti::config
