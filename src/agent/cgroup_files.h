// Small file operations that both cgroup backends are made of. Private to src/agent/cgroup*.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace tutti::agent::cgroup {

// One write to a control file; the error names file and value.
Status write_control(const std::string& path, std::string_view value);
// mkdir; false when it was there already.
Result<bool> make_group(const std::string& path);
bool is_directory(const std::string& path);
std::vector<std::string> subgroups(const std::string& path);  // names, ascending
// All processes of the group and of those below; none when it is not there.
Result<std::vector<pid_t>> read_processes(const std::string& path);
// Removes the group and all below. A group that has just become empty may still be busy for a
// moment, so this tries for up to 100 ms; then kConflict. Not there is not an error.
Status remove_tree(const std::string& path);
// The number after `key` in a text of "key number" lines, or after the start for an empty key.
std::uint64_t number_after(std::string_view text, std::string_view key);

struct KillLoop {
  std::string path;
  pid_t except = 0;
  std::chrono::milliseconds timeout;
  // Called around each round of SIGKILL; may be empty.
  std::function<void()> before;
  std::function<void()> after;
};
// SIGKILL to all processes of the group until none is left.
Status kill_until_empty(const KillLoop& loop);

std::string job_name(std::uint32_t job);
std::string step_name(std::string_view step);
// The job ids of the groups "job_N" in path, ascending.
std::vector<std::uint32_t> job_ids(const std::string& path);

}  // namespace tutti::agent::cgroup
