#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/hostlist.h"
#include "base/index_set.h"
#include "base/text.h"
#include "scheduler/plan.h"
#include "state/apply.h"
#include "tests/scenarios/scenario.h"

namespace tutti::scenarios {

namespace {

using scheduler::ElementRef;
using scheduler::Plan;

// The virtual world: time, the state of the cluster, and when what runs will end.
class World {
 public:
  explicit World(const Scenario& scenario) : scenario_(scenario) {
    // Second 0 of a scenario; an Instant of 0 would mean "never set".
    apply(ClusterConfigured{scenario.spec});
    if (!scenario.queues.queues.empty()) apply(QueuesConfigured{scenario.queues, {}});
    keep_book(scenario);
  }

  void keep_book(const Scenario& scenario) {
    if (!scenario.qos.empty()) {
      AccountsConfigured change;
      change.qos = scenario.qos;
      apply(change);
    }
    for (Association one : scenario.associations) {
      auto above = scenario.above.find(one.account);
      const std::string parent = !one.user.empty()                ? one.account
                                 : above != scenario.above.end() ? above->second
                                                                  : "root";
      one.parent = state_.accounts->find(parent, "")->id;
      AccountsConfigured change;
      change.associations.push_back(one);
      apply(change);
    }
  }

  std::string run() {
    std::size_t next = 0;
    const auto& happenings = scenario_.happenings;
    for (; next < happenings.size() && happenings[next].kind == Happening::Kind::kRunning; ++next) {
      submit(happenings[next].job);
      pass();
    }
    while (true) {
      std::int64_t at = std::min(next_end(), next_look_);
      if (next < happenings.size()) at = std::min(at, happenings[next].at);
      if (at > scenario_.until) break;
      second_ = std::max(second_, at);
      next_look_ = kNever;
      end_what_is_over();
      leave();
      std::vector<std::string> questions;
      for (; next < happenings.size() && happenings[next].at <= second_; ++next) {
        if (happenings[next].kind == Happening::Kind::kWhy)
          questions.push_back(happenings[next].subject);
        else
          happen(happenings[next]);
      }
      pass();
      for (const std::string& name : questions) answer_why(name);
    }
    return log_;
  }

 private:
  static constexpr std::int64_t kNever = 1'000'000'000;
  static constexpr std::int64_t kStart = 1'000'000;  // ms

  Instant now() const { return Instant::from_ms(kStart + second_ * 1000); }
  static std::int64_t second_of(Instant at) { return (at.ms() - kStart) / 1000; }

  void say(std::string line) { log_ += fmt::format("{:>6}  {}\n", second_, std::move(line)); }

  void apply(EventBody body) {
    Status status = state::apply(state_, agenda_, {now(), std::move(body)});
    if (!status) say("BROKEN EVENT: " + status.error().message);
  }

  std::string name_of(const ElementRef& element) const {
    std::string name = names_.at(element.workload.value());
    return element.array_index ? fmt::format("{}_{}", name, *element.array_index) : name;
  }

  // "job 12_3" in texts and blockers becomes "job NAME_3".
  std::string with_names(std::string text) const {
    for (auto it = names_.rbegin(); it != names_.rend(); ++it) {
      for (std::string_view before : {"job ", ":"}) {
        std::string number = std::string(before) + std::to_string(it->first);
        for (std::size_t at = text.find(number); at != std::string::npos;
             at = text.find(number, at + 1)) {
          std::size_t end = at + number.size();
          if (end < text.size() && is_digit(text[end])) continue;
          text.replace(at, number.size(), std::string(before) + it->second);
        }
      }
    }
    return text;
  }

  void submit(const JobLine& line) {
    Workload workload = line.workload;
    workload.id = WorkloadId(state_.next_id);
    workload.submitted = now();
    if (line.begin > 0) workload.begin = Instant::from_ms(kStart + line.begin * 1000);
    for (std::string_view piece : split(line.dependencies, ',', EmptyPieces::kDrop))
      workload.extras.edit().dependencies.push_back(dependency(piece));
    Status status = scheduler::check_can_ever_run(*state_.spec, workload);
    if (!status) {
      say(fmt::format("{} is refused: {}: {}", line.name, status.error().reason,
                      status.error().message));
      return;
    }
    names_[workload.id.value()] = line.name;
    ids_[line.name] = workload.id;
    lines_[workload.id.value()] = line;
    apply(WorkloadSubmitted{workload});
  }

  Dependency dependency(std::string_view text) const {
    Dependency out;
    auto parts = split_once(text, ':').value_or(std::pair(text, std::string_view()));
    out.kind = enum_from_name<DependencyKind>(parts.first).value_or(DependencyKind::kSingleton);
    auto delay = split_once(parts.second, '+');
    if (delay) out.delay_minutes = parse_integer<std::uint32_t>(delay->second).value_or(0);
    std::string job(delay ? delay->first : parts.second);
    std::size_t underscore = job.rfind('_');
    if (underscore != std::string::npos) {
      out.array_index = parse_integer<std::uint32_t>(job.substr(underscore + 1));
      job.resize(underscore);
    }
    auto known = ids_.find(job);
    out.job = known == ids_.end() ? 999'999 : known->second.value();
    return out;
  }

  // "job" or "array_3": the gang, if it exists.
  const Gang* gang_of(const std::string& name) const {
    std::size_t underscore = name.rfind('_');
    auto known = ids_.find(name.substr(0, underscore));
    if (known == ids_.end()) return nullptr;
    const WorkloadEntry* entry = state_.workloads.find(known->second.value());
    for (GangId id : entry->gangs) {
      const Gang* gang = state_.gangs.find(id.value());
      if (!gang->array_index || name == name_of({gang->workload, gang->array_index, gang->id}))
        return gang;
    }
    return nullptr;
  }

  void end(const Gang* gang, Outcome outcome, std::int32_t code, bool requeue = false) {
    if (!gang || gang->state == GangState::kDone) return;
    GangEnding ending;
    ending.gang = gang->id;
    ending.outcome = outcome;
    ending.exit.code = code;
    ending.requeue = requeue;
    std::size_t slots = gang->slots.size();
    GangId id = gang->id;
    ends_.erase(id.value());
    say(fmt::format("{} {}", name_of({gang->workload, gang->array_index, id}),
                    outcome == Outcome::kCompleted   ? "ends"
                    : outcome == Outcome::kTimeout   ? "ends at its limit"
                    : outcome == Outcome::kCancelled ? "is cancelled"
                    : outcome == Outcome::kPreempted ? (requeue ? "leaves and waits again" : "leaves")
                                                     : "fails"));
    apply(ending);
    for (std::uint32_t slot = 0; slot < slots; ++slot) apply(SlotReleased{id, slot});
  }

  std::int64_t next_end() const {
    std::int64_t first = kNever;
    for (const auto& [gang, at] : ends_) first = std::min(first, at.first);
    for (const auto& [gang, at] : leaves_) first = std::min(first, at);
    return first;
  }

  void end_what_is_over() {
    std::vector<std::pair<std::uint32_t, bool>> over;
    for (const auto& [gang, at] : ends_)
      if (at.first <= second_) over.emplace_back(gang, at.second);
    for (auto [id, by_limit] : over) {
      const Gang* gang = state_.gangs.find(id);
      bool fails = lines_[gang->workload.value()].fails;
      end(gang,
          by_limit ? Outcome::kTimeout
          : fails  ? Outcome::kFailed
                   : Outcome::kCompleted,
          fails ? 1 : 0);
    }
  }

  void happen(const Happening& what) {
    switch (what.kind) {
      case Happening::Kind::kSubmit:
      case Happening::Kind::kRunning:
        submit(what.job);
        break;
      case Happening::Kind::kEnd:
        end(gang_of(what.subject), Outcome::kCompleted, 0);
        break;
      case Happening::Kind::kFail:
        end(gang_of(what.subject), Outcome::kFailed, 1);
        break;
      case Happening::Kind::kCancel:
        cancel(what.subject);
        break;
      case Happening::Kind::kHold:
        change(what.subject,
               [&](auto& e) { e.hold = what.text == "admin" ? Hold::kAdmin : Hold::kUser; });
        break;
      case Happening::Kind::kRelease:
        change(what.subject, [](auto& e) { e.hold = Hold::kNone; });
        break;
      case Happening::Kind::kPriority:
        change(what.subject,
               [&](auto& e) { e.priority = parse_integer<std::uint32_t>(what.text); });
        break;
      case Happening::Kind::kNice:
        change(what.subject,
               [&](auto& e) { e.nice = parse_integer<std::int32_t>(what.text).value_or(0); });
        break;
      case Happening::Kind::kLimit:
        change_limit(what.subject, parse_integer<std::int64_t>(what.text).value_or(0));
        break;
      case Happening::Kind::kRefuse:
        refuse(what.subject, what.text);
        break;
      case Happening::Kind::kPartition: {
        PartitionChanged e{what.subject, PartitionState::kUp};
        e.state = enum_from_name<PartitionState>(what.text).value_or(PartitionState::kUp);
        apply(e);
        break;
      }
      case Happening::Kind::kReserve:
        set_reservation(what.subject, what.text);
        break;
      case Happening::Kind::kUnreserve:
        apply(ReservationRemoved{what.subject, 0});
        break;
      case Happening::Kind::kDrain:
      case Happening::Kind::kDown:
      case Happening::Kind::kResume:
        change_node(what);
        break;
      case Happening::Kind::kWhy:
      case Happening::Kind::kLook:
        break;
    }
  }

  void cancel(const std::string& name) {
    if (const Gang* gang = gang_of(name)) return end(gang, Outcome::kCancelled, 0);
    apply(ElementsCancelled{ids_.at(name), "", Outcome::kCancelled, std::nullopt});
    say(name + " is cancelled");
  }

  void change_limit(const std::string& name, std::int64_t seconds) {
    const Gang* gang = gang_of(name);
    change(name, [&](auto& e) {
      e.time_limit = Duration::seconds(seconds);
      if (gang) e.gang = gang->id;
    });
    if (!gang || !ends_.contains(gang->id.value())) return;
    std::int64_t limit = second_of(gang->started) + seconds;
    std::int64_t runs = lines_[gang->workload.value()].runs.value_or(kNever);
    std::int64_t end = std::min(limit, second_of(gang->started) + runs);
    ends_[gang->id.value()] = {end, limit < second_of(gang->started) + runs && runs < kNever};
  }

  // "n[1-2] 1000 2000 maint daily".
  void set_reservation(const std::string& name, const std::string& text) {
    std::vector<std::string_view> words = split(text, ' ', EmptyPieces::kDrop);
    if (words.size() < 3) return say("BROKEN SCENARIO: reserve NAME NODES FROM UNTIL [FLAGS]");
    Reservation out;
    out.name = name;
    out.nodes = expand_hostlist(words[0]).value_or(std::vector<std::string>());
    auto at = [&](std::string_view word) {
      return Instant::from_ms(kStart + parse_integer<std::int64_t>(word).value_or(0) * 1000);
    };
    out.start = at(words[1]);
    out.end = at(words[2]);
    for (std::size_t i = 3; i < words.size(); ++i)
      if (auto flag = enum_from_name<ReservationFlag>(upper(words[i]))) out.flags.push_back(*flag);
    apply(ReservationSet{out});
  }

  template <class Set>
  void change(const std::string& name, Set set) {
    WorkloadChanged event;
    event.workload = ids_.at(name);
    set(event);
    apply(event);
  }

  // The job just started; no rank of it has run.
  void refuse(const std::string& name, const std::string& text) {
    auto [node, hold] = split_once(text, ' ').value_or(std::pair(std::string_view(text), ""));
    const Gang* gang = gang_of(name);
    if (!gang) return say("BROKEN SCENARIO: " + name + " is not there to be refused");
    ends_.erase(gang->id.value());
    refused_.insert(gang->id.value());
    RollCallFailed event;
    event.gang = gang->id;
    event.node = std::string(node);
    event.hold = hold == "hold";
    event.reason = "refused";
    event.retry_at = now() + Duration::seconds(10);
    say(fmt::format("{} is refused by {}", name, node));
    apply(event);
  }

  void change_node(const Happening& what) {
    for (NodeIndex i = 0; i < state_.spec->nodes.size(); ++i) {
      if (state_.spec->nodes[i].name != what.subject) continue;
      NodeChanged event{what.subject, *state_.node(i)};
      bool back = what.kind == Happening::Kind::kResume;
      event.state.drained = what.kind == Happening::Kind::kDrain;
      event.state.down = what.kind == Happening::Kind::kDown;
      event.state.reason = back ? "" : what.text;
      apply(event);
    }
  }

  void pass() {
    scheduler::PassInput input{state_, agenda_, now(), scenario_.profile};
    Plan plan = scheduler::plan(input);
    for (const std::string& finding : scheduler::lint(input, plan)) say("LINT: " + finding);
    for (const auto& each : plan.withdrawals) {
      say(fmt::format("{} may stay: {}", name_of_gang(each.gang), with_names(each.cause)));
      apply(EvictionWithdrawn{each.gang, each.cause});
      leaves_.erase(each.gang.value());
    }
    for (const auto& each : plan.take_overs) {
      say(fmt::format("{} takes over what {} leaves", name_of(each.beneficiary),
                      name_of_gang(each.gang)));
      apply(EvictionTakenOver{each.gang, each.beneficiary.workload, each.beneficiary.array_index,
                              each.beneficiary.gang});
    }
    for (const auto& each : plan.evictions) evict(each);
    for (const auto& start : plan.starts) carry_out(start);
    if (!plan.promise_changes.empty()) apply(PromisesChanged{plan.promise_changes});
    if (scenario_.with_promises) tell_promises(plan);
    report(plan);
    if (plan.next_look < Instant::never()) next_look_ = second_of(plan.next_look);
  }

  std::string name_of_gang(GangId id) const {
    const Gang* gang = state_.gangs.find(id.value());
    return name_of({gang->workload, gang->array_index, id});
  }

  void evict(const scheduler::Evict& decided) {
    const Eviction& eviction = decided.eviction;
    const Gang* gang = state_.gangs.find(decided.gang.value());
    std::vector<std::string> nodes;
    for (std::uint32_t slot : eviction.slots)
      nodes.push_back(state_.spec->nodes[gang->slots[slot].node].name);
    say(fmt::format("{} must leave{} by {} ({}): {}; costs {} GPU-s", name_of_gang(decided.gang),
                    nodes.empty() ? "" : " " + fold_hostlist(nodes), second_of(eviction.deadline),
                    enum_name(eviction.mode), with_names(eviction.reason),
                    eviction.cost_gpu_seconds));
    apply(EvictionDecided{decided.gang, decided.queue, eviction});
    const JobLine& line = lines_[gang->workload.value()];
    std::int64_t at = second_of(eviction.deadline);
    if (line.answers) at = std::min(at, second_ + *line.answers);
    leaves_[decided.gang.value()] = at;
  }

  // Those whose notice is over, or who have answered.
  void leave() {
    std::vector<std::uint32_t> over;
    for (const auto& [gang, at] : leaves_)
      if (at <= second_) over.push_back(gang);
    for (std::uint32_t id : over) {
      leaves_.erase(id);
      const Gang* gang = state_.gangs.find(id);
      if (!gang || !gang->eviction || gang->state != GangState::kRunning) continue;
      const Eviction eviction = *gang->eviction;
      if (!eviction.slots.empty()) {
        apply(GangResized{GangId(id), eviction.slots, {}, eviction.reason});
        say(fmt::format("{} goes on with {} nodes", name_of_gang(GangId(id)),
                        state_.gangs.find(id)->slots.size()));
        continue;
      }
      keep_progress(*gang);
      end(gang, Outcome::kPreempted, 0, eviction.mode != ReclaimMode::kCancel);
    }
  }

  // What it saved it need not do again.
  void keep_progress(const Gang& gang) {
    const JobLine& line = lines_[gang.workload.value()];
    const std::int64_t ran = second_ - second_of(gang.started);
    std::int64_t& done = done_[gang.id.value()];
    if (line.answers)
      done += ran;
    else if (line.checkpoints)
      done += ran / *line.checkpoints * *line.checkpoints;
  }

  void carry_out(const scheduler::Start& start) {
    const WorkloadEntry* entry = state_.workloads.find(start.element.workload.value());
    GangId gang = start.element.gang;
    if (!gang)
      gang = GangId(entry->gangs.empty() ? start.element.workload.value() : state_.next_id);
    Instant limit_end = start.limit.is_infinite() ? Instant() : now() + start.limit;
    apply(GangAllocated{gang, start.element.workload, start.element.array_index,
                        Epoch(state_.next_epoch), start.partition, start.slots, limit_end, start.rendezvous_port});
    const JobLine& line = lines_[start.element.workload.value()];
    // A launch that a later line refuses is not given its go.
    if (!will_be_refused(start.element)) apply(GangStarted{gang, limit_end});
    std::int64_t limit = start.limit.is_infinite() ? kNever : start.limit.whole_seconds();
    std::int64_t runs = std::min(line.runs.value_or(kNever), kNever);
    if (auto done = done_.find(gang.value()); done != done_.end() && runs < kNever)
      runs -= std::min(runs, done->second);
    if (std::min(runs, limit) < kNever)
      ends_[gang.value()] = {second_ + std::min(runs, limit),
                             limit < runs && line.runs.has_value()};
    say(fmt::format("{} starts on {}{}", name_of(start.element), nodes_of(start),
                    start.backfilled ? " (backfilled)" : ""));
    if (!scenario_.with_devices) return;
    for (const Slot& slot : start.slots) {
      IndexSet cpus, gpus;
      for (std::uint16_t cpu : slot.cpu_ids) cpus.insert(cpu);
      for (std::uint16_t gpu : slot.gpus) gpus.insert(gpu);
      std::string parts;
      for (const DevicePart& part : slot.parts)
        parts += part.profile.empty()
                     ? fmt::format(" {}:{}M/{}", part.device, part.memory_mib, part.share_permille)
                     : fmt::format(" {}:{}@{}", part.device, part.profile, part.start);
      if (!parts.empty()) parts = " parts" + parts;
      say(fmt::format("  {} role {} tasks {} cpus {} gpus {} memory {}M{}",
                      state_.spec->nodes[slot.node].name, slot.role, slot.tasks, cpus.to_string(),
                      gpus.empty() ? "-" : gpus.to_string(), slot.memory_mib, parts));
    }
  }

  // What is firm binds; the rest is told by who waits.
  void tell_promises(const Plan& plan) {
    for (const PromiseChange& change : plan.promise_changes) {
      if (change.step == PromiseStep::kMade) continue;
      std::string text =
          fmt::format("{}: promise {}", name_of({change.workload, std::nullopt, change.gang}),
                      enum_name(change.step));
      if (change.step != PromiseStep::kDropped)
        text += fmt::format(" {} on {}", second_of(change.at), names_of(change.rooms));
      if (!change.cause.empty()) text += fmt::format(" ({})", with_names(change.cause));
      say(text);
    }
  }

  std::string names_of(const PromisedRooms& rooms) const {
    std::vector<std::string> names;
    for (const PromisedRoom& room : rooms)
      if (names.empty() || names.back() != state_.spec->nodes[room.node].name)
        names.push_back(state_.spec->nodes[room.node].name);
    return fold_hostlist(names);
  }

  bool will_be_refused(const ElementRef& element) const {
    return std::any_of(
        scenario_.happenings.begin(), scenario_.happenings.end(), [&](const Happening& what) {
          return what.kind == Happening::Kind::kRefuse && what.at >= second_ &&
                 what.subject == name_of(element) && !refused_.contains(element.gang.value());
        });
  }

  std::string nodes_of(const scheduler::Start& start) const {
    std::vector<std::string> names;
    for (const Slot& slot : start.slots)
      if (names.empty() || names.back() != state_.spec->nodes[slot.node].name)
        names.push_back(state_.spec->nodes[slot.node].name);
    return fold_hostlist(names);
  }

  void report(const Plan& plan) {
    std::map<std::string, std::string> waits;
    waiting_.clear();
    for (const auto& waiting : plan.waiting) {
      const Wait& wait = *waiting.wait;
      std::string text = wait.reason;
      if (wait.planned_start.is_set())
        text += fmt::format(", planned {} on {}", second_of(wait.planned_start),
                            fold_hostlist(wait.planned_nodes));
      std::string name = name_of(waiting.element);
      waiting_[name] = wait;
      if (!waits_.contains(name) || waits_[name] != text)
        say(fmt::format("{} waits: {}", name, text));
      waits[name] = text;
    }
    waits_ = std::move(waits);
  }

  void answer_why(const std::string& name) {
    auto it = waiting_.find(name);
    if (it == waiting_.end()) return say("why " + name + ": it does not wait");
    std::vector<std::string> blockers;
    for (const std::string& blocker : it->second.blockers) blockers.push_back(with_names(blocker));
    say(fmt::format("why {}: {}", name, with_names(it->second.text)));
    say(fmt::format("  but for: {}", join(blockers, ", ")));
  }

  const Scenario& scenario_;
  ClusterState state_;
  Agenda agenda_;
  std::int64_t second_ = 0, next_look_ = kNever;
  std::string log_;
  std::map<std::uint32_t, std::string> names_;
  std::map<std::string, WorkloadId> ids_;
  std::map<std::uint32_t, JobLine> lines_;
  std::map<std::uint32_t, std::pair<std::int64_t, bool>> ends_;  // by gang: when, by the limit
  std::map<std::string, std::string> waits_;                     // as last reported
  std::map<std::string, Wait> waiting_;
  std::set<std::uint32_t> refused_;
  std::map<std::uint32_t, std::int64_t> leaves_;  // gangs that were told to, by when
  std::map<std::uint32_t, std::int64_t> done_;    // seconds of its work that need not be repeated
};

}  // namespace

std::string play(const Scenario& scenario) { return World(scenario).run(); }

}  // namespace tutti::scenarios
