// Cgroups: the limits around a job's processes on this node and the way to find and end all of
// them. One interface over cgroup v2, v1 and nothing at all; what a machine cannot do is named in
// CgroupFeatures and never pretended.
//
// Groups lie below the group of the process that probed the layout (so that a parent's accounting
// includes the jobs): OWN/tutti-CLUSTER/NODE/job_ID/step_NAME. Limits sit on the job; a step's own
// group exists only to find its processes. A group is made once and never used again after
// kill_all(): making one whose name still holds processes is kConflict.
//
// Nothing is remembered in memory: an agent started later, or the supervisor itself, opens the
// same layout and works on the same groups. Not thread-safe per group; calls block for file
// operations of about 20 us each. Cost of create, attach, remove of a job with one step: see
// tests/unit/agent/cgroups_test.cpp, which prints it.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/archive.h"
#include "base/error.h"

namespace tutti::agent {

enum class CgroupVersion : std::uint8_t { kNone, kV1, kV2 };

// One mounted hierarchy and the directory in it below which we may work. v2 has one.
struct CgroupHierarchy {
  static constexpr std::string_view kName = "cgroup_hierarchy";
  std::vector<std::string> controllers;  // "memory", "pids"...; only those of use to us
  std::string path;
  friend bool operator==(const CgroupHierarchy&, const CgroupHierarchy&) = default;
};
template <class A>
void describe(A& a, CgroupHierarchy& x) {
  a("controllers", x.controllers);
  a("path", x.path);
}

// Where the groups of a cluster go. Probed once when a cluster comes up and kept in its state, so
// that an agent restarted from elsewhere finds the groups of its jobs.
struct CgroupLayout {
  static constexpr std::string_view kName = "cgroup_layout";
  CgroupVersion version = CgroupVersion::kNone;
  std::vector<CgroupHierarchy> hierarchies;
  std::vector<std::string> missing;  // "memory: not mounted", for people
  friend bool operator==(const CgroupLayout&, const CgroupLayout&) = default;
};
template <class A>
void describe(A& a, CgroupLayout& x) {
  a("version", x.version);
  a("hierarchies", x.hierarchies);
  a("missing", x.missing);
}

struct CgroupFeatures {
  bool cpu = false;      // shares
  bool memory = false;   // limit, peak, out-of-memory count
  bool pids = false;     // limit of the number of processes
  bool devices = false;  // a rank cannot open what it does not hold
  bool freezer = false;
  bool cpuset = false;
  bool kill = false;  // all processes of a step can be found and ended, whatever they do
  std::vector<std::string> missing;  // "devices: BPF programs are refused: Operation not permitted"
};

// A device that a job may use. No number = all of that kind.
struct DeviceRule {
  char type = 'c';  // c, b
  std::optional<std::uint32_t> major;
  std::optional<std::uint32_t> minor;
  std::string access = "rwm";  // read, write, mknod
  friend bool operator==(const DeviceRule&, const DeviceRule&) = default;
};
// null, zero, full, random, urandom, tty, console, ptmx, ptys; making (not opening) any node; and
// those of fuse, tun, InfiniBand and the GPU drivers' control nodes that this machine has. Not the
// GPUs themselves.
std::vector<DeviceRule> standard_devices();

struct JobLimits {
  std::uint64_t memory_mib = 0;  // 0 = no limit
  std::uint32_t cpu_weight = 0;  // 1..10000, 100 is usual; 0 = not set. On v1 this costs each
                                 // attach() some milliseconds of waiting
  std::string cpus;              // cpuset list "0-3,8"; empty = not bound
  std::uint32_t pids_max = 0;    // 0 = no limit
  // Exactly these can be opened (add standard_devices()); nullopt = no isolation asked for.
  std::optional<std::vector<DeviceRule>> devices;
  bool account_cpu = false;  // v1 only: usage().cpu_ns is wanted (v2 has it always)
};

struct CgroupUsage {
  std::optional<std::uint64_t> cpu_ns;
  std::optional<std::uint64_t> memory_peak_bytes;
  std::uint64_t oom_kills = 0;
};

struct KillOptions {
  pid_t except = 0;  // this one lives on: a supervisor that cleans up its own step
  std::chrono::milliseconds timeout{5000};
};

// Probes below the caller's own group. Never an error: at worst version kNone with the reasons.
// v1 is taken where any controller of use is mounted as v1, else v2.
// On v2 controllers may be enabled in an ancestor, and the caller may be moved into a group of its
// own ("tutti-daemon") when it is alone in its group, as a service with Delegate=yes is.
struct ProbeOptions {
  std::optional<CgroupVersion> only;  // for tests and `doctor`
  std::string proc = "/proc";
};
CgroupLayout probe_cgroups(const ProbeOptions& options = {});

// A step is named by a word ("batch", "0"); an empty step means the whole job. A job that is tried
// again uses the same name again, after remove_job().
class Cgroups {
 public:
  virtual ~Cgroups() = default;
  virtual const CgroupFeatures& features() const = 0;

  // Makes the job's groups with their limits; kConflict when processes of an earlier try live
  // there; an asked-for limit that the machine cannot keep is skipped (see features()), one that
  // the kernel refuses is an error and nothing is left.
  virtual Status create_job(std::uint32_t job, const JobLimits& limits) = 0;
  virtual Status create_step(std::uint32_t job, std::string_view step) = 0;
  // Moves one process (with all its threads) into all groups of its step; children are born there.
  virtual Status attach(std::uint32_t job, std::string_view step, pid_t pid) = 0;
  // The cgroup.procs files of a step, for SpawnOptions::cgroup_procs: the child moves itself, so
  // that no instruction of the program runs outside.
  virtual std::vector<std::string> procs_files(std::uint32_t job, std::string_view step) = 0;
  // All processes in the step (zombies left out), any order. Empty when there is no such group.
  virtual Result<std::vector<pid_t>> processes(std::uint32_t job, std::string_view step) = 0;
  Result<bool> is_empty(std::uint32_t job, std::string_view step);
  // Ends every process: they cannot fork away from it (frozen, or forks refused, or cgroup.kill).
  // kUnavailable naming those that do not die in time.
  virtual Status kill_all(std::uint32_t job, std::string_view step, const KillOptions& options) = 0;
  // Removes the empty groups; kConflict when processes are left. Not there is not an error.
  virtual Status remove_step(std::uint32_t job, std::string_view step) = 0;
  virtual Status remove_job(std::uint32_t job) = 0;
  virtual CgroupUsage usage(std::uint32_t job) = 0;
  // The jobs that have groups, ascending: what an agent finds after a restart.
  virtual std::vector<std::uint32_t> jobs() = 0;
  // At the cluster's end: removes the node's (empty) groups and those above it that are ours and
  // empty.
  virtual Status remove_node() = 0;
};

// cluster and node: [A-Za-z0-9_.-]+. Makes nothing yet.
std::unique_ptr<Cgroups> open_cgroups(const CgroupLayout& layout, std::string_view cluster,
                                      std::string_view node);

}  // namespace tutti::agent

template <>
struct tutti::EnumNames<tutti::agent::CgroupVersion> {
  static constexpr std::array kTable{
      std::pair{tutti::agent::CgroupVersion::kNone, std::string_view("none")},
      std::pair{tutti::agent::CgroupVersion::kV1, std::string_view("v1")},
      std::pair{tutti::agent::CgroupVersion::kV2, std::string_view("v2")}};
};
