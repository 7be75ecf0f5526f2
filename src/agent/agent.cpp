#include "agent/agent.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "agent/agent_impl.h"
#include "base/text.h"

namespace tutti::agent {
namespace {

using std::chrono::milliseconds;

Instant wall_clock() {
  return Instant::from_ms(
      std::chrono::duration_cast<milliseconds>(std::chrono::system_clock::now().time_since_epoch())
          .count());
}

Instant boot_time() {
  auto text = read_small_file("/proc/stat");
  if (!text) return {};
  for (const auto line : split(*text, '\n')) {
    if (!line.starts_with("btime ")) continue;
    const auto seconds = parse_integer<std::int64_t>(trim(line.substr(6)));
    return Instant::from_ms(seconds.value_or(0) * 1000);
  }
  return {};
}

// In a user namespace that has only its maker: there is no other user to become.
bool is_single_user_namespace() {
  auto map = read_small_file("/proc/self/uid_map");
  if (!map || ::geteuid() != 0) return false;
  const auto words = split(trim(*map), ' ', EmptyPieces::kDrop);
  return words.size() == 3 && words[2] == "1";
}

}  // namespace

Agent::Agent(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Agent::~Agent() = default;

Result<std::unique_ptr<Agent>> Agent::create(AgentOptions options, Uplink& uplink,
                                             std::unique_ptr<Cgroups> cgroups) {
  auto impl = std::make_unique<Impl>(std::move(options), uplink, std::move(cgroups));
  if (auto status = impl->start(); !status) return tl::unexpected(status.error());
  return std::unique_ptr<Agent>(new Agent(std::move(impl)));
}

void Agent::run_once(Duration timeout) { impl_->run_once(timeout); }

void Agent::run(int stop_fd) {
  impl_->wake_on(stop_fd);
  while (true) {
    pollfd stop{stop_fd, POLLIN, 0};
    if (::poll(&stop, 1, 0) > 0) return;
    impl_->run_once(Duration::seconds(60));
  }
}

Agent::Impl::Impl(AgentOptions options, Uplink& uplink, std::unique_ptr<Cgroups> cgroups)
    : options_(std::move(options)), uplink_(uplink), cgroups_(std::move(cgroups)) {}

Status Agent::Impl::start() {
  rootless_ = is_single_user_namespace();
  started_ = wall_clock();
  epoll_ = Descriptor(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll_) return fail_errno(errno, "epoll");
  for (const auto& path : {options_.directory, options_.directory + "/jobs"}) {
    if (::mkdir(path.c_str(), 0711) != 0 && errno != EEXIST) return fail_errno(errno, path);
  }
  dial_at_ = Clock::now();
  return adopt();
}

// ---- The loop

std::uint64_t Agent::Impl::watch(int fd, Watch watch) {
  const std::uint64_t token = next_token_++;
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = token;
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event);
  watches_.emplace(token, watch);
  return token;
}

void Agent::Impl::wake_on(int fd) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = ~std::uint64_t{0};  // nobody's token
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event);
}

int Agent::Impl::wait_ms(Duration timeout) const {
  auto until = Clock::now() + milliseconds(timeout.ms());
  if (!timers_.empty()) until = std::min(until, timers_.begin()->first);
  for (const auto& at : {dial_at_, keep_alive_at_, adopt_until_}) {
    if (at) until = std::min(until, *at);
  }
  const auto left = std::chrono::ceil<milliseconds>(until - Clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, 60'000));
}

void Agent::Impl::run_once(Duration timeout) {
  maintain_uplink();
  register_uplink();
  std::array<epoll_event, 64> events;
  const int count =
      ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), wait_ms(timeout));
  for (int i = 0; i < count; ++i) {
    const auto& event = events[static_cast<std::size_t>(i)];
    if (event.data.u64 == 0) {
      serve_uplink(event.events);
      continue;
    }
    // Gone when an event before it in this round removed its step.
    const auto found = watches_.find(event.data.u64);
    if (found == watches_.end()) continue;
    const Watch watch = found->second;
    GangEntry* gang = find_gang(watch.gang);
    if (gang == nullptr) continue;
    const auto step = gang->steps.find(watch.step);
    if (step == gang->steps.end()) continue;
    if (watch.kind == WatchKind::kControl) {
      serve_control(*gang, step->second, event.events);
    } else {
      serve_pidfd(*gang, step->second);
    }
  }
  run_timers();
  pump_all();
}

void Agent::Impl::after(Duration delay, std::function<void()> action) {
  timers_.emplace(Clock::now() + milliseconds(std::min<std::int64_t>(delay.ms(), 86'400'000)),
                  std::move(action));
}

void Agent::Impl::run_timers() {
  const auto now = Clock::now();
  while (!timers_.empty() && timers_.begin()->first <= now) {
    auto action = std::move(timers_.begin()->second);
    timers_.erase(timers_.begin());
    action();
  }
}

void Agent::Impl::log(const std::string& line) const {
  if (options_.log) options_.log(line);
}

GangEntry* Agent::Impl::find_gang(GangId gang) {
  const auto found = gangs_.find(gang);
  return found == gangs_.end() ? nullptr : &found->second;
}

StepEntry* Agent::Impl::find_step(const StepKey& key) {
  GangEntry* gang = find_gang(key.gang);
  if (gang == nullptr || gang->epoch() != key.epoch) return nullptr;
  const auto found = gang->steps.find(key.step);
  return found == gang->steps.end() ? nullptr : &found->second;
}

StepKey Agent::Impl::key_of(const GangEntry& gang, StepId step) const {
  return StepKey{gang.id(), gang.epoch(), step};
}

// ---- The uplink

// 100 ms doubling to 15 s; the upper half by the clock's low bits, so that the agents of a
// restarted controller do not come all at once.
void Agent::Impl::schedule_dial() {
  keep_alive_at_.reset();
  const std::int64_t longest =
      std::min<std::int64_t>(100LL << std::min(dial_attempts_, 8U), 15'000);
  const auto now = Clock::now();
  const std::int64_t spread = now.time_since_epoch().count() / 1000 % (longest / 2);
  dial_at_ = now + milliseconds(longest / 2 + spread);
}

void Agent::Impl::maintain_uplink() {
  const auto now = Clock::now();
  if (adopt_until_ && *adopt_until_ <= now) {
    adopt_until_.reset();
    for (auto& [id, gang] : gangs_) {
      for (auto& [step_id, step] : gang.steps) step.adopting = false;
    }
  }
  if (!uplink_.is_open()) {
    if (hello_said_ || !dial_at_) schedule_dial();
    hello_said_ = false;
    if (*dial_at_ > now) return;
    dial_at_.reset();
    ++dial_attempts_;
    uplink_fd_ = -1;
    uplink_.dial();
    if (!uplink_.is_open()) return schedule_dial();
    keep_alive_at_ = now + milliseconds(1000);
  }
  if (keep_alive_at_ && *keep_alive_at_ <= now) {
    keep_alive_at_ = now + milliseconds(1000);
    uplink_.keep_alive();
  }
  if (uplink_.is_ready() && !hello_said_) say_hello();
}

void Agent::Impl::register_uplink() {
  const int fd = uplink_.is_open() ? uplink_.fd() : -1;
  if (fd < 0) {
    uplink_fd_ = -1;
    return;
  }
  const bool write = uplink_.wants_write();
  if (fd == uplink_fd_ && write == uplink_write_) return;
  epoll_event event{};
  event.events = EPOLLIN | (write ? EPOLLOUT : 0U);
  event.data.u64 = 0;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event) != 0) {
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event);
  }
  uplink_fd_ = fd;
  uplink_write_ = write;
}

void Agent::Impl::serve_uplink(std::uint32_t events) {
  if ((events & EPOLLOUT) != 0) uplink_.on_writable();
  if ((events & ~static_cast<std::uint32_t>(EPOLLOUT)) == 0) return;
  for (const std::string& text : uplink_.on_readable()) {
    auto frame = decode_frame<to_agent::Message>(text);
    if (!frame) {
      log("an order that cannot be read: " + to_string(frame.error()));
      continue;
    }
    std::visit([&](auto&& order) { on(std::move(order), frame->second); }, std::move(frame->first));
  }
}

void Agent::Impl::send(const from_agent::Message& message, std::string_view payload) {
  // Before the Hello everything that is dropped here is part of it.
  if (!hello_said_ || !uplink_.is_ready()) return;
  uplink_.send(encode_frame(message, payload));
}

from_agent::Hello Agent::Impl::make_hello() const {
  from_agent::Hello hello;
  hello.node = options_.node;
  hello.version = options_.version;
  utsname name{};
  if (::uname(&name) == 0) hello.kernel = name.release;
  hello.booted = boot_time();
  hello.started = started_;
  hello.missing = cgroups_->features().missing;
  for (const auto& [id, gang] : gangs_) {
    from_agent::GangReport report{gang.id(), gang.epoch(), gang.started, {}};
    for (const auto& [step_id, step] : gang.steps) {
      from_agent::StepReport step_report;
      step_report.key = key_of(gang, step_id);
      step_report.state = step.phase == StepPhase::kDone      ? StepState::kDone
                          : step.phase == StepPhase::kRunning ? StepState::kRunning
                                                              : StepState::kPreparing;
      if (step.status) {
        step_report.exit = step.status->exit;
        step_report.usage = step.status->usage;
        step_report.never_ran = step.status->never_ran;
        step_report.out_of_memory = step.out_of_memory;
        step_report.output_size = step.attached ? step.size : 0;
      }
      report.steps.push_back(std::move(step_report));
    }
    hello.gangs.push_back(std::move(report));
  }
  return hello;
}

void Agent::Impl::say_hello() {
  if (adopt_until_) return;  // some supervisor has not said yet how it is
  hello_said_ = true;
  dial_attempts_ = 0;
  send(make_hello());
  repeat_answers();
}

// Answers that may have been lost with the last connection. Output goes on from what the client
// has acknowledged.
void Agent::Impl::repeat_answers() {
  for (auto& [id, gang] : gangs_) {
    if (gang.ending) continue;
    if (!gang.started) answer_gang(gang);
    for (auto& [step_id, step] : gang.steps) {
      if (step.attached) {
        step.sent = step.taken;
        if (step.sent < step.size) unsent_.emplace(id, step_id);
      }
      if (step_id == kBatchStep && !gang.started) continue;
      if (step.phase == StepPhase::kReady) tell_ready(gang, step);
      if (step.phase == StepPhase::kRunning && !step.pids.empty()) tell_started(gang, step);
      if (step.phase == StepPhase::kDone) {
        step.told_ranks.clear();
        tell_ended(gang, step);
      }
    }
  }
}

}  // namespace tutti::agent
