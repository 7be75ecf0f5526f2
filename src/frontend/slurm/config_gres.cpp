// gres.conf: the device files behind what slurm.conf says a node has. Both must agree, as slurmd
// demands, or the node would never come up.
#include <fmt/format.h>

#include <algorithm>

#include "base/hostlist.h"
#include "base/text.h"
#include "frontend/slurm/config_parts.h"

namespace tutti::slurm {
namespace {

constexpr std::uint32_t kMaxDevices = 1024;

struct GresLine {
  std::string name, type;
  std::vector<std::string> files;
  std::optional<std::uint32_t> count;
  std::uint64_t memory_mib = 0;
  bool mig = false;
  std::vector<std::string> nodes;  // empty = every node
  Span span;

  std::uint32_t devices() const {
    return files.empty() ? count.value_or(1) : static_cast<std::uint32_t>(files.size());
  }
  bool is_for(const std::string& node) const {
    return nodes.empty() || std::ranges::find(nodes, node) != nodes.end();
  }
};

// "/dev/nvidia[0-7]" and "/dev/nvidia0,/dev/nvidia1".
std::vector<std::string> device_files(ConfigReading& reading, const ConfigWord& word) {
  std::vector<std::string> files = reading.hosts(word, word.value);
  if (files.size() > kMaxDevices) {
    reading.error("config-gres", word.span, "File names more than 1024 devices");
    files.resize(kMaxDevices);
  }
  return files;
}

void set_auto_detect(ConfigReading& reading, const ConfigWord& word) {
  std::string mode = lower(word.value);
  if (mode == "off" || mode == "none") return;
  if (mode != "nvml" && mode != "nvidia" && mode != "rsmi" && mode != "oneapi" && mode != "nrt")
    reading.error("config-value", word.span,
                  fmt::format("AutoDetect: expected nvml, nvidia, rsmi, oneapi, nrt or off, not {}",
                              quote(word.value)));
  reading.out.auto_detect = true;
}

std::optional<GresLine> read_line(ConfigReading& reading, const ConfigLine& line) {
  GresLine out;
  out.span = line.words.front().span;
  for (const ConfigWord& word : line.words) {
    const KnownKey* known = reading.look_up(gres_keys(), word, "gres.conf");
    if (!known) continue;
    if (known->name == "AutoDetect") {
      set_auto_detect(reading, word);
    } else if (known->name == "NodeName") {
      out.nodes = reading.hosts(word, word.value);
      for (const std::string& name : out.nodes)
        if (!reading.wanted.contains(name))
          reading.warn("config-gres", word.span,
                       fmt::format("NodeName: slurm.conf has no node {}", name));
    } else if (known->name == "Name") {
      out.name = lower(word.value);
      out.span = word.span;
      if (std::ranges::find(reading.gres_types, out.name) == reading.gres_types.end())
        reading.error("config-gres", word.span,
                      fmt::format("Name: {} is not among GresTypes={}", word.value,
                                  join(reading.gres_types, ",")));
    } else if (known->name == "Type") {
      out.type = word.value;
    } else if (known->name == "File") {
      out.files = device_files(reading, word);
    } else if (known->name == "Memory") {
      out.memory_mib = reading.megabytes(word).value_or(0);
    } else if (known->name == "MIG") {
      out.mig = reading.yes_or_no(word).value_or(false);
    } else if (known->name == "Count") {
      out.count = reading.number(word);
      if (out.count && *out.count > kMaxDevices) {
        reading.error("config-gres", word.span, "Count: at most 1024 devices on a node");
        out.count = kMaxDevices;
      }
    }
  }
  if (out.name.empty()) return std::nullopt;  // AutoDetect alone
  if (out.count && !out.files.empty() && *out.count != out.files.size())
    reading.error("config-gres", out.span,
                  fmt::format("Count={} but File names {} devices", *out.count, out.files.size()));
  return out;
}

// What slurm.conf says of one kind and type against what gres.conf lists; reported once per line
// of slurm.conf and cause.
void compare(ConfigReading& reading, NodeSpec& node, const std::vector<GresLine>& lines,
             std::vector<std::string>& told) {
  const auto& wanted = reading.wanted[node.name];
  std::vector<DeviceSpec> devices;
  auto tell = [&](const Span& span, std::string message) {
    std::string key = fmt::format("{}:{} {}", span.line, span.column, message);
    if (std::ranges::find(told, key) != told.end()) return;
    told.push_back(key);
    reading.error("config-gres", span, fmt::format("{}: {}", node.name, message));
  };
  for (const Gres& gres : wanted.list) {
    std::uint64_t found = 0;
    for (const GresLine& line : lines) {
      if (!line.is_for(node.name) || line.name != lower(gres.name)) continue;
      if (!line.type.empty() && !gres.type.empty() && line.type != gres.type) continue;
      std::string type = gres.type.empty() ? line.type : gres.type;
      for (std::uint32_t i = 0; i < line.devices(); ++i)
        devices.push_back({gres.name, type, i < line.files.size() ? line.files[i] : "",
                           line.memory_mib, -1, -1, line.mig});
      found += line.devices();
    }
    if (found == gres.count || (found == 0 && reading.out.auto_detect)) {
      if (found == 0)
        for (std::uint64_t i = 0; i < gres.count; ++i)
          devices.push_back({gres.name, gres.type, ""});
      continue;
    }
    tell(wanted.span, fmt::format("Gres={} here, but gres.conf has {} of that kind and type",
                                  to_string(gres), found));
  }
  for (const GresLine& line : lines) {
    if (line.nodes.empty() || !line.is_for(node.name)) continue;
    bool used = std::ranges::any_of(wanted.list, [&](const Gres& gres) {
      return line.name == lower(gres.name) &&
             (line.type.empty() || gres.type.empty() || line.type == gres.type);
    });
    if (!used)
      tell(line.span, fmt::format("Name={}{} here, but slurm.conf gives the node no such Gres",
                                  line.name, line.type.empty() ? "" : " Type=" + line.type));
  }
  node.devices = std::move(devices);
}

}  // namespace

void read_gres_lines(ConfigReading& reading, const ConfigLines& lines) {
  std::vector<GresLine> parsed;
  for (const ConfigLine& line : lines.lines)
    if (auto one = read_line(reading, line)) parsed.push_back(std::move(*one));
  // Without gres.conf the devices are as slurm.conf declares them, only counted.
  if (!lines.found) return;
  std::vector<std::string> told;
  for (NodeSpec& node : reading.out.spec.nodes) compare(reading, node, parsed, told);
}

}  // namespace tutti::slurm
