// The account book, and what associations have used.
#include <fmt/format.h>

#include <algorithm>

#include "state/fold.h"

namespace tutti::state {

namespace {

// The association's number stays when it is put in again.
void put_association(AccountBook& book, Association association) {
  auto [known, is_new] = book.by_key.try_emplace(key_of(association), book.next_association);
  if (is_new) ++book.next_association;
  association.id = known->second;
  if (association.id == kRootAssociation) association.parent = 0;
  book.associations[association.id] = std::move(association);
}

Association user_in(const AccountBook& book, const std::string& account, const std::string& user) {
  Association made;
  made.account = account;
  made.user = user;
  made.parent = book.find(account, "")->id;
  return made;
}

// The book to write in: itself while nobody else has it, so that many users who submit for the first
// time in one turn cost one copy.
AccountBook& edit(std::shared_ptr<const AccountBook>& book) {
  if (book.use_count() != 1) book = std::make_shared<AccountBook>(*book);
  return const_cast<AccountBook&>(*book);  // every one of them was made without const
}

// True for the association itself too.
bool is_below(const AccountBook& book, AssociationId id, AssociationId above) {
  for (std::size_t steps = 0; id != 0 && steps <= book.associations.size(); ++steps) {
    if (id == above) return true;
    const Association* found = book.find(id);
    id = found ? found->parent : 0;
  }
  return false;
}

// Every account has an association, every parent is an account that is there, and no account is
// above itself.
Status check(const AccountBook& book) {
  for (const auto& [id, association] : book.associations) {
    if (id == kRootAssociation) continue;
    const Association* parent = book.find(association.parent);
    if (!parent || !parent->user.empty() || !is_below(book, id, kRootAssociation))
      return fail(ErrorCode::kCorrupt,
                  fmt::format("association {} of account {} hangs on no account below root", id,
                              association.account));
    if (!association.user.empty() && parent->account != association.account)
      return fail(ErrorCode::kCorrupt, fmt::format("association {} hangs on another account", id));
  }
  return {};
}

}  // namespace

Status Fold::operator()(const AccountsConfigured& e) {
  AccountBook book = *state.accounts;
  for (const Account& account : e.accounts) book.accounts[account.name] = account;
  for (const AccountUser& user : e.users) book.users[user.name] = user;
  for (Qos qos : e.qos) {
    auto known = book.qos.find(qos.name);
    qos.id = known == book.qos.end() ? book.next_qos++ : known->second.id;
    book.qos[qos.name] = std::move(qos);
  }
  for (const Association& association : e.associations) put_association(book, association);
  for (AssociationId id : e.gone_associations) {
    auto found = book.associations.find(id);
    if (found == book.associations.end() || id == kRootAssociation)
      return unknown("association", id);
    book.by_key.erase(key_of(found->second));
    book.associations.erase(found);
  }
  for (const std::string& name : e.gone_accounts) book.accounts.erase(name);
  for (const std::string& name : e.gone_users) book.users.erase(name);
  for (const std::string& name : e.gone_qos) book.qos.erase(name);
  if (Status sound = check(book); !sound) return sound;
  for (AssociationId above : e.reset)
    for (const auto& [id, association] : book.associations)
      if (is_below(book, id, above)) state.usage.erase(id);
  for (AssociationId id : e.gone_associations) state.usage.erase(id);
  ++book.version;
  state.accounts = std::make_shared<AccountBook>(std::move(book));
  // Jobs of an association that is gone belong to nobody until they are given an account again.
  return {};
}

AssociationId Fold::associate(const Workload& workload) {
  const std::string partition =
      workload.partitions->empty() ? std::string() : workload.partitions->front();
  const std::string user =
      workload.user.empty() ? fmt::format("{}", workload.uid) : workload.user;
  const Association* known = association_for(*state.accounts, workload.account, user, partition);
  if (known) return known->id;
  AccountBook& book = edit(state.accounts);
  std::string account = workload.account;
  if (account.empty()) account = kRootAccount;
  if (!book.find(account, "")) {
    book.accounts[account] = {account, account, account};
    Association made;
    made.account = account;
    made.parent = kRootAssociation;
    put_association(book, std::move(made));
  }
  put_association(book, user_in(book, account, user));
  book.users[user].name = user;
  ++book.version;
  return book.find(account, user)->id;
}

void Fold::charge_gang(Gang& gang) {
  if (!gang.charged_from.is_set() || at <= gang.charged_from) return;
  const WorkloadEntry* entry = state.workloads.find(gang.workload.value());
  if (!entry) return;
  const auto& partitions = state.spec->partitions;
  auto where = std::find_if(partitions.begin(), partitions.end(), [&](const PartitionSpec& p) {
    return p.name == gang.partition;
  });
  const PriorityWeights& rules = state.spec->priority;
  const TresAmounts held = tres_of(*state.spec, gang.slots);
  const std::uint64_t billed =
      billing_milli(rules, where == partitions.end() ? nullptr : &*where, held);
  const Qos* qos = state.accounts->find_qos(entry->workload.qos);
  const std::uint64_t factor = qos ? qos->usage_factor : kFactorOne;
  auto add = [&](CowTable<UsageRecord>& table, std::uint32_t id, const PriorityWeights& by) {
    const UsageRecord* before = table.find(id);
    UsageRecord record = before ? *before : UsageRecord();
    fade(record, by, at);
    charge(record, by, held, billed, gang.charged_from, factor);
    table.put(id, std::make_shared<const UsageRecord>(std::move(record)));
  };
  if (entry->association) add(state.usage, entry->association, rules);
  if (qos) {
    PriorityWeights lasting = rules;
    if (qos->no_decay) lasting.half_life = Duration();
    add(state.qos_usage, qos->id, lasting);
  }
  gang.charged_from = at;
}

void Fold::charge_all() {
  for (std::uint32_t id : agenda.active) {
    const Gang* gang = state.gangs.find(id);
    if (!gang || !gang->charged_from.is_set() || gang->charged_from >= at) continue;
    Gang changed = *gang;
    charge_gang(changed);
    state.gangs.put(id, std::make_shared<const Gang>(std::move(changed)));
  }
}

}  // namespace tutti::state
