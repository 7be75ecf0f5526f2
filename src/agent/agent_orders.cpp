#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "agent/agent_impl.h"
#include "agent/rank_environment.h"

namespace tutti::agent {
namespace {

Status write_file(const std::string& path, std::string_view text) {
  Descriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!file) return fail_errno(errno, path);
  if (::write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    return fail_errno(errno, path);
  }
  return {};
}

std::string cpu_list(const std::vector<std::uint16_t>& cpus) {
  return fmt::format("{}", fmt::join(cpus, ","));
}

}  // namespace

void Agent::Impl::on(to_agent::Welcome&&, std::string_view) {}

void Agent::Impl::refuse(const StepKey& key, std::string reason) {
  log(fmt::format("gang {} step {}: refused: {}", key.gang.value(), step_word(key.step), reason));
  send(from_agent::Refused{key, std::move(reason), false, {}});
}

// ---- Gangs

JobLimits Agent::Impl::limits_of(const SlotOrder& slot) const {
  JobLimits limits;
  if (options_.limit_memory) limits.memory_mib = slot.memory_mib;
  if (options_.bind_cpus) limits.cpus = cpu_list(slot.cpu_ids);
  limits.pids_max = options_.pids_max;
  std::vector<std::uint16_t> devices = slot.gpus;
  for (const DevicePart& part : slot.parts) devices.push_back(part.device);
  if (options_.device_rules) limits.devices = options_.device_rules(devices);
  return limits;
}

// The answer to a repeated prepare: what was said the first time.
void Agent::Impl::answer_gang(const GangEntry& gang) {
  const auto batch = gang.steps.find(kBatchStep);
  if (batch != gang.steps.end() && batch->second.phase == StepPhase::kPreparing) return;
  send(from_agent::Ready{key_of(gang, kExternStep)});
}

Status Agent::Impl::make_gang(const to_agent::PrepareGang& order) {
  GangEntry gang;
  gang.record.job = order.job;
  gang.record.slot = order.slot;
  gang.record.has_batch = order.batch.has_value();
  gang.directory = fmt::format("{}/jobs/{}", options_.directory, order.job.gang.value());
  if (::mkdir(gang.directory.c_str(), 0711) != 0) return fail_errno(errno, gang.directory);
  const GangId id = gang.id();
  auto& entry = gangs_[id] = std::move(gang);
  if (auto status = write_file(entry.directory + "/gang.json", to_json(entry.record)); !status) {
    return status;
  }
  return cgroups_->create_job(id.value(), limits_of(order.slot));
}

void Agent::Impl::on(to_agent::PrepareGang&& order, std::string_view) {
  const StepKey key{order.job.gang, order.job.epoch, kExternStep};
  if (const auto past = past_.find(key.gang); past != past_.end() && past->second >= key.epoch) {
    return refuse(key, fmt::format("epoch {} of job {} is over on this node", key.epoch.value(),
                                   key.gang.value()));
  }
  if (const GangEntry* known = find_gang(key.gang)) {
    if (known->epoch() == key.epoch && !known->ending) return answer_gang(*known);
    return refuse(key, fmt::format("job {} still holds this node under epoch {}", key.gang.value(),
                                   known->epoch().value()));
  }
  const bool can_become = ::geteuid() == 0 || order.job.uid == ::geteuid();
  if (!can_become) {
    return refuse(key, fmt::format("the agent of {} runs as uid {} and cannot run jobs of uid {}",
                                   options_.node, ::geteuid(), order.job.uid));
  }
  auto status = make_gang(order);
  GangEntry* gang = find_gang(key.gang);
  if (status && order.batch) status = launch_supervisor(*gang, std::move(*order.batch));
  if (!status) {
    refuse(key, to_string(status.error()));
    if (gang != nullptr && clean(*gang)) gangs_.erase(key.gang);
    return;
  }
  answer_gang(*gang);
}

void Agent::Impl::go_gang(GangEntry& gang) {
  gang.started = true;
  const auto batch = gang.steps.find(kBatchStep);
  if (batch == gang.steps.end()) {
    send(from_agent::Started{key_of(gang, kExternStep), {}});
  } else {
    go_step(gang, batch->second);
  }
}

void Agent::Impl::on(to_agent::Go&& order, std::string_view) {
  GangEntry* gang = find_gang(order.key.gang);
  if (gang == nullptr || gang->epoch() != order.key.epoch || gang->ending) {
    return refuse(order.key,
                  fmt::format("job {} is not prepared under epoch {} on {}", order.key.gang.value(),
                              order.key.epoch.value(), options_.node));
  }
  if (order.key.step == kExternStep) {
    if (!gang->started) {
      // On disk first: should we die now, the next agent says go.
      Descriptor file(
          ::open((gang->directory + "/go").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    }
    return go_gang(*gang);
  }
  StepEntry* step = find_step(order.key);
  if (step == nullptr) {
    return refuse(order.key,
                  fmt::format("step {} of job {} is not prepared on {}", step_word(order.key.step),
                              order.key.gang.value(), options_.node));
  }
  go_step(*gang, *step);
}

void Agent::Impl::go_step(GangEntry& gang, StepEntry& step) {
  if (step.phase == StepPhase::kDone) return tell_ended(gang, step);
  if (step.phase == StepPhase::kRunning) {
    if (!step.pids.empty()) tell_started(gang, step);
    return;
  }
  if (step.go_said) return;
  step.go_said = true;
  tell(step, to_supervisor::Go{});
}

void Agent::Impl::on(to_agent::Abort&& order, std::string_view) {
  GangEntry* gang = find_gang(order.key.gang);
  const bool known = gang != nullptr && gang->epoch() == order.key.epoch;
  if (order.key.step == kExternStep) {
    if (known) {
      gang->clean_without_output_at = Clock::now();
      return end_gang(*gang, Duration(), {});
    }
    send(from_agent::Clean{order.key.gang, order.key.epoch});
    return;
  }
  StepEntry* step = known ? find_step(order.key) : nullptr;
  if (step != nullptr) return abort_step(*gang, *step);
  from_agent::StepEnded ended;
  ended.key = order.key;
  ended.never_ran = true;
  send(ended);
}

void Agent::Impl::on(to_agent::EndGang&& order, std::string_view) {
  GangEntry* gang = find_gang(order.gang);
  if (gang == nullptr || gang->epoch() > order.epoch) {
    send(from_agent::Clean{order.gang, order.epoch});
    return;
  }
  // An order for a later life ends this one as well: that one cannot have begun here.
  end_gang(*gang, order.grace, order.notice);
}

void Agent::Impl::end_gang(GangEntry& gang, Duration grace, const std::string& notice) {
  gang.ending = true;
  // Output that is still on its way to the client gets this long.
  if (!gang.clean_without_output_at) {
    gang.clean_without_output_at = Clock::now() + std::chrono::seconds(10);
  }
  const GangId id = gang.id();
  const bool has_batch = gang.steps.contains(kBatchStep);
  for (auto& [step_id, step] : gang.steps) {
    if (step.sent < step.size) unsent_.emplace(id, step_id);
    if (step.phase == StepPhase::kDone) continue;
    const bool is_told = !has_batch || step_id == kBatchStep;
    if (step.phase == StepPhase::kRunning || step.go_said) {
      end_step(gang, step, grace, is_told ? notice : std::string());
    } else {
      abort_step(gang, step);
    }
  }
  clean_if_over(id);
}

// ---- Steps

void Agent::Impl::on(to_agent::PrepareStep&& order, std::string_view) {
  const StepKey key{order.gang, order.epoch, order.order.step};
  GangEntry* gang = find_gang(key.gang);
  if (gang == nullptr || gang->epoch() != key.epoch || gang->ending) {
    return refuse(key, fmt::format("job {} does not hold {} under epoch {}", key.gang.value(),
                                   options_.node, key.epoch.value()));
  }
  if (StepEntry* known = find_step(key)) {
    if (known->phase == StepPhase::kDone) return tell_ended(*gang, *known);
    if (known->phase != StepPhase::kPreparing) tell_ready(*gang, *known);
    return;
  }
  auto status = launch_supervisor(*gang, std::move(order.order));
  if (status) return;
  refuse(key, to_string(status.error()));
  forget_step(*gang, key.step);
}

void Agent::Impl::on(to_agent::Signal&& order, std::string_view) {
  const to_supervisor::Signal signal{order.signal, order.whole_tree};
  if (order.key.step != kExternStep) {
    if (StepEntry* step = find_step(order.key)) tell(*step, signal);
    return;
  }
  GangEntry* gang = find_gang(order.key.gang);
  if (gang == nullptr || gang->epoch() != order.key.epoch) return;
  for (auto& [step_id, step] : gang->steps) {
    if (step_id == kBatchStep ? order.to_batch : order.to_steps) tell(step, signal);
  }
}

// First the words, then the signal: who is woken finds out why.
void Agent::Impl::on(to_agent::Notice&& order, std::string_view) {
  GangEntry* gang = find_gang(order.gang);
  if (gang == nullptr || gang->epoch() != order.epoch || gang->ending) return;
  const std::string path = gang->directory + "/notice.json";
  const std::string beside = path + ".new";
  auto status = write_file(beside, order.text + "\n");
  if (status && (::chmod(beside.c_str(), 0644) != 0 || ::rename(beside.c_str(), path.c_str()) != 0))
    status = fail_errno(errno, path);
  if (!status) log(fmt::format("notice: {}", to_string(status.error())));
  if (order.signal == 0) return;
  const to_supervisor::Signal signal{order.signal, false};
  for (auto& [step_id, step] : gang->steps)
    if (step_id == kBatchStep ? order.to_batch : order.to_steps) tell(step, signal);
}

void Agent::Impl::on(to_agent::EndStep&& order, std::string_view) {
  GangEntry* gang = find_gang(order.key.gang);
  StepEntry* step = find_step(order.key);
  if (step == nullptr) {
    from_agent::StepEnded ended;
    ended.key = order.key;
    ended.never_ran = true;
    send(ended);
    return;
  }
  if (step->phase == StepPhase::kDone) return tell_ended(*gang, *step);
  end_step(*gang, *step, order.grace, order.notice);
}

void Agent::Impl::on(to_agent::Input&& order, std::string_view payload) {
  StepEntry* step = find_step(order.key);
  if (step == nullptr) return;
  std::uint64_t offset = order.offset;
  do {
    const std::string_view part = payload.substr(0, kPacketPayloadMax);
    payload.remove_prefix(part.size());
    tell(*step, to_supervisor::Input{order.rank, offset, order.end && payload.empty()}, part);
    offset += part.size();
  } while (!payload.empty());
}

void Agent::Impl::on(to_agent::OutputTaken&& order, std::string_view) {
  StepEntry* step = find_step(order.key);
  if (step == nullptr || order.offset <= step->taken || order.offset > step->size) return;
  step->taken = order.offset;
  step->sent = std::max(step->sent, step->taken);
  tell(*step, to_supervisor::Taken{order.offset});
  if (step->phase == StepPhase::kDone && step->taken == step->size) {
    ::unlink((step->directory + "/output").c_str());
  }
  if (step->sent < step->size) unsent_.emplace(order.key.gang, order.key.step);
}

void Agent::Impl::on(to_agent::SendOutput&& order, std::string_view) {
  StepEntry* step = find_step(order.key);
  if (step == nullptr || !step->attached) return;
  step->sent = std::clamp(order.offset, step->taken, step->size);
  unsent_.emplace(order.key.gang, order.key.step);
}

void Agent::Impl::on(to_agent::Resize&& order, std::string_view) {
  if (StepEntry* step = find_step(order.key)) {
    tell(*step, to_supervisor::Resize{order.rows, order.columns});
  }
}

}  // namespace tutti::agent
