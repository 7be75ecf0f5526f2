// A device allow list for cgroup v2: v1's devices controller does not exist there, the kernel asks
// a BPF program instead (BPF_PROG_TYPE_CGROUP_DEVICE, Documentation/admin-guide/cgroup-v2.rst,
// "Device controller"). The program is assembled here; no compiler and no library is needed.
#pragma once

#include <linux/bpf.h>

#include <string>
#include <vector>

#include "agent/cgroups.h"
#include "agent/process.h"

namespace tutti::agent {

// The program: returns 1 for an access that some rule allows entirely, else 0.
std::vector<bpf_insn> assemble_device_filter(const std::vector<DeviceRule>& rules);
// Loads it; kDenied without CAP_BPF or CAP_SYS_ADMIN.
Result<Descriptor> load_device_filter(const std::vector<DeviceRule>& rules);
// Attaches it to a group beside those that are there already (all must allow). It lives as long as
// the group.
Status attach_device_filter(const std::string& group, const std::vector<DeviceRule>& rules);

}  // namespace tutti::agent
