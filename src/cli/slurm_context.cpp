#include "cli/slurm_context.h"

#include <cerrno>
#include <chrono>
#include <climits>
#include <cstdlib>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <memory>

#include "cli/system_names.h"

namespace tutti::cli {

namespace {
void write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    ssize_t n = write(fd, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(n));
  }
}

std::vector<Rlimit> soft_limits() {
  static constexpr std::array kLimits{
      std::pair{RLIMIT_CPU, "cpu"},       std::pair{RLIMIT_FSIZE, "fsize"},     std::pair{RLIMIT_DATA, "data"},
      std::pair{RLIMIT_STACK, "stack"},   std::pair{RLIMIT_CORE, "core"},       std::pair{RLIMIT_RSS, "rss"},
      std::pair{RLIMIT_NPROC, "nproc"},   std::pair{RLIMIT_NOFILE, "nofile"},   std::pair{RLIMIT_MEMLOCK, "memlock"},
      std::pair{RLIMIT_AS, "as"}};
  std::vector<Rlimit> limits;
  for (auto [which, name] : kLimits) {
    rlimit value{};
    if (getrlimit(which, &value) == 0) limits.push_back({name, value.rlim_cur});
  }
  return limits;
}

Result<slurm::ReadSome> open_for_reading(const std::string& path) {
  int fd = path.empty() ? dup(0) : open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return fail_errno(errno, path);
  auto owner = std::shared_ptr<void>(nullptr, [fd](void*) { close(fd); });
  return slurm::ReadSome([fd, owner, path](std::span<char> into) -> Result<std::size_t> {
    while (true) {
      ssize_t n = read(fd, into.data(), into.size());
      if (n >= 0) return static_cast<std::size_t>(n);
      if (errno != EINTR) return fail_errno(errno, path);
    }
  });
}
}  // namespace

Instant wall_clock() {
  return Instant::from_ms(std::chrono::duration_cast<std::chrono::milliseconds>(
                              std::chrono::system_clock::now().time_since_epoch()).count());
}

slurm::ClientContext client_context(const TimeZone& zone) {
  slurm::ClientContext context;
  std::vector<std::string> pairs;
  for (char** e = environ; *e; ++e) pairs.emplace_back(*e);
  context.environment = slurm::Environment(std::move(pairs));
  char directory[PATH_MAX];
  if (getcwd(directory, sizeof directory)) context.work_dir = directory;
  context.uid = getuid();
  context.gid = getgid();
  context.user = user_name(context.uid).value_or("");
  context.group = group_name(context.gid).value_or("");
  char host[256] = {};
  gethostname(host, sizeof host - 1);
  context.host = host;
  context.pid = static_cast<std::uint32_t>(getpid());
  mode_t mask = ::umask(022);
  ::umask(mask);
  context.umask = mask;
  context.limits = soft_limits();
  context.now = wall_clock();
  context.zone = &zone;
  context.open_file = open_for_reading;
  return context;
}

void print_out(std::string_view text) { write_all(1, text); }
void print_err(std::string_view text) { write_all(2, text); }

int finish(const slurm::CommandError& error) {
  print_err(error.text);
  return error.exit_code;
}

}  // namespace tutti::cli
