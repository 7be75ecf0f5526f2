#include <fmt/format.h>

#include <algorithm>

#include "base/hostlist.h"
#include "base/index_set.h"
#include "base/size_text.h"
#include "base/text.h"
#include "tests/scenarios/scenario.h"

namespace tutti::scenarios {

namespace {

// The words of one line, taken from the front.
class Words {
 public:
  explicit Words(std::string_view line) {
    for (std::string_view word : split(line, ' ', EmptyPieces::kDrop)) words_.push_back(word);
  }
  bool done() const { return at_ == words_.size(); }
  std::string_view peek(std::size_t ahead = 0) const {
    return at_ + ahead < words_.size() ? words_[at_ + ahead] : std::string_view();
  }
  std::string_view take() { return done() ? std::string_view() : words_[at_++]; }
  bool take_if(std::string_view word) {
    if (peek() != word) return false;
    ++at_;
    return true;
  }
  std::string rest() {
    std::string out;
    while (!done()) out += (out.empty() ? "" : " ") + std::string(take());
    return out;
  }
  std::uint32_t number() {
    auto value = parse_integer<std::uint32_t>(take());
    if (!value) bad_ = true;
    return value.value_or(0);
  }
  // "90", "90s", "5m", "2h", "1d".
  std::int64_t seconds() {
    std::string_view word = take();
    std::int64_t unit = 1;
    if (!word.empty() && !is_digit(word.back())) {
      switch (word.back()) {
        case 's':
          unit = 1;
          break;
        case 'm':
          unit = 60;
          break;
        case 'h':
          unit = 3600;
          break;
        case 'd':
          unit = 86400;
          break;
        default:
          bad_ = true;
      }
      word.remove_suffix(1);
    }
    auto value = parse_integer<std::int64_t>(word);
    if (!value) bad_ = true;
    return value.value_or(0) * unit;
  }
  std::vector<std::string> names() {
    auto list = expand_hostlist(take());
    if (!list) bad_ = true;
    return list.value_or(std::vector<std::string>());
  }
  std::uint64_t memory() {
    auto value = parse_memory_mib(take());
    if (!value) bad_ = true;
    return value.value_or(0);
  }
  bool bad() const { return bad_; }

 private:
  std::vector<std::string_view> words_;
  std::size_t at_ = 0;
  bool bad_ = false;
};

bool parse_nodes(Words& words, ClusterSpec& spec) {
  std::string_view list = words.take();
  if (!list.empty() && list.back() == ':') list.remove_suffix(1);
  auto names = expand_hostlist(list);
  if (!names) return false;
  NodeSpec node;
  node.kind = NodeKind::kPlanned;
  node.cpus = 64;
  node.memory_mib = 1'000'000;
  while (!words.done()) {
    if (words.take_if("threads")) {
      node.threads_per_core = words.number();
    } else if (words.take_if("weight")) {
      node.weight = words.number();
    } else if (words.take_if("memory")) {
      node.memory_mib = words.memory();
    } else if (words.take_if("features")) {
      for (std::string_view name : split(words.take(), ',')) node.features.emplace_back(name);
    } else if (words.take_if("in")) {
      // "in rack r1": a label
      std::string label(words.take());
      node.labels[label] = std::string(words.take());
    } else if (words.take_if("drained")) {
      node.initial_drain_reason = "as configured";
    } else {
      std::uint32_t count = words.number();
      if (words.take_if("cpu")) {
        node.cpus = count;
      } else if (words.take_if("gpu")) {
        std::string type(words.take_if("of") ? words.take() : "");
        DeviceSpec device{"gpu", type, ""};
        if (words.take_if("mig")) device.mig = true;
        if (words.take_if("with")) device.memory_mib = words.memory();
        std::uint32_t numa = words.take_if("numa") ? words.number() : 0;
        std::uint32_t nvlink = words.take_if("nvlink") ? words.number() : 0;
        for (std::uint32_t i = 0; i < count; ++i) {
          if (numa > 0) device.numa = static_cast<std::int32_t>(i / numa);
          if (nvlink > 0) device.nvlink = static_cast<std::int32_t>(i / nvlink);
          node.devices.push_back(device);
        }
      } else {
        return false;
      }
    }
  }
  for (const std::string& name : *names) {
    node.name = name;
    spec.nodes.push_back(node);
  }
  return !words.bad();
}

bool parse_partition(Words& words, ClusterSpec& spec) {
  PartitionSpec partition;
  partition.name = std::string(words.take());
  while (!words.done()) {
    if (words.take_if("nodes"))
      partition.nodes = words.names();
    else if (words.take_if("default"))
      partition.is_default = true;
    else if (words.take_if("tier"))
      partition.priority_tier = words.number();
    else if (words.take_if("grace"))
      partition.grace_time = Duration::seconds(words.seconds());
    else if (words.take_if("factor"))
      partition.priority_job_factor = words.number();
    else if (words.take_if("max-time"))
      partition.max_time = Duration::seconds(words.seconds());
    else if (words.take_if("default-time"))
      partition.default_time = Duration::seconds(words.seconds());
    else if (words.take_if("max-nodes"))
      partition.max_nodes = words.number();
    else if (words.take_if("min-nodes"))
      partition.min_nodes = words.number();
    else if (words.take_if("memory-per-cpu"))
      partition.default_memory_mib_per_cpu = words.memory();
    else if (words.take_if("exclusive"))
      partition.exclusive = true;
    else
      return false;
  }
  spec.partitions.push_back(partition);
  return !words.bad();
}

// "queue a under root gpu:h100 8 borrow 4 lend 2 cpu shared weight 3".
bool parse_queue(Words& words, QueueTree& tree) {
  QueueSpec queue;
  queue.name = std::string(words.take());
  while (!words.done()) {
    if (words.take_if("under"))
      queue.parent = std::string(words.take());
    else if (words.take_if("weight"))
      queue.weight = words.number();
    else if (words.take_if("tier"))
      queue.tier = words.number();
    else if (words.take_if("held"))
      queue.state = QueueState::kHeld;
    else if (words.take_if("best-effort"))
      queue.strictness = QueueStrictness::kBestEffort;
    else if (words.take_if("default"))
      tree.default_queue = queue.name;
    else if (words.take_if("types"))
      for (std::string_view type : split(words.take(), ',')) queue.gpu_types.emplace_back(type);
    else if (words.take_if("notice"))
      queue.notice = Duration::seconds(words.seconds());
    else if (words.take_if("min-runtime"))
      queue.min_runtime = Duration::seconds(words.seconds());
    else if (words.take_if("budget"))
      queue.loss_budget_gpu_seconds = words.number();
    else if (words.take_if("reclaim")) {
      auto mode = enum_from_name<ReclaimMode>(words.take());
      if (!mode) return false;
      queue.reclaim = *mode;
    } else if (words.take_if("borrow") && !queue.quotas.empty())
      queue.quotas.back().borrowing_limit = words.number();
    else if (words.take_if("limit") && !queue.quotas.empty())
      queue.quotas.back().limit = words.number();
    else if (words.take_if("lend") && !queue.quotas.empty())
      queue.quotas.back().lending_limit = words.number();
    else {
      QuotaSpec quota;
      quota.resource = std::string(words.take());
      if (!words.take_if("shared")) quota.nominal = words.number();
      queue.quotas.push_back(std::move(quota));
    }
  }
  tree.queues.push_back(std::move(queue));
  return !words.bad();
}

// What a job says of yielding and of its size; nullopt when the next word is none of these.
std::optional<bool> parse_terms(Words& words, JobLine& job) {
  auto terms = [&]() -> Terms& { return job.workload.extras.edit().terms; };
  if (words.take_if("class"))
    terms().class_value = static_cast<std::int32_t>(words.number());
  else if (words.take_if("notice"))
    terms().notice = Duration::seconds(words.seconds());
  else if (words.take_if("min-runtime"))
    terms().min_runtime = Duration::seconds(words.seconds());
  else if (words.take_if("elastic"))
    terms().elastic = true;
  else if (words.take_if("checkpoints"))
    job.checkpoints = words.seconds();
  else if (words.take_if("answers"))
    job.answers = words.seconds();
  else if (words.take_if("no-requeue"))
    job.workload.requeue = false;
  else if (words.take_if("reclaim")) {
    auto mode = enum_from_name<ReclaimMode>(words.take());
    if (!mode) return false;
    terms().reclaim = *mode;
  } else {
    return std::nullopt;
  }
  return true;
}

bool parse_gpus(Words& words, std::uint32_t count, RoleAsk& role) {
  if (words.take_if("of")) role.gpu_type = std::string(words.take());
  if (words.take_if("as")) role.gpu_profile = std::string(words.take());
  if (words.take_if("with")) role.gpu_memory_mib = words.memory();
  if (words.take_if("share")) role.gpu_share_permille = words.number();
  if (words.take_if("per")) {
    if (!words.take_if("task")) return false;
    role.gpus_per_task = count;
  } else if (words.take_if("in")) {
    if (!words.take_if("all")) return false;
    role.gpus_total = count;
  } else {
    role.gpus_per_node = count;
  }
  return true;
}

// Words that say what a role asks for; nullopt when the next word is none of them.
std::optional<bool> parse_role_word(Words& words, RoleAsk& role) {
  if (words.take_if("tasks"))
    role.tasks = words.number();
  else if (words.take_if("tasks-per-node"))
    role.tasks_per_node = words.number();
  else if (words.take_if("cpus-per-task"))
    role.cpus_per_task = words.number();
  else if (words.take_if("cpus-per-gpu"))
    role.cpus_per_gpu = words.number();
  else if (words.take_if("memory"))
    role.memory_mib_per_node = words.memory();
  else if (words.take_if("memory-per-cpu"))
    role.memory_mib_per_cpu = words.memory();
  else if (words.take_if("memory-per-gpu"))
    role.memory_mib_per_gpu = words.memory();
  else if (words.take_if("all-memory"))
    role.memory_whole_node = true;
  else if (words.take_if("exclusive"))
    role.exclusive = true;
  else if (words.take_if("contiguous"))
    role.contiguous = true;
  else if (words.take_if("features"))
    role.features = std::string(words.take());
  else if (words.take_if("on"))
    role.nodes_in = words.names();
  else if (words.take_if("not-on"))
    role.nodes_out = words.names();
  else if (words.take_if("nodes")) {
    auto count = parse_node_count(words.take());
    if (!count) return false;
    role.nodes_min = count->min;
    role.nodes_max = count->max;
    role.tasks = std::max(role.tasks, role.nodes_min * std::max(role.tasks_per_node, 1u));
    if (count->max > count->min) role.tasks = 1;
  } else if (!words.peek().empty() && is_digit(words.peek().front())) {
    std::uint32_t count = words.number();
    if (words.take_if("cpu"))
      role.cpus_per_task = count;
    else if (words.take_if("gpu"))
      return parse_gpus(words, count, role);
    else
      return false;
  } else {
    return std::nullopt;
  }
  return true;
}

// Words that say how near to each other its slots lie; false when the next word is none of them.
bool parse_topology(Words& words, Workload& workload) {
  if (words.take_if("within"))
    workload.extras.edit().terms.topology.required = std::string(words.take());
  else if (words.take_if("segment"))
    workload.extras.edit().terms.topology.segment = words.number();
  else if (words.take_if("switches"))
    workload.extras.edit().terms.topology.switches = words.number();
  else if (words.take_if("switches-wait"))
    workload.extras.edit().terms.topology.switches_wait = Duration::seconds(words.seconds());
  else
    return false;
  return true;
}

bool parse_job(Words& words, Happening& out) {
  JobLine& job = out.job;
  Workload& workload = job.workload;
  job.name = std::string(words.take());
  workload.name = job.name;
  workload.user = "user";
  workload.uid = 1000;
  workload.launch.script.high = 1;
  while (!words.done()) {
    if (auto good = parse_role_word(words, workload.roles.edit().back())) {
      if (!*good) return false;
      continue;
    }
    if (auto good = parse_terms(words, job)) {
      if (!*good) return false;
      continue;
    }
    if (parse_topology(words, workload)) continue;
    if (words.take_if("at"))
      out.at = words.seconds();
    else if (words.take_if("until") || words.take_if("limit")) {
      if (!words.take_if("never"))
        workload.time_limit = Duration::seconds(words.seconds());
      else
        workload.time_limit = Duration::infinite();
    } else if (words.take_if("runs"))
      job.runs = words.seconds();
    else if (words.take_if("fails"))
      job.fails = true;
    else if (words.take_if("partition"))
      for (std::string_view name : split(words.take(), ','))
        workload.partitions.edit().emplace_back(name);
    else if (words.take_if("priority"))
      workload.extras.edit().fixed_priority = words.number();
    else if (words.take_if("group")) {
      workload.extras.edit().terms.group = std::string(words.take());
      workload.extras.edit().terms.group_size = words.number();
    } else if (words.take_if("queue"))
      workload.extras.edit().terms.queue = std::string(words.take());
    else if (words.take_if("nice"))
      workload.nice = static_cast<std::int32_t>(words.number());
    else if (words.take_if("begin"))
      job.begin = words.seconds();
    else if (words.take_if("hold"))
      workload.hold = Hold::kUser;
    else if (words.take_if("reservation"))
      workload.extras.edit().reservation = std::string(words.take());
    else if (words.take_if("user"))
      workload.user = std::string(words.take());
    else if (words.take_if("account"))
      workload.account = std::string(words.take());
    else if (words.take_if("qos"))
      workload.qos = std::string(words.take());
    else if (words.take_if("licenses"))
      workload.extras.edit().licenses = std::string(words.take());
    else if (words.take_if("named"))
      workload.name = std::string(words.take());
    else if (words.take_if("after"))
      job.dependencies = std::string(words.take());
    else if (words.take_if("any"))
      workload.extras.edit().any_dependency = true;
    else if (words.take_if("+"))
      workload.roles.edit().emplace_back();
    else if (words.take_if("array")) {
      auto array = parse_array_spec(words.take(), 1'000'000);
      if (!array) return false;
      workload.array = array->indexes.to_string();
      workload.array_throttle = array->max_at_once;
    } else
      return false;
  }
  return !words.bad();
}

// "at 100 drain n1 bad NVLink".
bool parse_at(Words& words, Happening& out) {
  static const std::map<std::string_view, Happening::Kind> kKinds{
      {"end", Happening::Kind::kEnd},
      {"fail", Happening::Kind::kFail},
      {"cancel", Happening::Kind::kCancel},
      {"hold", Happening::Kind::kHold},
      {"release", Happening::Kind::kRelease},
      {"priority", Happening::Kind::kPriority},
      {"nice", Happening::Kind::kNice},
      {"limit", Happening::Kind::kLimit},
      {"refuse", Happening::Kind::kRefuse},
      {"drain", Happening::Kind::kDrain},
      {"down", Happening::Kind::kDown},
      {"resume", Happening::Kind::kResume},
      {"partition", Happening::Kind::kPartition},
      {"reserve", Happening::Kind::kReserve},
      {"unreserve", Happening::Kind::kUnreserve},
      {"why", Happening::Kind::kWhy},
      {"look", Happening::Kind::kLook}};
  out.at = words.seconds();
  auto kind = kKinds.find(words.take());
  if (kind == kKinds.end()) return false;
  out.kind = kind->second;
  out.subject = std::string(words.take());
  out.text = words.rest();
  return !words.bad();
}

// "account a in b shares 3 jobs 2 gres/gpu 4", "user u in a shares 1 jobs 2".
bool parse_association(Words& words, bool is_user, Scenario& scenario) {
  Association one;
  (is_user ? one.user : one.account) = std::string(words.take());
  while (!words.done()) {
    if (words.take_if("in"))
      (is_user ? one.account : scenario.above[one.account]) = std::string(words.take());
    else if (words.take_if("shares"))
      one.shares = words.number();
    else if (words.take_if("jobs"))
      (is_user ? one.limits.jobs : one.limits.group_jobs) = words.number();
    else if (words.take_if("minutes")) {
      const std::string resource(words.take());
      one.limits.group_minutes[resource] = words.number();
    } else {
      const std::string resource(words.take());
      one.limits.group[resource] = words.number();
    }
  }
  scenario.associations.push_back(std::move(one));
  return !words.bad();
}

// "qos high priority 10 jobs-per-user 1 per-user gres/gpu 4 max-wall 1h cpu 8".
bool parse_qos(Words& words, Scenario& scenario) {
  Qos qos;
  qos.name = std::string(words.take());
  while (!words.done()) {
    if (words.take_if("priority"))
      qos.priority = words.number();
    else if (words.take_if("jobs-per-user"))
      qos.jobs_per_user = words.number();
    else if (words.take_if("max-wall"))
      qos.wall = Duration::seconds(words.seconds());
    else {
      TresAmounts& amounts = words.take_if("per-user") ? qos.per_user : qos.group;
      const std::string resource(words.take());
      amounts[resource] = words.number();
    }
  }
  scenario.qos.push_back(std::move(qos));
  return !words.bad();
}

// Lines of the account book, of licences and of how usage fades; nothing for others.
std::optional<bool> parse_book(std::string_view first, Words& words, Scenario& scenario) {
  if (first == "account" || first == "user")
    return parse_association(words, first == "user", scenario);
  if (first == "qos") return parse_qos(words, scenario);
  if (first == "license") {
    const std::string name(words.take());
    scenario.spec.licenses[name] = words.number();
    return !words.bad();
  }
  if (first != "half-life") return std::nullopt;
  scenario.spec.priority.half_life = Duration::seconds(words.seconds());
  return !words.bad();
}

bool parse_line(std::string_view line, Scenario& scenario) {
  Words words(line);
  std::string_view first = words.take();
  if (first == "nodes") return parse_nodes(words, scenario.spec);
  if (first == "preemption") {
    scenario.spec.preemption.type = PreemptType::kPartitionPriority;
    auto mode = enum_from_name<ReclaimMode>(words.take());
    if (mode) scenario.spec.preemption.mode = *mode;
    return mode.has_value();
  }
  if (first == "partition") return parse_partition(words, scenario.spec);
  if (first == "queue") return parse_queue(words, scenario.queues);
  if (auto good = parse_book(first, words, scenario)) return *good;
  if (first == "topology") {
    while (!words.done()) scenario.spec.topology_levels.emplace_back(words.take());
    return true;
  }
  if (first == "profile") {
    scenario.profile = std::string(words.take());
    return true;
  }
  if (first == "until") {
    scenario.until = words.seconds();
    return !words.bad();
  }
  if (first == "kill-wait") {
    scenario.spec.kill_wait = Duration::seconds(words.seconds());
    return !words.bad();
  }
  if (first == "weights") {
    scenario.spec.priority = PriorityWeights();
    if (words.take_if("slurm")) return true;
    // Only these: "weights fair-share 1000 qos 500".
    scenario.spec.priority.age = scenario.spec.priority.fair_share =
        scenario.spec.priority.job_size = 0;
    scenario.spec.priority.partition = 0;
    while (!words.done()) {
      if (words.take_if("fair-share"))
        scenario.spec.priority.fair_share = words.number();
      else if (words.take_if("qos"))
        scenario.spec.priority.qos = words.number();
      else
        return false;
    }
    return !words.bad();
  }
  if (first == "show") {
    if (words.take_if("promises")) return scenario.with_promises = true;
    return scenario.with_devices = words.take_if("devices");
  }
  Happening happening;
  if (first == "running") {
    happening.kind = Happening::Kind::kRunning;
    if (!parse_job(words, happening)) return false;
  } else if (first == "job") {
    if (!parse_job(words, happening)) return false;
  } else if (first != "at" || !parse_at(words, happening)) {
    return false;
  }
  scenario.happenings.push_back(std::move(happening));
  return true;
}

}  // namespace

Result<Scenario> parse_scenario(const std::string& text) {
  Scenario scenario;
  scenario.spec.kill_wait = Duration();
  scenario.spec.priority = {.age = 0, .fair_share = 0, .job_size = 0, .partition = 0};
  constexpr std::string_view kSeparator = "\n----\n";
  std::size_t border = text.find(kSeparator);
  scenario.input = text.substr(0, border);
  if (border != std::string::npos) scenario.expected = text.substr(border + kSeparator.size());
  std::uint32_t number = 0;
  for (std::string_view line : split(scenario.input, '\n')) {
    ++number;
    line = trim(line.substr(0, line.find('#')));
    if (line.empty()) continue;
    if (!parse_line(line, scenario))
      return invalid(fmt::format("line {}: cannot read \"{}\"", number, line));
  }
  if (scenario.spec.partitions.empty()) {
    PartitionSpec all{.name = "all", .is_default = true};
    for (const NodeSpec& node : scenario.spec.nodes) all.nodes.push_back(node.name);
    scenario.spec.partitions.push_back(all);
  }
  std::stable_sort(scenario.happenings.begin(), scenario.happenings.end(),
                   [](const Happening& a, const Happening& b) { return a.at < b.at; });
  return scenario;
}

}  // namespace tutti::scenarios
