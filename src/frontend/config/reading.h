// How the sections of configuration files are read: keys are taken one by one, what is wrong is
// noted with its place and reading goes on, and what nobody took is an unknown key.
#pragma once

#include <cstdint>
#include <fmt/format.h>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/enum_names.h"
#include "base/error.h"
#include "base/text.h"
#include "base/time.h"
#include "frontend/config/yaml.h"

namespace tutti::config {

// Findings about one file.
class Findings {
 public:
  explicit Findings(std::string file) : file_(std::move(file)) {}
  void add(Severity severity, std::string_view code, Place place, std::string message) {
    list_.push_back({severity, std::string(code), std::move(message), span(place)});
  }
  void error(Place place, std::string message) {
    add(Severity::kError, "config-value", place, std::move(message));
  }
  // Understood, without effect here.
  void no_effect(Place place, std::string message) {
    add(Severity::kWarning, "config-no-effect", place, std::move(message));
  }
  void expected(const YamlNode& node, std::string_view what, std::string_view key);
  Span span(Place place) const { return {file_, place.line, place.column}; }
  std::vector<Diagnostic> take() { return std::move(list_); }

 private:
  std::string file_;
  std::vector<Diagnostic> list_;
};

// A mapping that is read key by key.
class Keys {
 public:
  // `of` names the mapping in messages: "queue research".
  Keys(const YamlNode& node, Findings& findings, std::string of);

  // The value, or nullptr when the key is absent or empty.
  const YamlNode* take(std::string_view key);
  std::optional<std::string> text(std::string_view key);
  std::optional<std::uint64_t> count(std::string_view key, std::uint64_t most = ~std::uint64_t{0});
  std::optional<bool> flag(std::string_view key);
  // "90s", "15m", "2h", "1d", or Slurm's "H:M:S" and "D-H:M:S".
  std::optional<Duration> duration(std::string_view key);
  std::vector<std::string> names(std::string_view key);  // a list, or one name
  template <class E>
  std::optional<E> choice(std::string_view key) {
    const YamlNode* node = take(key);
    if (!node) return std::nullopt;
    if (node->is_scalar())
      if (auto value = enum_from_name<E>(node->text)) return value;
    std::vector<std::string_view> words;
    for (const auto& [value, name] : EnumNames<E>::kTable) words.push_back(name);
    findings_.expected(*node, "one of " + join(words, ", "), key);
    return std::nullopt;
  }
  // Keys that nobody took are errors, with the nearest known one.
  void finish();
  // They are warnings: written for another program, without effect here.
  void leave_rest();

 private:
  const YamlNode& node_;
  Findings& findings_;
  std::string of_;
  std::vector<bool> taken_;
  std::vector<std::string> known_;
};

std::optional<Duration> parse_span(std::string_view text);
std::string span_text(Duration duration);  // the shortest text that parse_span() reads back
// Kubernetes' quantities. Whole units rounded up: "8", "500m" (= 1), "2k"; memory in MiB: "64Gi".
std::optional<std::uint64_t> parse_quantity(std::string_view text);
std::optional<std::uint64_t> parse_memory_quantity(std::string_view text);

}  // namespace tutti::config
