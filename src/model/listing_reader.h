// The reader of listings (model/listing.h): one workload at a time into a record of the caller's.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "model/listing.h"

namespace tutti {

class ListingReader {
 public:
  // Errors: kInvalid for a text that is no listing of this form. The text must outlive the reader.
  static Result<ListingReader> open(std::string_view text) {
    if (!text.starts_with(kListingMagic)) return invalid("not a listing that this program knows");
    ListingReader reader;
    reader.rest_ = text.substr(kListingMagic.size());
    reader.now_ = reader.time();
    reader.text(reader.cluster_);
    reader.jobs_ = reader.number();
    if (reader.broken_) return invalid("a listing without a head");
    return reader;
  }
  Instant now() const { return now_; }
  const std::string& cluster() const { return cluster_; }
  std::uint64_t jobs() const { return jobs_; }  // about; for making room
  std::size_t bytes_left() const { return rest_.size(); }

  // Reads the next workload into `view`, whose other fields stay as they are. False at the end.
  // Errors: kInvalid (cut short or damaged).
  Result<bool> next(WorkloadView& view) {
    if (rest_.empty()) return false;
    Workload& w = view.workload;
    w.id = WorkloadId(small());
    text(w.name);
    text(w.user);
    text(w.group);
    w.uid = small();
    w.gid = small();
    text(w.account);
    text(w.qos);
    resize(partitions_);
    for (std::string& name : partitions_) text(name);
    text(w.array);
    w.array_throttle = small();
    w.hold = static_cast<Hold>(small());
    w.nice = static_cast<decltype(w.nice)>(integer());
    w.submitted = time();
    w.begin = time();
    resize(roles_);
    for (RoleAsk& role : roles_) ask(role);
    if (w.partitions.get() != partitions_) w.partitions = partitions_;
    if (w.roles.get() != roles_) w.roles = roles_;
    text(view.unstarted);
    view.simple_unstarted = number() != 0;
    waits(view.wait);
    view.priority.total = number();
    view.time_limit = Duration::milliseconds(integer());
    text(view.partition);
    view.outcome = static_cast<Outcome>(small());
    view.ended = time();
    view.eligible = time();
    resize(view.gangs);
    for (GangView& g : view.gangs) gang(g, w.id);
    if (broken_) return invalid("a listing that is cut short or damaged");
    return true;
  }

 private:
  ListingReader() = default;
  std::uint64_t number() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      if (rest_.empty()) break;
      const auto byte = static_cast<unsigned char>(rest_.front());
      rest_.remove_prefix(1);
      value |= std::uint64_t{byte & 0x7FU} << shift;
      if (byte < 0x80) return value;
    }
    broken_ = true;
    return 0;
  }
  std::uint32_t small() { return static_cast<std::uint32_t>(number()); }
  std::int64_t integer() {
    const std::uint64_t value = number();
    return static_cast<std::int64_t>(value >> 1 ^ (~(value & 1) + 1));
  }
  Instant time() { return Instant::from_ms(integer()); }
  void text(std::string& into) {
    const std::uint64_t size = number();
    broken_ |= size > rest_.size();
    if (broken_) return;
    into.assign(rest_.data(), size);
    rest_.remove_prefix(size);
  }
  template <class T>
  void resize(std::vector<T>& list) {
    const std::uint64_t size = number();
    broken_ |= size > rest_.size();  // nothing takes less than a byte
    list.resize(broken_ ? 0 : size);
  }
  void waits(std::optional<Wait>& wait) {
    if (number() == 0) return wait.reset();
    if (!wait) wait.emplace();
    text(wait->reason);
    wait->planned_start = time();
  }
  void ask(RoleAsk& role) {
    for (std::uint32_t* value :
         {&role.nodes_min, &role.tasks, &role.tasks_per_node, &role.cpus_per_task,
          &role.cpus_per_gpu, &role.cpus_per_node, &role.gpus_per_node, &role.gpus_per_task,
          &role.gpus_total})
      *value = small();
  }
  void gang(GangView& view, WorkloadId workload) {
    Gang& g = view.gang;
    g.id = GangId(small());
    g.workload = workload;
    const std::uint64_t index = number();
    g.array_index = index ? std::optional(static_cast<std::uint32_t>(index - 1)) : std::nullopt;
    g.state = static_cast<GangState>(small());
    g.outcome = static_cast<Outcome>(small());
    g.hold = static_cast<Hold>(small());
    text(g.partition);
    g.eligible = time();
    g.allocated = time();
    g.started = time();
    g.ended = time();
    g.limit_end = time();
    waits(view.wait);
    resize(g.slots);
    view.nodes.resize(g.slots.size());
    for (std::size_t i = 0; i < g.slots.size(); ++i) {
      text(view.nodes[i]);
      g.slots[i].role = small();
      const std::uint64_t cpus = number();
      broken_ |= cpus > 0x10000;  // their ids have 16 bits
      g.slots[i].cpu_ids.resize(broken_ ? 0 : cpus);
      g.slots[i].released = number() != 0;
    }
  }
  std::string_view rest_;
  bool broken_ = false;
  Instant now_;
  std::string cluster_;
  std::uint64_t jobs_ = 0;
  std::vector<std::string> partitions_;
  std::vector<RoleAsk> roles_;
};

}  // namespace tutti
