#include "tests/unit/controller/support.h"

namespace tutti::controller {

Cluster::Cluster(std::uint32_t nodes, std::function<void(ClusterSpec&)> edit)
    : log_(Log::to_sink([this](std::string_view line) {
        log_lines.emplace_back(line);
        return true;
      })) {
  std::string pattern = (std::filesystem::temp_directory_path() / "tutti-core-XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) std::abort();
  directory_ = pattern;
  PartitionSpec partition;
  partition.name = "batch";
  partition.is_default = true;
  for (std::uint32_t i = 0; i < nodes; ++i) {
    NodeSpec node;
    node.name = "n" + std::to_string(i);
    node.cpus = node.cores_per_socket = 8;
    node.memory_mib = 1000;
    node.devices.assign(2, DeviceSpec{});
    partition.nodes.push_back(node.name);
    spec_.nodes.push_back(node);
    agents_.push_back({node.name});
  }
  spec_.partitions.push_back(partition);
  if (edit) edit(spec_);
  open();
}

Cluster::~Cluster() {
  core.reset();
  journal.reset();
  std::error_code error;
  std::filesystem::remove_all(directory_, error);
}

void Cluster::open() {
  journal::OpenOptions options;
  options.directory = directory_ + "/state";
  options.vfs = disk.name();
  auto opened = journal::open(options);
  if (!opened) {
    ADD_FAILURE() << to_string(opened.error());
    std::abort();
  }
  journal.emplace(std::move(opened->journal));
  core = std::make_unique<Core>(*journal, users_, log_, [](const char*) {});
  Status recovered = core->recover(opened->snapshot, opened->report.snapshot_sequence, now);
  EXPECT_TRUE(recovered) << recovered.error().message;
  core->begin(now);
  EXPECT_TRUE(core->configure(spec_));
  EXPECT_TRUE(core->commit());
  (void)new_events();
}

void Cluster::restart() {
  core.reset();
  journal.reset();
  disk.crash_process();
  for (Agent& a : agents_) a.link = std::make_shared<AgentLink>();
  open();
}

Status Cluster::turn(const std::function<void()>& inputs) {
  core->begin(now);
  inputs();
  core->on_time();
  if (core->wants_pass()) core->run_pass();
  core->check_after();
  Status done = core->commit();
  // The kept agenda is what it would be from scratch, and nothing is forgotten to be published.
  EXPECT_EQ(state::encode_snapshot(core->published()->state), state::encode_snapshot(core->state()));
  for (int i = 0; done && core->has_planned_answers() && i < 100; ++i) return turn();
  return done;
}

HttpAnswer Cluster::call(const std::string& path, const std::string& body, Caller caller,
                         std::map<std::string, std::string> query) {
  auto answer = std::make_shared<std::optional<HttpAnswer>>();
  ApiCall request;
  request.caller = caller;
  request.method = "POST";
  request.path = path;
  request.body = body;
  request.query = std::move(query);
  request.reply = [answer](HttpAnswer a) {
    EXPECT_FALSE(answer->has_value()) << "answered twice";
    *answer = std::move(a);
  };
  (void)turn([&] { core->on_call(std::move(request)); });
  return answer->value_or(HttpAnswer{0, "", ""});
}

Submission Cluster::job(std::uint32_t nodes) {
  Submission s;
  s.workload.name = "job";
  s.workload.uid = s.workload.gid = 1000;
  RoleAsk& role = s.workload.roles.edit()[0];
  role.nodes_min = role.nodes_max = nodes;
  role.tasks = nodes * 8;
  role.tasks_per_node = 8;
  s.workload.launch.work_dir = "/tmp";
  s.script = "#!/bin/sh\ntrue\n";
  s.environment = std::string("A=1\0B=2", 7);
  return s;
}

Submission Cluster::session(std::uint32_t nodes) {
  Submission s = job(nodes);
  s.script.clear();
  s.workload.kind = WorkloadKind::kSession;
  return s;
}

SubmitResult Cluster::submit(Submission submission, Caller caller) {
  SubmitRequest request;
  submission.workload.uid = submission.workload.gid = caller.uid;
  request.submissions.push_back(std::move(submission));
  HttpAnswer answer = call("/v1/workloads", to_json(request), caller);
  if (answer.status != 200) {
    SubmitResult result;
    auto error = from_json<ApiError>(std::string_view(answer.body));
    result.error = error ? *error : ApiError{};
    return result;
  }
  auto reply = from_json<SubmitReply>(std::string_view(answer.body));
  EXPECT_TRUE(reply && reply->results.size() == 1) << answer.body;
  return reply->results.at(0);
}

std::uint32_t Cluster::must_submit(Submission submission, Caller caller) {
  SubmitResult result = submit(std::move(submission), caller);
  EXPECT_FALSE(result.error) << result.error->message;
  return result.id.value();
}

ActionResult Cluster::act(Verb verb, std::uint32_t job, Caller caller, ActionRequest request) {
  request.verb = verb;
  if (request.jobs.empty()) request.jobs.push_back({job, ""});
  HttpAnswer answer = call("/v1/actions", to_json(request), caller);
  auto reply = from_json<ActionReply>(std::string_view(answer.body));
  EXPECT_TRUE(reply && reply->results.size() == 1) << answer.body;
  return reply && !reply->results.empty() ? reply->results[0] : ActionResult{};
}

void Cluster::say(std::uint32_t node, const from_agent::Message& message, std::string payload) {
  EXPECT_TRUE(turn([&] { core->on_agent_message(agent(node).link, encode_frame(message, payload)); }));
}

void Cluster::hello(std::uint32_t node, std::vector<from_agent::GangReport> gangs) {
  from_agent::Hello hello;
  hello.node = agent(node).node;
  hello.gangs = std::move(gangs);
  agent(node).link = std::make_shared<AgentLink>();
  say(node, hello);
}

void Cluster::hang_up(std::uint32_t node) {
  agent(node).link->closed = "";
  EXPECT_TRUE(turn([&] { core->on_agent_closed(agent(node).link.get()); }));
}

void Cluster::connect_all() {
  for (std::uint32_t i = 0; i < agents_.size(); ++i) hello(i);
}

void Cluster::ended(std::uint32_t node, StepKey key, ExitStatus exit, std::uint64_t output) {
  from_agent::StepEnded message;
  message.key = key;
  message.exit = exit;
  message.output_size = output;
  say(node, message);
}

from_agent::GangReport Cluster::report(std::uint32_t job, bool started,
                                       std::vector<from_agent::StepReport> steps) const {
  return {GangId(job), gang(job).epoch, started, std::move(steps)};
}

void Cluster::run(std::uint32_t job) {
  for (std::uint32_t node : nodes_of(job)) ready(node, job);
  EXPECT_EQ(gang(job).state, GangState::kRunning);
}

void Cluster::complete(std::uint32_t job, ExitStatus exit) {
  ended(nodes_of(job)[0], key(job, kBatchStep), exit);
  EXPECT_EQ(gang(job).state, GangState::kEnding);
  for (std::uint32_t node : nodes_of(job)) clean(node, job);
}

std::shared_ptr<ClientLink> Cluster::attach(std::uint32_t id, Caller caller) {
  auto link = std::make_shared<ClientLink>();
  EXPECT_TRUE(turn([&] { core->on_client_opened(link, caller, GangId(id)); }));
  return link;
}

void Cluster::client_says(const std::shared_ptr<ClientLink>& link,
                          const from_client::Message& message) {
  EXPECT_TRUE(turn([&] { core->on_client_message(link.get(), encode_frame(message)); }));
}

void Cluster::client_gone(const std::shared_ptr<ClientLink>& link) {
  link->closed = "";
  EXPECT_TRUE(turn([&] { core->on_client_closed(link.get()); }));
}

std::vector<JobRecord> Cluster::history(std::uint32_t job) {
  journal::HistoryFilter filter;
  filter.ids = {{job, std::nullopt}};
  filter.duplicates = journal::Duplicates::kAll;
  auto rows = journal->query_history(filter);
  EXPECT_TRUE(rows);
  std::vector<JobRecord> records;
  for (const std::string& row : *rows) {
    auto record = from_json<JobRecord>(std::string_view(row));
    EXPECT_TRUE(record) << row;
    records.push_back(std::move(*record));
  }
  return records;
}

std::vector<std::string> Cluster::new_events() {
  std::vector<std::string> names;
  Status read = journal->for_each_event(events_seen_, [&](std::uint64_t n, std::string_view body) -> Status {
    events_seen_ = n;
    auto event = from_json<Event>(body);
    names.emplace_back(std::visit([](const auto& e) { return e.kName; }, event->body));
    return {};
  });
  EXPECT_TRUE(read);
  return names;
}

}  // namespace tutti::controller
