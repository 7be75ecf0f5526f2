// tutti up, tutti down.
#include <chrono>
#include <filesystem>
#include <fmt/format.h>
#include <iterator>
#include <pwd.h>
#include <string>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

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

// Decides what the cluster is. What runs decides; options change a cluster that is down.
Status settle_spec(const UpOptions& options, ClusterFile& file, std::vector<std::string>& notes) {
  UpOptions asked = options;
  if (!asked.slurm_conf.empty()) asked.slurm_conf = std::filesystem::absolute(asked.slurm_conf).lexically_normal().string();
  auto spec = make_spec(asked, notes);
  if (!spec) return tl::unexpected<Error>(spec.error());
  if (is_virtual(*spec)) {
    if (Status possible = allow_virtual_nodes(file); !possible) {
      if (asked.nodes > 1 || !asked.slurm_conf.empty())
        return fail(possible.error().code, fmt::format("{}\nWithout {} this machine is a cluster of one node.", possible.error().message, asked.nodes ? "--nodes" : "--slurm-conf"));
      notes.push_back(possible.error().message + "\nThis machine itself is the one node of the cluster, with the GPUs that it really has.");
      asked.nodes = 0;
      asked.cpus = 0;
      asked.gpus = asked.memory = "";
      spec = make_spec(asked, notes);
      if (!spec) return tl::unexpected<Error>(spec.error());
    }
  }
  file.spec = std::move(*spec);
  file.asked = std::move(asked);
  return {};
}

// Loopback is the default; another address is somebody's wish, and the token crosses that network
// in clear text.
bool is_loopback(std::string_view address) {
  return address.starts_with("127.") || address.starts_with("[::1]:");
}
Status settle_listen(const UpOptions& options, ClusterFile& file, std::vector<std::string>& notes) {
  if (options.listen.empty()) return {};
  file.listen.clear();
  for (const std::string& text : options.listen) {
    if (text == "none") continue;
    auto address = listen_address(text);
    if (!address) return tl::unexpected<Error>(address.error());
    if (!is_loopback(*address)) notes.push_back(fmt::format("{} can be reached from outside this machine, and what is sent there is not encrypted", *address));
    file.listen.push_back(std::move(*address));
  }
  return {};
}

// What was typed, over what the cluster was made with.
UpOptions over(const UpOptions& given, UpOptions asked) {
  if (!given.slurm_conf.empty()) {
    asked = UpOptions{};
    asked.slurm_conf = std::filesystem::absolute(given.slurm_conf).lexically_normal().string();
  }
  if (given.nodes && !asked.slurm_conf.empty()) asked = UpOptions{};
  if (given.nodes) asked.nodes = given.nodes;
  if (given.planned) asked.planned = given.planned;
  if (given.cpus) asked.cpus = given.cpus;
  if (!given.gpus.empty()) asked.gpus = given.gpus;
  if (!given.memory.empty()) asked.memory = given.memory;
  return asked;
}

// A cluster that is up is what it is: options that say so are fine, others are an error.
Status check_same_cluster(const UpOptions& options, const ClusterFile& file) {
  std::vector<std::string> notes, listen;
  std::string advice = "stop it first (`tutti down`), then `tutti up` with the new options";
  for (const std::string& text : options.listen) {
    if (text == "none") continue;
    auto address = listen_address(text);
    if (!address) return tl::unexpected<Error>(address.error());
    listen.push_back(std::move(*address));
  }
  if (!options.listen.empty() && listen != file.listen)
    return fail(ErrorCode::kConflict, fmt::format("the cluster is up and listens elsewhere than --listen says: {}", advice));
  // Where namespaces are refused, one virtual node is this machine itself.
  bool one_real = !is_virtual(file.spec) && options.nodes == 1 && options.slurm_conf.empty();
  if (!options.any_given() || one_real) return {};
  auto wanted = make_spec(over(options, file.asked), notes);
  if (!wanted) return tl::unexpected<Error>(wanted.error());
  if (to_json(*wanted) == to_json(file.spec)) return {};
  return fail(ErrorCode::kConflict, fmt::format("the cluster is up with {}; what is asked for is another one ({}): {}", summary(file.spec), summary(*wanted), advice));
}

// The controller runs as user tutti and jobs as their users: all of them must get to the state.
Status check_way_to(const std::string& dir) {
  if (geteuid() != 0) return {};
  for (std::filesystem::path part = std::filesystem::path(dir).parent_path(); part != "/" && !part.empty(); part = part.parent_path()) {
    struct stat info{};
    if (stat(part.c_str(), &info) != 0 || (info.st_mode & S_IXOTH)) continue;
    return fail(ErrorCode::kDenied, fmt::format("{} has mode {:04o}: the controller, which runs as user tutti, and the jobs of users cannot reach the state below it. "
                                                "Choose another --state, or let them pass: chmod o+x {}", part.string(), info.st_mode & 07777, part.string()));
  }
  return {};
}

Status check_owner(const std::string& dir) {
  struct stat info{};
  if (geteuid() == 0 || stat((dir + "/cluster.json").c_str(), &info) != 0 || info.st_uid == geteuid()) return {};
  const passwd* owner = getpwuid(info.st_uid);
  return fail(ErrorCode::kDenied, fmt::format("the cluster in {} belongs to {}, who alone starts and stops it", dir, owner ? owner->pw_name : std::to_string(info.st_uid)));
}

void say_up(const std::string& dir, const ClusterFile& file, std::string_view word) {
  print_out(fmt::format("{}: {} ({})\n", word, summary(file.spec), dir));
  for (const std::string& address : file.listen) print_out(fmt::format("API: http://{}, token in {}/token\n", address, dir));
}

Status start_all(const std::string& dir, ClusterFile& file, std::vector<std::string>& notes) {
  if (Status made = make_state_dir(dir, file); !made) return made;
  if (Status holders = start_holders(dir, file, notes); !holders) return holders;
  return start_daemons(dir, file);
}

Result<std::string> state_path(const std::string& given) {
  std::string dir = std::filesystem::absolute(given).lexically_normal().string();
  while (dir.size() > 1 && dir.back() == '/') dir.pop_back();
  if (dir.size() > 90) return invalid(fmt::format("the state directory's path has {} characters; a socket below it allows 90", dir.size()));
  return dir;
}

}  // namespace

int run_up(const UpOptions& options) {
  auto path = state_path(options.state_dir);
  if (!path) return complain(path.error());
  const std::string& dir = *path;
  std::vector<std::string> notes;
  ClusterFile first;
  // A refused first `up` leaves nothing, not even the directory.
  if (auto known = read_cluster_file(dir); !known) {
    if (known.error().code != ErrorCode::kNotFound) return complain(known.error());
    if (Status settled = settle_spec(options, first, notes); !settled) return complain(settled.error());
    if (Status settled = settle_listen(options, first, notes); !settled) return complain(settled.error());
  }
  if (Status ours = check_owner(dir); !ours) return complain(ours.error());
  if (Status passable = check_way_to(dir); !passable) return complain(passable.error());
  if (Status made = make_top_dir(dir); !made) return complain(made.error());
  auto lock = lock_setup(dir);
  if (!lock) return complain(lock.error());
  auto existing = read_cluster_file(dir);
  if (!existing && existing.error().code != ErrorCode::kNotFound) return complain(existing.error());
  if (existing && !read_pids(dir).empty())
    if (Status same = check_same_cluster(options, *existing); !same) return complain(same.error());
  if (existing && all_running(dir, *existing)) {
    say_up(dir, *existing, "already up");
    return 0;
  }
  ClusterFile file = existing ? *existing : first;
  const bool changes = existing && read_pids(dir).empty();
  if (changes && options.any_given())
    if (Status settled = settle_spec(options, file, notes); !settled) return complain(settled.error());
  if (changes)
    if (Status settled = settle_listen(options, file, notes); !settled) return complain(settled.error());
  if (Status started = start_all(dir, file, notes); !started) {
    // What cannot start must not stand in the way of the next try.
    if (changes) (void)write_cluster_file(dir, *existing);
    return complain(started.error());
  }
  for (const std::string& note : notes) print_err(fmt::format("tutti: note: {}\n", note));
  say_up(dir, file, "up");
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

namespace {

// Work is ended by those who know it: a part that died is started again first.
Status end_work(const std::string& dir, ClusterFile& file, const DownOptions& options) {
  std::vector<std::string> notes;
  if (Status holders = start_holders(dir, file, notes); !holders) return holders;
  if (Status whole = start_daemons(dir, file); !whole) return whole;
  ApiClient api(dir);
  std::size_t running = count_running(api);
  if (running > 0 && options.purge && !options.yes && !isatty(0))
    return fail(ErrorCode::kConflict, fmt::format("{} job{} running: --purge would delete {} with all history; say --yes if that is meant", running, running == 1 ? " is" : "s are", running == 1 ? "it" : "them"));
  if (running > 0 && !options.yes && isatty(0) && isatty(2) && !confirmed(running)) return fail(ErrorCode::kConflict, "nothing was stopped");
  auto told = api.post("/v1/shutdown", options.no_requeue ? R"({"requeue":false})" : R"({"requeue":true})");
  if (!told) return tl::unexpected<Error>(told.error());
  auto give_up = std::chrono::steady_clock::now() + std::chrono::milliseconds(file.spec.kill_wait.ms() + 15'000);
  while (count_running(api) > 0) {
    if (std::chrono::steady_clock::now() > give_up) return fail(ErrorCode::kUnavailable, fmt::format("some jobs do not end: see {}/log", dir));
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return {};
}

// Deletes what is a cluster's, and only that: the directory may hold other things.
int purge(const std::string& dir) {
  for (const char* name : {"journal", "log", "nodes", "holders", "agent.key", "token", "api.sock", "pids", "pids.json", "pids.lock", "setup.lock", "cluster.json"}) {
    std::error_code error;
    std::filesystem::remove_all(dir + "/" + name, error);
    if (error) return complain({ErrorCode::kDenied, "", fmt::format("{}/{}: {}", dir, name, error.message()), {}});
  }
  std::error_code error;
  std::filesystem::remove(dir, error);
  print_out(error ? fmt::format("down, and the state in {} deleted; other files there are left\n", dir) : fmt::format("down, and {} deleted\n", dir));
  return 0;
}

}  // namespace

int run_down(const DownOptions& options) {
  auto path = state_path(options.state_dir);
  if (!path) return complain(path.error());
  const std::string& dir = *path;
  auto file = read_cluster_file(dir);
  if (!file) return complain(file.error());
  if (Status ours = check_owner(dir); !ours) return complain(ours.error());
  auto lock = lock_setup(dir);
  if (!lock) return complain(lock.error());
  if (!read_pids(dir).empty())
    if (Status ended = end_work(dir, *file, options); !ended) return complain(ended.error());
  if (Status stopped = stop_daemons(dir); !stopped) return complain(stopped.error());
  if (options.purge) return purge(dir);
  print_out(fmt::format("down; the state is kept in {}\n", dir));
  return 0;
}

}  // namespace tutti::cli
