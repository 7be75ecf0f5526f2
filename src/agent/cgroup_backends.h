// The makers of the cgroup backends, for open_cgroups() alone.
#pragma once

#include <memory>
#include <string>

#include "agent/cgroups.h"

namespace tutti::agent {

std::unique_ptr<Cgroups> open_cgroups_v1(const CgroupLayout& layout, std::string cluster,
                                         std::string node);
std::unique_ptr<Cgroups> open_cgroups_v2(const CgroupLayout& layout, std::string cluster,
                                         std::string node);

}  // namespace tutti::agent
