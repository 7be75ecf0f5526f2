#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>

#include "agent/agent_impl.h"
#include "agent/rank_environment.h"

namespace tutti::agent {
namespace {

using std::chrono::milliseconds;

// Beyond the grace, for a supervisor that does not manage to end its step.
constexpr Duration kKillMargin = Duration::seconds(10);
constexpr milliseconds kKillTimeout{500};

Result<Descriptor> order_file(const SupervisorOrder& order) {
  const std::string text = to_json(order);
  Descriptor file(::memfd_create("tutti-order", MFD_CLOEXEC));
  if (!file) return fail_errno(errno, "memfd");
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t n = ::write(file.get(), text.data() + done, text.size() - done);
    if (n < 0 && errno != EINTR) return fail_errno(errno, "memfd");
    if (n > 0) done += static_cast<std::size_t>(n);
  }
  ::lseek(file.get(), 0, SEEK_SET);
  return file;
}

void remove_directory(const std::string& path) {
  std::error_code ignored;
  std::filesystem::remove_all(path, ignored);
}

}  // namespace

Result<std::string> read_users_file(const std::string& path) {
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!file) return fail_errno(errno, path);
  struct stat status{};
  constexpr off_t kSizeMax = 4 << 20;
  if (::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode) || status.st_size > kSizeMax) {
    return fail(ErrorCode::kCorrupt, path + ": not a regular file of at most 4 MiB");
  }
  std::string text(static_cast<std::size_t>(status.st_size), '\0');
  const ssize_t n = ::read(file.get(), text.data(), text.size());
  if (n < 0) return fail_errno(errno, path);
  text.resize(static_cast<std::size_t>(n));
  return text;
}

// ---- Starting

Status Agent::Impl::launch_supervisor(GangEntry& gang, StepOrder&& order) {
  const JobFacts& job = gang.record.job;
  const std::string word = step_word(order.step);
  StepEntry& step = gang.steps[order.step];
  step.id = order.step;
  step.directory = gang.directory + "/step_" + word;
  SupervisorOrder supervisor;
  supervisor.node = options_.node;
  supervisor.directory = step.directory;
  supervisor.become_user = ::geteuid() == 0 && !rootless_;
  if (supervisor.become_user) supervisor.groups = groups_.of(job.user, job.gid, Clock::now());
  supervisor.job = job;
  supervisor.slot = gang.record.slot;
  supervisor.step = std::move(order);
  if (::mkdir(step.directory.c_str(), 0700) != 0) return fail_errno(errno, step.directory);
  if (supervisor.become_user && ::chown(step.directory.c_str(), job.uid, job.gid) != 0) {
    return fail_errno(errno, step.directory);
  }
  if (auto made = cgroups_->create_step(job.gang.value(), word); !made) return made;
  supervisor.cgroup_procs = cgroups_->procs_files(job.gang.value(), word);
  auto file = order_file(supervisor);
  if (!file) return tl::unexpected(file.error());

  std::array<int, 2> ends{-1, -1};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return fail_errno(errno, "socketpair");
  }
  step.control = Descriptor(ends[0]);
  Descriptor theirs(ends[1]);
  SpawnOptions options;
  options.program = options_.supervisor.front();
  options.arguments = options_.supervisor;
  options.arguments.front() = "tutti";
  options.environment = {"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"};
  options.descriptors = {{theirs.get(), kControlDescriptor}, {file->get(), kOrderDescriptor}};
  if (rootless_) options.user_namespace = std::pair<uid_t, gid_t>(job.uid, job.gid);
  auto process = spawn(options);
  if (!process) return tl::unexpected(process.error());
  step.supervisor = process->pid;
  step.pidfd = std::move(process->pidfd);
  if (supervisor.cgroup_procs.empty()) {
    // Without cgroups the step is known by its first process.
    if (auto status = cgroups_->attach(job.gang.value(), word, step.supervisor); !status) {
      log(to_string(status.error()));
    }
  }
  step.control_token = watch(step.control.get(), {WatchKind::kControl, gang.id(), step.id});
  step.pidfd_token = watch(step.pidfd.get(), {WatchKind::kPidfd, gang.id(), step.id});
  return {};
}

// ---- Talking

void Agent::Impl::tell(StepEntry& step, const to_supervisor::Message& message,
                       std::string_view payload) {
  if (!step.control || step.phase == StepPhase::kDone) return;
  step.outbox.push_back(encode_frame(message, payload));
  if (step.outbox.size() == 1) flush_outbox(step);
}

void Agent::Impl::flush_outbox(StepEntry& step) {
  bool blocked = false;
  while (!step.outbox.empty() && !blocked) {
    const std::string& packet = step.outbox.front();
    if (::send(step.control.get(), packet.data(), packet.size(), MSG_NOSIGNAL | MSG_DONTWAIT) >=
        0) {
      step.outbox.pop_front();
    } else if (errno == EAGAIN || errno == ENOBUFS) {
      blocked = true;
    } else if (errno != EINTR) {
      step.outbox.clear();  // its end is seen by the pidfd
    }
  }
  epoll_event event{};
  event.events = EPOLLIN | (blocked ? EPOLLOUT : 0U);
  event.data.u64 = step.control_token;
  if (blocked) ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, step.control.get(), &event);
}

void Agent::Impl::serve_control(GangEntry& gang, StepEntry& step, std::uint32_t events) {
  if ((events & EPOLLOUT) != 0) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = step.control_token;
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, step.control.get(), &event);
    flush_outbox(step);
  }
  if ((events & ~static_cast<std::uint32_t>(EPOLLOUT)) == 0) return;
  if (receive(gang, step)) return;
  // The other end is gone; what follows from it is the pidfd's to say.
  watches_.erase(step.control_token);
  step.control.reset();
  step.outbox.clear();
}

// False at the end of the connection.
bool Agent::Impl::receive(GangEntry& gang, StepEntry& step) {
  static thread_local std::array<char, 256 * 1024> buffer;
  while (step.control) {
    const ssize_t n = ::recv(step.control.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return true;
    if (n <= 0) return false;
    auto frame = decode_frame<from_supervisor::Message>(
        std::string_view(buffer.data(), static_cast<std::size_t>(n)));
    if (!frame) continue;  // of a newer build
    std::visit([&](auto&& message) { hear(gang, step, std::move(message)); },
               std::move(frame->first));
  }
  return true;
}

void Agent::Impl::tell_ready(const GangEntry& gang, const StepEntry& step) {
  send(from_agent::Ready{key_of(gang, step.id == kBatchStep ? StepId{kExternStep} : step.id)});
}

void Agent::Impl::tell_started(const GangEntry& gang, const StepEntry& step) {
  send(from_agent::Started{key_of(gang, step.id == kBatchStep ? StepId{kExternStep} : step.id),
                           step.pids});
}

void Agent::Impl::hear(GangEntry& gang, StepEntry& step, from_supervisor::State&& message) {
  const bool was_adopting = std::exchange(step.adopting, false);
  step.attached = message.attached;
  step.size = std::max(step.size, message.output_size);
  if (was_adopting) step.taken = step.sent = message.output_taken;
  if (!message.ready) return;
  if (message.running) {
    step.phase = StepPhase::kRunning;
    step.pids = std::move(message.pids);
  } else {
    step.phase = StepPhase::kReady;
    if (!was_adopting && !gang.ending) tell_ready(gang, step);
    // The last agent heard "go" and had no time to pass it on.
    if (step.id == kBatchStep && gang.started && !gang.ending) go_step(gang, step);
  }
  if (gang.ending) end_step(gang, step, Duration(), {});
  if (step.attached) unsent_.emplace(gang.id(), step.id);
  const bool some_adopting = std::any_of(gangs_.begin(), gangs_.end(), [](const auto& gang_entry) {
    return std::any_of(gang_entry.second.steps.begin(), gang_entry.second.steps.end(),
                       [](const auto& entry) { return entry.second.adopting; });
  });
  if (was_adopting && !some_adopting) adopt_until_.reset();
}

void Agent::Impl::hear(GangEntry& gang, StepEntry& step, from_supervisor::Started&& message) {
  step.phase = StepPhase::kRunning;
  step.pids = std::move(message.pids);
  tell_started(gang, step);
}

void Agent::Impl::hear(GangEntry& gang, StepEntry& step, from_supervisor::RankExited&& message) {
  if (!step.told_ranks.insert(message.rank.rank).second) return;
  send(from_agent::RankExited{key_of(gang, step.id), message.rank.rank, message.rank.exit,
                              std::move(message.rank.message)});
}

void Agent::Impl::hear(GangEntry& gang, StepEntry& step, from_supervisor::Grown&& message) {
  step.attached = true;
  step.size = std::max(step.size, message.size);
  unsent_.emplace(gang.id(), step.id);
}

void Agent::Impl::hear(GangEntry& gang, StepEntry& step, from_supervisor::Notified&& message) {
  send(from_agent::Notified{key_of(gang, step.id), std::move(message.text)});
}

void Agent::Impl::hear(GangEntry& gang, StepEntry& step, from_supervisor::Stuck&&) {
  auto status = cgroups_->kill_all(gang.id().value(), step_word(step.id),
                                   KillOptions{step.supervisor, kKillTimeout});
  if (!status) log(to_string(status.error()));
}

void Agent::Impl::hear(GangEntry&, StepEntry& step, from_supervisor::Ended&& message) {
  step.status = std::move(message.status);
}

// ---- Ending

void Agent::Impl::end_step(GangEntry& gang, StepEntry& step, Duration grace,
                           const std::string& notice) {
  tell(step, to_supervisor::End{grace, notice});
  kill_later(gang, step, grace + kKillMargin);
}

void Agent::Impl::abort_step(GangEntry& gang, StepEntry& step) {
  if (step.phase == StepPhase::kDone) return;
  if (step.phase == StepPhase::kPreparing) return kill_step(gang, step);
  tell(step, to_supervisor::Abort{});
  kill_later(gang, step, Duration::seconds(2));
}

void Agent::Impl::kill_later(const GangEntry& gang, const StepEntry& step, Duration delay) {
  after(delay, [this, key = key_of(gang, step.id)] {
    StepEntry* late = find_step(key);
    if (late == nullptr || late->phase == StepPhase::kDone) return;
    kill_step(*find_gang(key.gang), *late);
    kill_later(*find_gang(key.gang), *late, Duration::seconds(2));
  });
}

// With its supervisor, which may be held up by a file system that does not answer.
void Agent::Impl::kill_step(GangEntry& gang, StepEntry& step) {
  auto status =
      cgroups_->kill_all(gang.id().value(), step_word(step.id), KillOptions{0, kKillTimeout});
  if (!status) log(to_string(status.error()));
  if (step.pidfd) ::syscall(SYS_pidfd_send_signal, step.pidfd.get(), SIGKILL, nullptr, 0);
}

// The supervisor is gone: the step is over, one way or the other.
void Agent::Impl::serve_pidfd(GangEntry& gang, StepEntry& step) {
  if (step.control) receive(gang, step);
  // Ours or, after a restart, somebody else's child.
  ::waitpid(step.supervisor, nullptr, WNOHANG);
  watches_.erase(step.control_token);
  watches_.erase(step.pidfd_token);
  step.control.reset();
  step.pidfd.reset();
  step.outbox.clear();
  step.adopting = false;
  if (!step.status) {
    auto text = read_users_file(step.directory + "/status.json");
    if (text) {
      if (auto status = from_json<StepStatus>(*text)) step.status = std::move(*status);
    }
  }
  const bool vanished = !step.status;
  if (vanished) {
    step.status = vanished_status(gang, step);
    auto killed =
        cgroups_->kill_all(gang.id().value(), step_word(step.id), KillOptions{0, kKillTimeout});
    if (!killed) log(to_string(killed.error()));
  }
  const bool was_preparing = step.phase == StepPhase::kPreparing;
  step.phase = StepPhase::kDone;
  const GangId id = gang.id();
  if (was_preparing && !gang.ending) {
    Refusal refusal = step.status->refusal.value_or(
        Refusal{"the step's supervisor was killed while preparing", false, {}});
    const bool is_batch = step.id == kBatchStep;
    send(from_agent::Refused{key_of(gang, is_batch ? StepId{kExternStep} : step.id), refusal.reason,
                             refusal.fault_of_job, refusal.exit});
    forget_step(gang, step.id);
    if (is_batch && clean(gang)) gangs_.erase(id);
    return;
  }
  finish_step(gang, step);
  if (gang.ending) clean_if_over(id);
}

StepStatus Agent::Impl::vanished_status(const GangEntry& gang, const StepEntry& step) const {
  StepStatus status;
  status.never_ran = step.phase != StepPhase::kRunning && !step.go_said;
  if (status.never_ran) return status;
  status.exit = ExitStatus{0, SIGKILL};
  log(fmt::format("gang {} step {}: its supervisor was killed", gang.id().value(),
                  step_word(step.id)));
  return status;
}

void Agent::Impl::finish_step(GangEntry& gang, StepEntry& step) {
  const std::uint32_t job = gang.id().value();
  const std::string word = step_word(step.id);
  if (!step.status->never_ran) {
    const std::uint64_t kills = cgroups_->usage(job).oom_kills;
    step.out_of_memory = kills > gang.oom_seen;
    gang.oom_seen = std::max(gang.oom_seen, kills);
  }
  auto removed = cgroups_->remove_step(job, word);
  if (!removed) {
    auto killed = cgroups_->kill_all(job, word, KillOptions{0, kKillTimeout});
    if (killed) removed = cgroups_->remove_step(job, word);
    if (!removed) log(to_string(removed.error()));
  }
  if (step.attached) {
    step.size = std::max(step.size, step.status->output_size);
    if (step.sent < step.size) unsent_.emplace(gang.id(), step.id);
    if (hello_said_ && uplink_.is_ready()) pump(gang, step);
  }
  tell_ended(gang, step);
}

void Agent::Impl::tell_ended(const GangEntry& gang, StepEntry& step) {
  const StepKey key = key_of(gang, step.id);
  for (const auto& rank : step.status->ranks) {
    if (step.status->never_ran || !step.told_ranks.insert(rank.rank).second) continue;
    send(from_agent::RankExited{key, rank.rank, rank.exit, rank.message});
  }
  from_agent::StepEnded ended;
  ended.key = key;
  ended.never_ran = step.status->never_ran;
  ended.exit = step.status->exit;
  ended.out_of_memory = step.out_of_memory;
  ended.usage = step.status->usage;
  ended.output_size = step.attached ? step.size : 0;
  send(ended);
}

void Agent::Impl::forget_step(GangEntry& gang, StepId id) {
  const auto found = gang.steps.find(id);
  if (found == gang.steps.end()) return;
  watches_.erase(found->second.control_token);
  watches_.erase(found->second.pidfd_token);
  remove_directory(found->second.directory);
  gang.steps.erase(found);
  unsent_.erase({gang.id(), id});
  const std::uint32_t job = gang.id().value();
  if (!cgroups_->remove_step(job, step_word(id))) {
    if (cgroups_->kill_all(job, step_word(id), KillOptions{0, kKillTimeout})) {
      if (auto status = cgroups_->remove_step(job, step_word(id)); !status) {
        log(to_string(status.error()));
      }
    }
  }
}

// Nothing of the gang is left afterwards; false if something resists.
bool Agent::Impl::clean(GangEntry& gang) {
  const std::uint32_t job = gang.id().value();
  auto removed = cgroups_->remove_job(job);
  if (!removed) {
    if (auto killed = cgroups_->kill_all(job, "", KillOptions{0, kKillTimeout}); !killed) {
      log(to_string(killed.error()));
    }
    removed = cgroups_->remove_job(job);
  }
  if (!removed) {
    log(to_string(removed.error()));
    gang.ending = true;
    after(Duration::milliseconds(500), [this, id = gang.id()] { clean_if_over(id); });
    return false;
  }
  for (auto& [step_id, step] : gang.steps) {
    watches_.erase(step.control_token);
    watches_.erase(step.pidfd_token);
    unsent_.erase({gang.id(), step_id});
  }
  remove_directory(gang.directory);
  if (options_.strangers && !gang.record.slot.gpus.empty()) {
    for (const auto& line : options_.strangers(gang.record.slot.gpus)) log(line);
  }
  return true;
}

void Agent::Impl::clean_if_over(GangId id) {
  GangEntry* gang = find_gang(id);
  if (gang == nullptr || !gang->ending) return;
  const auto now = Clock::now();
  bool waits_for_output = false;
  for (const auto& [step_id, step] : gang->steps) {
    if (step.phase != StepPhase::kDone) return;
    waits_for_output = waits_for_output || (step.attached && step.sent < step.size);
  }
  if (waits_for_output && gang->clean_without_output_at && now < *gang->clean_without_output_at) {
    after(Duration::milliseconds(200), [this, id] { clean_if_over(id); });
    return;
  }
  if (!clean(*gang)) return;
  const Epoch epoch = gang->epoch();
  gangs_.erase(id);
  constexpr std::size_t kPastMax = 10'000;
  if (past_.insert_or_assign(id, epoch).second) past_order_.push_back(id);
  if (past_order_.size() > kPastMax) {
    past_.erase(past_order_.front());
    past_order_.pop_front();
  }
  send(from_agent::Clean{id, epoch});
}

}  // namespace tutti::agent
