#include "cli/step_client.h"

#include <csignal>
#include <fmt/format.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

#include "cli/slurm_context.h"
#include "cli/terminal.h"
#include "frontend/slurm/error_text.h"
#include "model/attach_protocol.h"
#include "model/reasons.h"

namespace tutti::cli {

namespace {
using Clock = std::chrono::steady_clock;
constexpr std::size_t kInputInFlight = 1 << 20;
// More than can be on its way between here and the nodes.
constexpr std::size_t kInputKept = 16 << 20;
constexpr std::size_t kInputPart = 64 << 10;

void write_fd(int fd, std::string_view text) {
  if (fd == 1)
    print_out(text);
  else
    print_err(text);
}

int open_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (int s : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGCONT, SIGWINCH}) sigaddset(&set, s);
  sigprocmask(SIG_BLOCK, &set, nullptr);
  signal(SIGPIPE, SIG_IGN);
  return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}
}  // namespace

void StepClient::complain(const std::string& text) const {
  print_err(fmt::format("{}: {}\n", options_.program, text));
}

int StepClient::run(std::uint32_t job, std::vector<StepRequest> steps) {
  job_ = job;
  signal_fd_ = open_signals();
  session_.emplace(api_, GangId(job), options_.owns_allocation ? GangSession::Role::kOwner : GangSession::Role::kVisitor);
  Status opened = session_->open();
  if (!opened) {
    complain("error: " + opened.error().message);
    return 1;
  }
  int code = 1;
  requests_ = std::move(steps);
  if (wait_for_allocation() && create_steps()) code = relay();
  if (!detached_) session_->leave(!options_.owns_allocation);
  return code;
}

void StepClient::on_gang_changed(const to_client::GangChanged& m) {
  gang_ = m;
  gang_over_ = m.state == GangState::kDone || m.state == GangState::kEnding;
}

// True once the allocation is there and its nodes are ready.
bool StepClient::wait_for_allocation() {
  auto begun = Clock::now();
  while (true) {
    for (auto& incoming : session_->pump()) handle(incoming);
    if (gang_ && gang_->state == GangState::kRunning) {
      if (told_queued_ && !options_.quiet) complain(fmt::format("job {} has been allocated resources", job_));
      return true;
    }
    if (gang_over_) {
      complain(fmt::format("Job allocation {} has been revoked", job_));
      if (!gang_->last_failure.empty()) complain("error: " + gang_->last_failure);
      return false;
    }
    auto waited = Clock::now() - begun;
    if (!told_queued_ && waited > std::chrono::milliseconds(300) && options_.owns_allocation) {
      told_queued_ = true;
      if (!options_.quiet) complain(fmt::format("job {} queued and waiting for resources", job_));
    }
    if (options_.immediate_s && waited > std::chrono::seconds(*options_.immediate_s)) {
      complain("error: Unable to allocate resources: Requested nodes are busy");
      return false;
    }
    pollfd fds[2] = {{session_->fd(), static_cast<short>(POLLIN | (session_->want_write() ? POLLOUT : 0)), 0}, {signal_fd_, POLLIN, 0}};
    poll(fds, 2, told_queued_ ? 500 : 50);
    signalfd_siginfo info;
    while (read(signal_fd_, &info, sizeof info) == sizeof info) {
      int s = static_cast<int>(info.ssi_signo);
      if (s == SIGWINCH || s == SIGCONT || s == SIGUSR1 || s == SIGUSR2) continue;
      if (options_.owns_allocation) complain(fmt::format("Job allocation {} has been revoked", job_));
      return false;
    }
    if (session_->gave_up()) {
      complain("error: " + session_->last_error());
      return false;
    }
  }
}

bool StepClient::create_steps() {
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    requests_[i].gang = GangId(job_);
    if (!create_step(i)) return false;
    input_open_ |= requests_[i].order.in.kind == StreamKind::kAttached;
  }
  return true;
}

// Those that nobody had started when the controller died are asked for once more.
bool StepClient::create_lost_steps() {
  while (!lost_.empty()) {
    std::size_t index = lost_.back();
    lost_.pop_back();
    requests_[index].key.clear();
    if (!create_step(index)) return false;
  }
  return true;
}

void StepClient::follow(std::size_t index, StepReply reply) {
  OutputStyle style{options_.label, options_.unbuffered || options_.pty, 0, job_, options_.quiet};
  for (std::uint32_t n : reply.tasks) style.total_tasks += n;
  StepId id = reply.step;
  std::size_t nodes = reply.nodes.size();
  StepOutput::WriteRank write_rank;
  if (index < options_.labelled.size() && options_.labelled[index].any())
    write_rank = labelled_writer(options_.labelled[index], GangId(job_), reply);
  running_.emplace(id, Running{index, std::move(reply), StepOutput(style, write_fd, std::move(write_rank)), false, false, {}});
  session_->follow(id, nodes);
}

bool StepClient::create_step(std::size_t index) {
  bool told = false;
  auto pause = std::chrono::milliseconds(20);
  while (true) {
    auto reply = api_.create_step(requests_[index]);
    if (reply) {
      follow(index, std::move(*reply));
      return true;
    }
    bool unanswered = reply.error().code == ErrorCode::kUnavailable;
    if (reply.error().reason != reason::kStepBusy && !unanswered) {
      std::string job = std::to_string(job_);
      ApiError error{reply.error().code, reply.error().reason, reply.error().message};
      if (error.reason != reason::kStepNeverFits) {
        complain(fmt::format("error: Unable to create step for job {}: {}", job, slurm::slurm_sentence(error)));
        return false;
      }
      print_err(slurm::submit_error(options_.program, error, {"", job}).text);
      return false;
    }
    if (!std::exchange(told, true) && !options_.quiet)
      complain(unanswered ? fmt::format("the controller does not answer, asking again: {}", reply.error().message)
                          : fmt::format("Job {} step creation temporarily disabled, retrying (Requested nodes are busy)", job_));
    for (auto& incoming : session_->pump()) handle(incoming);
    if (gang_over_) {
      complain("error: Job allocation " + std::to_string(job_) + " has been revoked");
      return false;
    }
    if (session_->gave_up()) {
      complain("error: " + session_->last_error());
      return false;
    }
    pollfd fds[1] = {{signal_fd_, POLLIN, 0}};
    if (poll(fds, 1, static_cast<int>(pause.count())) > 0) {
      signalfd_siginfo info;
      if (read(signal_fd_, &info, sizeof info) == sizeof info && (info.ssi_signo == SIGINT || info.ssi_signo == SIGTERM)) {
        complain("Cancelled pending job step with signal " + std::to_string(info.ssi_signo));
        return false;
      }
    }
    pause = std::min(pause * 2, std::chrono::milliseconds(1000));
  }
}

// What is typed before a step runs could be lost with it.
bool StepClient::all_started() const {
  for (const auto& [id, step] : running_)
    if (!step.started && !step.ended) return false;
  return true;
}

bool StepClient::all_ended() const {
  for (const auto& [id, step] : running_)
    if (!step.ended) return false;
  return true;
}

void StepClient::handle(const GangSession::Incoming& incoming) {
  const auto& [message, payload] = incoming;
  if (const auto* m = std::get_if<to_client::GangChanged>(&message)) return on_gang_changed(*m);
  auto find = [&](StepId id) -> Running* {
    auto it = running_.find(id);
    return it == running_.end() ? nullptr : &it->second;
  };
  if (const auto* m = std::get_if<to_client::Output>(&message)) {
    if (Running* step = find(m->step)) {
      step->output.output(*m, payload);
      session_->taken(m->step, m->node, m->next);
    }
  } else if (const auto* m = std::get_if<to_client::InputWanted>(&message)) {
    Running* step = find(m->step);
    if (step && !step->ended && kept_from_ + kept_input_.size() + input_ended_ > 0) send_input(m->step, kept_from_);
  } else if (const auto* m = std::get_if<to_client::StepStarted>(&message)) {
    if (Running* step = find(m->step)) step->started = true;
  } else if (const auto* m = std::get_if<to_client::RankExited>(&message)) {
    Running* step = find(m->step);
    if (!step) return;
    step->output.rank_exited(*m);
    if (!std::exchange(any_end_, true)) first_end_ = Clock::now();
    if (options_.kill_on_bad_exit && step->output.any_failed() && !std::exchange(killing_, true)) {
      step->output.report_exits();
      print_err(fmt::format("srun: launch/slurm: _step_signal: Terminating StepId={}.{}\n", job_, m->step));
      end_all_steps();
    }
  } else if (const auto* m = std::get_if<to_client::StepEnded>(&message)) {
    Running* step = find(m->step);
    if (!step || step->ended) return;
    if (m->outcome == Outcome::kLaunchFailed && m->reason == kStepLostAtRestart) {
      lost_.push_back(step->request);
      session_->forget(m->step);
      running_.erase(m->step);
      return;
    }
    step->ended = true;
    step->outcome = m->outcome;
    step->output.finish(*m, step->reply);
  }
}

void StepClient::end_all_steps() {
  ending_ = true;
  for (const auto& [id, step] : running_)
    if (!step.ended) (void)session_->send(from_client::Signal{id, SIGTERM});
}

void StepClient::on_signal(int s) {
  auto now = Clock::now();
  if (s == SIGWINCH) {
    winsize size{};
    if (options_.pty && ioctl(0, TIOCGWINSZ, &size) == 0)
      for (const auto& [id, step] : running_) (void)session_->send(from_client::Resize{id, size.ws_row, size.ws_col});
    return;
  }
  if (s == SIGINT && !options_.quit_on_interrupt && !options_.pty) {
    if (now - last_interrupt_ > std::chrono::seconds(1)) {
      last_interrupt_ = now;
      complain("interrupt (one more within 1 sec to abort)");
      for (const auto& [id, step] : running_)
        if (!step.ended) complain(fmt::format("StepId={}.{} is running", job_, id));
      return;
    }
    complain("aborting");
    for (const auto& [id, step] : running_) (void)session_->send(from_client::Signal{id, SIGINT});
    end_all_steps();
    return;
  }
  if (s == SIGINT || s == SIGTERM || s == SIGHUP || s == SIGQUIT) {
    complain(fmt::format("forcing job termination"));
    end_all_steps();
  } else if (s != SIGCONT) {
    for (const auto& [id, step] : running_) (void)session_->send(from_client::Signal{id, s});
  }
}

std::string DetachKeys::pass(std::string_view typed) {
  constexpr char kPrefix = 2;  // Ctrl-B
  std::string sent;
  for (char key : typed) {
    if (!prefix_) {
      prefix_ = key == kPrefix;
      if (!prefix_) sent += key;
      continue;
    }
    prefix_ = false;
    if (key == 'd' || key == 'D') {
      detached_ = true;
      break;
    }
    sent += kPrefix;
    if (key != kPrefix) sent += key;
  }
  return sent;
}

void StepClient::read_input() {
  char buffer[65536];
  ssize_t n = read(0, buffer, sizeof buffer);
  if (n < 0 && (errno == EINTR || errno == EAGAIN)) return;
  std::string_view bytes(buffer, n > 0 ? static_cast<std::size_t>(n) : 0);
  bool end = n <= 0;
  std::string passed;
  if (options_.detach_keys && options_.pty) {
    passed = detach_keys_.pass(bytes);
    detached_ = detach_keys_.is_detached();
    bytes = passed;
    if (bytes.empty() && !end) return;
  }
  std::uint64_t from = kept_from_ + kept_input_.size();
  kept_input_ += bytes;
  input_ended_ = end;
  if (end) input_open_ = false;
  for (const auto& [id, step] : running_)
    if (!step.ended) send_input(id, from);
  if (kept_input_.size() < 2 * kInputKept) return;
  std::size_t old = kept_input_.size() - kInputKept;
  kept_input_.erase(0, old);
  kept_from_ += old;
}

// Input from that offset on, and its end.
void StepClient::send_input(StepId step, std::uint64_t from) {
  std::string_view rest = std::string_view(kept_input_).substr(from - kept_from_);
  do {
    std::string_view part = rest.substr(0, kInputPart);
    rest.remove_prefix(part.size());
    (void)session_->send(from_client::Input{step, std::nullopt, from, input_ended_ && rest.empty()}, part);
    from += part.size();
  } while (!rest.empty());
}

// After the connection broke: what was sent last may not have arrived.
void StepClient::send_again() {
  if (std::exchange(connections_, session_->connections()) == session_->connections()) return;
  for (const auto& [id, step] : running_)
    if (!step.ended && kept_from_ + kept_input_.size() + input_ended_ > 0) send_input(id, kept_from_);
  if (ending_) end_all_steps();
}

int StepClient::relay() {
  std::optional<RawTerminal> raw;
  if (options_.pty && isatty(0)) {
    raw.emplace(0);
    on_signal(SIGWINCH);
  }
  connections_ = session_->connections();
  while (!all_ended() || !lost_.empty()) {
    for (auto& incoming : session_->pump()) handle(incoming);
    if (!create_lost_steps()) return 1;
    if (all_ended()) break;
    send_again();
    if (session_->gave_up() || (gang_over_ && gang_->state == GangState::kDone && session_->queued_bytes() == 0)) {
      // Everything of the steps was told before the gang's end; what is missing never comes.
      complain(session_->gave_up() ? "error: " + session_->last_error() : fmt::format("error: Job allocation {} is over", job_));
      break;
    }
    if (options_.wait_s && any_end_ && *options_.wait_s > 0 && !waited_enough_ && Clock::now() - first_end_ > std::chrono::seconds(*options_.wait_s)) {
      waited_enough_ = true;
      complain("First task exited " + std::to_string(*options_.wait_s) + "s ago");
      end_all_steps();
    }
    bool take_input = input_open_ && all_started() && session_->fd() >= 0 && session_->queued_bytes() < kInputInFlight;
    pollfd fds[3] = {{session_->fd(), static_cast<short>(POLLIN | (session_->want_write() ? POLLOUT : 0)), 0},
                     {signal_fd_, POLLIN, 0},
                     {take_input ? 0 : -1, POLLIN, 0}};
    poll(fds, 3, session_->fd() < 0 ? 100 : 1000);
    signalfd_siginfo info;
    while (read(signal_fd_, &info, sizeof info) == sizeof info) on_signal(static_cast<int>(info.ssi_signo));
    if (take_input && (fds[2].revents & (POLLIN | POLLHUP | POLLERR))) read_input();
    if (detached_) {
      session_->leave(true);
      raw.reset();
      complain(fmt::format("detached; job {} runs on: `squeue`, `tutti why {}`, `scancel {}`", job_, job_, job_));
      return 0;
    }
  }
  int code = 0;
  for (const auto& [id, step] : running_) code = std::max(code, step.ended ? step.output.exit_code() : 1);
  return code;
}

}  // namespace tutti::cli
