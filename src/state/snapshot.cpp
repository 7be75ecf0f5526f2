// The state as one JSON text and back.
#include <fmt/format.h>

#include "state/apply.h"
#include "state/fold.h"

namespace tutti {

static void describe(auto& a, WorkloadEntry& x) {
  a("workload", x.workload);
  std::string unstarted = x.unstarted.to_string();
  a("unstarted", unstarted);
  if constexpr (std::decay_t<decltype(a)>::kReading) {
    if (!unstarted.empty())
      if (auto set = parse_index_set(unstarted, kNoLimit - 1)) x.unstarted = std::move(*set);
  }
  a("simple_unstarted", x.simple_unstarted);
  a("open_gangs", x.open_gangs);
  a("gangs", x.gangs);
  a("outcome", x.outcome);
  a("ended_by_uid", x.ended_by_uid);
  a("ended_ms", x.ended);
}

namespace state {
namespace {
struct SnapshotBody {
  std::uint32_t format = 1;
  std::uint64_t sequence = 0;
  ClusterSpec spec;
  QueueTree queues;
  std::vector<PromiseRecord> promises;
  LossBook losses;
  std::vector<Reservation> reservations;
  std::vector<NodeState> nodes;
  std::vector<WorkloadEntry> workloads;
  std::vector<Gang> gangs;
  std::uint32_t next_id = 1;
  std::uint64_t next_epoch = 1;
};
void describe(auto& a, SnapshotBody& x) {
  a("format", x.format);
  a("sequence", x.sequence);
  a("spec", x.spec);
  a("queues", x.queues);
  a("promises", x.promises);
  a("losses", x.losses);
  a("reservations", x.reservations);
  a("nodes", x.nodes);
  a("workloads", x.workloads);
  a("gangs", x.gangs);
  a("next_id", x.next_id);
  a("next_epoch", x.next_epoch);
}
}  // namespace

std::string encode_snapshot(const ClusterState& state) {
  JsonWriter out;
  Encoder encoder(out);
  out.begin_object();
  encoder("format", std::uint32_t{1});
  encoder("sequence", state.sequence);
  encoder("spec", *state.spec);
  encoder("queues", *state.queues);
  encoder("promises", state.promises->records);
  encoder("losses", *state.losses);
  encoder("reservations", state.reservations->all);
  encoder("next_id", state.next_id);
  encoder("next_epoch", state.next_epoch);
  auto array = [&](std::string_view name, const auto& table) {
    out.key(name);
    out.begin_array();
    table.for_each([&](std::uint32_t, const auto& record) { encoder.write(record); });
    out.end_array();
  };
  array("nodes", state.nodes);
  array("workloads", state.workloads);
  array("gangs", state.gangs);
  out.end_object();
  return out.take();
}

Result<ClusterState> decode_snapshot(std::string_view text) {
  auto body = from_json<SnapshotBody>(text);
  if (!body)
    return fail(ErrorCode::kCorrupt, fmt::format("the snapshot: {}", body.error().message));
  if (body->format != 1)
    return invalid(fmt::format("the snapshot has format {}, this program reads 1", body->format));
  ClusterState state;
  state.sequence = body->sequence;
  state.spec = std::make_shared<const ClusterSpec>(std::move(body->spec));
  state.queues = std::make_shared<const QueueTree>(std::move(body->queues));
  state.losses = std::make_shared<const LossBook>(std::move(body->losses));
  state.promises =
      std::make_shared<const PromiseBook>(PromiseBook{std::move(body->promises)});
  state.reservations =
      std::make_shared<const ReservationList>(ReservationList{std::move(body->reservations)});
  state.next_id = body->next_id;
  state.next_epoch = body->next_epoch;
  for (std::uint32_t i = 0; i < body->nodes.size(); ++i)
    state.nodes.put(i + 1, std::make_shared<const NodeState>(std::move(body->nodes[i])));
  for (WorkloadEntry& entry : body->workloads) {
    std::uint32_t id = entry.workload.id.value();
    share_equal_parts(state, entry.workload);
    state.workloads.put(id, std::make_shared<const WorkloadEntry>(std::move(entry)));
  }
  for (Gang& gang : body->gangs) {
    std::uint32_t id = gang.id.value();
    state.gangs.put(id, std::make_shared<const Gang>(std::move(gang)));
  }
  return state;
}

}  // namespace state
}  // namespace tutti
