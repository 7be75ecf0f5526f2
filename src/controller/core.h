// Core: the state of the cluster and everything that may change it. Commands, answers of agents and
// the passing of time come in; events go to the journal; effects (orders to agents, replies to
// callers) leave after the events are durable. Single-threaded, no clock of its own, no sockets:
// the service around it (controller/service.h) gives it turns.
//
// A turn: begin(now), any number of inputs, a scheduling pass if something changed, commit(). If
// the commit fails, the state is as before the turn and callers are told.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/log.h"
#include "controller/attach_hub.h"
#include "controller/job_lookup.h"
#include "controller/ports.h"
#include "controller/published.h"
#include "controller/roll_call.h"
#include "engine/agents.h"
#include "journal/journal.h"
#include "model/api.h"
#include "model/event.h"
#include "scheduler/plan.h"

namespace tutti::controller {

// Named places around commit and effect where a test may end the process (TUTTI_CRASH_AT).
using CrashPoint = std::function<void(const char* name)>;

class Core {
 public:
  Core(journal::Journal& journal, Users& users, Log& log, CrashPoint crash_point);

  // Rebuilds the state from the journal. Errors: kCorrupt.
  Status recover(const std::optional<journal::Snapshot>& snapshot, std::uint64_t after, Instant now);
  // Takes the configuration into force if it differs from the one in the journal. Errors: kConflict
  // (a node in use would vanish). Part of a turn.
  Status configure(const ClusterSpec& spec);

  void begin(Instant now);
  void on_call(ApiCall call);
  void on_agent_message(const std::shared_ptr<Link>& link, std::string frame);
  void on_agent_closed(const Link* link);
  void on_client_opened(std::shared_ptr<Link> link, Caller caller, GangId gang);
  void on_client_message(const Link* link, std::string frame);
  void on_client_closed(const Link* link);
  void on_time();
  void run_pass();
  void note_pass_time(std::uint64_t microseconds);
  // After the inputs and the pass of a turn: callers whose condition came true are answered.
  void check_after() { check_waiters(); }
  // Makes the turn durable, publishes, lets effects go. Errors: what the journal said; the turn is
  // undone and its callers have been told.
  Status commit();

  bool wants_pass() const { return dirty_; }
  // When on_time() or a pass has something to do next.
  Instant next_time() const;
  std::shared_ptr<const Published> published() const { return std::atomic_load(&published_); }
  const ClusterState& state() const { return state_; }
  // Answers of planned nodes wait to be taken in another turn.
  bool has_planned_answers() const { return engine_.has_answers(); }

 private:
  // Applies the event now and queues it for the journal.
  void record(EventBody body);
  void after_commit(std::function<void()> effect) { effects_.push_back(std::move(effect)); }
  void send(NodeIndex node, to_agent::Message order, std::string payload = {});
  void answer(ApiCall& call, HttpAnswer reply);
  void refuse(ApiCall& call, const Error& error);
  void publish();
  void on_wait(ApiCall call);
  // What follows from the state and is kept beside it, from scratch.
  void rebuild_books();
  void undo_turn(const Error& error);

  // core_submit.cpp
  void on_submit(ApiCall& call);
  Result<WorkloadId> accept(const Caller& caller, Submission& submission);
  Status check_partitions(const Caller& caller, const Workload& workload);
  Status check_workload(const Caller& caller, Submission& submission);
  Status settle_dependencies(Workload& workload) const;
  Result<bool> met_long_ago(const Dependency& dependency) const;
  // Workloads that this one waits for, each as often as it is named.
  std::vector<std::uint32_t> named_by(const Workload& workload) const;
  void count_names(const Workload& workload);
  void drop_names(const Workload& workload);
  SubmitResult submit(const Caller& caller, Submission& submission);
  SubmitResult try_out(const Caller& caller, Submission& submission);
  // core_accounts.cpp
  void on_accounts(ApiCall& call);
  Status check_accounting(Workload& workload);  // fills in user, account, QOS
  Status check_limits(const Workload& w, const Association* mine, const Qos& qos);
  // core_actions.cpp
  void on_action(ApiCall& call);
  std::vector<std::pair<std::string, JobTarget>> select(const ActionRequest& request,
                                                        std::vector<ActionResult>& unknown);
  Status act(const Caller& caller, const ActionRequest& request, const JobTarget& target);
  Status cancel(const Caller& caller, const JobTarget& target, Outcome outcome);
  Status signal(const ActionRequest& request, const JobTarget& target);
  Status hold(const Caller& caller, const ActionRequest& request, const JobTarget& target);
  Status requeue(const Caller& caller, const JobTarget& target, bool hold);
  Status update(const Caller& caller, const ActionRequest& request, const JobTarget& target);
  // core_steps.cpp
  void on_step_request(ApiCall& call);
  void call_step(const Gang& gang, const Step& step, StepOrder order);
  void resend_step(const StepRun& run, NodeIndex node);
  void output_sizes_known(GangId gang, NodeIndex node, const std::map<StepId, std::uint64_t>& sizes);
  void tell_step_ended(const StepRun& run, GangId gang, const Step& step, const Link* only);
  StepRun& book_of(const Gang& gang, const Step& step);
  StepId next_step_id(const Gang& gang) const;
  StepReply reply_of(const Gang& gang, const Step& step) const;
  void end_step(GangId gang, StepId step, Outcome outcome, std::optional<std::uint32_t> uid,
                const std::string& why);
  void tell_to_end(const StepRun& run, NodeIndex node, bool not_started);
  void finish_step(const StepKey& key);
  void on_batch_done(const Gang& gang, const ExitStatus& exit, Outcome outcome);
  // core_clients.cpp
  void follow_step(AttachHub::Client& client, const from_client::Follow& m);
  void client_left(const AttachHub::Client& client, bool keep_running);
  void check_gone_clients();
  void expect_clients();
  void expect_client(const WorkloadEntry& entry);
  // core_admin.cpp
  void on_node_request(ApiCall& call);
  void on_partition_request(ApiCall& call);
  void on_configure(ApiCall& call);
  void on_queues_request(ApiCall& call);  // core_queues.cpp
  void on_shutdown(ApiCall& call);
  // core_reservations.cpp
  void on_reservation_request(ApiCall& call);
  void check_reservations();
  Instant next_reservation_time() const;
  void end_all(bool requeue);  // all that runs, requeued or not (tutti down)
  void move_books(const ClusterSpec& from, const ClusterSpec& to);
  void fail_gangs_on(NodeIndex node, const std::string& why);
  // core_groups.cpp
  std::vector<GangId> preparing_peers(const Gang& gang) const;
  void go_together(GangId gang);
  void release_peers(const Gang& failed, const std::string& reason, Instant retry_at);
  Status check_group(const Workload& workload) const;
  // core_gangs.cpp
  void start_gang(const scheduler::Start& start);
  void prepare(const Gang& gang, std::optional<NodeIndex> only = std::nullopt);
  void gang_ready(const Gang& gang, NodeIndex node);
  void go(const Gang& gang);
  void roll_call_failed(const Gang& gang, NodeIndex node, const std::string& reason);
  void end_gang(GangId gang, GangEnding ending, const std::string& notice = {}, bool at_once = false);
  void release(GangId gang, NodeIndex node);
  void finish_gang(GangId gang);
  void finish_steps_of(GangId gang, NodeIndex node);
  void workload_closed(const WorkloadEntry& entry);
  void tell_gang_changed(const Gang& gang, bool agents_ready);
  std::pair<std::string, std::string> script_of(const Workload& workload);  // text, environment
  void remember_life(const WorkloadEntry& entry, const Gang& gang, const GangEnding& ending);
  void remember(const WorkloadEntry& entry, const Gang* gang, const IndexSet* unstarted,
                std::string_view state_word);
  // core_evictions.cpp
  void carry_out_evictions(const scheduler::Plan& plan);
  void send_notice(const Gang& gang);
  void send_limit_warning(const Gang& gang);
  void finish_eviction(GangId gang);
  void shrink(GangId gang);
  // Whether the node was one that the gang leaves while it runs.
  bool slot_left(GangId gang, NodeIndex node);
  static bool leaves(const Gang& gang, NodeIndex node);
  bool ends_evicted(const Gang& gang, const ExitStatus& exit) const;
  void on_notified(const from_agent::Notified& m);
  void on_checkpoint(GangId gang, std::uint64_t step);
  void check_ready_deadline(GangId gang);
  std::optional<NodeIndex> suspected_node(const Gang& gang) const;
  // core_agents.cpp
  void on_hello(const std::shared_ptr<Link>& link, const from_agent::Hello& hello);
  void reconcile(NodeIndex node, const from_agent::Hello& hello);
  void take_planned_answers();
  void on_agent(NodeIndex node, const from_agent::Message& message, std::string_view payload);
  void on_ready(NodeIndex node, const from_agent::Ready& m);
  void on_refused(NodeIndex node, const from_agent::Refused& m);
  void on_step_ended(NodeIndex node, const from_agent::StepEnded& m);
  void on_rank_exited(NodeIndex node, const from_agent::RankExited& m);
  static std::vector<NodeIndex> nodes_of(const Gang& gang);  // that still hold it, each once
  static bool holds(const Gang& gang, NodeIndex node);
  void ask_for_output(const StepRun& run, NodeIndex node);
  void reconcile_steps(NodeIndex node, const from_agent::GangReport& report);
  void node_failed(GangId gang, NodeIndex node, const std::string& reason);
  void set_node_status(NodeIndex node, NodeStatus status, const std::string& reason);
  void lose_node(NodeIndex node);
  // core_time.cpp
  void check_limits();
  void check_roll_calls();
  void check_nodes();
  void check_waiters();
  void forget_old();
  void close_books();
  void schedule_limit(const Gang& gang);
  Instant warning_time(const Gang& gang) const;

  const Gang* gang(GangId id) const { return state_.gangs.find(id.value()); }
  const WorkloadEntry* entry_of(const Gang& g) const {
    return state_.workloads.find(g.workload.value());
  }
  std::optional<NodeIndex> node_index(std::string_view name) const;

  struct Waiter {
    std::uint32_t job = 0;
    std::string until;
    Instant deadline;
    ApiCall call;
  };

  journal::Journal& journal_;
  Users& users_;
  Log& log_;
  CrashPoint crash_point_;
  ClusterState state_;
  Agenda agenda_;
  Instant now_;
  journal::Batch batch_;
  std::optional<scheduler::PriorityBasis> basis_;  // of this turn, for the records of what ends
  std::vector<std::function<void()>> effects_;
  std::vector<ApiCall> callers_;  // of this turn, answered by effects; told if the commit fails
  std::shared_ptr<const Published> published_;
  std::shared_ptr<const PassResult> pass_ = std::make_shared<PassResult>();
  bool dirty_ = true, shutting_down_ = false, shutting_down_before_turn_ = false;
  Instant next_look_ = Instant::never();

  AgentsEngine engine_;
  AttachHub hub_;
  RollCalls calls_;
  std::vector<AgentAnswer> answers_in_turn_;
  std::unordered_map<std::string, NodeIndex> node_by_name_;
  // When to look at a running gang: its warning, its limit. May be stale, the state decides.
  std::set<std::pair<Instant, std::uint32_t>> limits_;
  std::map<NodeIndex, Instant> unknown_since_, unknown_before_turn_;
  std::set<std::pair<Instant, std::uint32_t>> avoidances_;  // when avoid_nodes may be cleared
  std::deque<std::pair<Instant, std::uint32_t>> finished_;  // workloads by their end, for MinJobAge
  // How often open workloads name a workload in their dependencies: it is not forgotten before them.
  std::map<std::uint32_t, std::uint32_t> named_;
  std::set<std::uint32_t> kept_;  // old enough to be forgotten, but named
  // Submissions by owner and key, so that one that is asked again is found.
  std::map<std::pair<std::uint32_t, std::uint64_t>, WorkloadId> submission_keys_;
  // Nodes of elastic gangs that are clean while others they leave are not yet.
  std::map<std::uint32_t, std::set<NodeIndex>> clean_slots_;
  std::vector<Waiter> waiters_;
  std::map<std::string, bool> group_cache_;
  DiagView diag_;
};

}  // namespace tutti::controller
