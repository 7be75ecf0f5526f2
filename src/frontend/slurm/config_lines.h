// The form that Slurm's configuration files share: lines of KEY=VALUE words, '#' comments, a
// backslash at the end of a line, quotes, "include FILE". No meaning yet.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/slurm/config.h"

namespace tutti::slurm {

struct ConfigWord {
  std::string key, value;  // as written, quotes removed
  Span span;
};
struct ConfigLine {
  std::vector<ConfigWord> words;  // never empty
};

struct ConfigLines {
  std::vector<ConfigLine> lines;
  bool found = false;  // the first file is there
};
// Problems go to `diagnostics`.
ConfigLines read_config_lines(const std::string& path, const ReadConfigFile& read_file,
                              std::vector<Diagnostic>& diagnostics);

void add_problem(std::vector<Diagnostic>& diagnostics, Severity severity, std::string_view code,
                 const Span& span, std::string message);

}  // namespace tutti::slurm
