// Finds what this machine's cgroups can do for us. Formats: proc(5) (mountinfo), cgroups(7)
// (/proc/PID/cgroup), and the kernel's Documentation/admin-guide/cgroup-v2.rst for "no internal
// processes" and delegation.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "agent/cgroup_files.h"
#include "agent/cgroups.h"
#include "agent/device_filter.h"
#include "agent/process.h"

namespace tutti::agent {

namespace {

constexpr std::array<std::string_view, 7> kUsefulV1{"cpu",     "cpuacct", "memory", "pids",
                                                    "devices", "freezer", "cpuset"};
constexpr std::array<std::string_view, 4> kUsefulV2{"cpu", "memory", "pids", "cpuset"};

struct Mount {
  bool v2 = false;
  std::string root;  // the part of the hierarchy that is mounted
  std::string point;
  std::vector<std::string> controllers;  // v1
};

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const auto part = text.substr(0, text.find(separator));
    if (!part.empty()) parts.emplace_back(part);
    text.remove_prefix(std::min(part.size() + 1, text.size()));
  }
  return parts;
}

std::vector<Mount> read_mounts(const std::string& proc) {
  std::vector<Mount> mounts;
  auto text = read_small_file(proc + "/self/mountinfo");
  if (!text) return mounts;
  for (const auto& line : split(*text, '\n')) {
    // ID PARENT MAJOR:MINOR ROOT POINT OPTIONS [TAGS...] - TYPE SOURCE SUPER_OPTIONS
    const auto fields = split(line, ' ');
    const auto dash = std::find(fields.begin(), fields.end(), "-");
    if (fields.size() < 5 || fields.end() - dash < 4) continue;
    Mount mount{dash[1] == "cgroup2", fields[3], fields[4], {}};
    if (!mount.v2 && dash[1] != "cgroup") continue;
    if (!mount.v2) {
      for (const auto& option : split(dash[3], ',')) {
        if (std::find(kUsefulV1.begin(), kUsefulV1.end(), option) != kUsefulV1.end()) {
          mount.controllers.push_back(option);
        }
      }
      if (mount.controllers.empty()) continue;
    }
    mounts.push_back(std::move(mount));
  }
  return mounts;
}

// The caller's own group as a directory. `controller` empty: v2.
std::string own_group(const std::string& proc, const Mount& mount, std::string_view controller) {
  auto text = read_small_file(proc + "/self/cgroup");
  if (!text) return {};
  for (const auto& line : split(*text, '\n')) {
    // ID:CONTROLLERS:PATH
    const auto first = line.find(':');
    const auto second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const auto names = split(std::string_view(line).substr(first + 1, second - first - 1), ',');
    const bool wanted = controller.empty()
                            ? names.empty()
                            : std::find(names.begin(), names.end(), controller) != names.end();
    if (!wanted) continue;
    std::string path = line.substr(second + 1);
    if (mount.root != "/" && path.starts_with(mount.root)) path.erase(0, mount.root.size());
    while (path.ends_with('/')) path.pop_back();
    return mount.point + path;
  }
  return {};
}

void probe_v1(const ProbeOptions& options, const std::vector<Mount>& mounts, CgroupLayout& layout) {
  layout.version = CgroupVersion::kV1;
  for (std::string_view controller : kUsefulV1) {
    const auto mount = std::find_if(mounts.begin(), mounts.end(), [&](const Mount& m) {
      return !m.v2 && std::find(m.controllers.begin(), m.controllers.end(), controller) !=
                          m.controllers.end();
    });
    if (mount == mounts.end()) {
      layout.missing.push_back(fmt::format("{}: no such cgroup is mounted", controller));
      continue;
    }
    const auto path = own_group(options.proc, *mount, controller);
    if (path.empty() || ::access(path.c_str(), W_OK) != 0) {
      layout.missing.push_back(
          fmt::format("{}: {}: {}", controller, path, path.empty() ? "unknown" : strerror(errno)));
      continue;
    }
    const auto known = std::find_if(layout.hierarchies.begin(), layout.hierarchies.end(),
                                    [&](const CgroupHierarchy& h) { return h.path == path; });
    if (known != layout.hierarchies.end()) {
      known->controllers.emplace_back(controller);  // "cpu,cpuacct" in one tree
    } else {
      layout.hierarchies.push_back({{std::string(controller)}, path});
    }
  }
  if (layout.hierarchies.empty()) layout.version = CgroupVersion::kNone;
}

std::vector<std::string> words_of(const std::string& file) {
  auto text = read_small_file(file);
  if (!text) return {};
  std::replace(text->begin(), text->end(), '\n', ' ');
  return split(*text, ' ');
}

bool contains(const std::vector<std::string>& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// Enables one controller for the children of a group; true when it is enabled.
bool enable(const std::string& group, std::string_view controller) {
  const auto file = group + "/cgroup.subtree_control";
  if (contains(words_of(file), controller)) return true;
  return cgroup::write_control(file, fmt::format("+{}", controller)).has_value();
}

// A service alone in its delegated group steps aside, because a group with processes cannot hand
// controllers to its children.
bool step_aside(const std::string& own) {
  auto pids = read_small_file(own + "/cgroup.procs");
  if (!pids || *pids != fmt::format("{}\n", ::getpid())) return false;
  const auto aside = own + "/tutti-daemon";
  if (!cgroup::make_group(aside)) return false;
  return cgroup::write_control(aside + "/cgroup.procs", "0").has_value();
}

void probe_v2(const ProbeOptions& options, const Mount& mount, CgroupLayout& layout) {
  const auto own = own_group(options.proc, mount, "");
  if (own.empty() || ::access((own + "/cgroup.procs").c_str(), W_OK) != 0) {
    layout.missing.push_back(fmt::format(
        "cgroups: {} is not ours to write to; run in a delegated group: systemd-run --user --scope "
        "-p Delegate=yes ...",
        own.empty() ? mount.point : own));
    return;
  }
  // The nearest group from ours upwards that can hand down every controller that is to be had.
  std::string base = own;
  const auto useful = [](const std::string& group) {
    std::vector<std::string> words;
    const auto there = words_of(group + "/cgroup.controllers");
    for (auto word : kUsefulV2) {
      if (contains(there, word)) words.emplace_back(word);
    }
    return words;
  };
  const auto enable_all = [&](const std::string& group) {
    const auto words = useful(group);
    return std::all_of(words.begin(), words.end(),
                       [&](const std::string& word) { return enable(group, word); });
  };
  if (!enable_all(own) && !(step_aside(own) && enable_all(own))) {
    std::string above = own;
    while (above.size() > mount.point.size()) {
      above = above.substr(0, above.rfind('/'));
      if (::access((above + "/cgroup.procs").c_str(), W_OK) != 0) break;
      if (!enable_all(above)) continue;
      base = above;
      break;
    }
  }
  layout.version = CgroupVersion::kV2;
  CgroupHierarchy tree{{}, base};
  const auto enabled = words_of(base + "/cgroup.subtree_control");
  for (auto word : kUsefulV2) {
    if (contains(enabled, word)) {
      tree.controllers.emplace_back(word);
    } else if (contains(words_of(base + "/cgroup.controllers"), word)) {
      layout.missing.push_back(fmt::format(
          "{}: {} has processes and cannot hand it down; start the agent as a service with "
          "Delegate=yes",
          word, base));
    } else {
      layout.missing.push_back(fmt::format("{}: not delegated to {}", word, base));
    }
  }
  if (auto filter = load_device_filter({}); filter) {
    tree.controllers.emplace_back("devices");
  } else {
    layout.missing.push_back("devices: " + filter.error().message);
  }
  // The root group has neither file, so look into one of ours.
  const auto probe = base + "/tutti-probe";
  if (cgroup::make_group(probe)) {
    for (const auto* word : {"freeze", "kill"}) {
      const auto file = fmt::format("{}/cgroup.{}", probe, word);
      if (::access(file.c_str(), W_OK) == 0) {
        tree.controllers.emplace_back(word == std::string_view("freeze") ? "freezer" : word);
      } else {
        layout.missing.push_back(fmt::format("cgroup.{}: {}", word, strerror(errno)));
      }
    }
    ::rmdir(probe.c_str());
  }
  layout.hierarchies = {std::move(tree)};
}

}  // namespace

CgroupLayout probe_cgroups(const ProbeOptions& options) {
  CgroupLayout layout;
  if (options.only == CgroupVersion::kNone) return layout;
  const auto mounts = read_mounts(options.proc);
  const bool any_v1 =
      std::any_of(mounts.begin(), mounts.end(), [](const Mount& mount) { return !mount.v2; });
  const auto v2 =
      std::find_if(mounts.begin(), mounts.end(), [](const Mount& mount) { return mount.v2; });
  if (options.only ? options.only == CgroupVersion::kV1 : any_v1) {
    probe_v1(options, mounts, layout);
  } else if (v2 != mounts.end()) {
    probe_v2(options, *v2, layout);
  } else {
    layout.missing.emplace_back("cgroups: none is mounted");
  }
  return layout;
}

}  // namespace tutti::agent
