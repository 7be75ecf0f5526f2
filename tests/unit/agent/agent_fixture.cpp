#include "tests/unit/agent/agent_fixture.h"

#include <dirent.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace tutti::agent {

using Clock = std::chrono::steady_clock;

FakeUplink::FakeUplink() : event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

void FakeUplink::order(const to_agent::Message& message, std::string_view payload) {
  orders_.push_back(encode_frame(message, payload));
  const std::uint64_t one = 1;
  ASSERT_EQ(::write(event_.get(), &one, sizeof one), 8);
}

std::vector<std::string> FakeUplink::on_readable() {
  std::uint64_t count = 0;
  EXPECT_EQ(::read(event_.get(), &count, sizeof count), 8);
  std::vector<std::string> frames(orders_.begin(), orders_.end());
  orders_.clear();
  return frames;
}

void FakeUplink::send(std::string_view frame) {
  auto decoded = decode_frame<from_agent::Message>(frame);
  ASSERT_TRUE(decoded) << decoded.error().message;
  if (const auto* part = std::get_if<from_agent::Output>(&decoded->first)) {
    auto& next_offset = next[part->key.step];
    if (part->offset > next_offset) ++gaps;
    if (part->offset == next_offset) {
      output[{part->key.step, part->rank, part->is_error}] += decoded->second;
      next_offset = part->next;
    }
    if (acknowledge) order(to_agent::OutputTaken{part->key, next_offset});
    return;
  }
  heard.push_back(std::move(decoded->first));
}

void AgentTest::SetUp() {
  std::string name = "/tmp/tutti-agent-XXXXXX";
  ASSERT_NE(::mkdtemp(name.data()), nullptr);
  root_ = name;
  ::chmod(root_.c_str(), 0711);
  std::filesystem::create_directory(work_dir());
  ::chmod(work_dir().c_str(), 0777);
  layout_ = probe_cgroups();
  cluster_ = fmt::format("agent{}", ::getpid());
  options_.node = "node01";
  options_.directory = root_ + "/node01";
  options_.version = "test";
  options_.log = [this](const std::string& line) { log_.push_back(line); };
  uplink_ = std::make_unique<FakeUplink>();
}

void AgentTest::TearDown() {
  if (!agent_ && uplink_) start_agent();
  if (agent_) {
    std::vector<to_agent::EndGang> orders;
    for (const auto& entry : std::filesystem::directory_iterator(options_.directory + "/jobs")) {
      const auto gang = static_cast<std::uint32_t>(std::stoul(entry.path().filename().string()));
      uplink_->order(to_agent::EndGang{GangId(gang), Epoch(1'000'000), Duration(), {}});
    }
    until("no gang is left",
          [&] { return std::filesystem::is_empty(options_.directory + "/jobs"); });
  }
  agent_.reset();
  auto cgroups = open_cgroups(layout_, cluster_, "node01");
  EXPECT_TRUE(cgroups->jobs().empty());
  EXPECT_TRUE(cgroups->remove_node());
  std::filesystem::remove_all(root_);
  if (HasFailure()) {
    for (const auto& line : log_) std::fprintf(stderr, "agent: %s\n", line.c_str());
    for (const auto& message : uplink_->heard) {
      std::fprintf(stderr, "heard: %s\n", to_json(message).c_str());
    }
  }
}

void AgentTest::start_agent() {
  uplink_->cut();
  auto agent = Agent::create(options_, *uplink_, open_cgroups(layout_, cluster_, "node01"));
  ASSERT_TRUE(agent) << agent.error().message;
  agent_ = std::move(*agent);
  const int before = count<from_agent::Hello>();
  until("hello", [&] { return count<from_agent::Hello>() > before; });
}

void AgentTest::until(const std::string& what, const std::function<bool()>& condition) {
  const auto deadline = Clock::now() + std::chrono::seconds(20);
  while (!condition()) {
    ASSERT_LT(Clock::now(), deadline) << "waited in vain: " << what;
    agent_->run_once(Duration::milliseconds(50));
  }
}

void AgentTest::run_for(int milliseconds) {
  const auto deadline = Clock::now() + std::chrono::milliseconds(milliseconds);
  while (Clock::now() < deadline) agent_->run_once(Duration::milliseconds(10));
}

JobFacts AgentTest::job(std::uint32_t gang, std::uint64_t epoch) const {
  JobFacts facts;
  facts.gang = GangId(gang);
  facts.workload = WorkloadId(gang);
  facts.epoch = Epoch(epoch);
  facts.cluster = "lab";
  facts.name = "test";
  facts.uid = ::getuid();
  facts.gid = ::getgid();
  facts.user = "root";
  facts.nodes = {"node01"};
  facts.cpus = {2};
  facts.tasks = {1};
  facts.gpus = {0};
  facts.submit_dir = work_dir();
  return facts;
}

StepOrder AgentTest::batch(const std::string& script) const {
  StepOrder order = step(kBatchStep, {});
  order.script = "#!/bin/bash\n" + script;
  order.name = "batch";
  order.out = {StreamKind::kFile, "slurm-%j.out", {}};
  order.in = order.err = {};  // stderr: same as stdout
  return order;
}

StepOrder AgentTest::step(StepId id, std::vector<std::string> argv, std::uint32_t ranks) const {
  StepOrder order;
  order.step = id;
  order.nodes = {"node01"};
  order.tasks = {ranks};
  order.total_tasks = ranks;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) order.ranks.push_back(rank);
  order.argv = std::move(argv);
  order.environment = {"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/tmp", "LANG=C"};
  order.work_dir = work_dir();
  order.out.kind = StreamKind::kAttached;
  order.err.kind = StreamKind::kAttached;
  order.in.kind = StreamKind::kAttached;
  return order;
}

void AgentTest::prepare(const JobFacts& job, std::optional<StepOrder> batch) {
  uplink_->order(to_agent::PrepareGang{job, SlotOrder{}, std::move(batch)});
}
void AgentTest::prepare_step(const JobFacts& job, StepOrder order) {
  uplink_->order(to_agent::PrepareStep{job.gang, job.epoch, std::move(order)});
}
void AgentTest::go(const JobFacts& job, StepId step) {
  uplink_->order(to_agent::Go{{job.gang, job.epoch, step}});
}
void AgentTest::end(const JobFacts& job, Duration grace, std::string notice) {
  uplink_->order(to_agent::EndGang{job.gang, job.epoch, grace, std::move(notice)});
}

void AgentTest::run_gang(const JobFacts& job, std::optional<StepOrder> batch) {
  prepare(job, std::move(batch));
  const auto is_it = [&](const auto& m) {
    return m.key == StepKey{job.gang, job.epoch, kExternStep};
  };
  until("the gang is ready", [&] { return find<from_agent::Ready>(is_it) != nullptr; });
  go(job);
  until("the gang has started", [&] { return find<from_agent::Started>(is_it) != nullptr; });
}

void AgentTest::run_step(const JobFacts& job, StepOrder order) {
  const StepKey key{job.gang, job.epoch, order.step};
  prepare_step(job, std::move(order));
  until("the step is ready", [&] {
    return find<from_agent::Ready>([&](const auto& m) { return m.key == key; }) != nullptr;
  });
  go(job, key.step);
  // A program that cannot be executed may have ended before anybody could say that it started.
  until("the step has started or ended", [&] {
    return find<from_agent::Started>([&](const auto& m) { return m.key == key; }) != nullptr ||
           find<from_agent::StepEnded>([&](const auto& m) { return m.key == key; }) != nullptr;
  });
}

void AgentTest::end_and_check(const JobFacts& job, Duration grace) {
  end(job, grace);
  until("clean", [&] {
    return find<from_agent::Clean>([&](const auto& m) { return m.gang == job.gang; }) != nullptr;
  });
  EXPECT_FALSE(
      std::filesystem::exists(fmt::format("{}/jobs/{}", options_.directory, job.gang.value())));
  EXPECT_TRUE(open_cgroups(layout_, cluster_, "node01")->jobs().empty());
}

const from_agent::StepEnded* AgentTest::ended(StepId step) const {
  return find<from_agent::StepEnded>([&](const auto& m) { return m.key.step == step; });
}

from_agent::StepEnded AgentTest::wait_ended(StepId step) {
  until("the step has ended", [&] { return ended(step) != nullptr; });
  const auto* message = ended(step);
  if (message == nullptr) return {};
  until("all output is here", [&] { return uplink_->next[step] >= message->output_size; });
  return *message;
}

std::string AgentTest::output(StepId step, std::uint32_t rank, bool is_error) const {
  const auto found = uplink_->output.find({step, rank, is_error});
  return found == uplink_->output.end() ? std::string() : found->second;
}

std::string AgentTest::read(const std::string& name) const {
  std::ifstream file(work_dir() + "/" + name);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<int> AgentTest::processes_with(const std::string& text) {
  std::vector<int> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    auto line = read_small_file("/proc/" + name + "/cmdline");
    if (line && line->find(text) != std::string::npos) found.push_back(std::stoi(name));
  }
  return found;
}

}  // namespace tutti::agent
