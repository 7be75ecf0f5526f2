// Whatever a script holds, reading its options and looking for trouble in it ends, and every place
// that is named lies in the script.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "frontend/slurm/lint.h"
#include "frontend/slurm/sbatch_script.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  std::uint32_t lines = 1;
  for (char c : text) lines += c == '\n';
  if (auto directives = tutti::slurm::script_directives(text, "job.sh"))
    for (const auto& directive : directives->list) TUTTI_CHECK(directive.span.line <= lines);
  tutti::ClusterSpec cluster;
  for (const tutti::Diagnostic& one : tutti::slurm::lint_script({text, "job.sh", &cluster, {}})) {
    TUTTI_CHECK(!one.code.empty() && !one.message.empty());
    TUTTI_CHECK(one.span.line <= lines);
  }
  return 0;
}
