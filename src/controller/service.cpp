#include "controller/service.h"

#include <condition_variable>
#include <deque>
#include <fmt/format.h>
#include <malloc.h>
#include <mutex>
#include <thread>
#include <utility>
#include <variant>

#include "base/index_set.h"
#include "controller/readers.h"
#include "state/apply.h"

namespace tutti::controller {

namespace {
constexpr std::size_t kMaxQueued = 200'000;
constexpr std::size_t kMaxTurn = 2'000;
constexpr std::uint64_t kSnapshotEvery = 200'000;  // events
// A pass that takes longer has a commit of its own, after that of what was asked: callers do not
// wait for it. A shorter one shares the commit, so that what it starts starts at once.
constexpr std::int64_t kLongPassUs = 1'000;
// After so long without work the memory that a burst of it left free goes back to the system.
constexpr std::int64_t kQuietMs = 1'000;

void give_memory_back() {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

enum class From : std::uint8_t { kAgent, kClient };
struct MessageInput {
  From from;
  std::shared_ptr<Link> link;
  std::string frame;
};
struct ClosedInput {
  From from;
  std::shared_ptr<Link> link;
};
struct OpenedInput {
  std::shared_ptr<Link> link;
  Caller caller;
  GangId gang;
};
using Input = std::variant<ApiCall, MessageInput, ClosedInput, OpenedInput>;
}  // namespace

struct Service::Impl {
  ServiceOptions options;
  journal::Journal journal;
  const Clock& clock;
  Users& users;
  Log& log;
  Core core;
  Readers readers;
  Readers thinkers;  // answers that take plans of their own
  std::mutex mutex;
  std::condition_variable wake;
  std::deque<Input> queue;
  bool stopping = false;
  std::thread thread;
  bool worked = false;  // since memory was given back
  std::int64_t last_pass_us = 0;
  std::chrono::steady_clock::time_point pass_ended{};

  Impl(ServiceOptions o, journal::Journal j, const Clock& c, Users& u, Log& l)
      : options(std::move(o)),
        journal(std::move(j)),
        clock(c),
        users(u),
        log(l),
        core(journal, users, log, options.crash_point),
        readers(core, clock, options.about, log),
        thinkers(core, clock, options.about, log) {}

  bool push(Input input) {
    std::lock_guard lock(mutex);
    if (stopping || queue.size() >= kMaxQueued) return false;
    queue.push_back(std::move(input));
    wake.notify_one();
    return true;
  }

  void feed(Input& input) {
    if (auto* call = std::get_if<ApiCall>(&input)) {
      core.on_call(std::move(*call));
    } else if (auto* m = std::get_if<MessageInput>(&input)) {
      if (m->from == From::kAgent)
        core.on_agent_message(m->link, m->frame);
      else
        core.on_client_message(m->link.get(), m->frame);
    } else if (auto* m = std::get_if<ClosedInput>(&input)) {
      if (m->from == From::kAgent)
        core.on_agent_closed(m->link.get());
      else
        core.on_client_closed(m->link.get());
    } else if (auto* m = std::get_if<OpenedInput>(&input)) {
      core.on_client_opened(m->link, m->caller, m->gang);
    }
  }

  // Nodes may have new places after it: links and orders of one turn are to mean the same ones.
  static bool changes_configuration(const Input& input) {
    const auto* call = std::get_if<ApiCall>(&input);
    return call && call->path == "/v1/configure";
  }

  void leave_for_later(std::deque<Input>& inputs, std::size_t first) {
    std::lock_guard lock(mutex);
    while (inputs.size() > first) {
      queue.push_front(std::move(inputs.back()));
      inputs.pop_back();
    }
  }

  // A pass costs; while work streams in, passes take at most half of the time.
  bool pass_is_due() const {
    if (!core.wants_pass()) return false;
    auto since = std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - pass_ended).count();
    return since >= last_pass_us;
  }

  void pass() {
    worked = true;
    auto begun = std::chrono::steady_clock::now();
    core.run_pass();
    pass_ended = std::chrono::steady_clock::now();
    last_pass_us = std::chrono::duration_cast<std::chrono::microseconds>(pass_ended - begun).count();
    core.note_pass_time(static_cast<std::uint64_t>(last_pass_us));
  }

  void turn(std::deque<Input>& inputs) {
    worked |= !inputs.empty();
    core.begin(clock.now());
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      bool reconfigures = changes_configuration(inputs[i]);
      feed(inputs[i]);
      if (reconfigures) leave_for_later(inputs, i + 1);
    }
    core.on_time();
    const bool pass_later = !inputs.empty() && last_pass_us > kLongPassUs;
    if (!pass_later && pass_is_due()) pass();
    core.check_after();
    Status done = core.commit();
    if (done && pass_later && pass_is_due()) {
      inputs.clear();
      core.begin(clock.now());
      pass();
      core.check_after();
      done = core.commit();
    }
    if (!done) {
      // Calls were told. What agents and clients said must not be lost: it is heard again once the
      // journal can be written.
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
      std::lock_guard lock(mutex);
      for (auto it = inputs.rbegin(); it != inputs.rend(); ++it)
        if (!std::holds_alternative<ApiCall>(*it)) queue.push_front(std::move(*it));
      return;
    }
    if (journal.last_sequence() - journal.snapshot_sequence() > kSnapshotEvery) snapshot();
  }

  void snapshot() {
    Status written = journal.write_snapshot(journal.last_sequence(), state::encode_snapshot(core.state()));
    if (!written) log.error("snapshot_failed", {{"error", written.error().message}});
  }

  void loop() {
    while (true) {
      std::deque<Input> inputs;
      {
        std::unique_lock lock(mutex);
        auto ready = [this] { return !queue.empty() || stopping; };
        if (core.has_planned_answers()) {
          // go on at once
        } else if (core.wants_pass()) {
          wake.wait_for(lock, std::chrono::microseconds(std::clamp<std::int64_t>(last_pass_us, 0, 200'000)), ready);
        } else {
          Instant next = core.next_time();
          std::int64_t wait = std::clamp<std::int64_t>((next - clock.now()).ms(), 0, worked ? kQuietMs : 10'000);
          const bool quiet = !wake.wait_for(lock, std::chrono::milliseconds(wait), ready) && wait == kQuietMs;
          if (quiet && std::exchange(worked, false)) {
            lock.unlock();
            give_memory_back();
            lock.lock();
          }
        }
        if (stopping) return;
        while (!queue.empty() && inputs.size() < kMaxTurn) {
          inputs.push_back(std::move(queue.front()));
          queue.pop_front();
        }
      }
      turn(inputs);
    }
  }
};

Service::Service(ServiceOptions options, journal::Journal journal, const Clock& clock, Users& users, Log& log)
    : impl_(std::make_unique<Impl>(std::move(options), std::move(journal), clock, users, log)) {}
Service::~Service() { stop(); }

Status Service::start(const std::optional<journal::Snapshot>& snapshot, std::uint64_t snapshot_sequence,
                      const ClusterSpec& spec) {
  Status recovered = impl_->core.recover(snapshot, snapshot_sequence, impl_->clock.now());
  if (!recovered) return recovered;
  impl_->core.begin(impl_->clock.now());
  Status configured = impl_->core.configure(spec);
  if (!configured) return configured;
  Status committed = impl_->core.commit();
  if (!committed) return committed;
  Status readers = impl_->readers.start(impl_->journal);
  if (!readers) return readers;
  Status thinkers = impl_->thinkers.start(impl_->journal);
  if (!thinkers) return thinkers;
  impl_->thread = std::thread([this] { impl_->loop(); });
  return {};
}

void Service::stop() {
  {
    std::lock_guard lock(impl_->mutex);
    if (impl_->stopping) return;
    impl_->stopping = true;
    impl_->wake.notify_one();
  }
  if (impl_->thread.joinable()) impl_->thread.join();
  impl_->readers.stop();
  impl_->thinkers.stop();
}

void Service::call(ApiCall call) {
  if (call.path == "/v1/why" || call.path == "/v1/whatif") return impl_->thinkers.read(std::move(call));
  if (call.method == "GET" && call.path != "/v1/wait") return impl_->readers.read(std::move(call));
  Reply reply = call.reply;
  if (!impl_->push(std::move(call)))
    reply({503, to_json(ApiError{ErrorCode::kUnavailable, "overloaded", "the controller is overloaded or stopping: try again"})});
}

void Service::agent_opened(std::shared_ptr<Link>) {}
void Service::agent_message(std::shared_ptr<Link> link, std::string frame) {
  if (!impl_->push(MessageInput{From::kAgent, link, std::move(frame)})) link->close("the controller is overloaded or stopping");
}
void Service::agent_closed(std::shared_ptr<Link> link) { impl_->push(ClosedInput{From::kAgent, std::move(link)}); }
void Service::client_opened(std::shared_ptr<Link> link, Caller caller, GangId gang) {
  if (!impl_->push(OpenedInput{link, caller, gang})) link->close("the controller is overloaded or stopping");
}
void Service::client_message(std::shared_ptr<Link> link, std::string frame) {
  if (!impl_->push(MessageInput{From::kClient, link, std::move(frame)})) link->close("the controller is overloaded or stopping");
}
void Service::client_closed(std::shared_ptr<Link> link) { impl_->push(ClosedInput{From::kClient, std::move(link)}); }

}  // namespace tutti::controller
