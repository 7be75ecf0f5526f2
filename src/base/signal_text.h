// Signals and exit statuses as text: names both ways, the grammar of --signal, "CODE:SIGNAL".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"

namespace tutti {

// "USR1", "SIGUSR1" (any case) or a number from 1 to 64, as numbered on this system.
// Errors: kInvalid, reason "invalid_signal".
Result<int> parse_signal(std::string_view text);
// "USR1"; a number nobody named is printed as the number.
std::string signal_name(int signal);

// When --signal asks for a warning before the end of the time limit.
struct SignalSpec {
  int signal = 0;
  std::uint32_t seconds_before = 60;  // up to 65535
  bool batch_shell_only = false;      // B:
  bool for_reservations = false;      // R: only when overlapping a reservation
  friend bool operator==(const SignalSpec&, const SignalSpec&) = default;
};
// "[R|B|RB:]SIGNAL[@SECONDS]". Errors: kInvalid, reason "invalid_signal".
Result<SignalSpec> parse_signal_spec(std::string_view text);
std::string to_string(const SignalSpec& spec);

// How a process ended: its exit code, or the signal that ended it. Slurm writes "CODE:SIGNAL".
struct WaitStatus {
  std::uint8_t code = 0;
  std::uint8_t signal = 0;
  // From the status word of waitpid(2).
  static WaitStatus from_wait(int status);
  bool success() const { return code == 0 && signal == 0; }
  // What a shell would report: the code, or 128 + signal.
  int shell_code() const { return signal ? 128 + signal : code; }
  friend bool operator==(const WaitStatus&, const WaitStatus&) = default;
};
Result<WaitStatus> parse_wait_status(std::string_view text);
std::string to_string(WaitStatus status);

}  // namespace tutti
