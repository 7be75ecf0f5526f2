// Pass: the working tables of one call of plan(), and the stages that fill them, in the order in
// which pipeline.cpp calls them. Internal to scheduler/.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "scheduler/eligible.h"
#include "scheduler/forecast.h"
#include "scheduler/limits.h"
#include "scheduler/place.h"
#include "scheduler/plan.h"
#include "scheduler/quota.h"
#include "scheduler/reclaim.h"
#include "scheduler/registry.h"

namespace tutti::scheduler {

// Something that may start: a job, a gang that is pending again, or an array for its next element.
struct Element {
  ElementRef ref;
  const WorkloadEntry* entry = nullptr;
  const Gang* gang = nullptr;
  std::uint32_t throttle_room = kNoLimit;  // elements of the array that may still start
  bool recalls = false;                    // its start is decided: others are to leave for it
  bool settled = false;                    // nothing more is decided about it in this pass
  std::vector<std::uint32_t> members;      // it leads a group: the other elements, in order
  const std::vector<RoleAsk>* roles = nullptr;  // what is placed as one: of the whole group
  std::optional<std::uint32_t> leader;     // the element of its group that stands for it
  std::optional<Timeline::Owner> promise;  // the one it has
  std::optional<std::uint32_t> kept;       // position in Pass::kept: it had a firm one before
  std::shared_ptr<const Wait> wait;        // why what is left of it waits
};

// An element in one of its partitions.
constexpr QueueId kNoQueue = ~QueueId{0};
struct Candidate {
  std::uint32_t element = 0;  // position in Pass::elements
  std::uint32_t partition = 0;
  std::uint32_t rank = 0;  // of the partition in the job's own list
  std::uint32_t tier = 0;
  std::uint32_t shape = 0;
  QueueId queue = kNoQueue;  // whose quota it is charged to
  std::uint64_t key = 0;
  std::uint32_t reservation = kNoLimit;  // the one it runs in: position in Pass::reserved
  Instant not_before;                    // a limit keeps it until then
  Instant since;
  Duration limit;
};

// What a gang gives back to, or a promised one takes from, its queue.
struct QuotaChange {
  Instant at;
  QueueId queue = 0;
  Charge charge;
  bool takes = false;
};
struct PromisedCharge {
  std::uint32_t element = 0;
  QueueId queue = 0;
  Charge charge;
  Instant at, until;
};

// An administrator's reservation as it is booked.
struct Reserved {
  const Reservation* what = nullptr;
  Timeline::Owner owner = 0;
  NodeSet nodes;
};

// What the pass has found out about a shape.
struct ShapeState {
  Duration fails_from = Duration::infinite() + Duration::milliseconds(1);  // limits that failed
  std::optional<Outlook> outlook;
  std::uint64_t blocked = 0;              // elements that stay
  std::vector<ElementRef> first_blocked;  // of them, a few
  std::shared_ptr<Wait> shared_wait[2];   // reason resources, priority
  std::string text;
  std::optional<Charge> charge;         // what one of it needs of a quota
  std::vector<std::uint32_t> flavours;  // shapes that ask for one GPU type each, in order
};

// An explanation that is completed at the end of the pass, when it is known who holds the nodes.
struct Unfinished {
  std::uint32_t shape = 0;
  std::shared_ptr<Wait> wait;
  Placement placement;        // where the element would go
  Instant until;              // holders that are gone by then stand in the way now
  bool room_is_free = false;  // only promises to others did when it was tried
};

// A firm promise of an earlier pass, where it lies now.
struct Kept {
  const PromiseRecord* record = nullptr;
  Candidate candidate;  // in the partition it was promised in
  Instant at;
  Placement placement;
  bool had_turn = false;  // its element has come up in order
  std::string cause;      // why it could not stay
};

struct Pass {
  explicit Pass(const PassInput& pass_input, const Profile& pass_profile);

  const PassInput& input;
  const Profile& profile;
  Plan plan;

  ClusterIndex cluster;
  FreeMap free;
  Timeline timeline;
  Forecaster forecaster;
  Eligibility eligibility;
  ShapeTable shapes;
  QuotaTree quota;
  PriorityBasis basis;
  LimitBook limits;

  std::vector<Element> elements;      // by workload, gang
  std::vector<Candidate> candidates;  // in order
  std::deque<ShapeState> shape_states;
  std::deque<std::vector<RoleAsk>> flavour_roles;  // what shapes of flavours and groups refer to
  std::vector<std::uint32_t> blocked_shapes;       // in order of their first blocked element
  bool somebody_waits = false;                     // for room that will come
  bool somebody_throttled = false;                 // an array at its limit
  std::vector<Unfinished> unfinished;
  // Of reasons whose explanation is the same for everybody: held, begin time, cleaning.
  std::vector<std::shared_ptr<const Wait>> common_waits;
  std::vector<std::uint16_t> ports;  // rendezvous, by owner; 0 or beyond the end = none
  std::vector<ElementRef> owners;  // Timeline::Owner: who holds or is promised
  NodeSet blocked_nodes;           // candidates of those that wait for room
  NodeSet promised_nodes;          // candidates of those that are promised a start
  std::uint32_t promised = 0;
  std::vector<PromisedCharge> promised_charges;
  std::vector<QuotaChange> quota_ends;  // of what runs, by time; once somebody asks
  bool quota_ends_known = false;
  std::uint32_t limit_searches = 0;
  std::vector<NodeSet> queue_promised;  // by queue: candidates of those that are promised a start
  std::vector<Kept> kept;
  std::shared_ptr<ReclaimBook> reclaim;
  std::vector<Reserved> reserved;
  bool same_again = false;  // an element of an array has started; the queues' order is looked at
                            // before its next one
  bool out_of_budget = false;

  const Charge& charge_of_shape(std::uint32_t shape);
  Instant end_of(Duration limit) const;  // when room comes back if it starts now
  Duration occupancy(Duration limit) const;
};

NodeSet usable_nodes(const ClusterState& state);

// Books the slots of active gangs and when they come back.
void book_holdings(Pass& pass);
// Lists what is pending; what may not be considered gets its reason at once.
void find_eligible(Pass& pass);
// The nodes that users of a reservation (a position in Pass::reserved, or kNoLimit) may use.
ShapeTable::Within within_of(const Pass& pass, std::uint32_t reservation);
// groups.cpp. The gangs of a group become one request, led by the first; those of a group that is
// not complete wait.
void join_groups(Pass& pass);
// What became of the leader is true of all.
void settle_groups(Pass& pass);
// Candidates in order.
void put_in_order(Pass& pass);
// Queues: what waits could use, deserved shares, and the shapes of each GPU type.
void prepare_quota(Pass& pass);
// Whether the partition's rules let the candidate start now; notes the reason if not.
bool admit(Pass& pass, const Candidate& candidate);
// Which quota keeps the candidate's shape from starting now.
std::optional<QuotaTree::Refusal> over_quota(Pass& pass, const Candidate& candidate);
std::optional<QuotaTree::Refusal> over_quota(Pass& pass, const Candidate& candidate,
                                             const Placement& would_hold);
// Starts the candidate, an array element by element, as far as there is room. True when nothing of
// it is left to wait for room.
// `candidate.shape` becomes the flavour to wait for, where the quota tells GPU types apart.
bool start(Pass& pass, Candidate& candidate);
// Notes that the candidate waits for room, and promises it a start if the profile says so.
void reserve(Pass& pass, const Candidate& candidate);
// Counts it among those of its shape that stay.
void stand_in_line(Pass& pass, const Candidate& candidate);

// reservations.cpp. Takes the reserved rooms out of everybody's sight.
void book_reservations(Pass& pass);
// Which one the workload asks for: none, or kNoLimit if there is none of that name (any more).
std::optional<std::uint32_t> reservation_of(const Pass& pass, const Workload& workload);
// When the candidate may run: within its reservation.
struct Window {
  Instant from, until;
  bool holds(Instant at, Duration limit) const {
    return at >= from && (until >= Instant::never() || at + limit <= until);
  }
};
Window window_of(const Pass& pass, const Candidate& candidate);
// While it lives, rooms are seen as the candidate sees them.
class SeenBy {
 public:
  SeenBy(Pass& pass, const Candidate& candidate);
  ~SeenBy();
  SeenBy(const SeenBy&) = delete;
  SeenBy& operator=(const SeenBy&) = delete;

 private:
  Pass& pass_;
  std::vector<Timeline::Owner> before_;
};
// The reservation without which the candidate could start now; nullptr if there is none such.
const Reservation* blocking_reservation(Pass& pass, const Candidate& candidate);
// Those of others on its nodes, as blockers: "reservation night".
std::vector<std::string> reservations_on(const Pass& pass, const Candidate& candidate);
// The earliest start of the candidate after now, beside all promises and in its reservation.
std::optional<Forecast> earliest_for(Pass& pass, const Candidate& candidate);

// quota_promises.cpp. Promises a start to what a limit keeps from starting now.
void promise_later(Pass& pass, Candidate candidate);
// When what runs ends at the latest, with the grace of its ending; never() without a limit.
Instant expected_end(const Gang& gang, Instant now, Duration kill_wait);

// promises.cpp. Places what was promised firmly before, no later than promised where that can be.
void keep_promises(Pass& pass);
// In the turn of an element that has a promise: the earliest of its partitions counts.
void pull_earlier(Pass& pass, const Candidate& candidate, bool behind_others);
// Lists what became of all promises in Plan::promise_changes.
void settle_promises(Pass& pass);
void book_promise(Pass& pass, const Candidate& candidate, Instant at, const Placement& placement);
void unbook_promise(Pass& pass, Element& element);
void forget_charge(Pass& pass, const Element& element);  // of its promise
// While a candidate is tried that comes before firm promises by more than age and fair share, they
// do not stand in its way; afterwards they are placed again, no later than before where that can
// be.
class StandAside {
 public:
  StandAside(Pass& pass, const Candidate& candidate);
  ~StandAside() { come_back(); }
  StandAside(const StandAside&) = delete;
  StandAside& operator=(const StandAside&) = delete;
  void come_back();

 private:
  Pass& pass_;
  const Candidate& candidate_;
  std::vector<std::uint32_t> aside_;
};

// Fills in the texts and lists everything that waits.
void explain(Pass& pass);

std::string label(const ElementRef& element);  // "job 12", "job 12_3"

}  // namespace tutti::scheduler
