#include "agent/cgroups.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>

#include "agent/cgroup_backends.h"
#include "agent/device_nodes.h"
#include "agent/process.h"

namespace tutti::agent {

std::vector<DeviceRule> standard_devices() {
  std::vector<DeviceRule> rules{{'c', {}, {}, "m"}, {'b', {}, {}, "m"}, {'c', 1, 3},   {'c', 1, 5},
                                {'c', 1, 7},        {'c', 1, 8},        {'c', 1, 9},   {'c', 5, 0},
                                {'c', 5, 1},        {'c', 5, 2},        {'c', 136, {}}};
  for (const auto& path : shared_device_paths()) {
    struct stat status{};
    if (::stat(path.c_str(), &status) != 0) continue;
    rules.push_back({'c', major(status.st_rdev), minor(status.st_rdev), "rwm"});
  }
  return rules;
}

Result<bool> Cgroups::is_empty(std::uint32_t job, std::string_view step) {
  auto pids = processes(job, step);
  if (!pids) return tl::unexpected(pids.error());
  return pids->empty();
}

namespace {

// No cgroup at all: a step is its attached process and the descendants, as far as they can be
// seen, and only as long as this object lives.
class NoCgroups final : public Cgroups {
 public:
  explicit NoCgroups(std::vector<std::string> missing) { features_.missing = std::move(missing); }
  const CgroupFeatures& features() const override { return features_; }
  Status create_job(std::uint32_t job, const JobLimits&) override {
    roots_.try_emplace(job);
    return {};
  }
  Status create_step(std::uint32_t job, std::string_view step) override {
    roots_[job].try_emplace(std::string(step));
    return {};
  }
  Status attach(std::uint32_t job, std::string_view step, pid_t pid) override {
    auto process = process_ref(pid);
    if (!process) return tl::unexpected(process.error());
    roots_[job][std::string(step)] = *process;
    return {};
  }
  std::vector<std::string> procs_files(std::uint32_t, std::string_view) override { return {}; }
  Result<std::vector<pid_t>> processes(std::uint32_t job, std::string_view step) override {
    std::vector<pid_t> pids;
    for (const auto& root : roots_of(job, step)) {
      if (is_alive(root)) pids.push_back(root.pid);
      const auto below = descendants(root.pid);
      pids.insert(pids.end(), below.begin(), below.end());
    }
    return pids;
  }
  Status kill_all(std::uint32_t job, std::string_view step, const KillOptions& options) override {
    for (const auto& root : roots_of(job, step)) {
      if (!is_alive(root)) continue;
      if (auto status = kill_tree(root.pid, options.timeout); !status) return status;
      if (root.pid == options.except) continue;
      auto process = open_process(root);
      if (!process) continue;
      ::kill(root.pid, SIGKILL);
      if (!wait_for_exit(process->get(), options.timeout)) {
        return fail(ErrorCode::kUnavailable,
                    "process " + std::to_string(root.pid) + " does not die of SIGKILL");
      }
    }
    return {};
  }
  Status remove_step(std::uint32_t job, std::string_view step) override {
    if (auto it = roots_.find(job); it != roots_.end()) it->second.erase(std::string(step));
    return {};
  }
  Status remove_job(std::uint32_t job) override {
    roots_.erase(job);
    return {};
  }
  CgroupUsage usage(std::uint32_t) override { return {}; }
  std::vector<std::uint32_t> jobs() override {
    std::vector<std::uint32_t> ids;
    for (const auto& [job, steps] : roots_) ids.push_back(job);
    return ids;
  }
  Status remove_node() override { return {}; }

 private:
  std::vector<ProcessRef> roots_of(std::uint32_t job, std::string_view step) const {
    std::vector<ProcessRef> roots;
    auto it = roots_.find(job);
    if (it == roots_.end()) return roots;
    for (const auto& [name, root] : it->second) {
      if ((step.empty() || name == step) && root) roots.push_back(root);
    }
    return roots;
  }
  CgroupFeatures features_;
  std::map<std::uint32_t, std::map<std::string, ProcessRef>> roots_;
};

}  // namespace

std::unique_ptr<Cgroups> open_cgroups(const CgroupLayout& layout, std::string_view cluster,
                                      std::string_view node) {
  if (layout.version == CgroupVersion::kNone || layout.hierarchies.empty()) {
    return std::make_unique<NoCgroups>(layout.missing);
  }
  if (layout.version == CgroupVersion::kV1) {
    return open_cgroups_v1(layout, std::string(cluster), std::string(node));
  }
  return open_cgroups_v2(layout, std::string(cluster), std::string(node));
}

}  // namespace tutti::agent
