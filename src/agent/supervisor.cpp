#include "agent/supervisor.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <map>

#include "agent/rank_environment.h"
#include "agent/step_launch.h"
#include "agent/step_ranks.h"
#include "agent/step_streams.h"
#include "agent/supervisor_link.h"
#include "base/text.h"

namespace tutti::agent {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// What the ranks leave behind gets this long between SIGTERM and SIGKILL.
constexpr milliseconds kLeftoverGrace{1000};
constexpr milliseconds kKillInterval{20};
constexpr milliseconds kStuckAfter{1000};
constexpr milliseconds kNotifyInterval{50};
constexpr milliseconds kDiskRetry{500};
// A step that was prepared and that no agent has asked about for so long will never be wanted.
constexpr milliseconds kForgottenAfter{300'000};

class Supervisor {
 public:
  Supervisor(SupervisorOrder order, Descriptor control)
      : order_(std::move(order)), link_(std::move(control)) {}
  int run();

 private:
  enum class Phase { kPreparing, kPrepared, kRunning, kLeftovers, kDone };

  tl::expected<void, Refusal> prepare();
  tl::expected<void, Refusal> become_ready_for_ranks();
  tl::expected<std::vector<RankDescriptors>, Refusal> connect_streams();
  tl::expected<RankDescriptors, Refusal> connect_rank(std::size_t index);
  tl::expected<void, Refusal> open_terminal();
  void add_pipe(RankDescriptors& rank, std::uint32_t number, int stream);
  void prepare_notify();

  void poll_once();
  void on_message(const to_supervisor::Message& message, std::string_view payload);
  void on(const to_supervisor::Go&, std::string_view);
  void on(const to_supervisor::Abort&, std::string_view);
  void on(const to_supervisor::Signal&, std::string_view);
  void on(const to_supervisor::End&, std::string_view);
  void on(const to_supervisor::Input&, std::string_view);
  void on(const to_supervisor::Taken&, std::string_view);
  void on(const to_supervisor::Resize&, std::string_view);
  void on_child();
  void on_notify();
  void on_timers();
  void flush_notified();
  void say(std::string_view text);
  void finish(StepStatus status);
  from_supervisor::State state() const;
  int poll_timeout() const;

  SupervisorOrder order_;
  SupervisorLink link_;
  Phase phase_ = Phase::kPreparing;
  LaunchPlan plan_;
  CgroupMove move_;
  StepRanks ranks_;
  StepOutput output_;
  StepInput input_;
  Descriptor terminal_;  // master side; kept for resizing
  std::vector<Descriptor> child_ends_;
  Descriptor null_;
  Descriptor signals_;
  Descriptor notify_;
  std::string notify_path_;
  std::map<std::string, std::string> notified_;
  std::optional<Clock::time_point> notify_at_, kill_at_, killing_since_, stuck_at_, disk_at_,
      forgotten_at_;
  std::uint64_t told_size_ = 0;
  bool lost_input_ = false, noticed_ = false, oom_protected_ = false;
};

// "{node}" and "{time}" (of this node's clock, in its zone) of a notice that goes to many nodes.
std::string with_place_and_time(std::string text, const std::string& node) {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  ::localtime_r(&now, &local);
  std::array<char, 32> time{};
  std::strftime(time.data(), time.size(), "%Y-%m-%dT%H:%M:%S", &local);
  for (const auto& [name, value] :
       {std::pair<std::string_view, std::string_view>("{node}", node),
        std::pair<std::string_view, std::string_view>("{time}", time.data())}) {
    if (const auto at = text.find(name); at != std::string::npos) {
      text.replace(at, name.size(), value);
    }
  }
  return text;
}

Refusal own_fault(const Error& error) { return Refusal{to_string(error), false, {}}; }
Refusal own_fault(int error, std::string_view what) {
  return Refusal{fmt::format("{}: {}", what, std::strerror(error)), false, {}};
}

// ---- Preparing

tl::expected<void, Refusal> Supervisor::become_ready_for_ranks() {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  for (const int signal : {SIGHUP, SIGINT, SIGTERM, SIGPIPE}) ::signal(signal, SIG_IGN);
  sigset_t mask;
  sigemptyset(&mask);
  sigaddset(&mask, SIGCHLD);
  ::sigprocmask(SIG_BLOCK, &mask, nullptr);
  signals_ = Descriptor(::signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!signals_) return tl::unexpected(own_fault(errno, "signalfd"));
  if (auto status = move_.start(order_.cgroup_procs); !status) {
    return tl::unexpected(own_fault(status.error()));
  }
  if (order_.become_user) {
    // The job's memory limit is for its ranks; without the supervisor nobody would report them.
    Descriptor score(::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC));
    oom_protected_ = score && ::write(score.get(), "-1000", 5) == 5;
    if (auto status = become_user(order_.job, order_.groups); !status) {
      return tl::unexpected(own_fault(status.error()));
    }
  }
  null_ = Descriptor(::open("/dev/null", O_RDWR | O_CLOEXEC));
  if (!null_) return tl::unexpected(own_fault(errno, "/dev/null"));
  return {};
}

void Supervisor::prepare_notify() {
  auto socket = bind_in_directory(order_.directory, "notify", SOCK_DGRAM);
  if (!socket) return;
  const std::string path = order_.directory + "/notify";
  // A longer path does not fit into the address that a rank has to make of it.
  if (path.size() > 107) return;
  notify_ = std::move(*socket);
  notify_path_ = path;
}

tl::expected<void, Refusal> Supervisor::prepare() {
  if (auto ready = become_ready_for_ranks(); !ready) return ready;
  if (auto status = link_.listen(order_.directory); !status) {
    return tl::unexpected(own_fault(status.error()));
  }
  auto plan = plan_launch(order_);
  if (!plan) return tl::unexpected(plan.error());
  plan_ = std::move(*plan);
  // A long list of ranks needs more descriptors than the usual soft limit; the ranks get it back.
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  if (order_.step.ranks.size() * 3 + 64 > files.rlim_cur) {
    const bool has_own =
        std::any_of(plan_.limits.begin(), plan_.limits.end(),
                    [](const auto& limit) { return limit.resource == RLIMIT_NOFILE; });
    if (!has_own) plan_.limits.push_back({RLIMIT_NOFILE, files});
    const rlimit raised{files.rlim_max, files.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &raised);
  }
  prepare_notify();
  input_.set_directory(order_.directory);
  auto descriptors = connect_streams();
  if (!descriptors) return tl::unexpected(descriptors.error());
  if (auto status = move_.finish(); !status) return tl::unexpected(own_fault(status.error()));
  const RankStart start{&order_, &plan_, notify_path_, oom_protected_};
  auto forked = ranks_.fork_all(start, *descriptors);
  child_ends_.clear();
  if (!forked) return tl::unexpected(own_fault(forked.error()));
  phase_ = Phase::kPrepared;
  return {};
}

tl::expected<void, Refusal> Supervisor::open_terminal() {
  terminal_ = Descriptor(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (!terminal_) return tl::unexpected(own_fault(errno, "opening a pseudo-terminal"));
  ::unlockpt(terminal_.get());
  winsize size{};
  size.ws_row = order_.step.rows;
  size.ws_col = order_.step.columns;
  ::ioctl(terminal_.get(), TIOCSWINSZ, &size);
  // Without a path, so it works whatever is mounted on /dev/pts.
  Descriptor slave(::ioctl(terminal_.get(), TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (!slave) return tl::unexpected(own_fault(errno, "opening a pseudo-terminal"));
  child_ends_.push_back(std::move(slave));
  return {};
}

// A pipe between the rank and this process for its stream 0, 1 or 2.
void Supervisor::add_pipe(RankDescriptors& rank, std::uint32_t number, int stream) {
  std::array<int, 2> ends{-1, -1};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return;
  const bool reading = stream == 0;  // by the rank
  child_ends_.emplace_back(ends[reading ? 0 : 1]);
  Descriptor ours(ends[reading ? 1 : 0]);
  const int theirs = child_ends_.back().get();
  if (stream == 0) {
    rank.in = theirs;
    input_.add(std::move(ours), number, StepInput::Ending::kClose);
  } else {
    (stream == 1 ? rank.out : rank.err) = theirs;
    output_.add(std::move(ours), number, stream == 2);
  }
}

tl::expected<RankDescriptors, Refusal> Supervisor::connect_rank(std::size_t index) {
  const RankStreams& streams = plan_.streams[index];
  const std::uint32_t number = order_.step.ranks[index];
  RankDescriptors rank{null_.get(), null_.get(), null_.get(), false};
  if (order_.step.pty && number == 0) {
    if (auto opened = open_terminal(); !opened) return tl::unexpected(opened.error());
    const int slave = child_ends_.back().get();
    output_.add(Descriptor(::fcntl(terminal_.get(), F_DUPFD_CLOEXEC, 3)), number, false);
    input_.add(Descriptor(::fcntl(terminal_.get(), F_DUPFD_CLOEXEC, 3)), number,
               StepInput::Ending::kControlD);
    return RankDescriptors{slave, slave, slave, true};
  }
  const auto connect = [&](int stream, int target, int& fd) {
    if (target >= 0) fd = target;
    if (target != kAttachedStream) return true;
    fd = -1;
    add_pipe(rank, number, stream);
    return fd >= 0;
  };
  bool complete = connect(0, streams.in, rank.in) && connect(1, streams.out, rank.out);
  if (complete && streams.err_is_out) {
    rank.err = rank.out;
  } else {
    complete = complete && connect(2, streams.err, rank.err);
  }
  if (!complete) return tl::unexpected(own_fault(errno, "making pipes for a rank"));
  return rank;
}

tl::expected<std::vector<RankDescriptors>, Refusal> Supervisor::connect_streams() {
  const StepOrder& step = order_.step;
  if (step.out.kind == StreamKind::kAttached || step.err.kind == StreamKind::kAttached ||
      step.pty) {
    auto spool = SpoolWriter::create(order_.directory + "/output");
    if (!spool) return tl::unexpected(own_fault(spool.error()));
    output_.open(std::move(*spool), step.unbuffered || step.pty);
  }
  std::vector<RankDescriptors> descriptors;
  for (std::size_t i = 0; i < step.ranks.size(); ++i) {
    auto rank = connect_rank(i);
    if (!rank) return tl::unexpected(rank.error());
    descriptors.push_back(*rank);
  }
  return descriptors;
}

// ---- Running

from_supervisor::State Supervisor::state() const {
  from_supervisor::State state;
  state.ready = phase_ != Phase::kPreparing;
  state.running = ranks_.is_released();
  state.attached = output_.is_open();
  state.pids = ranks_.pids();
  state.output_size = output_.size();
  state.output_taken = output_.taken();
  return state;
}

int Supervisor::run() {
  auto prepared = prepare();
  if (!prepared) {
    (void)move_.finish();
    ranks_.abandon();
    StepStatus status;
    status.never_ran = true;
    status.refusal = prepared.error();
    status.exit = prepared.error().exit;
    finish(std::move(status));
  } else {
    link_.send(state());
  }
  while (phase_ != Phase::kDone) poll_once();
  // What is still queued for the agent; it finds the status on disk if this takes too long.
  for (int i = 0; i < 50 && link_.is_connected() && link_.wants_write(); ++i) {
    pollfd writable{link_.fd(), POLLOUT, 0};
    ::poll(&writable, 1, 20);
    link_.on_writable();
  }
  return 0;
}

int Supervisor::poll_timeout() const {
  std::optional<Clock::time_point> next;
  for (const auto& at : {notify_at_, kill_at_, stuck_at_, disk_at_, forgotten_at_}) {
    if (at && (!next || *at < *next)) next = at;
  }
  if (!next) return -1;
  const auto left = std::chrono::ceil<milliseconds>(*next - Clock::now()).count();
  return static_cast<int>(std::max<std::int64_t>(left, 0));
}

void Supervisor::poll_once() {
  std::vector<pollfd> polled;
  const auto add = [&](int fd, short events) {
    polled.push_back({fd, events, 0});
    return polled.size() - 1;
  };
  const auto control =
      add(link_.fd(), static_cast<short>(POLLIN | (link_.wants_write() ? POLLOUT : 0)));
  const auto listener = add(link_.listener(), POLLIN);
  const auto signals = add(signals_.get(), POLLIN);
  const auto reports = add(ranks_.is_released() ? ranks_.exec_reports() : -1, POLLIN);
  const auto notify = add(notify_.get(), POLLIN);
  const auto first_output = polled.size();
  const std::size_t outputs = output_.wants_read() ? output_.count() : 0;
  for (std::size_t i = 0; i < outputs; ++i) add(output_.fd(i), POLLIN);
  const auto first_input = polled.size();
  const std::size_t inputs = ranks_.is_released() ? input_.count() : 0;
  for (std::size_t i = 0; i < inputs; ++i) add(input_.fd_to_write(i), POLLOUT);

  if (::poll(polled.data(), polled.size(), poll_timeout()) < 0 && errno != EINTR) return;
  for (std::size_t i = outputs; i-- > 0;) {  // backwards: one that ends is removed
    if (polled[first_output + i].revents != 0) output_.on_readable(i);
  }
  if (output_.size() != told_size_) {
    told_size_ = output_.size();
    link_.send(from_supervisor::Grown{told_size_});
  }
  for (std::size_t i = 0; i < inputs; ++i) {
    if (polled[first_input + i].revents != 0) input_.on_writable(i);
  }
  if ((polled[reports].revents != 0) && ranks_.on_exec_report()) {
    link_.send(from_supervisor::Started{ranks_.pids()});
  }
  if ((polled[control].revents & POLLOUT) != 0) link_.on_writable();
  if ((polled[control].revents & ~POLLOUT) != 0) {
    for (const auto& [message, payload] : link_.receive()) on_message(message, payload);
  }
  if (polled[listener].revents != 0 && link_.accept()) link_.send(state());
  if (polled[notify].revents != 0) on_notify();
  on_timers();
  if (polled[signals].revents != 0 || phase_ == Phase::kLeftovers) on_child();
}

void Supervisor::say(std::string_view text) {
  const std::string line = text.starts_with("slurmstepd")
                               ? fmt::format("{}\n", text)
                               : fmt::format("slurmstepd-{}: error: {}\n", order_.node, text);
  if (plan_.notes_file >= 0) {
    [[maybe_unused]] const ssize_t n = ::write(plan_.notes_file, line.data(), line.size());
  } else if (output_.is_open() && !order_.step.ranks.empty()) {
    output_.say(order_.step.ranks.front(), line);
  }
}

void Supervisor::on_message(const to_supervisor::Message& message, std::string_view payload) {
  std::visit([&](const auto& known) { on(known, payload); }, message);
}

void Supervisor::on(const to_supervisor::Go&, std::string_view) {
  if (phase_ == Phase::kRunning && ranks_.exec_reports() < 0) {
    link_.send(from_supervisor::Started{ranks_.pids()});
  }
  if (phase_ != Phase::kPrepared) return;
  phase_ = Phase::kRunning;
  for (const auto& note : plan_.notes) say(note);
  ranks_.release();
}

void Supervisor::on(const to_supervisor::Abort&, std::string_view) {
  if (phase_ == Phase::kPrepared) {
    ranks_.abandon();
    StepStatus status;
    status.never_ran = true;
    finish(std::move(status));
  } else if (phase_ != Phase::kDone) {
    kill_at_ = Clock::now();
  }
}

void Supervisor::on(const to_supervisor::Signal& order, std::string_view) {
  if (!ranks_.is_released() || order.signal <= 0 || order.signal > SIGRTMAX) return;
  if (order.whole_tree) {
    StepRanks::signal_tree(order.signal);
  } else {
    ranks_.signal_ranks(order.signal, order_.step.step != kBatchStep);
  }
}

void Supervisor::on(const to_supervisor::End& order, std::string_view) {
  if (phase_ == Phase::kPrepared) return on(to_supervisor::Abort{}, {});
  if (phase_ == Phase::kDone) return;
  if (!order.notice.empty() && !noticed_) {
    noticed_ = true;
    say(with_place_and_time(order.notice, order_.node));
  }
  const auto deadline =
      Clock::now() + milliseconds(std::clamp<std::int64_t>(order.grace.ms(), 0, 86'400'000));
  if (!kill_at_ || deadline < *kill_at_) kill_at_ = deadline;
  if (order.grace.ms() > 0) {
    StepRanks::signal_tree(SIGCONT);
    StepRanks::signal_tree(SIGTERM);
  }
}

void Supervisor::on(const to_supervisor::Input& order, std::string_view payload) {
  auto status = input_.accept(order.rank, order.offset, payload, order.end);
  if (status || lost_input_) return;
  lost_input_ = true;
  say(to_string(status.error()));
}

void Supervisor::on(const to_supervisor::Taken& order, std::string_view) {
  output_.taken(order.offset);
}

void Supervisor::on(const to_supervisor::Resize& order, std::string_view) {
  if (!terminal_) return;
  winsize size{};
  size.ws_row = order.rows;
  size.ws_col = order.columns;
  ::ioctl(terminal_.get(), TIOCSWINSZ, &size);
}

// ---- Endings

void Supervisor::on_child() {
  std::array<signalfd_siginfo, 16> seen;
  while (::read(signals_.get(), seen.data(), sizeof seen) > 0) {
  }
  const auto reaped = ranks_.reap();
  // After reaping: what a rank has to say about its exec was written before it ended.
  if (ranks_.is_released() && ranks_.exec_reports() >= 0 && ranks_.on_exec_report()) {
    link_.send(from_supervisor::Started{ranks_.pids()});
  }
  for (const std::size_t index : reaped.ranks) {
    const RankStatus& status = ranks_.statuses()[index];
    if (!status.message.empty() && plan_.streams[index].err >= 0) {
      const std::string line =
          fmt::format("slurmstepd-{}: error: {}\n", order_.node, status.message);
      [[maybe_unused]] const ssize_t n =
          ::write(plan_.streams[index].err, line.data(), line.size());
    }
    link_.send(from_supervisor::RankExited{status});
  }
  if (!ranks_.all_ended() || phase_ == Phase::kPreparing || phase_ == Phase::kDone) return;
  if (!reaped.none_left) {
    if (phase_ == Phase::kLeftovers) return;
    phase_ = Phase::kLeftovers;
    StepRanks::signal_tree(SIGCONT);
    StepRanks::signal_tree(SIGTERM);
    const auto deadline = Clock::now() + kLeftoverGrace;
    if (!kill_at_ || deadline < *kill_at_) kill_at_ = deadline;
    return;
  }
  phase_ = Phase::kLeftovers;
  if (output_.is_open() && !output_.finish()) {
    if (!disk_at_) disk_at_ = Clock::now() + kDiskRetry;
    return;
  }
  StepStatus status;
  status.never_ran = !ranks_.is_released();
  status.exit = ranks_.worst();
  status.ranks = ranks_.statuses();
  finish(std::move(status));
}

void Supervisor::on_timers() {
  const auto now = Clock::now();
  if (notify_at_ && *notify_at_ <= now) flush_notified();
  if (disk_at_ && *disk_at_ <= now) {
    disk_at_.reset();
    output_.retry_disk();
  }
  if (phase_ != Phase::kPrepared || link_.is_connected()) {
    forgotten_at_.reset();
  } else if (!forgotten_at_) {
    forgotten_at_ = now + kForgottenAfter;
  } else if (*forgotten_at_ <= now) {
    return on(to_supervisor::Abort{}, {});
  }
  if (output_.is_disk_full() && !disk_at_) disk_at_ = now + kDiskRetry;
  if (!kill_at_ || *kill_at_ > now || phase_ == Phase::kDone) return;
  if (!killing_since_) {
    killing_since_ = now;
    stuck_at_ = now + kStuckAfter;
  }
  StepRanks::signal_tree(SIGKILL);
  kill_at_ = now + kKillInterval;
  if (stuck_at_ && *stuck_at_ <= now) {
    link_.send(from_supervisor::Stuck{});
    stuck_at_ = now + kStuckAfter;
  }
}

void Supervisor::finish(StepStatus status) {
  phase_ = Phase::kDone;
  flush_notified();
  rusage usage{};
  ::getrusage(RUSAGE_CHILDREN, &usage);
  const auto to_ms = [](const timeval& time) {
    return static_cast<std::uint64_t>(time.tv_sec) * 1000 +
           static_cast<std::uint64_t>(time.tv_usec) / 1000;
  };
  status.usage.cpu_ms = to_ms(usage.ru_utime) + to_ms(usage.ru_stime);
  status.usage.max_rss_kib = static_cast<std::uint64_t>(usage.ru_maxrss);
  status.output_size = output_.size();
  status.output_taken = output_.taken();
  const std::string text = to_json(status);
  const std::string path = order_.directory + "/status.json";
  {
    Descriptor file(
        ::open((path + ".new").c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    if (::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size())) {
      ::rename((path + ".new").c_str(), path.c_str());
    }
  }
  if (output_.size() != told_size_) link_.send(from_supervisor::Grown{output_.size()});
  link_.send(from_supervisor::Ended{std::move(status)});
}

// ---- The notify protocol

void Supervisor::on_notify() {
  std::array<char, 4096> buffer;
  for (int i = 0; i < 64; ++i) {
    const ssize_t n = ::recv(notify_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (n <= 0) break;
    const std::string_view text(buffer.data(), static_cast<std::size_t>(n));
    for (const std::string_view line : split(text, '\n', EmptyPieces::kDrop)) {
      const auto pair = split_once(line, '=');
      // Bounded, however many names a program invents between two reports.
      if (!pair || notified_.size() >= 64) continue;
      notified_[std::string(pair->first)] = std::string(pair->second);
    }
  }
  if (!notified_.empty() && !notify_at_) notify_at_ = Clock::now() + kNotifyInterval;
}

void Supervisor::flush_notified() {
  notify_at_.reset();
  if (notified_.empty()) return;
  std::string text;
  for (const auto& [name, value] : notified_) text += fmt::format("{}={}\n", name, value);
  notified_.clear();
  link_.send(from_supervisor::Notified{std::move(text)});
}

Result<SupervisorOrder> read_order(int fd) {
  std::string text;
  std::array<char, 16 * 1024> buffer;
  while (true) {
    const ssize_t n = ::read(fd, buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail_errno(errno, "reading the order of a step");
    if (n == 0) break;
    text.append(buffer.data(), static_cast<std::size_t>(n));
  }
  return from_json<SupervisorOrder>(text);
}

}  // namespace

int run_supervisor(int, char**) {
  ::prctl(PR_SET_NAME, "tutti-step");  // it was started through a descriptor
  // 0, 1 and 2 exist, so that no file of the step gets one of these numbers.
  for (int fd = ::open("/dev/null", O_RDWR); fd >= 0 && fd <= 2;) fd = ::dup(fd);
  close_from(kOrderDescriptor + 1);
  Descriptor control(kControlDescriptor);
  Descriptor order_file(kOrderDescriptor);
  ::fcntl(kControlDescriptor, F_SETFD, FD_CLOEXEC);
  auto order = read_order(kOrderDescriptor);
  order_file.reset();
  if (!order) return 70;
  return Supervisor(std::move(*order), std::move(control)).run();
}

}  // namespace tutti::agent
