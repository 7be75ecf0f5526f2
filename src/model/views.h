// What readers get: the tables as they are plus what a pass said about those that wait. Front ends
// turn them into their own text; nothing here is specific to one.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/archive.h"
#include "model/cluster.h"
#include "model/gang.h"
#include "model/promises.h"
#include "model/reservation.h"
#include "model/workload.h"

namespace tutti {

// Why something waits. `reason` is a stable word (model/reasons.h) with the numbers in `text`.
struct Wait {
  std::string reason;
  std::string
      text;  // one sentence with numbers: "needs 16 GPUs of rtxpro6000 on 2 nodes; 8 are free"
  std::vector<std::string>
      blockers;           // a sufficient set: "job 12", "limit MaxTime of partition short"
  Instant planned_start;  // unset = not planned
  std::vector<std::string> planned_nodes;
};
void describe(auto& a, Wait& x) {
  a("reason", x.reason);
  a("text", x.text);
  a("blockers", x.blockers);
  a("planned_start_ms", x.planned_start);
  a("planned_nodes", x.planned_nodes);
}

struct PriorityParts {  // already weighted
  std::uint64_t total = 0, age = 0, fair_share = 0, job_size = 0, partition = 0, qos = 0,
                association = 0;
  std::map<std::string, std::uint64_t> tres;  // by resource
  std::int64_t nice = 0;
};
void describe(auto& a, PriorityParts& x) {
  a("total", x.total);
  a("age", x.age);
  a("fair_share", x.fair_share);
  a("job_size", x.job_size);
  a("partition", x.partition);
  a("qos", x.qos);
  a("nice", x.nice);
  a("association", x.association);
  a("tres", x.tres);
}

struct GangView {
  Gang gang;
  std::vector<std::string> nodes;  // names, one per slot
  std::optional<Wait> wait;        // of a pending gang
};
void describe(auto& a, GangView& x) {
  a("gang", x.gang);
  a("nodes", x.nodes);
  a("wait", x.wait);
}

struct WorkloadView {
  Workload workload;
  std::string unstarted;  // index set of array elements without a gang
  bool simple_unstarted = false;
  std::vector<GangView> gangs;  // started at least once, also when pending again
  std::optional<Wait> wait;     // of the unstarted elements
  PriorityParts priority;
  Duration time_limit;               // in force (the partition's default if none was asked)
  std::string partition;             // first of those asked, or the default
  Outcome outcome = Outcome::kNone;  // of elements that ended without a gang
  std::optional<std::uint32_t> ended_by_uid;
  Instant ended;
  Instant eligible;
};
void describe(auto& a, WorkloadView& x) {
  a("workload", x.workload);
  a("unstarted", x.unstarted);
  a("simple_unstarted", x.simple_unstarted);
  a("gangs", x.gangs);
  a("wait", x.wait);
  a("priority", x.priority);
  a("time_limit_ms", x.time_limit);
  a("partition", x.partition);
  a("outcome", x.outcome);
  a("ended_by_uid", x.ended_by_uid);
  a("ended_ms", x.ended);
  a("eligible_ms", x.eligible);
}

struct NodeView {
  NodeSpec spec;
  NodeState state;
  std::uint32_t cpus_allocated = 0;
  std::uint64_t memory_mib_allocated = 0;
  std::vector<std::uint16_t> gpus_allocated;
  bool ending = false;      // a gang is being cleaned up here (COMPLETING)
  bool exclusive = false;   // held by one gang alone
  bool planned = false;     // promised to a waiting gang
  std::string reservation;  // in force on it now
  bool maintenance = false;
};
void describe(auto& a, NodeView& x) {
  a("spec", x.spec);
  a("state", x.state);
  a("cpus_allocated", x.cpus_allocated);
  a("memory_mib_allocated", x.memory_mib_allocated);
  a("gpus_allocated", x.gpus_allocated);
  a("ending", x.ending);
  a("exclusive", x.exclusive);
  a("planned", x.planned);
  a("reservation", x.reservation);
  a("maintenance", x.maintenance);
}

// URL parameters of /v1/state: jobs=12,13_4 users=a,b partitions= accounts= states=pending,running,
// done (default: all but done) waits=reasons (without their texts and blockers)
// with=workloads,nodes,partitions,reservations,spec (default workloads).
struct StateView {
  Instant now;
  std::string cluster, version, controller_host;
  Instant controller_started;
  std::vector<WorkloadView> workloads;
  std::vector<NodeView> nodes;
  std::vector<PartitionSpec> partitions;
  std::vector<Reservation> reservations;
  std::optional<ClusterSpec> spec;          // without nodes and partitions
  std::vector<std::uint32_t> unknown_jobs;  // asked for by number, not known
};
void describe(auto& a, StateView& x) {
  a("now_ms", x.now);
  a("cluster", x.cluster);
  a("version", x.version);
  a("controller_host", x.controller_host);
  a("controller_started_ms", x.controller_started);
  a("workloads", x.workloads);
  a("nodes", x.nodes);
  a("partitions", x.partitions);
  a("reservations", x.reservations);
  a("spec", x.spec);
  a("unknown_jobs", x.unknown_jobs);
}

// One job (gang) as history keeps it, also for live ones so that a job is there as soon as it is
// accepted. A workload element that never started has gang.id = the workload's and no slots.
struct JobRecord {
  Workload workload;
  Gang gang;
  std::vector<std::string> nodes;
  std::string unstarted;  // index set, for the row of an array's waiting elements
  Duration time_limit;
  std::string partition, cluster;
  std::vector<std::string> gpu_types;  // per slot
  Instant eligible;
  PriorityParts priority;
};
void describe(auto& a, JobRecord& x) {
  a("workload", x.workload);
  a("gang", x.gang);
  a("nodes", x.nodes);
  a("unstarted", x.unstarted);
  a("time_limit_ms", x.time_limit);
  a("partition", x.partition);
  a("cluster", x.cluster);
  a("gpu_types", x.gpu_types);
  a("eligible_ms", x.eligible);
  a("priority", x.priority);
}
// URL parameters of /v1/history: jobs= users= accounts= partitions= names= states= (outcome words,
// pending, running) from_ms= to_ms= duplicates=1
struct HistoryView {
  Instant now;
  std::vector<JobRecord> records;  // by job number
};
void describe(auto& a, HistoryView& x) {
  a("now_ms", x.now);
  a("records", x.records);
}

struct WhyReply {
  WorkloadView job;
  std::optional<PromiseRecord> promise;  // the one it has, as the journal keeps it
  std::vector<std::string> story;        // what happened to it so far, in words, oldest first
  std::vector<std::string> changes;      // cheapest changes that would start it now or sooner
  std::vector<std::string> not_honoured;
};
void describe(auto& a, WhyReply& x) {
  a("job", x.job);
  a("promise", x.promise);
  a("story", x.story);
  a("changes", x.changes);
  a("not_honoured", x.not_honoured);
}

// Counters since the controller started; times in microseconds.
struct DiagView {
  Instant now, since;
  std::uint64_t jobs_submitted = 0, jobs_started = 0, jobs_completed = 0, jobs_cancelled = 0,
                jobs_failed = 0, jobs_pending = 0, jobs_running = 0;
  std::uint64_t passes = 0, pass_us_last = 0, pass_us_max = 0, pass_us_total = 0;
  std::uint64_t depth_last = 0, queue_last = 0, backfilled = 0, backfill_passes = 0;
  Instant last_pass;
  std::uint64_t commits = 0, commit_us_total = 0, events = 0, requests = 0;
  std::uint64_t agents_connected = 0, channels = 0;
  std::uint64_t journal_bytes = 0, wal_bytes = 0, events_since_snapshot = 0;
};
void describe(auto& a, DiagView& x) {
  a("now_ms", x.now);
  a("since_ms", x.since);
  a("jobs_submitted", x.jobs_submitted);
  a("jobs_started", x.jobs_started);
  a("jobs_completed", x.jobs_completed);
  a("jobs_cancelled", x.jobs_cancelled);
  a("jobs_failed", x.jobs_failed);
  a("jobs_pending", x.jobs_pending);
  a("jobs_running", x.jobs_running);
  a("passes", x.passes);
  a("pass_us_last", x.pass_us_last);
  a("pass_us_max", x.pass_us_max);
  a("pass_us_total", x.pass_us_total);
  a("depth_last", x.depth_last);
  a("queue_last", x.queue_last);
  a("backfilled", x.backfilled);
  a("backfill_passes", x.backfill_passes);
  a("last_pass_ms", x.last_pass);
  a("commits", x.commits);
  a("commit_us_total", x.commit_us_total);
  a("events", x.events);
  a("requests", x.requests);
  a("agents_connected", x.agents_connected);
  a("channels", x.channels);
  a("journal_bytes", x.journal_bytes);
  a("wal_bytes", x.wal_bytes);
  a("events_since_snapshot", x.events_since_snapshot);
}

}  // namespace tutti
