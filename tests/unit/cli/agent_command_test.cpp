// The agent as it is started in the foreground, against a real server: it waits for the
// controller, comes back after the connection broke, and leaves its work running when it stops.
#include "cli/agent_command.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <sstream>

#include "agent/cgroups.h"
#include "model/agent_protocol.h"
#include "wire/server.h"
// This program is its own supervisor as well.
#include "tests/unit/agent/supervisor_entry.cpp"

namespace tutti::cli {
namespace {

// The controller's end.
struct Controller {
  explicit Controller(const std::string& path)
      : server(wire::ServerOptions{.unix_path = path,
                                   .unix_mode = 0600,
                                   .tcp_addresses = {},
                                   .listening_descriptors = {},
                                   .limits = {}}) {
    server.on_channel("/v1/agent", [this](wire::Request request, wire::Upgrade upgrade) {
      if (request.peer.token != "secret") {
        return upgrade.refuse({403, "text/plain", "no", {}});
      }
      wire::ChannelCallbacks callbacks;
      callbacks.on_message = [this](wire::Channel&, std::string text) {
        auto frame = decode_frame<from_agent::Message>(text);
        std::lock_guard lock(mutex);
        if (frame) heard.push_back(std::move(frame->first));
        changed.notify_all();
      };
      callbacks.on_closed = [](wire::Channel&, const std::string&) {};
      auto accepted = upgrade.accept(std::move(callbacks));
      std::lock_guard lock(mutex);
      channel = std::move(accepted);
      changed.notify_all();
    });
  }
  void order(const to_agent::Message& message) {
    std::lock_guard lock(mutex);
    ASSERT_TRUE(channel);
    EXPECT_TRUE(channel->send(encode_frame(message)));
  }
  template <class M>
  M wait_for() {
    std::unique_lock lock(mutex);
    M found;
    EXPECT_TRUE(changed.wait_for(lock, std::chrono::seconds(20), [&] {
      for (const auto& message : heard) {
        if (const auto* known = std::get_if<M>(&message)) {
          found = *known;
          return true;
        }
      }
      return false;
    })) << M::kName;
    return found;
  }
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<from_agent::Message> heard;
  std::shared_ptr<wire::Channel> channel;
  wire::Server server;  // last: it is stopped before what its callbacks use goes
};

class AgentCommandTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = "/tmp/tutti-command-XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    root_ = name;
    ::chmod(root_.c_str(), 0755);
    setup_.state_dir = root_;
    setup_.node = "node01";
    setup_.cluster_id = fmt::format("cmd{}", ::getpid());
    setup_.version = "test";
    setup_.controller = wire::Endpoint::at_path(root_ + "/api.sock");
    setup_.key = "secret";
    setup_.is_virtual = true;
    setup_.log_path = root_ + "/agent.log";
  }
  void TearDown() override {
    if (agent_ > 0) stop();
    std::filesystem::remove_all(root_);
  }
  // Before any thread exists.
  void start() {
    agent_ = ::fork();
    if (agent_ == 0) ::_exit(run_agent(setup_) ? 0 : 1);
  }
  int stop() {
    int status = -1;
    ::kill(agent_, SIGTERM);
    ::waitpid(agent_, &status, 0);
    agent_ = 0;
    return status;
  }
  void expect_no_groups() const {
    for (const auto& hierarchy : agent::probe_cgroups().hierarchies) {
      EXPECT_FALSE(std::filesystem::exists(hierarchy.path + "/tutti-" + setup_.cluster_id));
    }
  }
  std::string root_;
  AgentSetup setup_;
  pid_t agent_ = 0;
};

TEST_F(AgentCommandTest, ConnectsRunsAJobAndStopsCleanly) {
  start();
  Controller controller(root_ + "/api.sock");
  ASSERT_TRUE(controller.server.start());
  const auto hello = controller.wait_for<from_agent::Hello>();
  EXPECT_EQ(hello.node, "node01");
  EXPECT_EQ(hello.protocol, kAgentProtocol);

  to_agent::PrepareGang prepare;
  prepare.job.gang = GangId(5);
  prepare.job.workload = WorkloadId(5);
  prepare.job.epoch = Epoch(1);
  prepare.job.uid = ::getuid();
  prepare.job.gid = ::getgid();
  prepare.job.nodes = {"node01"};
  prepare.batch.emplace();
  prepare.batch->step = kBatchStep;
  prepare.batch->ranks = {0};
  prepare.batch->nodes = {"node01"};
  prepare.batch->tasks = {1};
  prepare.batch->script = "#!/bin/sh\necho hello\n";
  prepare.batch->work_dir = root_;
  prepare.batch->out = {StreamKind::kFile, "out", {}};
  controller.order(prepare);
  const StepKey key = controller.wait_for<from_agent::Ready>().key;
  EXPECT_EQ(key.step, kExternStep);
  controller.order(to_agent::Go{key});
  EXPECT_EQ(controller.wait_for<from_agent::StepEnded>().exit, ExitStatus{});
  controller.order(to_agent::EndGang{GangId(5), Epoch(1), Duration::seconds(1), {}});
  controller.wait_for<from_agent::Clean>();
  std::stringstream text;
  text << std::ifstream(root_ + "/out").rdbuf();
  EXPECT_EQ(text.str(), "hello\n");

  {
    std::lock_guard lock(controller.mutex);
    controller.heard.clear();
    controller.channel->close("test");
  }
  controller.wait_for<from_agent::Hello>();  // it dials again
  EXPECT_EQ(stop(), 0);
  EXPECT_TRUE(std::filesystem::is_empty(root_ + "/nodes/node01/jobs"));
  expect_no_groups();
}

TEST_F(AgentCommandTest, SaysWhyItIsNotAccepted) {
  setup_.key = "wrong";
  start();
  Controller controller(root_ + "/api.sock");
  ASSERT_TRUE(controller.server.start());
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  std::string log;
  while (log.find("403") == std::string::npos) {
    ASSERT_LT(std::chrono::steady_clock::now(), deadline) << log;
    std::stringstream text;
    text << std::ifstream(setup_.log_path).rdbuf();
    log = text.str();
    ::usleep(10'000);
  }
  EXPECT_EQ(stop(), 0);
  expect_no_groups();
}

}  // namespace
}  // namespace tutti::cli
