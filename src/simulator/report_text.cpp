#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "base/text_table.h"
#include "simulator/report.h"

namespace tutti::simulator {

namespace {

// "0 s", "45 s", "12 min", "5.3 h", "12 d".
std::string span_text(double seconds) {
  if (seconds < 100) return fmt::format("{:.4g} s", seconds);
  if (seconds < 6000) return fmt::format("{:.1f} min", seconds / 60);
  if (seconds < 4 * 86'400) return fmt::format("{:.1f} h", seconds / 3600);
  return fmt::format("{:.1f} d", seconds / 86'400);
}

std::string count_text(double value) {
  return value < 100 ? fmt::format("{:.2f}", value) : fmt::format("{:.0f}", value);
}

using Cell = std::function<std::string(const Metrics&)>;

void add(TextTable& table, const Comparison& all, std::string title, const Cell& cell) {
  std::vector<std::string> cells{std::move(title)};
  for (const Metrics& metrics : all.profiles) cells.push_back(cell(metrics));
  table.add_row(std::move(cells));
}

void add_distribution(TextTable& table, const Comparison& all, const std::string& title,
                      const std::function<const Distribution&(const Metrics&)>& of,
                      const std::function<std::string(double)>& text) {
  add(table, all, title + " mean", [&](const Metrics& m) { return text(of(m).mean); });
  add(table, all, "  p50", [&](const Metrics& m) { return text(of(m).p50); });
  add(table, all, "  p95", [&](const Metrics& m) { return text(of(m).p95); });
  add(table, all, "  p99", [&](const Metrics& m) { return text(of(m).p99); });
  add(table, all, "  longest", [&](const Metrics& m) { return text(of(m).max); });
}

const SizeClass* find_class(const Metrics& metrics, const std::string& name) {
  for (const SizeClass& size : metrics.classes)
    if (size.name == name) return &size;
  return nullptr;
}

void add_classes(TextTable& table, const Comparison& all, const std::string& unit) {
  for (const SizeClass& size : all.profiles.front().classes)
    add(table, all, fmt::format("wait, {} {}s ({} jobs)", size.name, unit, size.jobs),
        [&](const Metrics& m) {
          const SizeClass* found = find_class(m, size.name);
          return found ? span_text(found->wait.mean) : std::string("-");
        });
}

void add_levels(TextTable& table, const Comparison& all, const std::string& unit) {
  std::vector<std::string> names;
  for (const Metrics& metrics : all.profiles)
    for (const LevelHours& level : metrics.levels)
      if (std::find(names.begin(), names.end(), level.level) == names.end())
        names.push_back(level.level);
  for (const std::string& name : names)
    add(table, all, fmt::format("{}-hours {}", unit, name), [&](const Metrics& m) {
      for (const LevelHours& level : m.levels)
        if (level.level == name) return count_text(level.hours);
      return std::string("0");
    });
}

}  // namespace

std::string render_table(const Comparison& comparison, std::size_t width) {
  if (comparison.profiles.empty()) return {};
  std::vector<TextColumn> columns{{"", Align::kLeft, Shrink::kNever}};
  for (const Metrics& metrics : comparison.profiles)
    columns.push_back({metrics.profile, Align::kRight, Shrink::kNever});
  TextTable table(std::move(columns));
  const std::string unit = comparison.profiles.front().unit;
  auto percent = [](double share) { return fmt::format("{:.2f} %", share * 100); };
  add(table, comparison, "jobs", [](const Metrics& m) { return fmt::to_string(m.jobs); });
  if (std::any_of(comparison.profiles.begin(), comparison.profiles.end(),
                  [](const Metrics& m) { return m.unfinished > 0; }))
    add(table, comparison, "  not finished",
        [](const Metrics& m) { return fmt::to_string(m.unfinished); });
  add_distribution(
      table, comparison, "wait", [](const Metrics& m) -> const Distribution& { return m.wait; },
      span_text);
  add_classes(table, comparison, unit);
  add_distribution(
      table, comparison, "bounded slowdown",
      [](const Metrics& m) -> const Distribution& { return m.slowdown; },
      [](double value) { return fmt::format("{:.3f}", value); });
  add(table, comparison, "completion mean",
      [](const Metrics& m) { return span_text(m.completion.mean); });
  add(table, comparison, "makespan", [](const Metrics& m) { return span_text(m.makespan_s); });
  add(table, comparison, "allocated", [&](const Metrics& m) { return percent(m.allocated); });
  add(table, comparison, "useful", [&](const Metrics& m) { return percent(m.useful); });
  add(table, comparison, fmt::format("{}-hours idle while jobs waited", unit),
      [](const Metrics& m) { return count_text(m.idle_hours); });
  add_levels(table, comparison, unit);
  add(table, comparison, "restarts", [](const Metrics& m) { return fmt::to_string(m.restarts); });
  add(table, comparison, "fairness (1 = alike)",
      [](const Metrics& m) { return fmt::format("{:.3f}", m.fairness); });
  return table.render(width);
}

std::string verdict(const Comparison& comparison) {
  if (comparison.profiles.size() < 2) return {};
  std::vector<const Metrics*> order;
  for (const Metrics& metrics : comparison.profiles) order.push_back(&metrics);
  constexpr double kAlike = 1.02;
  std::stable_sort(order.begin(), order.end(), [](const Metrics* a, const Metrics* b) {
    return a->slowdown.mean < b->slowdown.mean;
  });
  const Metrics* best = order[0];
  for (const Metrics* other : order)
    if (other->slowdown.mean <= order[0]->slowdown.mean * kAlike &&
        other->wait.p95 < best->wait.p95)
      best = other;
  const Metrics* worst = order.back() == best ? order[order.size() - 2] : order.back();
  std::string text = fmt::format(
      "{} serves this load best: mean bounded slowdown {:.2f}, 95 of 100 jobs wait at most {}, {} "
      "{}-hours stood idle while jobs waited.",
      best->profile, best->slowdown.mean, span_text(best->wait.p95), count_text(best->idle_hours),
      best->unit);
  text += fmt::format(" Under {} the slowdown is {:.2f}, the wait {}, and {} {}-hours stood idle.",
                      worst->profile, worst->slowdown.mean, span_text(worst->wait.p95),
                      count_text(worst->idle_hours), worst->unit);
  const double more = worst->idle_hours - best->idle_hours;
  if (comparison.price > 0 && more > 0)
    text += fmt::format(" The difference of {} {}-hours costs {}{:.2f} at {}{:.2f} each.",
                        count_text(more), best->unit, comparison.currency, more * comparison.price,
                        comparison.currency, comparison.price);
  return text;
}

}  // namespace tutti::simulator
