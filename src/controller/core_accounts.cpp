// The account book: changes by operators, and what it says to a submission.
#include <algorithm>
#include <fmt/format.h>

#include "base/index_set.h"
#include "controller/core.h"
#include "controller/queries.h"
#include "model/accounts_api.h"
#include "model/reasons.h"
#include "scheduler/limits.h"
#include "scheduler/plan.h"
#include "state/apply.h"

namespace tutti::controller {

namespace {
constexpr std::string_view kDefaultQos = "normal";

tl::unexpected<Error> refused(std::string_view reason, std::string message) {
  return fail(ErrorCode::kInvalid, std::move(message), std::string(reason));
}

bool has(const std::vector<std::string>& list, const std::string& name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

// The list nearest to the association on the way to the root; nullptr when nobody has one.
const std::vector<std::string>* qos_list(const AccountBook& book, const Association* from) {
  for (const Association* a = from; a; a = book.find(a->parent))
    if (!a->qos.empty()) return &a->qos;
  return nullptr;
}
std::string default_qos(const AccountBook& book, const Association* from) {
  for (const Association* a = from; a; a = book.find(a->parent))
    if (!a->default_qos.empty()) return a->default_qos;
  return std::string(kDefaultQos);
}
}  // namespace

void Core::on_accounts(ApiCall& call) {
  auto request = from_json<AccountsRequest>(std::string_view(call.body));
  if (!request) return refuse(call, Error{ErrorCode::kInvalid, std::string(reason::kMalformed), request.error().message, {}});
  const AccountBook& book = *state_.accounts;
  auto caller = book.users.find(users_.user_name(call.caller.uid));
  const bool may = call.caller.is_operator || (caller != book.users.end() && caller->second.admin != AdminLevel::kNone);
  if (!may) return refuse(call, Error{ErrorCode::kDenied, std::string(reason::kNotOperator), "only an operator may change accounts", {}});
  if (request->version != book.version)
    return refuse(call, Error{ErrorCode::kConflict, "book_changed", "the account book was changed by somebody else meanwhile: ask again", {}});
  request->change.by_uid = call.caller.uid;
  ClusterState copy = state_;
  Agenda agenda = agenda_;
  Status fits = state::apply(copy, agenda, Event{now_, request->change});
  if (!fits) return refuse(call, Error{ErrorCode::kInvalid, std::string(reason::kMalformed), fits.error().message, {}});
  record(std::move(request->change));
  answer(call, {200, to_json(ActionReply{})});
}

Status Core::check_limits(const Workload& w, const Association* mine, const Qos& qos) {
  WorkloadEntry entry;
  entry.workload = w;
  entry.association = mine ? mine->id : 0;
  std::uint64_t jobs = 1;
  if (w.is_array())
    if (auto indices = parse_index_set(w.array, state_.spec->max_array_index)) jobs = indices->count();
  if (auto over = scheduler::over_at_submit(state_, agenda_, entry, jobs))
    return refused(reason::kPolicyViolated, fmt::format("{}: {}", over->word, over->text));
  if (!qos.deny_on_limit) return {};
  const PartitionSpec* partition = nullptr;
  for (const PartitionSpec& p : state_.spec->partitions)
    if (p.name == w.partitions.front()) partition = &p;
  if (!partition) return {};
  auto over = scheduler::LimitBook(state_, Agenda(), now_).over(entry, *partition, scheduler::time_limit_in(*partition, w));
  if (over && over->by_qos) return refused(reason::kPolicyViolated, fmt::format("{}: {}", over->word, over->text));
  return {};
}

Status Core::check_accounting(Workload& w) {
  const ClusterSpec& spec = *state_.spec;
  const AccountBook& book = *state_.accounts;
  if (w.user.empty()) w.user = users_.user_name(w.uid);
  if (w.user.empty()) w.user = std::to_string(w.uid);
  const Association* mine = association_for(book, w.account, w.user, w.partitions.front());
  if (!mine && spec.accounting.associations)
    return refused(reason::kInvalidAccount, fmt::format("user {} has no association with account \"{}\": AccountingStorageEnforce asks for one", w.user, w.account));
  if (w.account.empty() && mine && mine->account != kRootAccount) w.account = mine->account;
  if (w.qos.empty()) w.qos = default_qos(book, mine);
  const Qos* qos = book.find_qos(w.qos);
  if (!qos) return refused(reason::kInvalidQos, fmt::format("qos {} does not exist", w.qos));
  const auto* listed = qos_list(book, mine);
  if (spec.accounting.qos && listed && !has(*listed, w.qos))
    return refused(reason::kInvalidQos, fmt::format("qos {} is not among those of user {} in account \"{}\": {}", w.qos, w.user, w.account, fmt::join(*listed, ",")));
  for (const PartitionSpec& p : spec.partitions) {
    if (!has(w.partitions, p.name)) continue;
    if ((!p.allow_qos.empty() && !has(p.allow_qos, w.qos)) || has(p.deny_qos, w.qos))
      return refused(reason::kInvalidQos, fmt::format("partition {} does not take qos {}", p.name, w.qos));
    if (!p.qos.empty() && !book.find_qos(p.qos))
      return refused(reason::kInvalidQos, fmt::format("partition {} has QOS={}, which does not exist", p.name, p.qos));
  }
  auto licenses = scheduler::parse_licenses(w.extras->licenses);
  if (!licenses) return refused(reason::kInvalidLicense, fmt::format("licenses {}: NAME or NAME:COUNT expected", w.extras->licenses));
  for (const auto& [resource, count] : *licenses) {
    auto known = spec.licenses.find(resource.substr(8));
    if (known == spec.licenses.end() || known->second < count)
      return refused(reason::kInvalidLicense, fmt::format("licenses {}: the cluster has {} of it", w.extras->licenses, known == spec.licenses.end() ? 0 : known->second));
  }
  return check_limits(w, mine, *qos);
}

std::string accounts_json(const Published& picture, Instant now) {
  const ClusterState& state = picture.state;
  const AccountBook& book = *state.accounts;
  AccountsView view;
  view.now = now;
  view.cluster = state.spec->name;
  view.version = book.version;
  for (const auto& [name, account] : book.accounts) view.accounts.push_back(account);
  for (const auto& [name, user] : book.users) view.users.push_back(user);
  for (const auto& [name, qos] : book.qos) view.qos.push_back(qos);
  const scheduler::FairShares shares = scheduler::fair_shares(state, now);
  for (const auto& [id, association] : book.associations) {
    view.associations.push_back(association);
    const scheduler::ShareOf& of = shares.of[id];
    view.shares.push_back({id, of.usage, of.parent_usage, of.shares, of.all_shares,
                           static_cast<std::uint32_t>(of.level.kind), of.level.exponent,
                           of.level.mantissa, of.factor});
  }
  return to_json(view);
}

}  // namespace tutti::controller
