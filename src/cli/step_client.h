// StepClient: runs one or more steps of a gang from this terminal: waits for the allocation, asks
// for the steps, relays input, output, signals and the window's size, returns the exit code.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "cli/api_client.h"
#include "cli/gang_session.h"
#include "cli/labelled_files.h"
#include "cli/step_output.h"
#include "model/api.h"

namespace tutti::cli {

struct StepClientOptions {
  std::string program = "srun";
  bool owns_allocation = false;  // the gang lives for this client
  bool label = false, unbuffered = false, pty = false, quiet = false, verbose = false;
  bool kill_on_bad_exit = false, quit_on_interrupt = false;
  std::optional<std::uint32_t> wait_s;       // after the first rank's end
  std::optional<std::uint32_t> immediate_s;  // give up waiting for the allocation
  std::vector<LabelledFiles> labelled;       // per step; empty: none
  bool detach_keys = false;                  // Ctrl-B D leaves and lets it run (tutti run)
};

// Ctrl-B D, as in tmux, in what is typed; Ctrl-B twice sends one. Any other key after Ctrl-B is sent
// with it.
class DetachKeys {
 public:
  // What is to be sent of these bytes; is_detached() afterwards: nothing behind it counts.
  std::string pass(std::string_view typed);
  bool is_detached() const { return detached_; }

 private:
  bool prefix_ = false, detached_ = false;
};

class StepClient {
 public:
  StepClient(ApiClient& api, StepClientOptions options) : api_(api), options_(std::move(options)) {}
  // Exit code of the steps: the worst rank's, 128 + signal; 1 when it could not be done.
  int run(std::uint32_t job, std::vector<StepRequest> steps);

 private:
  struct Running {
    std::size_t request = 0;  // index
    StepReply reply;
    StepOutput output;
    bool started = false, ended = false;
    std::optional<Outcome> outcome;
  };
  bool wait_for_allocation();
  bool create_steps();
  bool create_step(std::size_t index);
  bool create_lost_steps();
  void follow(std::size_t index, StepReply reply);
  int relay();
  void handle(const GangSession::Incoming& incoming);
  void on_gang_changed(const to_client::GangChanged& m);
  void on_signal(int signal);
  void read_input();
  void send_input(StepId step, std::uint64_t from);
  void send_again();
  void complain(const std::string& text) const;
  void end_all_steps();
  bool all_ended() const;
  bool all_started() const;

  ApiClient& api_;
  StepClientOptions options_;
  std::optional<GangSession> session_;
  std::uint32_t job_ = 0;
  std::vector<StepRequest> requests_;
  std::vector<std::size_t> lost_;  // indices of those whose step died with the controller
  std::map<StepId, Running> running_;
  std::optional<to_client::GangChanged> gang_;
  bool told_queued_ = false, input_open_ = false, gang_over_ = false, detached_ = false;
  DetachKeys detach_keys_;
  // The last part of what was typed, to be sent again when a connection broke.
  std::string kept_input_;
  std::uint64_t kept_from_ = 0;  // its offset
  bool input_ended_ = false;
  unsigned connections_ = 0;
  int signal_fd_ = -1;
  std::chrono::steady_clock::time_point last_interrupt_{}, first_end_{};
  bool any_end_ = false, killing_ = false, waited_enough_ = false, ending_ = false;
};

}  // namespace tutti::cli
