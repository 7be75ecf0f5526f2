#include "simulator/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "simulator/lowering.h"

namespace tutti::simulator {

namespace {

constexpr std::size_t kMostSamples = 8192;
constexpr std::string_view kCpuType = "cpu";

// What a slot counts for in the ledger: its GPUs, or its CPUs where nobody has GPUs.
class Meter {
 public:
  explicit Meter(const ClusterSpec& spec) : spec_(spec) {
    for (const NodeSpec& node : spec.nodes) has_gpus_ = has_gpus_ || !node.devices.empty();
    for (const NodeSpec& node : spec.nodes) {
      if (!has_gpus_) capacity_[std::string(kCpuType)] += node.cpus;
      for (const DeviceSpec& device : node.devices) ++capacity_[device.type];
    }
  }
  const std::map<std::string, std::uint64_t>& capacity() const { return capacity_; }
  std::string_view unit() const { return has_gpus_ ? "GPU" : "CPU"; }
  std::uint64_t whole() const {
    std::uint64_t sum = 0;
    for (const auto& [type, count] : capacity_) sum += count * 1000;
    return sum;
  }
  // Thousandths by type.
  std::map<std::string, std::uint64_t> of(const Gang& gang) const {
    std::map<std::string, std::uint64_t> out;
    for (const Slot& slot : gang.slots) {
      if (!has_gpus_) {
        out[std::string(kCpuType)] += 1000 * slot.cpu_ids.size();
        continue;
      }
      const auto& devices = spec_.nodes[slot.node].devices;
      for (std::uint16_t gpu : slot.gpus) out[devices[gpu].type] += 1000;
      for (const DevicePart& part : slot.parts)
        out[devices[part.device].type] += part.share_permille;
    }
    return out;
  }

 private:
  const ClusterSpec& spec_;
  bool has_gpus_ = false;
  std::map<std::string, std::uint64_t> capacity_;
};

class Replay {
 public:
  Replay(const Trace& trace, const ClusterSpec& spec, const ReplayOptions& options, World world)
      : trace_(trace),
        options_(options),
        world_(std::move(world)),
        meter_(spec),
        gpus_per_node_(std::max(most_gpus_per_node(spec), 1u)),
        ledger_(world_.now()) {
    result_.profile = options.world.profile;
    result_.capacity = meter_.whole();
    result_.unit = meter_.unit();
    result_.begin = world_.now();
    for (const auto& [type, count] : meter_.capacity())
      if (auto status = ledger_.set_capacity(type, count, 0, world_.now()); !status)
        status_ = status;
    world_.watch([this](const WorldChange& change) { on_change(change); });
  }

  Result<ReplayResult> run() {
    std::size_t next = 0;
    while (status_) {
      if (options_.interrupted && options_.interrupted()) {
        result_.was_interrupted = true;
        break;
      }
      Instant arrival =
          next < trace_.jobs.size() ? submit_time(trace_.jobs[next]) : Instant::never();
      Instant at = std::min(arrival, world_.next_due());
      if (at >= Instant::never()) break;
      if (waiting_ > 0)
        result_.idle_while_waiting += ledger_.present(ledger::Level::kFree) *
                                      static_cast<std::uint64_t>((at - world_.now()).ms());
      status_ = world_.move_to(at);
      while (status_ && next < trace_.jobs.size() && submit_time(trace_.jobs[next]) == at)
        submit(static_cast<std::uint32_t>(next++));
      if (status_) status_ = world_.advance(at);
      sample();
    }
    if (!status_)
      return fail(ErrorCode::kInternal,
                  fmt::format("{} (trace {}, profile {}, at {} ms)", status_.error().message,
                              trace_.source, result_.profile, world_.now().ms()));
    result_.end = world_.now();
    result_.ledger = ledger_.totals(world_.now());
    result_.passes = world_.passes();
    result_.work_units = world_.work_units();
    return std::move(result_);
  }

 private:
  // A trace may begin at 0, which is "never set" to the core.
  static Instant submit_time(const TraceJob& job) { return job.submit + Duration::seconds(1); }

  void submit(std::uint32_t index) {
    const TraceJob& job = trace_.jobs[index];
    auto id = world_.submit(lower_job(trace_, job, gpus_per_node_), job.run);
    if (!id) {
      if (id.error().code == ErrorCode::kInternal || id.error().code == ErrorCode::kCorrupt)
        status_ = tl::make_unexpected(id.error());
      else
        result_.refused.add(TraceProblemKind::kLargerThanCluster, job.line,
                            fmt::format("job {}: {}", job.number, id.error().message));
      return;
    }
    positions_.emplace(id->value(), result_.jobs.size());
    result_.jobs.push_back({index, world_.now(), {}, {}, 0});
    ++waiting_;
  }

  void on_change(const WorldChange& change) {
    using Kind = WorldChange::Kind;
    auto position = positions_.find(change.workload.value());
    if (position == positions_.end()) return;
    JobResult& job = result_.jobs[position->second];
    switch (change.kind) {
      case Kind::kSubmitted:
        break;
      case Kind::kAllocated:
        hold(*world_.state().gangs.find(change.gang.value()));
        break;
      case Kind::kStarted:
        if (job.starts++ == 0) job.started = world_.now();
        relevel(change.gang, ledger::Level::kProgressing);
        break;
      case Kind::kEnding:
        job.ended = world_.now();
        relevel(change.gang, ledger::Level::kNoProcess);
        break;
      case Kind::kReleased:
        give_back(change.gang);
        break;
      case Kind::kOver:
        positions_.erase(position);
        if (options_.progress) options_.progress(++over_);
        break;
    }
  }

  void note(const Status& status) {
    if (!status && status_) status_ = status;
  }

  void hold(const Gang& gang) {
    --waiting_;
    ++running_;
    auto& holders = holders_[gang.id.value()];
    for (const auto& [type, permille] : meter_.of(gang)) {
      if (permille == 0) continue;
      holders.push_back(++next_holder_);
      held_ += permille;
      note(ledger_.hold(next_holder_, type, permille, ledger::Level::kStarting, world_.now()));
      amounts_[next_holder_] = permille;
    }
  }
  void relevel(GangId gang, ledger::Level level) {
    for (ledger::Holder holder : holders_[gang.value()])
      note(ledger_.change(holder, level, world_.now()));
  }
  void give_back(GangId gang) {
    --running_;
    auto found = holders_.find(gang.value());
    for (ledger::Holder holder : found->second) {
      held_ -= amounts_[holder];
      amounts_.erase(holder);
      note(ledger_.release(holder, world_.now()));
      ledger_.forget(holder);
    }
    holders_.erase(found);
    const Gang* left = world_.state().gangs.find(gang.value());
    if (left && left->state == GangState::kPending) ++waiting_;
  }

  // Every second one is dropped when there are too many, and only every second one kept on.
  void sample() {
    if (++sampled_ % sample_every_ != 0) return;
    auto& samples = result_.samples;
    if (!samples.empty() && samples.back().at == world_.now()) samples.pop_back();
    samples.push_back({world_.now(), held_, waiting_, running_});
    if (samples.size() < kMostSamples) return;
    for (std::size_t i = 0; i < samples.size() / 2; ++i) samples[i] = samples[2 * i + 1];
    samples.resize(samples.size() / 2);
    sample_every_ *= 2;
  }

  const Trace& trace_;
  const ReplayOptions& options_;
  World world_;
  Meter meter_;
  std::uint32_t gpus_per_node_;
  ledger::Ledger ledger_;
  ReplayResult result_;
  Status status_;
  std::unordered_map<std::uint32_t, std::size_t> positions_;  // looked up, never iterated
  std::unordered_map<std::uint32_t, std::vector<ledger::Holder>> holders_;
  std::unordered_map<ledger::Holder, std::uint64_t> amounts_;
  ledger::Holder next_holder_ = 0;
  std::uint64_t held_ = 0, over_ = 0, sampled_ = 0, sample_every_ = 1;
  std::uint32_t waiting_ = 0, running_ = 0;
};

}  // namespace

Result<ReplayResult> replay(const Trace& trace, const ClusterSpec& spec,
                            const ReplayOptions& options) {
  Instant begin = trace.first_submit + Duration::seconds(1);
  auto world = World::create(spec, begin, options.world);
  if (!world) return tl::make_unexpected(world.error());
  return Replay(trace, spec, options, std::move(*world)).run();
}

}  // namespace tutti::simulator
