// The state as one JSON text and back.
#include <fmt/format.h>

#include "state/apply.h"
#include "state/fold.h"

namespace tutti {

static void describe(auto& a, WorkloadEntry& x) {
  a("workload", x.workload);
  std::string unstarted = x.unstarted.to_string();
  a("unstarted", unstarted);
  a("association", x.association);
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
// A book as lists.
struct AccountLists {
  std::vector<Account> accounts;
  std::vector<AccountUser> users;
  std::vector<Qos> qos;
  std::vector<Association> associations;
  std::uint32_t next_association = 2, next_qos = 2;
  std::uint64_t version = 0;
};
void describe(auto& a, AccountLists& x) {
  a("accounts", x.accounts);
  a("users", x.users);
  a("qos", x.qos);
  a("associations", x.associations);
  a("next_association", x.next_association);
  a("next_qos", x.next_qos);
  a("version", x.version);
}
struct UsageLine {
  std::uint32_t id = 0;
  UsageRecord record;
};
void describe(auto& a, UsageLine& x) {
  a("id", x.id);
  a("record", x.record);
}

AccountLists lists_of(const AccountBook& book) {
  AccountLists lists{{}, {}, {}, {}, book.next_association, book.next_qos, book.version};
  for (const auto& [name, account] : book.accounts) lists.accounts.push_back(account);
  for (const auto& [name, user] : book.users) lists.users.push_back(user);
  for (const auto& [name, qos] : book.qos) lists.qos.push_back(qos);
  for (const auto& [id, association] : book.associations) lists.associations.push_back(association);
  return lists;
}
// Snapshots that were written before there was a book have no lists.
std::shared_ptr<AccountBook> book_of(AccountLists lists) {
  auto book = std::make_shared<AccountBook>();
  if (lists.associations.empty()) return book;
  book->accounts.clear();
  book->qos.clear();
  book->associations.clear();
  book->by_key.clear();
  for (Account& x : lists.accounts) book->accounts[x.name] = std::move(x);
  for (AccountUser& x : lists.users) book->users[x.name] = std::move(x);
  for (Qos& x : lists.qos) book->qos[x.name] = std::move(x);
  for (Association& x : lists.associations) {
    book->by_key[key_of(x)] = x.id;
    book->associations[x.id] = std::move(x);
  }
  book->next_association = lists.next_association;
  book->next_qos = lists.next_qos;
  book->version = lists.version;
  return book;
}
CowTable<UsageRecord> table_of(std::vector<UsageLine> lines) {
  CowTable<UsageRecord> table;
  for (UsageLine& line : lines)
    table.put(line.id, std::make_shared<const UsageRecord>(std::move(line.record)));
  return table;
}

struct SnapshotBody {
  std::uint32_t format = 1;
  std::uint64_t sequence = 0;
  ClusterSpec spec;
  QueueTree queues;
  std::vector<PromiseRecord> promises;
  LossBook losses;
  std::vector<Reservation> reservations;
  AccountLists book;
  std::vector<UsageLine> usage, qos_usage;
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
  a("book", x.book);
  a("usage", x.usage);
  a("qos_usage", x.qos_usage);
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
  encoder("book", lists_of(*state.accounts));
  auto usage = [&](std::string_view name, const CowTable<UsageRecord>& table) {
    out.key(name);
    out.begin_array();
    table.for_each([&](std::uint32_t id, const UsageRecord& x) { encoder.write(UsageLine{id, x}); });
    out.end_array();
  };
  usage("usage", state.usage);
  usage("qos_usage", state.qos_usage);
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
  state.accounts = book_of(std::move(body->book));
  state.usage = table_of(std::move(body->usage));
  state.qos_usage = table_of(std::move(body->qos_usage));
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
