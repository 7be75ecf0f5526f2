// tutti lint.
#include <fmt/format.h>
#include <fstream>
#include <sstream>
#include <sys/stat.h>

#include "cli/api_client.h"
#include "cli/slurm_context.h"
#include "cli/tutti_commands.h"
#include "frontend/slurm/lint.h"
#include "model/views.h"

namespace tutti {
static void describe(auto& a, Diagnostic& x) {
  std::string severity = x.severity == Severity::kError ? "error" : x.severity == Severity::kWarning ? "warning" : "note";
  a("severity", severity);
  a("code", x.code);
  a("message", x.message);
  a("file", x.span.file);
  a("line", x.span.line);
  a("column", x.span.column);
}
}  // namespace tutti

namespace tutti::cli {

namespace {

// The cluster's configuration, if one answers; a script can be looked at without.
std::optional<ClusterSpec> cluster_spec() {
  ApiClient api;
  api.patience = Duration();
  auto view = api.get_as<StateView>("/v1/state?with=nodes,partitions,spec");
  if (!view || !view->spec) return std::nullopt;
  ClusterSpec spec = *view->spec;
  for (const NodeView& node : view->nodes) spec.nodes.push_back(node.spec);
  spec.partitions = view->partitions;
  return spec;
}

}  // namespace

int run_lint(const LintOptions& options) {
  std::optional<ClusterSpec> spec = cluster_spec();
  std::vector<Diagnostic> all;
  for (const std::string& file : options.files) {
    struct stat info{};
    if (stat(file.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) {
      print_err(fmt::format("tutti lint: {}: is a directory; expected a batch script\n", file));
      return 2;
    }
    std::ifstream in(file, std::ios::binary);
    if (!in) {
      print_err(fmt::format("tutti lint: {}: cannot be read\n", file));
      return 2;
    }
    std::ostringstream text;
    text << in.rdbuf();
    std::string content = text.str();
    slurm::LintRequest request;
    request.text = content;
    request.file = file;
    request.cluster = spec ? &*spec : nullptr;
    request.directory_exists = [](const std::string& path) {
      struct stat info{};
      return stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
    };
    auto found = slurm::lint_script(request);
    all.insert(all.end(), found.begin(), found.end());
  }
  bool errors = false;
  for (const Diagnostic& d : all) {
    errors |= d.severity == Severity::kError;
    if (options.json) continue;
    std::string_view severity = d.severity == Severity::kError ? "error" : d.severity == Severity::kWarning ? "warning" : "note";
    print_out(fmt::format("{}:{}:{}: {}: {} [{}]\n", d.span.file, d.span.line, d.span.column, severity, d.message, d.code));
  }
  if (options.json) print_out(to_json(all) + "\n");
  return errors ? 1 : 0;
}

}  // namespace tutti::cli
