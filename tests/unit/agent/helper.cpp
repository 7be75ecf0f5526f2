#include "tests/unit/agent/helper.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "agent/namespaces.h"
#include "agent/virtual_cluster.h"

namespace tutti::agent {

namespace {

void try_open(const char* path) {
  const int fd = ::open(path, O_RDWR | O_CLOEXEC);
  std::printf("%s\n", fd >= 0 ? "OK" : strerrorname_np(errno));
  if (fd >= 0) ::close(fd);
}

// Enters a node and runs a script there.
int enter_and_run(const std::vector<std::string>& args) {
  auto holder = process_ref(std::stoi(args[1]));
  auto entered = holder ? enter_node(*holder) : Status(tl::unexpected(holder.error()));
  if (!entered) {
    std::printf("%s\n", entered.error().message.c_str());
    std::fflush(stdout);
    return 1;
  }
  ::setenv("PATH", "/usr/sbin:/usr/bin:/sbin:/bin", 1);
  ::execl("/bin/sh", "sh", "-c", args[2].c_str(), nullptr);
  return 127;
}

void print_support() {
  const auto support = probe_namespaces();
  std::string text;
  const auto add = [&text](bool have, const char* word) {
    if (!have) return;
    if (!text.empty()) text += ' ';
    text += word;
  };
  add(support.network, "network");
  add(support.host_name, "host-name");
  add(support.mounts, "mounts");
  add(support.through_user_namespace, "through-user");
  for (const auto& missing : support.missing) text += "; " + missing;
  std::printf("%s\n", text.c_str());
}

// As the supervisor of an ordinary user's cluster would: uid 0 inside, then the user's own again.
int show_nested_user() {
  const auto uid = ::geteuid();
  const auto gid = ::getegid();
  auto become = become_user_in_userns(0, 0);
  if (!become) {
    std::printf("refused: %s\n", become.error().message.c_str());
    return 0;
  }
  std::printf("%u ", ::geteuid());
  std::fflush(stdout);
  SpawnOptions options;
  options.program = "/bin/sh";
  options.arguments = {"sh", "-c",
                       "echo $(id -u) $(id -g); sed -n 's/^CapEff:.//p' /proc/self/status"};
  options.environment = {"PATH=/usr/bin:/bin"};
  options.descriptors = {{1, 1}, {2, 2}};
  options.user_namespace = std::pair(uid, gid);
  auto process = spawn(options);
  if (!process) std::printf("%s\n", process.error().message.c_str());
  if (process) ::waitpid(process->pid, nullptr, 0);
  return 0;
}

int run_command(const std::vector<std::string>& args) {
  if (args[0] == "open") {
    for (std::size_t i = 1; i < args.size(); ++i) try_open(args[i].c_str());
  } else if (args[0] == "make") {
    const auto device = ::makedev(unsigned(std::stoi(args[2])), unsigned(std::stoi(args[3])));
    const int made = ::mknod(args[1].c_str(), S_IFCHR | 0666, device);
    std::printf("%s\n", made == 0 ? "OK" : strerrorname_np(errno));
    try_open(args[1].c_str());
  } else if (args[0] == "bomb") {
    ::signal(SIGTERM, SIG_IGN);
    while (true) {
      if (::fork() != 0) ::usleep(2000);
    }
  } else if (args[0] == "eat") {
    const std::size_t size = std::stoul(args[1]) << 20;
    auto* memory = static_cast<char*>(std::malloc(size));
    if (memory == nullptr) return 1;
    for (std::size_t i = 0; i < size; i += 4096) static_cast<volatile char*>(memory)[i] = 1;
    std::puts("eaten");
  } else if (args[0] == "spin") {
    const auto until = std::stol(args[1]) * (CLOCKS_PER_SEC / 1000);
    while (::clock() < until) {
    }
  }
  if (args[0] == "enter") return enter_and_run(args);
  if (args[0] == "probe") print_support();
  if (args[0] == "nested-user") show_nested_user();
  if (args[0] == "node-holder") return run_node_holder();
  std::fflush(stdout);
  return 0;
}

// Before main(): glibc passes the arguments to constructors.
__attribute__((constructor)) void maybe_be_the_helper(int argc, char** argv, char**) {
  if (argc < 3 || std::strcmp(argv[1], "agent-test-helper") != 0) return;
  ::_exit(run_command(std::vector<std::string>(argv + 2, argv + argc)));
}

}  // namespace

Result<HelperRun> start_helper(std::vector<std::string> command, SpawnOptions options) {
  int pipe_fds[2];
  if (::pipe2(pipe_fds, O_CLOEXEC) < 0) return fail_errno(errno, "pipe");
  HelperRun run{{}, Descriptor(pipe_fds[0])};
  Descriptor writer(pipe_fds[1]);
  options.program = "/proc/self/exe";
  options.arguments = {"helper", "agent-test-helper"};
  options.arguments.insert(options.arguments.end(), command.begin(), command.end());
  Descriptor null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  options.descriptors.emplace_back(null.get(), 0);
  options.descriptors.emplace_back(writer.get(), 1);
  options.descriptors.emplace_back(2, 2);
  auto process = spawn(options);
  if (!process) return tl::unexpected(process.error());
  run.process = std::move(*process);
  return run;
}

Result<std::string> run_helper(std::vector<std::string> command, SpawnOptions options,
                               int* status) {
  auto run = start_helper(std::move(command), std::move(options));
  if (!run) return tl::unexpected(run.error());
  std::string text;
  char buffer[512];
  ssize_t n;
  while ((n = ::read(run->output.get(), buffer, sizeof buffer)) > 0) {
    text.append(buffer, static_cast<std::size_t>(n));
  }
  int ignored = 0;
  ::waitpid(run->process.pid, status ? status : &ignored, 0);
  return text;
}

}  // namespace tutti::agent
