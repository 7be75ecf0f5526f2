// Who has a device file open: after a job has gone, nobody should have its GPUs.
#pragma once

#include <string>
#include <vector>

namespace tutti::agent {

// One line for people per process and device ("process 812 (python3) of uid 2001 has /dev/nvidia0
// open"), as far as the caller may look. One pass over /proc/*/fd: some milliseconds on a busy
// machine.
std::vector<std::string> device_users(const std::vector<std::string>& paths,
                                      const std::string& proc = "/proc");

}  // namespace tutti::agent
