// What the Slurm-named commands say to --help and --usage, and where to find programs.
#pragma once

#include <string>
#include <string_view>

namespace tutti::cli {

std::string usage_text(std::string_view program);
std::string help_text(std::string_view program);

// The path that execvp would run; the name itself when nothing is found.
std::string find_program(const std::string& name, const std::string& path);

}  // namespace tutti::cli
