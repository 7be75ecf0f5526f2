// GET /v1/listing.
#include "controller/queries.h"
#include "model/listing.h"

namespace tutti::controller {

namespace {

class Listing {
 public:
  Listing(const Published& picture, Listed which, Instant now)
      : state_(picture.state),
        which_(which),
        waits_(picture, now),
        basis_(scheduler::priority_basis(picture.state, now)),
        out_(now, picture.state.spec->name, picture.state.workloads.size()) {}

  void add(const WorkloadEntry& entry) {
    if (which_ == Listed::kOpen && !entry.is_open()) return;
    shown_.clear();
    for (GangId id : entry.gangs)
      if (const Gang* gang = state_.gangs.find(id.value()); gang && (which_ == Listed::kAll || gang->state != GangState::kDone))
        shown_.push_back(gang);
    ListingWriter::Head head;
    std::string unstarted;
    if (!entry.unstarted.empty()) unstarted = entry.unstarted.to_string();
    head.unstarted = unstarted;
    head.simple_unstarted = entry.simple_unstarted;
    if (entry.has_unstarted()) head.wait = waits(entry, nullptr);
    head.priority = scheduler::priority_of(basis_, *state_.spec, entry, waits_.now()).total;
    const PartitionSpec* partition = partition_of(*state_.spec, entry.workload);
    head.time_limit = partition ? scheduler::time_limit_in(*partition, entry.workload)
                                : entry.workload.time_limit.value_or(Duration::infinite());
    if (partition) head.partition = partition->name;
    head.outcome = entry.outcome;
    head.ended = entry.ended;
    head.eligible = eligible_time(entry.workload);
    out_.workload(entry.workload, head, shown_.size());
    for (const Gang* gang : shown_) {
      out_.gang(*gang, gang->state == GangState::kPending ? waits(entry, gang) : std::nullopt);
      for (const Slot& slot : gang->slots) out_.slot(slot, slot.node < state_.spec->nodes.size() ? std::string_view(state_.spec->nodes[slot.node].name) : "?");
    }
  }
  std::string take() { return out_.take(); }

 private:
  std::optional<ListingWriter::Waits> waits(const WorkloadEntry& entry, const Gang* gang) const {
    const Waits::Found found = waits_.find(entry, gang);
    return ListingWriter::Waits{found.reason, found.planned_start};
  }

  const ClusterState& state_;
  Listed which_;
  Waits waits_;
  scheduler::PriorityBasis basis_;
  ListingWriter out_;
  std::vector<const Gang*> shown_;
};

}  // namespace

const PartitionSpec* partition_of(const ClusterSpec& spec, const Workload& workload) {
  for (const PartitionSpec& p : spec.partitions)
    if (!workload.partitions.empty() && p.name == workload.partitions.front()) return &p;
  return nullptr;
}

std::string listing(const Published& picture, Listed which, Instant now) {
  Listing listing(picture, which, now);
  picture.state.workloads.for_each([&](std::uint32_t, const WorkloadEntry& entry) { listing.add(entry); });
  return listing.take();
}

}  // namespace tutti::controller
