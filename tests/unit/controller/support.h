// A controller core on a real journal (on a disk that can be made to fail), with agents and clients
// that record what they are told and say what the test wants, and a clock that the test moves.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "controller/core.h"
#include "journal/fault_vfs.h"
#include "state/apply.h"

namespace tutti::controller {

class FakeUsers : public Users {
 public:
  std::string user_name(std::uint32_t uid) override { return "u" + std::to_string(uid); }
  std::string group_name(std::uint32_t gid) override { return "g" + std::to_string(gid); }
  bool in_group(std::uint32_t uid, const std::string& group) override {
    return group == "g" + std::to_string(uid);
  }
};

template <class Message>
class RecordingLink : public Link {
 public:
  bool send(std::string frame) override {
    if (closed) return false;
    auto decoded = decode_frame<Message>(frame);
    EXPECT_TRUE(decoded) << frame;
    if (decoded) got.emplace_back(std::move(decoded->first), std::string(decoded->second));
    return true;
  }
  void close(std::string reason) override { closed = std::move(reason); }
  // Takes the messages of one kind out of what has come.
  template <class M>
  std::vector<M> take() {
    std::vector<M> found;
    std::erase_if(got, [&](auto& entry) {
      auto* m = std::get_if<M>(&entry.first);
      if (m) found.push_back(std::move(*m));
      return m != nullptr;
    });
    return found;
  }
  std::vector<std::pair<Message, std::string>> got;
  std::optional<std::string> closed;
};
using AgentLink = RecordingLink<to_agent::Message>;
using ClientLink = RecordingLink<to_client::Message>;

inline const Caller kAnn{true, false, 1000, 1000};
inline const Caller kBob{true, false, 1001, 1001};
inline const Caller kRoot{true, true, 0, 0};

struct Agent {
  std::string node;
  std::shared_ptr<AgentLink> link = std::make_shared<AgentLink>();
};

class Cluster {
 public:
  explicit Cluster(std::uint32_t nodes = 3, std::function<void(ClusterSpec&)> edit = {});
  ~Cluster();

  // One turn of the controller with these inputs; nothing to say means only time passes.
  Status turn(const std::function<void()>& inputs = [] {});
  void pass_time(Duration time) {
    now = now + time;
    (void)turn();
  }
  // The process dies and a new one reads the journal; connections are gone.
  void restart();

  // ---- callers
  HttpAnswer call(const std::string& path, const std::string& body, Caller caller,
                  std::map<std::string, std::string> query = {});
  // A batch job of n nodes of 8 CPUs each.
  static Submission job(std::uint32_t nodes = 1);
  static Submission session(std::uint32_t nodes = 1);
  SubmitResult submit(Submission submission, Caller caller = kAnn);
  std::uint32_t must_submit(Submission submission, Caller caller = kAnn);
  ActionResult act(Verb verb, std::uint32_t job, Caller caller = kAnn, ActionRequest request = {});

  // ---- agents
  Agent& agent(std::uint32_t i) { return agents_.at(i); }
  void say(std::uint32_t node, const from_agent::Message& message, std::string payload = {});
  void hello(std::uint32_t node, std::vector<from_agent::GangReport> gangs = {});
  void hang_up(std::uint32_t node);
  // All agents connect with nothing running.
  void connect_all();
  template <class M>
  std::vector<M> orders(std::uint32_t node) {
    return agent(node).link->take<M>();
  }
  StepKey key(std::uint32_t job, StepId step = kExternStep) const {
    return {GangId(job), gang(job).epoch, step};
  }
  void ready(std::uint32_t node, std::uint32_t job, StepId step = kExternStep) {
    say(node, from_agent::Ready{key(job, step)});
  }
  void refuse(std::uint32_t node, StepKey key, const std::string& reason, bool fault_of_job = false) {
    say(node, from_agent::Refused{key, reason, fault_of_job, {}});
  }
  void clean(std::uint32_t node, std::uint32_t job) {
    say(node, from_agent::Clean{GangId(job), gang(job).epoch});
  }
  void ended(std::uint32_t node, StepKey key, ExitStatus exit = {}, std::uint64_t output = 0);
  from_agent::GangReport report(std::uint32_t job, bool started,
                                std::vector<from_agent::StepReport> steps = {}) const;
  // Everyone who is asked is ready; the job runs.
  void run(std::uint32_t job);
  // Its batch script ends, its nodes are clean.
  void complete(std::uint32_t job, ExitStatus exit = {});

  // ---- clients
  std::shared_ptr<ClientLink> attach(std::uint32_t gang, Caller caller = kAnn);
  void client_says(const std::shared_ptr<ClientLink>& link, const from_client::Message& message);
  void client_gone(const std::shared_ptr<ClientLink>& link);

  const Gang& gang(std::uint32_t id) const { return *core->state().gangs.find(id); }
  const WorkloadEntry& entry(std::uint32_t id) const { return *core->state().workloads.find(id); }
  bool holds_nothing(std::uint32_t id) const {
    return gang(id).slots.empty() && gang(id).state == GangState::kPending;
  }
  std::vector<std::uint32_t> nodes_of(std::uint32_t id) const {
    std::vector<std::uint32_t> nodes;
    for (const Slot& slot : gang(id).slots) nodes.push_back(slot.node);
    return nodes;
  }
  std::vector<JobRecord> history(std::uint32_t job);
  // Names of the events in the journal that were not there at the last call.
  std::vector<std::string> new_events();

  Instant now = Instant::from_ms(1'000'000'000);
  journal::FaultVfs disk;
  std::optional<journal::Journal> journal;
  std::unique_ptr<Core> core;
  std::vector<std::string> log_lines;

 private:
  void open();
  std::string directory_;
  FakeUsers users_;
  Log log_;
  ClusterSpec spec_;
  std::vector<Agent> agents_;
  std::uint64_t events_seen_ = 0;
};

}  // namespace tutti::controller
