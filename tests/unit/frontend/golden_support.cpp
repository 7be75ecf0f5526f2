#include "tests/unit/frontend/golden_support.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>

#include "base/text.h"
#include "model/reasons.h"

namespace tutti::slurm::golden {

std::vector<Command> load(const std::string& name) {
  std::ifstream in(std::string(TUTTI_SOURCE_DIR) + "/tests/golden/slurm/" + name);
  std::vector<Command> out;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("$ ")) {
      out.push_back({line.substr(2), {}, {}, 0});
    } else if (out.empty() || line.starts_with("# ")) {
      continue;
    } else if (line.starts_with("[exit ") && line.ends_with("]")) {
      out.back().exit_code = std::stoi(line.substr(6));
    } else if (line.starts_with("2> ")) {
      out.back().errors += line.substr(3) + "\n";
    } else {
      out.back().text += line + "\n";
    }
  }
  // The empty line after "[exit N]" parts commands; it was counted to the one before.
  for (Command& c : out)
    if (c.text.ends_with('\n')) c.text.pop_back();
  return out;
}

Instant at(int hour, int minute, int second) {
  constexpr std::int64_t kMidnight = 1795996800;
  return Instant::from_ms((kMidnight + hour * 3600 + minute * 60 + second) * 1000);
}

TimeText times(Instant now, std::string_view format) {
  static const UtcZone kUtc;
  return TimeText(kUtc, format, now);
}

StateView cluster() {
  StateView view;
  view.cluster = "lab";
  view.version = "22.05.8";
  view.controller_host = "HOST";
  view.spec.emplace();
  view.spec->name = "lab";
  view.spec->default_memory_mib_per_cpu = 1000;
  view.spec->priority.qos = 2000;
  for (int i = 1; i <= 4; ++i) {
    NodeView node;
    node.spec.name = "node0" + std::to_string(i);
    node.spec.address = "127.0.0.1";
    node.spec.cpus = 128;
    node.spec.sockets = 2;
    node.spec.cores_per_socket = 32;
    node.spec.threads_per_core = 2;
    node.spec.memory_mib = 1000000;
    node.spec.devices.assign(8, DeviceSpec{"gpu", "rtxpro6000", ""});
    node.state.status = NodeStatus::kUp;
    node.state.agent_version = "22.05.8";
    node.state.kernel = "Linux KERNEL";
    node.state.booted = at(18, 53, 46);
    node.state.agent_started = at(20, 0, 2);
    node.state.changed = at(20, 0, 31);
    view.nodes.push_back(node);
  }
  PartitionSpec batch;
  batch.name = "batch";
  batch.nodes = {"node01", "node02", "node03", "node04"};
  batch.is_default = true;
  batch.max_time = Duration::minutes(7 * 1440);
  batch.default_time = Duration::minutes(60);
  PartitionSpec fast = batch;
  fast.name = "short";
  fast.is_default = false;
  fast.max_time = Duration::minutes(30);
  fast.default_time = Duration::minutes(10);
  fast.priority_job_factor = 10;
  view.partitions = {batch, fast};
  return view;
}

WorkloadView simple_job(std::uint32_t id, const std::string& name, Instant submitted) {
  WorkloadView view;
  Workload& w = view.workload;
  w.id = WorkloadId(id);
  w.name = name;
  w.user = "alice";
  w.group = "alice";
  w.uid = w.gid = 2001;
  w.account = "research";
  w.qos = "normal";
  w.partitions = {"batch"};
  w.submitted = submitted;
  w.launch.script.low = 1;
  w.launch.work_dir = "~alice/g";
  w.extras.edit().submit_host = "localhost";
  w.extras.edit().submit_pid = 2980;
  view.partition = "batch";
  view.eligible = submitted;
  view.simple_unstarted = true;
  view.time_limit = Duration::minutes(60);
  view.priority = {10225, 0, 10000, 125, 100, 0, 0};
  return view;
}

GangView gang_on(std::uint32_t id, std::uint32_t workload, GangState state,
                 const std::vector<std::string>& nodes, std::uint32_t cpus_per_node,
                 std::uint64_t memory_mib, std::uint32_t gpus_per_node) {
  GangView view;
  view.gang.id = GangId(id);
  view.gang.workload = WorkloadId(workload);
  view.gang.state = state;
  view.gang.partition = "batch";
  view.nodes = nodes;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    Slot slot;
    slot.node = static_cast<NodeIndex>(nodes[i].back() - '1');
    // Half the CPUs are the first threads of the first cores, half their siblings' socket.
    for (std::uint32_t c = 0; c < cpus_per_node; ++c)
      slot.cpu_ids.push_back(
          static_cast<std::uint16_t>(c < cpus_per_node / 2 ? c : 64 + c - cpus_per_node / 2));
    slot.memory_mib = memory_mib;
    for (std::uint32_t g = 0; g < gpus_per_node; ++g)
      slot.gpus.push_back(static_cast<std::uint16_t>(g));
    view.gang.slots.push_back(slot);
  }
  return view;
}

namespace {

WorkloadView job_31() {
  WorkloadView train = simple_job(31, "train", at(20, 0, 42));
  train.simple_unstarted = false;
  train.time_limit = Duration::minutes(120);
  train.priority = {10365, 0, 10000, 265, 100, 0, 0};
  RoleAsk& ask = train.workload.roles.edit()[0];
  ask.nodes_min = ask.nodes_max = 2;
  ask.tasks = 8;
  ask.tasks_per_node = 4;
  ask.cpus_per_task = 2;
  ask.gpus_per_node = 4;
  ask.gpu_type = "rtxpro6000";
  ask.memory_mib_per_node = 65536;
  train.workload.extras.edit().comment = "golden";
  train.workload.launch.command = "~alice/g/train.sh";
  GangView gang = gang_on(31, 31, GangState::kRunning, {"node01", "node02"}, 8, 65536, 4);
  gang.gang.allocated = gang.gang.started = at(20, 0, 42);
  gang.gang.limit_end = at(22, 0, 42);
  Step batch;
  batch.id = kBatchStep;
  batch.name = "batch";
  batch.state = StepState::kRunning;
  batch.created = batch.started = at(20, 0, 42);
  batch.slots.push_back(StepSlot{0, {0}, 8, {}, false});
  Step sleep = batch;
  sleep.id = 0;
  sleep.name = "sleep";
  sleep.cpus_per_task = 2;
  sleep.slots = {StepSlot{0, {0, 1, 2, 3}, 8, {0, 1, 2, 3}, false},
                 StepSlot{1, {4, 5, 6, 7}, 8, {0, 1, 2, 3}, false}};
  gang.gang.steps = {batch, sleep};
  train.gangs.push_back(gang);
  return train;
}

void wait_for(WorkloadView& job, std::string_view why, Instant planned,
              std::vector<std::string> nodes) {
  job.wait.emplace();
  job.wait->reason = std::string(why);
  job.wait->planned_start = planned;
  job.wait->planned_nodes = std::move(nodes);
}

}  // namespace

StateView jobs_31_to_35() {
  StateView view = cluster();
  view.now = at(20, 1, 19);
  const std::vector<std::string> all = {"node01", "node02", "node03", "node04"};
  for (int i : {0, 1}) {
    view.nodes[i].cpus_allocated = 8;
    view.nodes[i].memory_mib_allocated = 65536;
    view.nodes[i].gpus_allocated = {0, 1, 2, 3};
  }
  for (int i : {2, 3}) view.nodes[i].planned = true;

  WorkloadView wide = simple_job(32, "wide", at(20, 0, 43));
  wide.time_limit = Duration::minutes(30);
  RoleAsk& wide_ask = wide.workload.roles.edit()[0];
  wide_ask.nodes_min = wide_ask.nodes_max = wide_ask.tasks = 4;
  wide_ask.gpus_per_node = 8;
  wide.priority = {10603, 0, 10000, 503, 100, 0, 0};
  wait_for(wide, reason::kNodesDown, at(22, 5, 0), all);

  WorkloadView held = simple_job(33, "held", at(20, 0, 43));
  held.workload.hold = Hold::kUser;
  held.time_limit = Duration::minutes(10);
  wait_for(held, reason::kHeldUser, {}, {});

  WorkloadView fast = simple_job(34, "a-very-long-job-name-indeed", at(20, 0, 44));
  fast.workload.partitions = {"short"};
  fast.partition = "short";
  fast.time_limit = Duration::minutes(5);
  RoleAsk& fast_ask = fast.workload.roles.edit()[0];
  fast_ask.nodes_min = fast_ask.nodes_max = fast_ask.tasks = 4;
  fast_ask.exclusive = true;
  fast.priority = {11503, 0, 10000, 503, 1000, 0, 0};
  wait_for(fast, reason::kResources, at(22, 0, 42), all);

  WorkloadView later = simple_job(35, "later", at(20, 0, 44));
  later.workload.begin = at(22, 0, 44);
  later.time_limit = Duration::minutes(10);
  wait_for(later, reason::kBeginTime, {}, {});

  view.workloads = {job_31(), wide, held, fast, later};
  return view;
}

StateView array_19() {
  StateView view = cluster();
  view.now = at(20, 0, 15);
  WorkloadView array = simple_job(19, "arr", at(20, 0, 12));
  array.eligible = at(20, 0, 14);
  array.workload.array = "0-7";
  array.workload.array_throttle = 2;
  array.simple_unstarted = false;
  array.unstarted = "2-7";
  wait_for(array, reason::kArrayThrottle, {}, {});
  for (std::uint32_t i : {0u, 1u}) {
    GangView gang = gang_on(20 + i, 19, GangState::kRunning, {"node01"}, 2, 2000, 0);
    gang.gang.array_index = i;
    gang.gang.allocated = gang.gang.started = at(20, 0, 14);
    gang.gang.limit_end = at(21, 0, 14);
    array.gangs.push_back(gang);
  }
  view.workloads = {array};
  return view;
}

namespace {

std::string sorted_lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  std::sort(lines.begin(), lines.end());
  return join(lines, "\n");
}

}  // namespace

void compare(const std::string& file, const std::vector<Case>& cases,
             const std::vector<std::string>& kept) {
  std::vector<Command> commands = load(file);
  ASSERT_FALSE(commands.empty()) << file;
  std::set<std::string> named(kept.begin(), kept.end());
  std::size_t equal = 0;
  for (const Case& c : cases) {
    named.insert(c.line);
    std::size_t seen = 0;
    const Command* found = nullptr;
    for (const Command& command : commands)
      if (command.line == c.line && seen++ == c.occurrence) found = &command;
    if (!found) {
      ADD_FAILURE() << file << " has no command " << c.line;
      continue;
    }
    Output out = c.render();
    bool any_order = c.match == Match::kAnyOrderOfLines;
    std::string want = any_order ? sorted_lines(found->text) : found->text;
    std::string got = any_order ? sorted_lines(out.text) : out.text;
    EXPECT_EQ(want, got) << "$ " << c.line;
    EXPECT_EQ(found->errors, out.errors) << "$ " << c.line;
    EXPECT_EQ(found->exit_code, out.exit_code) << "$ " << c.line;
    if (want == got && found->errors == out.errors && found->exit_code == out.exit_code) ++equal;
  }
  for (const Command& command : commands)
    EXPECT_TRUE(named.contains(command.line)) << "nothing is said about: $ " << command.line;
  fmt::print("{}: equal {} of {} compared\n", file, equal, cases.size());
}

}  // namespace tutti::slurm::golden
