// tutti up, tutti down.
#include <chrono>
#include <filesystem>
#include <fmt/format.h>
#include <iterator>
#include <string>
#include <thread>
#include <unistd.h>

#include "agent/namespaces.h"
#include "cli/api_client.h"
#include "cli/slurm_context.h"
#include "cli/tutti_commands.h"
#include "model/views.h"

namespace tutti::cli {

namespace {

int complain(const Error& error) {
  print_err(fmt::format("tutti: {}\n", to_string(error)));
  return 1;
}

std::string summary(const ClusterSpec& spec) {
  std::size_t real = 0, planned = 0, gpus = 0;
  for (const NodeSpec& node : spec.nodes) {
    (node.kind == NodeKind::kPlanned ? planned : real) += 1;
    if (node.kind != NodeKind::kPlanned) gpus += node.devices.size();
  }
  std::string text = fmt::format("{} node{}, {} GPUs", real, real == 1 ? "" : "s", gpus);
  if (planned) text += fmt::format(", and {} planned nodes", planned);
  return text;
}

Result<bool> can_have_virtual_nodes(ClusterFile& file, const UpOptions& options) {
  agent::NamespaceSupport support = agent::probe_namespaces();
  file.user_namespace = support.through_user_namespace;
  if (support.all()) return true;
  std::string why;
  for (const std::string& m : support.missing) why += "\n  " + m;
  return fail(ErrorCode::kDenied, fmt::format("virtual nodes need namespaces, which this machine refuses:{}\nWithout {} this machine is a cluster of one node.", why, options.nodes ? "--nodes" : "--slurm-conf"));
}

}  // namespace

int run_up(const UpOptions& options) {
  std::string dir = std::filesystem::absolute(options.state_dir).lexically_normal().string();
  if (dir.size() > 90) return complain({ErrorCode::kInvalid, "", fmt::format("the state directory's path has {} characters; a socket below it allows 90", dir.size()), {}});
  auto existing = read_cluster_file(dir);
  if (!existing && existing.error().code != ErrorCode::kNotFound) return complain(existing.error());
  if (existing && all_running(dir, *existing)) {
    print_out(fmt::format("already up: {} ({})\n", summary(existing->spec), dir));
    return 0;
  }
  ClusterFile file = existing ? *existing : ClusterFile{};
  std::vector<std::string> notes;
  bool some_running = !read_pids(dir).empty();
  // What runs decides; options change a cluster that is down.
  if (!existing || (options.any_given() && !some_running)) {
    auto spec = make_spec(options, notes);
    if (!spec) return complain(spec.error());
    file.spec = std::move(*spec);
    file.slurm_conf = options.slurm_conf;
    if (is_virtual(file.spec)) {
      auto possible = can_have_virtual_nodes(file, options);
      if (!possible) return complain(possible.error());
    }
  }
  if (Status made = make_state_dir(dir, file); !made) return complain(made.error());
  if (Status holders = start_holders(dir, file, notes); !holders) return complain(holders.error());
  if (Status daemons = start_daemons(dir, file); !daemons) return complain(daemons.error());
  for (const std::string& note : notes) print_err(fmt::format("tutti: note: {}\n", note));
  print_out(fmt::format("up: {} ({})\n", summary(file.spec), dir));
  if (dir != client_state_dir()) print_out(fmt::format("export TUTTI_STATE={}\n", dir));
  return 0;
}

namespace {

std::size_t count_running(ApiClient& api) {
  auto view = api.get_as<StateView>("/v1/state?states=running");
  if (!view) return 0;
  std::size_t count = 0;
  for (const WorkloadView& w : view->workloads) count += w.gangs.size();
  return count;
}

bool confirmed(std::size_t running) {
  print_err(fmt::format("{} job{} running. End {} and stop the cluster? [y/N] ", running, running == 1 ? " is" : "s are", running == 1 ? "it" : "them"));
  char answer[16] = {};
  ssize_t n = read(0, answer, sizeof answer - 1);
  return n > 0 && (answer[0] == 'y' || answer[0] == 'Y');
}

}  // namespace

int run_down(const DownOptions& options) {
  std::string dir = std::filesystem::absolute(options.state_dir).lexically_normal().string();
  auto file = read_cluster_file(dir);
  if (!file) return complain(file.error());
  if (!read_pids(dir).empty()) {
    ApiClient api(dir);
    // Work is ended by those who know it: a part that died is started again first.
    std::vector<std::string> notes;
    Status holders = start_holders(dir, *file, notes);
    Status whole = holders ? start_daemons(dir, *file) : holders;
    if (!whole) print_err(fmt::format("tutti: {}\n", whole.error().message));
    std::size_t running = whole ? count_running(api) : 0;
    if (running > 0 && !options.yes && isatty(0) && isatty(2) && !confirmed(running)) return 1;
    if (whole) {
      auto told = api.post("/v1/shutdown", options.no_requeue ? R"({"requeue":false})" : R"({"requeue":true})");
      if (!told) return complain(told.error());
      auto give_up = std::chrono::steady_clock::now() + std::chrono::milliseconds(file->spec.kill_wait.ms() + 15'000);
      while (count_running(api) > 0) {
        if (std::chrono::steady_clock::now() > give_up) return complain({ErrorCode::kUnavailable, "", fmt::format("some jobs do not end: see {}/log", dir), {}});
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
      }
    }
  }
  if (Status stopped = stop_daemons(dir); !stopped) return complain(stopped.error());
  if (options.purge) {
    std::error_code error;
    std::filesystem::remove_all(dir, error);
    if (error) return complain({ErrorCode::kDenied, "", fmt::format("{}: {}", dir, error.message()), {}});
    print_out(fmt::format("down, and {} deleted\n", dir));
    return 0;
  }
  print_out(fmt::format("down; the state is kept in {}\n", dir));
  return 0;
}

}  // namespace tutti::cli
