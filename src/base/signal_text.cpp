#include "base/signal_text.h"

#include <fmt/format.h>
#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <utility>

#include "base/text.h"

namespace tutti {

namespace {
constexpr int kMaxSignal = 64;
constexpr std::pair<std::string_view, int> kSignals[] = {
    {"HUP", SIGHUP},   {"INT", SIGINT},       {"QUIT", SIGQUIT},   {"ILL", SIGILL},
    {"TRAP", SIGTRAP}, {"ABRT", SIGABRT},     {"BUS", SIGBUS},     {"FPE", SIGFPE},
    {"KILL", SIGKILL}, {"USR1", SIGUSR1},     {"SEGV", SIGSEGV},   {"USR2", SIGUSR2},
    {"PIPE", SIGPIPE}, {"ALRM", SIGALRM},     {"TERM", SIGTERM},   {"CHLD", SIGCHLD},
    {"CONT", SIGCONT}, {"STOP", SIGSTOP},     {"TSTP", SIGTSTP},   {"TTIN", SIGTTIN},
    {"TTOU", SIGTTOU}, {"URG", SIGURG},       {"XCPU", SIGXCPU},   {"XFSZ", SIGXFSZ},
    {"PROF", SIGPROF}, {"VTALRM", SIGVTALRM}, {"WINCH", SIGWINCH}, {"IO", SIGIO},
    {"SYS", SIGSYS},   {"IOT", SIGABRT},      {"CLD", SIGCHLD},    {"POLL", SIGIO},
};
}  // namespace

Result<int> parse_signal(std::string_view text) {
  if (auto number = parse_integer<int>(text); number && *number >= 1 && *number <= kMaxSignal)
    return *number;
  std::string_view name = starts_with_ci(text, "SIG") ? text.substr(3) : text;
  for (const auto& [known, number] : kSignals)
    if (equals_ci(known, name)) return number;
  return invalid(fmt::format("signal {}: expected a name such as TERM or USR1, or a number from 1 "
                             "to {}",
                             quote(text), kMaxSignal),
                 "invalid_signal");
}

std::string signal_name(int signal) {
  for (const auto& [name, number] : kSignals)
    if (number == signal) return std::string(name);
  return fmt::to_string(signal);
}

Result<SignalSpec> parse_signal_spec(std::string_view text) {
  SignalSpec spec;
  std::string_view body = text;
  if (auto prefixed = split_once(text, ':')) {
    std::string_view letters = prefixed->first;
    body = prefixed->second;
    for (char c : letters) {
      bool& flag = to_upper(c) == 'B' ? spec.batch_shell_only : spec.for_reservations;
      if ((to_upper(c) != 'B' && to_upper(c) != 'R') || flag)
        return invalid(fmt::format("signal {}: expected R:, B: or RB: before the signal, not {}",
                                   quote(text), quote(letters)),
                       "invalid_signal");
      flag = true;
    }
  }
  if (auto timed = split_once(body, '@')) {
    body = timed->first;
    auto seconds = parse_integer<std::uint16_t>(timed->second);
    if (!seconds)
      return invalid(fmt::format("signal {}: expected seconds from 0 to 65535 after @, not {}",
                                 quote(text), quote(timed->second)),
                     "invalid_signal");
    spec.seconds_before = *seconds;
  }
  auto signal = parse_signal(body);
  if (!signal) return tl::unexpected<Error>(signal.error());
  spec.signal = *signal;
  return spec;
}

std::string to_string(const SignalSpec& spec) {
  std::string letters = spec.for_reservations ? "R" : "";
  if (spec.batch_shell_only) letters += "B";
  if (!letters.empty()) letters += ":";
  return fmt::format("{}{}@{}", letters, signal_name(spec.signal), spec.seconds_before);
}

WaitStatus WaitStatus::from_wait(int status) {
  if (WIFSIGNALED(status)) return {0, static_cast<std::uint8_t>(WTERMSIG(status))};
  return {static_cast<std::uint8_t>(WEXITSTATUS(status)), 0};
}

Result<WaitStatus> parse_wait_status(std::string_view text) {
  auto parts = split_once(text, ':');
  auto code = parse_integer<std::uint8_t>(parts ? parts->first : text);
  auto signal = parts ? parse_integer<std::uint8_t>(parts->second) : std::uint8_t{0};
  if (!code || !signal)
    return invalid(fmt::format("exit status {}: expected CODE or CODE:SIGNAL", quote(text)));
  return WaitStatus{*code, *signal};
}

std::string to_string(WaitStatus status) {
  return fmt::format("{}:{}", status.code, status.signal);
}

}  // namespace tutti
