#include "agent/virtual_cluster.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "agent/node_holder.h"

namespace tutti::agent {

std::string node_address(std::uint32_t index) {
  return fmt::format("10.77.{}.{}", 1 + index / 250, 1 + index % 250);
}
std::string node_address6(std::uint32_t index) {
  return fmt::format("fd54:7574:7469::{:x}", index + 2);
}

std::string hosts_text(const std::vector<std::string>& names) {
  std::string text = "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n" +
                     fmt::format("{} {}\n", kSwitchAddress, kSwitchHostName);
  for (std::uint32_t i = 0; i < names.size(); ++i) {
    if (!names[i].empty()) text += fmt::format("{} {}\n", node_address(i), names[i]);
  }
  // After all of IPv4, because a reader that takes the first line only should take that.
  for (std::uint32_t i = 0; i < names.size(); ++i) {
    if (!names[i].empty()) text += fmt::format("{} {}\n", node_address6(i), names[i]);
  }
  return text;
}

namespace {

constexpr std::chrono::milliseconds kReadyTimeout{20000};

struct StartedHolder {
  SpawnedProcess process;
  Descriptor answer;
  std::string name;
};

Result<StartedHolder> start_holder(const std::vector<std::string>& command,
                                   const HolderOrder& order) {
  if (command.empty()) return invalid("no command to start a holder with");
  std::array<int, 2> in{};
  std::array<int, 2> out{};
  // Not a pipe: writing to one whose reader has died would end us by SIGPIPE.
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, in.data()) < 0) {
    return fail_errno(errno, "socket pair");
  }
  Descriptor order_reader(in[0]);
  Descriptor order_writer(in[1]);
  if (::pipe2(out.data(), O_CLOEXEC) < 0) return fail_errno(errno, "pipe");
  StartedHolder holder{{}, Descriptor(out[0]), order.name};
  Descriptor answer_writer(out[1]);
  Descriptor null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  SpawnOptions options;
  options.program = command.front();
  options.arguments = command;
  options.arguments.push_back(order.name);
  options.environment = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin"};
  options.directory = std::string("/");
  options.descriptors = {{order_reader.get(), 0}, {answer_writer.get(), 1}, {null.get(), 2}};
  auto process = spawn(options);
  if (!process) return tl::unexpected(process.error());
  holder.process = std::move(*process);
  order_reader.reset();
  // Larger than a socket holds only with thousands of devices, and the holder reads all of it.
  const auto text = to_json(order);
  std::string_view rest(text);
  while (!rest.empty()) {
    const ssize_t size = ::send(order_writer.get(), rest.data(), rest.size(), MSG_NOSIGNAL);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) break;  // it died; its answer, or the lack of one, says so
    rest.remove_prefix(static_cast<std::size_t>(size));
  }
  return holder;
}

Result<HolderHandle> await_holder(StartedHolder& holder) {
  const auto deadline = std::chrono::steady_clock::now() + kReadyTimeout;
  std::string text;
  std::array<char, 4096> buffer;
  // The answer ends with the holder's end of the pipe: it closes it when it begins to wait.
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        deadline - std::chrono::steady_clock::now());
    pollfd entry{holder.answer.get(), POLLIN, 0};
    if (left.count() <= 0 || ::poll(&entry, 1, static_cast<int>(left.count())) == 0) {
      return fail(ErrorCode::kUnavailable, fmt::format("{}: not ready after {} s", holder.name,
                                                       kReadyTimeout.count() / 1000));
    }
    const ssize_t size = ::read(holder.answer.get(), buffer.data(), buffer.size());
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) break;
    text.append(buffer.data(), static_cast<std::size_t>(size));
  }
  auto answer = from_json<HolderAnswer>(text);
  if (!answer) {
    return fail(ErrorCode::kUnavailable,
                fmt::format("{}: the holder process ended without an answer", holder.name));
  }
  if (!answer->ready) {
    return fail(ErrorCode::kUnavailable, fmt::format("{}: {}", holder.name, answer->error));
  }
  auto process = process_ref(holder.process.pid);
  if (!process) return tl::unexpected(process.error());
  return HolderHandle{*process, answer->missing};
}

// By pidfd: it is our child until we reap it, so this is surely the one.
void abandon(StartedHolder& holder) {
  ::syscall(SYS_pidfd_send_signal, holder.process.pidfd.get(), SIGKILL, nullptr, 0);
  while (::waitpid(holder.process.pid, nullptr, 0) < 0 && errno == EINTR) {
  }
}

}  // namespace

Result<HolderHandle> start_switch(const SwitchSpec& spec) {
  HolderOrder order;
  order.name = "switch";
  order.user_namespace = spec.user_namespace;
  auto holder = start_holder(spec.command, order);
  if (!holder) return tl::unexpected(holder.error());
  auto handle = await_holder(*holder);
  if (!handle) abandon(*holder);
  return handle;
}

Result<std::vector<HolderHandle>> start_nodes(const std::vector<VirtualNodeSpec>& specs) {
  std::vector<StartedHolder> started;
  std::vector<HolderHandle> handles;
  std::optional<Error> error;
  for (const auto& spec : specs) {
    if (spec.index >= kMaxVirtualNodes) {
      error = Error{ErrorCode::kInvalid,
                    {},
                    fmt::format("{}: at most {} virtual nodes", spec.name, kMaxVirtualNodes),
                    {}};
      break;
    }
    HolderOrder order{false,          spec.switch_holder, spec.name,   spec.index,
                      spec.directory, spec.hosts_path,    spec.devices};
    auto holder = start_holder(spec.command, order);
    if (!holder) {
      error = holder.error();
      break;
    }
    started.push_back(std::move(*holder));
  }
  for (auto& holder : started) {
    if (error) break;
    auto handle = await_holder(holder);
    if (handle) {
      handles.push_back(std::move(*handle));
    } else {
      error = handle.error();
    }
  }
  if (!error) return handles;
  for (auto& holder : started) abandon(holder);
  return tl::unexpected(*error);
}

Status stop_holders(const std::vector<ProcessRef>& holders) {
  std::vector<std::pair<ProcessRef, Descriptor>> living;
  for (const auto& holder : holders) {
    auto process = open_process(holder);
    if (!process) continue;
    ::syscall(SYS_pidfd_send_signal, process->get(), SIGTERM, nullptr, 0);
    living.emplace_back(holder, std::move(*process));
  }
  Status status;
  for (auto& [holder, pidfd] : living) {
    wait_for_exit(pidfd.get(), std::chrono::seconds(2));
    // Whatever is left to do (SIGKILL, reaping our own child) is the same as for any process.
    auto stopped = stop_process(holder, std::chrono::milliseconds(0));
    if (!stopped) status = stopped;
  }
  return status;
}

}  // namespace tutti::agent
