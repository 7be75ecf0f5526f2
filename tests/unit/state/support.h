// A small cluster's state with its agenda, and the events of a job's life in short forms.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "state/apply.h"

namespace tutti::state {

struct World {
  ClusterState state;
  Agenda agenda;
  Instant now = Instant::from_ms(1'000'000);

  explicit World(std::vector<std::string> nodes = {"a", "b", "c"}) {
    must(ClusterConfigured{spec_of(nodes)});
  }
  static ClusterSpec spec_of(const std::vector<std::string>& nodes) {
    ClusterSpec spec;
    PartitionSpec partition;
    partition.name = "batch";
    partition.is_default = true;
    for (const std::string& name : nodes) {
      NodeSpec node;
      node.name = name;
      node.cpus = 8;
      node.memory_mib = 1000;
      spec.nodes.push_back(node);
      partition.nodes.push_back(name);
    }
    spec.partitions.push_back(partition);
    return spec;
  }
  Status apply(EventBody body) { return state::apply(state, agenda, {now, std::move(body)}); }
  // An event that fits. The agenda is as if it were derived from scratch.
  void must(EventBody body) {
    now = now + Duration::milliseconds(1);
    Status status = apply(std::move(body));
    ASSERT_TRUE(status) << status.error().message;
    ASSERT_EQ(agenda, derive_agenda(state));
  }
  // An event that does not: refused, and nothing is different.
  void refused(EventBody body) {
    std::string before = encode_snapshot(state);
    Agenda agenda_before = agenda;
    Status status = apply(std::move(body));
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, ErrorCode::kCorrupt) << status.error().message;
    EXPECT_EQ(encode_snapshot(state), before);
    EXPECT_EQ(agenda, agenda_before);
  }

  WorkloadId submit(const std::string& array = {}, bool batch = true) {
    Workload w;
    w.id = WorkloadId(state.next_id);
    w.name = "job";
    w.user = "ann";
    w.array = array;
    if (batch) w.launch.script = BlobId{1, 2};
    WorkloadId id = w.id;
    must(WorkloadSubmitted{std::move(w)});
    return id;
  }
  GangAllocated allocation(WorkloadId workload, GangId gang, std::vector<NodeIndex> nodes,
                           std::optional<std::uint32_t> index = std::nullopt) const {
    GangAllocated event;
    event.gang = gang;
    event.workload = workload;
    event.array_index = index;
    event.epoch = Epoch(state.next_epoch);
    event.partition = "batch";
    event.limit_end = now + Duration::minutes(10);
    for (NodeIndex node : nodes) {
      Slot slot;
      slot.node = node;
      slot.cpu_ids = {0, 1};
      event.slots.push_back(slot);
    }
    return event;
  }
  GangId start(std::vector<NodeIndex> nodes = {0}) {
    WorkloadId id = submit();
    GangId gang(id.value());
    must(allocation(id, gang, std::move(nodes)));
    must(GangStarted{gang, now + Duration::minutes(10)});
    return gang;
  }
  Step step(StepId id, std::vector<std::uint32_t> slots = {0}) const {
    Step step;
    step.id = id;
    step.name = "srun";
    step.created = now;
    for (std::uint32_t slot : slots) step.slots.push_back({slot, {slot}, 1, {}, false});
    return step;
  }
  const Gang& gang(GangId id) const { return *state.gangs.find(id.value()); }
  const WorkloadEntry& entry(WorkloadId id) const { return *state.workloads.find(id.value()); }
};

inline GangEnding ending(GangId gang, Outcome outcome) {
  GangEnding event;
  event.gang = gang;
  event.outcome = outcome;
  return event;
}

}  // namespace tutti::state
