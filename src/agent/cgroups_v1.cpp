#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "agent/cgroup_backends.h"
#include "agent/cgroup_files.h"
#include "agent/process.h"

namespace tutti::agent {

namespace {

using cgroup::job_name;
using cgroup::step_name;
using cgroup::write_control;

bool has(const CgroupHierarchy& hierarchy, std::string_view controller) {
  return std::find(hierarchy.controllers.begin(), hierarchy.controllers.end(), controller) !=
         hierarchy.controllers.end();
}

// v1: one tree per controller. A job has a group only in the trees that its limits need; a step
// has one only in the tree by which its processes are found (pids, else freezer). Each move of a
// process costs 30 to 80 us, into the cpu tree milliseconds, so fewer is better.
class CgroupsV1 final : public Cgroups {
 public:
  CgroupsV1(const CgroupLayout& layout, std::string cluster, std::string node)
      : layout_(layout), cluster_(std::move(cluster)), node_(std::move(node)) {
    for (const auto* word : {"pids", "freezer", "devices", "memory", "cpuacct", "cpuset", "cpu"}) {
      if (tracking_ == nullptr) tracking_ = tree_of(word);
    }
    features_.cpu = tree_of("cpu") != nullptr;
    features_.memory = tree_of("memory") != nullptr;
    features_.pids = tree_of("pids") != nullptr;
    features_.devices = tree_of("devices") != nullptr;
    features_.freezer = tree_of("freezer") != nullptr;
    features_.cpuset = tree_of("cpuset") != nullptr;
    features_.kill = features_.pids || features_.freezer;
    features_.missing = layout_.missing;
  }

  const CgroupFeatures& features() const override { return features_; }

  Status create_job(std::uint32_t job, const JobLimits& limits) override {
    auto status = create_job_groups(job, limits);
    if (status) return status;
    // What was made is removed; the first error is the one to report.
    if (status.error().code != ErrorCode::kConflict) static_cast<void>(remove_job(job));
    return status;
  }

  Status create_step(std::uint32_t job, std::string_view step) override {
    auto made = cgroup::make_group(job_path(*tracking_, job) + "/" + step_name(step));
    if (!made) return tl::unexpected(made.error());
    if (!*made) {
      return fail(ErrorCode::kConflict, fmt::format("step {}.{} has a cgroup already", job, step));
    }
    return {};
  }

  Status attach(std::uint32_t job, std::string_view step, pid_t pid) override {
    const auto files = procs_files(job, step);
    if (files.empty()) {
      return fail(ErrorCode::kNotFound, fmt::format("step {}.{} has no cgroup", job, step));
    }
    for (const auto& file : files) {
      if (auto status = write_control(file, fmt::format("{}", pid)); !status) return status;
    }
    return {};
  }

  std::vector<std::string> procs_files(std::uint32_t job, std::string_view step) override {
    std::vector<std::string> files;
    for (const auto& tree : layout_.hierarchies) {
      auto file =
          (&tree == tracking_ ? group_path(job, step) : job_path(tree, job)) + "/cgroup.procs";
      if (::access(file.c_str(), F_OK) == 0) {
        files.push_back(std::move(file));
      } else if (&tree == tracking_) {
        return {};
      }
    }
    return files;
  }

  Result<std::vector<pid_t>> processes(std::uint32_t job, std::string_view step) override {
    return cgroup::read_processes(group_path(job, step));
  }

  Status kill_all(std::uint32_t job, std::string_view step, const KillOptions& options) override {
    cgroup::KillLoop loop{group_path(job, step), options.except, options.timeout, {}, {}};
    if (!cgroup::is_directory(loop.path)) return {};
    if (has(*tracking_, "pids")) {
      // From here on nobody in the group can fork, so one more round always gains on them.
      if (auto status = write_control(loop.path + "/pids.max", "0"); !status) return status;
    } else if (has(*tracking_, "freezer")) {
      const auto state = loop.path + "/freezer.state";
      if (options.except == 0) {
        loop.before = [state] { static_cast<void>(write_control(state, "FROZEN")); };
      }
      loop.after = [state] { static_cast<void>(write_control(state, "THAWED")); };
    }
    return cgroup::kill_until_empty(loop);
  }

  Status remove_step(std::uint32_t job, std::string_view step) override {
    return cgroup::remove_tree(group_path(job, step));
  }

  Status remove_job(std::uint32_t job) override {
    // The tree with the steps first: it says best who is still there.
    if (auto status = cgroup::remove_tree(job_path(*tracking_, job)); !status) return status;
    for (const auto& tree : layout_.hierarchies) {
      if (auto status = cgroup::remove_tree(job_path(tree, job)); !status) return status;
    }
    return {};
  }

  CgroupUsage usage(std::uint32_t job) override {
    CgroupUsage usage;
    const auto read = [&](const char* controller, const char* file) -> Result<std::string> {
      const auto* tree = tree_of(controller);
      if (tree == nullptr) return fail(ErrorCode::kNotFound, controller);
      return read_small_file(job_path(*tree, job) + "/" + file);
    };
    if (auto text = read("cpuacct", "cpuacct.usage")) {
      usage.cpu_ns = cgroup::number_after(*text, "");
    }
    if (auto text = read("memory", "memory.max_usage_in_bytes")) {
      usage.memory_peak_bytes = cgroup::number_after(*text, "");
    }
    if (auto text = read("memory", "memory.oom_control")) {
      usage.oom_kills = cgroup::number_after(*text, "oom_kill");
    }
    return usage;
  }

  std::vector<std::uint32_t> jobs() override { return cgroup::job_ids(node_path(*tracking_)); }

  Status remove_node() override {
    for (const auto& tree : layout_.hierarchies) {
      if (auto status = cgroup::remove_tree(node_path(tree)); !status) return status;
      // Other nodes of the cluster may still be there: then theirs is the last one to remove it.
      ::rmdir(cluster_path(tree).c_str());
    }
    return {};
  }

 private:
  const CgroupHierarchy* tree_of(std::string_view controller) const {
    for (const auto& tree : layout_.hierarchies) {
      if (has(tree, controller)) return &tree;
    }
    return nullptr;
  }
  std::string cluster_path(const CgroupHierarchy& tree) const {
    return tree.path + "/tutti-" + cluster_;
  }
  std::string node_path(const CgroupHierarchy& tree) const {
    return cluster_path(tree) + "/" + node_;
  }
  std::string job_path(const CgroupHierarchy& tree, std::uint32_t job) const {
    return node_path(tree) + "/" + job_name(job);
  }
  std::string group_path(std::uint32_t job, std::string_view step) const {
    auto path = job_path(*tracking_, job);
    return step.empty() ? path : path + "/" + step_name(step);
  }

  // A new cpuset group has neither CPUs nor memory and takes no process: give it the parent's.
  static Status inherit_cpuset(const std::string& path) {
    for (const auto* file : {"/cpuset.cpus", "/cpuset.mems"}) {
      auto text = read_small_file(path.substr(0, path.rfind('/')) + file);
      if (!text) return tl::unexpected(text.error());
      if (auto status = write_control(path + file, *text); !status) return status;
    }
    return {};
  }

  Result<bool> make_group(const CgroupHierarchy& tree, const std::string& path) {
    auto made = cgroup::make_group(path);
    if (made && *made && has(tree, "cpuset")) {
      if (auto status = inherit_cpuset(path); !status) return tl::unexpected(status.error());
    }
    return made;
  }

  Result<bool> make_job_group(const CgroupHierarchy& tree, std::uint32_t job) {
    const auto path = job_path(tree, job);
    auto made = make_group(tree, path);
    if (made || made.error().code != ErrorCode::kNotFound) return made;
    // The first job on this node: the groups above it.
    if (auto above = make_group(tree, cluster_path(tree)); !above) return above;
    if (auto above = make_group(tree, node_path(tree)); !above) return above;
    return make_group(tree, path);
  }

  bool needs(const CgroupHierarchy& tree, const JobLimits& limits) const {
    return &tree == tracking_ || (limits.memory_mib != 0 && has(tree, "memory")) ||
           (limits.devices && has(tree, "devices")) ||
           (!limits.cpus.empty() && has(tree, "cpuset")) ||
           (limits.cpu_weight != 0 && has(tree, "cpu")) ||
           (limits.account_cpu && has(tree, "cpuacct"));
  }

  Status create_job_groups(std::uint32_t job, const JobLimits& limits) {
    for (const auto& tree : layout_.hierarchies) {
      if (!needs(tree, limits)) continue;
      auto made = make_job_group(tree, job);
      if (made && !*made) {
        // Left by an earlier try: fine if nobody lives there, but begin afresh.
        if (auto status = cgroup::remove_tree(job_path(tree, job)); !status) return status;
        made = make_job_group(tree, job);
      }
      if (!made) return tl::unexpected(made.error());
      if (auto status = set_limits(tree, job_path(tree, job), limits); !status) return status;
    }
    return {};
  }

  Status set_limits(const CgroupHierarchy& tree, const std::string& path, const JobLimits& limits) {
    Status status;
    if (status && limits.pids_max != 0 && has(tree, "pids")) {
      status = write_control(path + "/pids.max", fmt::format("{}", limits.pids_max));
    }
    if (status && limits.memory_mib != 0 && has(tree, "memory")) {
      status =
          write_control(path + "/memory.limit_in_bytes", fmt::format("{}M", limits.memory_mib));
    }
    if (status && limits.devices && has(tree, "devices")) {
      status = allow_devices(path, *limits.devices);
    }
    if (status && !limits.cpus.empty() && has(tree, "cpuset")) {
      status = write_control(path + "/cpuset.cpus", limits.cpus);
    }
    if (status && limits.cpu_weight != 0 && has(tree, "cpu")) {
      // Weight 100 is the kernel's 1024 shares; it takes 2 and more.
      const auto shares = std::max<std::uint64_t>(2, limits.cpu_weight * 1024ULL / 100);
      status = write_control(path + "/cpu.shares", fmt::format("{}", shares));
    }
    return status;
  }

  static Status allow_devices(const std::string& path, const std::vector<DeviceRule>& rules) {
    if (auto status = write_control(path + "/devices.deny", "a"); !status) return status;
    const auto file = path + "/devices.allow";
    const auto text = [](const std::optional<std::uint32_t>& number) {
      return number ? fmt::format("{}", *number) : std::string("*");
    };
    for (const auto& rule : rules) {
      auto status = write_control(file, fmt::format("{} {}:{} {}", rule.type, text(rule.major),
                                                    text(rule.minor), rule.access));
      if (status) continue;
      // A group above us may forbid a standard node; it is forbidden then, and the job lives. A
      // device that the job was given is another matter.
      const auto standard = standard_devices();
      if (status.error().code == ErrorCode::kDenied &&
          std::find(standard.begin(), standard.end(), rule) != standard.end()) {
        continue;
      }
      return status;
    }
    return {};
  }

  CgroupLayout layout_;
  std::string cluster_;
  std::string node_;
  const CgroupHierarchy* tracking_ = nullptr;
  CgroupFeatures features_;
};

}  // namespace

std::unique_ptr<Cgroups> open_cgroups_v1(const CgroupLayout& layout, std::string cluster,
                                         std::string node) {
  return std::make_unique<CgroupsV1>(layout, std::move(cluster), std::move(node));
}

}  // namespace tutti::agent
