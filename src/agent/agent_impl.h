// The inside of Agent, over several files: agent.cpp (loop, uplink), agent_orders.cpp (what the
// controller says), agent_steps.cpp (supervisors), agent_adopt.cpp (after a restart),
// agent_output.cpp (streams). Private to src/agent/agent*.cpp.
#pragma once

#include <chrono>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "agent/agent.h"
#include "agent/process.h"
#include "agent/spool.h"
#include "agent/supervisor_protocol.h"
#include "agent/user_groups.h"
#include "model/agent_protocol.h"

namespace tutti::agent {

using Clock = std::chrono::steady_clock;

// What gang.json holds; fields are only added.
struct GangRecord {
  std::uint32_t version = 1;
  JobFacts job;
  SlotOrder slot;
  bool has_batch = false;
};
void describe(auto& a, GangRecord& x) {
  a("version", x.version);
  a("job", x.job);
  a("slot", x.slot);
  a("has_batch", x.has_batch);
}

enum class StepPhase : std::uint8_t { kPreparing, kReady, kRunning, kDone };

struct StepEntry {
  StepId id = 0;
  StepPhase phase = StepPhase::kPreparing;
  std::string directory;
  pid_t supervisor = 0;
  Descriptor control, pidfd;
  std::uint64_t control_token = 0, pidfd_token = 0;
  std::deque<std::string> outbox;  // packets the socket has not taken
  std::vector<std::uint32_t> pids;
  bool go_said = false;
  bool adopting = false;  // its State has not come yet
  std::optional<StepStatus> status;
  bool out_of_memory = false;
  std::set<std::uint32_t> told_ranks;
  // Attached output.
  bool attached = false;
  SpoolReader spool;
  std::uint64_t size = 0, sent = 0, taken = 0;
};

struct GangEntry {
  GangRecord record;
  std::string directory;
  bool started = false;  // "go" was heard
  bool ending = false;
  std::optional<Clock::time_point> clean_without_output_at;
  std::uint64_t oom_seen = 0;
  std::map<StepId, StepEntry> steps;
  GangId id() const { return record.job.gang; }
  Epoch epoch() const { return record.job.epoch; }
};

class Agent::Impl {
 public:
  Impl(AgentOptions options, Uplink& uplink, std::unique_ptr<Cgroups> cgroups);
  Status start();
  void run_once(Duration timeout);
  void wake_on(int fd);

 private:
  enum class WatchKind : std::uint8_t { kControl, kPidfd };
  struct Watch {
    WatchKind kind = WatchKind::kControl;
    GangId gang;
    StepId step = 0;
  };

  // agent.cpp
  void register_uplink();
  void serve_uplink(std::uint32_t events);
  void maintain_uplink();
  void schedule_dial();
  void say_hello();
  void repeat_answers();
  from_agent::Hello make_hello() const;
  void send(const from_agent::Message& message, std::string_view payload = {});
  void log(const std::string& line) const;
  void after(Duration delay, std::function<void()> action);
  void run_timers();
  int wait_ms(Duration timeout) const;
  std::uint64_t watch(int fd, Watch watch);
  GangEntry* find_gang(GangId gang);
  StepEntry* find_step(const StepKey& key);
  StepKey key_of(const GangEntry& gang, StepId step) const;

  // agent_orders.cpp
  void on(to_agent::Welcome&&, std::string_view);
  void on(to_agent::PrepareGang&&, std::string_view);
  void on(to_agent::Notice&&, std::string_view);
  void on(to_agent::PrepareStep&&, std::string_view);
  void on(to_agent::Go&&, std::string_view);
  void on(to_agent::Abort&&, std::string_view);
  void on(to_agent::Signal&&, std::string_view);
  void on(to_agent::EndStep&&, std::string_view);
  void on(to_agent::EndGang&&, std::string_view);
  void on(to_agent::Input&&, std::string_view);
  void on(to_agent::OutputTaken&&, std::string_view);
  void on(to_agent::SendOutput&&, std::string_view);
  void on(to_agent::Resize&&, std::string_view);
  void refuse(const StepKey& key, std::string reason);
  void answer_gang(const GangEntry& gang);
  Status make_gang(const to_agent::PrepareGang& order);
  JobLimits limits_of(const SlotOrder& slot) const;
  void end_gang(GangEntry& gang, Duration grace, const std::string& notice);
  void go_gang(GangEntry& gang);
  void go_step(GangEntry& gang, StepEntry& step);

  // agent_steps.cpp
  Status launch_supervisor(GangEntry& gang, StepOrder&& order);
  void tell(StepEntry& step, const to_supervisor::Message& message, std::string_view payload = {});
  void flush_outbox(StepEntry& step);
  void serve_control(GangEntry& gang, StepEntry& step, std::uint32_t events);
  void serve_pidfd(GangEntry& gang, StepEntry& step);
  bool receive(GangEntry& gang, StepEntry& step);
  void hear(GangEntry& gang, StepEntry& step, from_supervisor::State&& message);
  void hear(GangEntry& gang, StepEntry& step, from_supervisor::Started&& message);
  void hear(GangEntry& gang, StepEntry& step, from_supervisor::RankExited&& message);
  void hear(GangEntry& gang, StepEntry& step, from_supervisor::Grown&& message);
  void hear(GangEntry& gang, StepEntry& step, from_supervisor::Notified&& message);
  void hear(GangEntry& gang, StepEntry& step, from_supervisor::Stuck&& message);
  void hear(GangEntry& gang, StepEntry& step, from_supervisor::Ended&& message);
  void finish_step(GangEntry& gang, StepEntry& step);
  void tell_ready(const GangEntry& gang, const StepEntry& step);
  void tell_started(const GangEntry& gang, const StepEntry& step);
  void tell_ended(const GangEntry& gang, StepEntry& step);
  void end_step(GangEntry& gang, StepEntry& step, Duration grace, const std::string& notice);
  void abort_step(GangEntry& gang, StepEntry& step);
  void kill_later(const GangEntry& gang, const StepEntry& step, Duration delay);
  void kill_step(GangEntry& gang, StepEntry& step);
  void forget_step(GangEntry& gang, StepId step);
  void clean_if_over(GangId gang);
  bool clean(GangEntry& gang);
  StepStatus vanished_status(const GangEntry& gang, const StepEntry& step) const;

  // agent_adopt.cpp
  Status adopt();
  void adopt_gang(const std::string& name);
  void adopt_step(GangEntry& gang, const std::string& name);
  void adopt_supervisor(GangEntry& gang, StepEntry& step, Descriptor control);

  // agent_output.cpp
  void pump(GangEntry& gang, StepEntry& step);
  void pump_all();
  void open_spool(GangEntry& gang, StepEntry& step);

  AgentOptions options_;
  Uplink& uplink_;
  std::unique_ptr<Cgroups> cgroups_;
  bool rootless_ = false;
  UserGroups groups_;
  Descriptor epoll_;
  std::map<GangId, GangEntry> gangs_;
  // Epochs of gangs that are gone: a late order of that life is refused. Bounded, oldest first.
  std::map<GangId, Epoch> past_;
  std::deque<GangId> past_order_;
  std::uint64_t next_token_ = 1;  // 0 is the uplink
  std::map<std::uint64_t, Watch> watches_;
  std::multimap<Clock::time_point, std::function<void()>> timers_;
  std::set<std::pair<GangId, StepId>> unsent_;
  Instant started_;
  int uplink_fd_ = -1;
  bool uplink_write_ = false, hello_said_ = false;
  unsigned dial_attempts_ = 0;
  std::optional<Clock::time_point> dial_at_, keep_alive_at_, adopt_until_;
};

// A small file in a directory that belongs to a user: regular, at most 4 MiB, no link followed.
Result<std::string> read_users_file(const std::string& path);

}  // namespace tutti::agent
