// Listing: the jobs of the cluster in a compact binary form with just what an everyday table shows
// of them, for clients that list many thousands. It carries a subset of WorkloadView; whoever needs
// more asks for the JSON of /v1/state. A listing is read one workload at a time into the same
// record, so that reading takes the memory of one.
//
// Form: kListingMagic, then numbers as LEB128 (signed ones zigzag), texts as length and bytes. The
// number in the magic changes with the form: a program that does not know it asks for JSON.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include "model/views.h"

namespace tutti {

inline constexpr std::string_view kListingMagic = "tutti listing 1\n";

class ListingWriter {
 public:
  // `jobs`: how many workloads about, so that readers can make room.
  ListingWriter(Instant now, std::string_view cluster, std::size_t jobs) : out_(kListingMagic) {
    out_.reserve(jobs * kTypicalBytes + kFixedBytes + cluster.size());
    size_ = out_.size();
    make_room(cluster.size());
    time(now);
    text(cluster);
    number(jobs);
  }
  // What waits is told by `wait` (of the elements without a gang; reason "" = does not wait).
  struct Waits {
    std::string_view reason;
    Instant planned_start;
  };
  struct Head {  // what a WorkloadView has beside its workload
    std::string_view unstarted;
    bool simple_unstarted = false;
    std::optional<Waits> wait;
    std::uint64_t priority = 0;
    Duration time_limit;
    std::string_view partition;
    Outcome outcome = Outcome::kNone;
    Instant ended, eligible;
  };
  // Followed by exactly `gangs` calls of gang().
  void workload(const Workload& w, const Head& head, std::size_t gangs) {
    std::size_t texts = w.name.size() + w.user.size() + w.group.size() + w.account.size() + w.qos.size() + w.array.size() + head.unstarted.size() +
                        head.partition.size() + (head.wait ? head.wait->reason.size() : 0) + w.roles->size() * kRoleBytes;
    for (const std::string& name : *w.partitions) texts += name.size() + kNumberBytes;
    make_room(texts);
    number(w.id.value());
    text(w.name);
    text(w.user);
    text(w.group);
    number(w.uid);
    number(w.gid);
    text(w.account);
    text(w.qos);
    number(w.partitions->size());
    for (const std::string& name : *w.partitions) text(name);
    text(w.array);
    number(w.array_throttle);
    number(static_cast<std::uint64_t>(w.hold));
    integer(w.nice);
    time(w.submitted);
    time(w.begin);
    number(w.roles->size());
    for (const RoleAsk& role : *w.roles) ask(role);
    text(head.unstarted);
    number(head.simple_unstarted);
    waits(head.wait);
    number(head.priority);
    integer(head.time_limit.ms());
    text(head.partition);
    number(static_cast<std::uint64_t>(head.outcome));
    time(head.ended);
    time(head.eligible);
    number(gangs);
  }
  // Followed by a call of slot() for each of its slots.
  void gang(const Gang& g, const std::optional<Waits>& wait) {
    make_room(g.partition.size() + (wait ? wait->reason.size() : 0));
    number(g.id.value());
    number(g.array_index ? std::uint64_t{*g.array_index} + 1 : 0);
    number(static_cast<std::uint64_t>(g.state));
    number(static_cast<std::uint64_t>(g.outcome));
    number(static_cast<std::uint64_t>(g.hold));
    text(g.partition);
    time(g.eligible);
    time(g.allocated);
    time(g.started);
    time(g.ended);
    time(g.limit_end);
    waits(wait);
    number(g.slots.size());
  }
  void slot(const Slot& s, std::string_view node) {
    make_room(node.size());
    text(node);
    number(s.role);
    number(s.cpu_ids.size());
    number(s.released);
  }
  std::string take() {
    out_.resize(size_);
    return std::move(out_);
  }

 private:
  static constexpr std::size_t kNumberBytes = 10, kRoleBytes = 9 * 5, kTypicalBytes = 96;
  // More than all numbers and lengths of a workload, a gang or a slot.
  static constexpr std::size_t kFixedBytes = 64 * kNumberBytes;

  // Room for one record with texts of so many bytes; number() and text() look no more.
  void make_room(std::size_t texts) {
    if (out_.size() - size_ >= texts + kFixedBytes) return;
    out_.resize(std::max(out_.capacity(), 2 * (size_ + texts + kFixedBytes)));
  }
  void number(std::uint64_t value) {
    char* at = out_.data() + size_;
    for (; value >= 0x80; value >>= 7) *at++ = static_cast<char>(value | 0x80);
    *at++ = static_cast<char>(value);
    size_ = static_cast<std::size_t>(at - out_.data());
  }
  void integer(std::int64_t value) {
    number(static_cast<std::uint64_t>(value) << 1 ^ static_cast<std::uint64_t>(value >> 63));
  }
  void time(Instant at) { integer(at.ms()); }
  void text(std::string_view value) {
    number(value.size());
    std::memcpy(out_.data() + size_, value.data(), value.size());
    size_ += value.size();
  }
  void waits(const std::optional<Waits>& wait) {
    number(wait.has_value());
    if (!wait) return;
    text(wait->reason);
    time(wait->planned_start);
  }
  void ask(const RoleAsk& role) {
    for (std::uint32_t value :
         {role.nodes_min, role.tasks, role.tasks_per_node, role.cpus_per_task, role.cpus_per_gpu,
          role.cpus_per_node, role.gpus_per_node, role.gpus_per_task, role.gpus_total})
      number(value);
  }
  std::string out_;       // its size is the room there is
  std::size_t size_ = 0;  // bytes written
};

}  // namespace tutti
