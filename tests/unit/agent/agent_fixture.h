// A node for tests: a real agent with real supervisors and cgroups in a directory of its own, and
// the controller's end of its uplink in the test's hands.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "agent/agent.h"
#include "agent/process.h"
#include "agent/uplink.h"
#include "model/agent_protocol.h"

namespace tutti::agent {

class FakeUplink final : public Uplink {
 public:
  FakeUplink();
  void dial() override { open_ = true; }
  bool is_open() const override { return open_; }
  bool is_ready() const override { return open_; }
  int fd() const override { return event_.get(); }
  bool wants_write() const override { return false; }
  std::vector<std::string> on_readable() override;
  void on_writable() override {}
  void keep_alive() override {}
  void send(std::string_view frame) override;
  std::size_t queued_bytes() const override { return 0; }

  void order(const to_agent::Message& message, std::string_view payload = {});
  void cut() { open_ = false; }

  std::vector<from_agent::Message> heard;
  // Output of each (step, rank, is_error), put together by offsets: what is repeated counts once.
  std::map<std::tuple<StepId, std::uint32_t, bool>, std::string> output;
  std::map<StepId, std::uint64_t> next;
  bool acknowledge = true;
  int gaps = 0;

 private:
  bool open_ = false;
  Descriptor event_;
  std::deque<std::string> orders_;
};

class AgentTest : public testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;
  void start_agent();
  void kill_agent() { agent_.reset(); }
  // Runs the agent until the condition holds; a test failure after 20 s.
  void until(const std::string& what, const std::function<bool()>& condition);
  void run_for(int milliseconds);

  JobFacts job(std::uint32_t gang, std::uint64_t epoch = 1) const;
  StepOrder batch(const std::string& script) const;
  StepOrder step(StepId id, std::vector<std::string> argv, std::uint32_t ranks = 1) const;
  void prepare(const JobFacts& job, std::optional<StepOrder> batch = std::nullopt);
  void prepare_step(const JobFacts& job, StepOrder order);
  void go(const JobFacts& job, StepId step = kExternStep);
  void end(const JobFacts& job, Duration grace = Duration::seconds(5), std::string notice = {});
  // Prepares and starts a gang; waits until it runs.
  void run_gang(const JobFacts& job, std::optional<StepOrder> batch = std::nullopt);
  void run_step(const JobFacts& job, StepOrder order);
  // Ends it and waits for Clean, then looks for what may be left.
  void end_and_check(const JobFacts& job, Duration grace = Duration::seconds(5));

  template <class M>
  const M* find(const std::function<bool(const M&)>& matches = {}) const {
    for (auto it = uplink_->heard.rbegin(); it != uplink_->heard.rend(); ++it) {
      const auto* message = std::get_if<M>(&*it);
      if (message != nullptr && (!matches || matches(*message))) return message;
    }
    return nullptr;
  }
  template <class M>
  int count() const {
    return static_cast<int>(
        std::count_if(uplink_->heard.begin(), uplink_->heard.end(),
                      [](const auto& message) { return std::holds_alternative<M>(message); }));
  }
  const from_agent::StepEnded* ended(StepId step) const;
  from_agent::StepEnded wait_ended(StepId step);
  std::string output(StepId step, std::uint32_t rank = 0, bool is_error = false) const;

  std::string read(const std::string& name) const;  // of the work directory
  std::string work_dir() const { return root_ + "/work"; }
  // Processes that have this text in their command line.
  static std::vector<int> processes_with(const std::string& text);

  std::string root_;
  std::string cluster_;
  AgentOptions options_;
  CgroupLayout layout_;
  std::unique_ptr<FakeUplink> uplink_;
  std::unique_ptr<Agent> agent_;
  std::vector<std::string> log_;
};

}  // namespace tutti::agent
