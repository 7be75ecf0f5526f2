#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "agent/cgroup_backends.h"
#include "agent/cgroup_files.h"
#include "agent/device_filter.h"
#include "agent/process.h"

namespace tutti::agent {

namespace {

using cgroup::write_control;

// v2: one tree. The layout's controllers are those that are enabled for the groups below its path,
// and three words for what is not a controller: devices (BPF), freezer, kill.
class CgroupsV2 final : public Cgroups {
 public:
  CgroupsV2(const CgroupLayout& layout, std::string cluster, std::string node)
      : cluster_path_(layout.hierarchies.front().path + "/tutti-" + cluster),
        node_path_(cluster_path_ + "/" + node) {
    const auto& words = layout.hierarchies.front().controllers;
    const auto has = [&](std::string_view word) {
      return std::find(words.begin(), words.end(), word) != words.end();
    };
    features_.cpu = has("cpu");
    features_.memory = has("memory");
    features_.pids = has("pids");
    features_.cpuset = has("cpuset");
    features_.devices = has("devices");
    features_.freezer = has("freezer");
    features_.kill = has("kill") || features_.freezer;
    kill_file_ = has("kill");
    features_.missing = layout.missing;
    for (const auto* word : {"cpu", "memory", "pids", "cpuset"}) {
      if (has(word)) enable_ += (enable_.empty() ? "+" : " +") + std::string(word);
    }
  }

  const CgroupFeatures& features() const override { return features_; }

  Status create_job(std::uint32_t job, const JobLimits& limits) override {
    const auto path = job_path(job);
    auto made = make_job_group(path);
    if (made && !*made) {
      if (auto status = cgroup::remove_tree(path); !status) return status;
      made = make_job_group(path);
    }
    if (!made) return tl::unexpected(made.error());
    auto status = set_limits(path, limits);
    if (!status) static_cast<void>(cgroup::remove_tree(path));
    return status;
  }

  Status create_step(std::uint32_t job, std::string_view step) override {
    auto made = cgroup::make_group(group_path(job, step));
    if (!made) return tl::unexpected(made.error());
    if (!*made) {
      return fail(ErrorCode::kConflict, fmt::format("step {}.{} has a cgroup already", job, step));
    }
    return {};
  }

  Status attach(std::uint32_t job, std::string_view step, pid_t pid) override {
    return write_control(group_path(job, step) + "/cgroup.procs", fmt::format("{}", pid));
  }

  std::vector<std::string> procs_files(std::uint32_t job, std::string_view step) override {
    auto file = group_path(job, step) + "/cgroup.procs";
    if (::access(file.c_str(), F_OK) != 0) return {};
    return {std::move(file)};
  }

  Result<std::vector<pid_t>> processes(std::uint32_t job, std::string_view step) override {
    return cgroup::read_processes(group_path(job, step));
  }

  Status kill_all(std::uint32_t job, std::string_view step, const KillOptions& options) override {
    cgroup::KillLoop loop{group_path(job, step), options.except, options.timeout, {}, {}};
    if (!cgroup::is_directory(loop.path)) return {};
    if (options.except != 0) {
      // Nobody in the group can fork from here on (where pids is enabled).
      static_cast<void>(write_control(loop.path + "/pids.max", "0"));
    } else if (kill_file_) {
      if (auto status = write_control(loop.path + "/cgroup.kill", "1"); !status) return status;
    } else if (features_.freezer) {
      loop.before = [file = loop.path + "/cgroup.freeze"] {
        static_cast<void>(write_control(file, "1"));
      };
    }
    // A frozen process of v2 dies of SIGKILL, but a group that is empty need not stay frozen.
    loop.after = [file = loop.path + "/cgroup.freeze"] {
      static_cast<void>(write_control(file, "0"));
    };
    return cgroup::kill_until_empty(loop);
  }

  Status remove_step(std::uint32_t job, std::string_view step) override {
    return cgroup::remove_tree(group_path(job, step));
  }
  Status remove_job(std::uint32_t job) override { return cgroup::remove_tree(job_path(job)); }

  CgroupUsage usage(std::uint32_t job) override {
    CgroupUsage usage;
    if (auto text = read_small_file(job_path(job) + "/cpu.stat")) {
      usage.cpu_ns = cgroup::number_after(*text, "usage_usec") * 1000;
    }
    if (auto text = read_small_file(job_path(job) + "/memory.peak")) {
      usage.memory_peak_bytes = cgroup::number_after(*text, "");
    }
    if (auto text = read_small_file(job_path(job) + "/memory.events")) {
      usage.oom_kills = cgroup::number_after(*text, "oom_kill");
    }
    return usage;
  }

  std::vector<std::uint32_t> jobs() override { return cgroup::job_ids(node_path_); }

  Status remove_node() override {
    if (auto status = cgroup::remove_tree(node_path_); !status) return status;
    ::rmdir(cluster_path_.c_str());  // other nodes may still be there
    return {};
  }

 private:
  std::string job_path(std::uint32_t job) const { return node_path_ + "/" + cgroup::job_name(job); }
  std::string group_path(std::uint32_t job, std::string_view step) const {
    return step.empty() ? job_path(job) : job_path(job) + "/" + cgroup::step_name(step);
  }

  Result<bool> make_job_group(const std::string& path) {
    auto made = cgroup::make_group(path);
    if (made || made.error().code != ErrorCode::kNotFound) return made;
    for (const auto& above : {cluster_path_, node_path_}) {
      if (auto group = cgroup::make_group(above); !group) return group;
      if (enable_.empty()) continue;
      if (auto status = write_control(above + "/cgroup.subtree_control", enable_); !status) {
        return tl::unexpected(status.error());
      }
    }
    return cgroup::make_group(path);
  }

  Status set_limits(const std::string& path, const JobLimits& limits) {
    Status status;
    if (features_.pids) {
      // The steps need pids too: kill_all() stops their forking with it.
      status = write_control(path + "/cgroup.subtree_control", "+pids");
      if (status && limits.pids_max != 0) {
        status = write_control(path + "/pids.max", fmt::format("{}", limits.pids_max));
      }
    }
    if (status && features_.memory && limits.memory_mib != 0) {
      status = write_control(path + "/memory.max", fmt::format("{}M", limits.memory_mib));
    }
    if (status && features_.cpuset && !limits.cpus.empty()) {
      status = write_control(path + "/cpuset.cpus", limits.cpus);
    }
    if (status && features_.cpu && limits.cpu_weight != 0) {
      status = write_control(path + "/cpu.weight", fmt::format("{}", limits.cpu_weight));
    }
    if (status && features_.devices && limits.devices) {
      status = attach_device_filter(path, *limits.devices);
    }
    return status;
  }

  std::string cluster_path_;
  std::string node_path_;
  std::string enable_;
  bool kill_file_ = false;
  CgroupFeatures features_;
};

}  // namespace

std::unique_ptr<Cgroups> open_cgroups_v2(const CgroupLayout& layout, std::string cluster,
                                         std::string node) {
  return std::make_unique<CgroupsV2>(layout, std::move(cluster), std::move(node));
}

}  // namespace tutti::agent
