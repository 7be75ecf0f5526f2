// QuotaTree: the queues as a pass computes with them: what each owns, uses, borrows and has lent,
// per resource, at every level of the tree. Pure integer arithmetic over counts; devices and nodes
// are none of its business.
//
// At every node of the tree and for every resource:
//   amount     what it owns: its nominal; without one its deserved share of the parent's amount
//              (by weight, no more than it can use); an inner node that says nothing owns what its
//              children own together; a leaf that says nothing has no limit
//   used       by gangs of its subtree
//   kept       the part of the amount that it does not lend (amount - lending limit)
//   claim      what its subtree takes of its parent: max(used or the children's claims, kept)
// A start is allowed when afterwards claim <= amount + borrowing limit at every node up to the
// root, claim <= amount at the root, and claim <= limit everywhere. It is within nominal when claim <= amount at every node.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "model/queues.h"
#include "model/workload.h"
#include "scheduler/cluster_index.h"
#include "scheduler/shape.h"

namespace tutti::scheduler {

using QueueId = std::uint32_t;  // position in QuotaTree; parents before children

// Amounts of resources: GPUs in thousandths (parts of devices are charged as the larger of their
// shares), CPUs, MiB.
struct Charge {
  std::vector<std::pair<GpuType, std::uint64_t>> gpus;  // by type, ascending
  std::uint64_t untyped_gpus = 0;  // of a request whose type is decided by its placement
  std::uint64_t cpus = 0, memory_mib = 0;

  std::uint64_t all_gpus() const;
  Charge& operator+=(const Charge& other);
};

// The least that a request needs, all its roles together.
Charge charge_of(const Shape& shape);
// What a gang holds: the slots that it has not given back.
Charge charge_of(const ClusterIndex& cluster, const std::vector<Slot>& slots);

class QuotaTree {
 public:
  // Cost: O(queues x resources).
  QuotaTree(const QueueTree& spec, const ClusterIndex& cluster);

  bool empty() const { return nodes_.empty(); }
  std::size_t size() const { return nodes_.size(); }
  const QueueSpec& spec(QueueId queue) const { return spec_.queues[queue]; }
  std::optional<QueueId> find(std::string_view name) const;
  std::optional<QueueId> parent(QueueId queue) const;
  // The queue of a workload: the one it names, else its account's, else one called like its first
  // partition, else the default one. nullopt: none, so that no quota applies to it.
  std::optional<QueueId> queue_of(const Workload& workload) const;

  // What pending and running work could use, for deserved shares; then settle().
  void add_demand(QueueId queue, const Charge& charge, std::uint64_t times = 1);
  // Fixes the deserved shares. Before the first judge().
  void settle();

  void charge(QueueId queue, const Charge& amount);
  void refund(QueueId queue, const Charge& amount);

  enum class Fit : std::uint8_t { kWithinNominal, kBorrows, kOver };
  Fit judge(QueueId queue, const Charge& amount) const;
  // Whether any limit of the path tells GPU types apart.
  bool tells_types_apart(QueueId queue) const;

  // The first node on the way up that does not allow it, with numbers.
  struct Refusal {
    QueueId queue = 0;
    std::string resource;  // "gpu:h100", "gpu", "cpu", "memory"
    std::uint64_t asked = 0, used = 0, amount = 0, may_borrow = 0;  // GPUs whole, rounded up
    bool at_root = false;
  };
  std::optional<Refusal> refusal(QueueId queue, const Charge& amount) const;

  // How much above its nominal the queue would be, over its weight: of the first GPU type (or
  // resource) that is charged. Borrowers with less come first.
  struct Borrowing {
    std::uint32_t resource = 0;
    std::uint64_t ratio = 0;
    friend auto operator<=>(const Borrowing&, const Borrowing&) = default;
  };
  Borrowing borrowing(QueueId queue, const Charge& amount) const;

  // For reclaim. The lowest common ancestor; nullopt when the queues are of different trees.
  std::optional<QueueId> common_ancestor(QueueId a, QueueId b) const;
  // Within nominal at `queue` and every ancestor below `below` (all of them when unset).
  bool is_within_nominal(QueueId queue, const Charge& amount, std::optional<QueueId> below) const;
  // Uses more than its amount of a resource that `amount` charges.
  bool is_over_nominal(QueueId queue, const Charge& amount) const;

  std::uint64_t used(QueueId queue, std::string_view resource) const;
  std::uint64_t amount(QueueId queue, std::string_view resource) const;  // kUnlimited: no limit
  static constexpr std::uint64_t kUnlimited = ~std::uint64_t{0};

 private:
  struct Cell {  // of one node and resource
    std::uint64_t nominal = kUnlimited, amount = kUnlimited;
    std::uint64_t borrow = kUnlimited, kept = 0;
    std::uint64_t used = 0, taken = 0;  // taken: used, of an inner node the children's claims
    std::uint64_t demand = 0;
    std::uint64_t lend = kUnlimited, limit = kUnlimited;
    bool deserves = false;  // listed without a nominal
    std::uint64_t claim() const { return taken > kept ? taken : kept; }
  };
  struct Node {
    std::uint32_t parent = kNone;
    std::vector<QueueId> children;
    std::vector<Cell> cells;  // by resource
  };
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  // What the claim of a node may grow to.
  std::uint64_t most(QueueId queue, const Cell& cell) const;
  std::uint32_t resource_of(std::string_view name) const;
  std::string resource_name(std::uint32_t resource) const;
  std::uint64_t to_units(std::uint32_t resource, std::uint64_t amount) const;
  std::uint64_t from_units(std::uint32_t resource, std::uint64_t units) const;
  std::uint64_t capacity(std::uint32_t resource) const;
  void share_out(const std::vector<QueueId>& queues, std::uint32_t resource, std::uint64_t amount);
  // Calls visit(resource, amount) for what is charged, GPU types first.
  template <class Visit>
  void each(const Charge& charge, Visit&& visit) const;
  template <class Visit>
  bool climb(QueueId queue, std::uint32_t resource, std::uint64_t amount, Visit&& visit) const;

  const QueueTree& spec_;
  const ClusterIndex& cluster_;
  std::vector<Node> nodes_;
  std::unordered_map<std::string_view, QueueId> by_name_, by_account_;  // looked up only
  std::uint32_t all_gpus_ = 0, cpus_ = 0, memory_ = 0, resources_ = 0;
  bool shares_ = false;  // some amount is a deserved one
};

}  // namespace tutti::scheduler
