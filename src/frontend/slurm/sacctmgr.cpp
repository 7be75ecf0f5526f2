#include "frontend/slurm/sacctmgr.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/text.h"

namespace tutti::slurm {

namespace {

struct Setting {
  std::string key, value;
};
enum class Entity : std::uint8_t { kAccount, kUser, kQos, kAssociation, kCluster, kTres };

struct Request {
  std::string verb;
  Entity entity = Entity::kAccount;
  std::vector<std::string> names;
  std::vector<Setting> where, set;
  std::vector<std::string> format;
  bool with_associations = false, immediate = false, no_header = false, parsable = false,
       parsable2 = false;
};

SacctmgrAnswer refuse(std::string text) {
  SacctmgrAnswer answer;
  answer.output.errors = std::move(text) + "\n";
  answer.output.exit_code = 1;
  return answer;
}

std::optional<Entity> entity_of(std::string_view word) {
  const std::string w = lower(word);
  if (w.size() >= 2 && std::string_view("accounts").starts_with(w)) return Entity::kAccount;
  if (w.starts_with("user") || w == "us") return Entity::kUser;
  if (w.starts_with("qo")) return Entity::kQos;
  if (w.starts_with("assoc")) return Entity::kAssociation;
  if (w.starts_with("cl")) return Entity::kCluster;
  if (w.starts_with("tr")) return Entity::kTres;
  return std::nullopt;
}

std::string verb_of(std::string_view word) {
  const std::string w = lower(word);
  if (w == "add" || w == "modify" || w == "delete" || w == "show") return w;
  return w == "create" ? "add" : w == "update" ? "modify" : w == "remove" ? "delete" : w == "list" ? "show" : "";
}

std::vector<std::string> names_in(std::string_view text) {
  std::vector<std::string> out;
  for (std::string_view one : split(text, ',', EmptyPieces::kDrop)) out.emplace_back(trim(one));
  return out;
}

bool take_option(std::string_view word, Request& request) {
  if (word == "--immediate") request.immediate = true;
  else if (word == "--noheader") request.no_header = true;
  else if (word == "--parsable") request.parsable = true;
  else if (word == "--parsable2") request.parsable2 = true;
  else if (word == "--associations") request.with_associations = true;
  else if (word == "--quiet" || word == "--readonly" || word == "--verbose") return true;
  else if (word.starts_with("--")) return false;
  else
    for (char letter : word.substr(1)) {
      if (letter == 'i') request.immediate = true;
      else if (letter == 'n') request.no_header = true;
      else if (letter == 'p') request.parsable = true;
      else if (letter == 'P') request.parsable2 = true;
      else if (letter == 's') request.with_associations = true;
      else if (letter != 'Q' && letter != 'r' && letter != 'v') return false;
    }
  return true;
}

std::optional<std::string> parse(std::span<const std::string> words, Request& request) {
  std::vector<std::string> plain;
  for (const std::string& word : words) {
    if (word.size() > 1 && word[0] == '-') {
      if (!take_option(word, request)) return "sacctmgr: unrecognized option '" + word + "'";
    } else {
      plain.push_back(word);
    }
  }
  if (plain.size() < 2) return "sacctmgr: add, modify, delete or show, and what, expected";
  request.verb = verb_of(plain[0]);
  if (request.verb.empty()) return "invalid keyword: " + plain[0];
  auto entity = entity_of(plain[1]);
  if (!entity) return "sacctmgr: account, user, qos, association, cluster or tres expected, not " + plain[1];
  request.entity = *entity;
  bool setting = request.verb == "add";
  for (std::size_t i = 2; i < plain.size(); ++i) {
    const std::string& word = plain[i];
    if (equals_ci(word, "where") || equals_ci(word, "set")) {
      setting = equals_ci(word, "set");
      continue;
    }
    if (starts_with_ci(word, "withassoc")) {
      request.with_associations = true;
      continue;
    }
    // "MaxJobs=4", "MaxJobs+=..." is not taken apart.
    auto pair = split_once(word, '=');
    if (!pair) {
      for (std::string& name : names_in(word)) request.names.push_back(std::move(name));
      continue;
    }
    const std::string key = lower(trim(pair->first));
    if (starts_with_ci(key, "format")) {
      request.format = names_in(pair->second);
    } else if (key.starts_with("name") ||
               (request.entity == Entity::kUser && key == "user") ||
               (request.verb != "add" && request.entity == Entity::kAccount && key == "account")) {
      for (std::string& name : names_in(pair->second)) request.names.push_back(std::move(name));
    } else if (!key.starts_with("cluster")) {
      (setting ? request.set : request.where).push_back({key, std::string(pair->second)});
    }
  }
  return std::nullopt;
}

const std::string* value_of(const std::vector<Setting>& list, std::string_view prefix) {
  for (const Setting& s : list)
    if (s.key.starts_with(prefix)) return &s.value;
  return nullptr;
}

class Book {
 public:
  explicit Book(const AccountsView& view) : view(view) {}
  const AccountsView& view;
  const Association* find(std::string_view account, std::string_view user,
                          std::string_view partition = {}) const {
    for (const Association& a : view.associations)
      if (a.account == account && a.user == user && a.partition == partition) return &a;
    return nullptr;
  }
  const Association* find(AssociationId id) const {
    for (const Association& a : view.associations)
      if (a.id == id) return &a;
    return nullptr;
  }
  const AccountUser* user(std::string_view name) const {
    for (const AccountUser& u : view.users)
      if (u.name == name) return &u;
    return nullptr;
  }
  const Qos* qos(std::string_view name) const {
    for (const Qos& q : view.qos)
      if (q.name == name) return &q;
    return nullptr;
  }
};

// Shares, priority, QOS lists and limits. A sentence when the word is none or its value is wrong.
std::optional<std::string> set_association(const Setting& s, const Book& book, Association& a) {
  bool bad = false;
  if (s.key == "fairshare" || s.key == "shares") {
    auto number = parse_integer<std::uint32_t>(s.value);
    if (equals_ci(s.value, "parent")) a.shares = kSharesOfParent;
    else if (number && *number < kSharesOfParent) a.shares = *number;
    else bad = true;
  } else if (s.key == "priority") {
    auto number = parse_integer<std::uint32_t>(s.value);
    bad = !number;
    if (number) a.priority = *number;
  } else if (s.key.starts_with("qos")) {
    a.qos = names_in(s.value);
    for (const std::string& name : a.qos)
      if (!book.qos(name)) return fmt::format(" Unknown qos {}", name);
  } else if (s.key.starts_with("defaultqos")) {
    if (!book.qos(s.value)) return fmt::format(" Unknown qos {}", s.value);
    a.default_qos = s.value;
  } else if (!set_association_limit(s.key, s.value, a.limits, bad)) {
    return fmt::format(" Unknown option: {}={}", s.key, s.value);
  }
  if (bad) return fmt::format(" Bad value for {}: {}", s.key, s.value);
  return std::nullopt;
}

SacctmgrAnswer add_accounts(const Request& r, const Book& book) {
  SacctmgrAnswer out;
  const std::string* parent = value_of(r.set, "parent");
  const Association* above = book.find(parent ? *parent : "root", "");
  if (!above) return refuse(fmt::format(" error: Parent account {} doesn't exist.", *parent));
  std::string added, lines;
  for (const std::string& name : r.names) {
    if (book.find(name, "")) continue;
    Account account{name, name, above->account == "root" ? name : above->account};
    Association a;
    a.account = name;
    a.parent = above->id;
    for (const Setting& s : r.set) {
      if (s.key == "parent") continue;
      if (s.key.starts_with("desc")) account.description = s.value;
      else if (s.key.starts_with("org")) account.organization = s.value;
      else if (auto wrong = set_association(s, book, a)) return refuse(*wrong);
    }
    added += fmt::format("  {}\n", name);
    lines += fmt::format("  A = {:<10} C = {:<10}\n", name, book.view.cluster);
    out.change.accounts.push_back(std::move(account));
    out.change.associations.push_back(std::move(a));
  }
  if (added.empty()) {
    out.output.text = " Nothing new added.\n";
    return out;
  }
  out.output.text = " Adding Account(s)\n" + added + " Associations\n" + lines;
  return out;
}

SacctmgrAnswer add_users(const Request& r, const Book& book) {
  SacctmgrAnswer out;
  const std::string* in = value_of(r.set, "account");
  const std::string* def = value_of(r.set, "defaultaccount");
  std::vector<std::string> accounts = names_in(in ? *in : def ? *def : "");
  if (accounts.empty()) return refuse(" Need a account name to add this user under: account=NAME");
  std::string added, lines;
  for (const std::string& name : r.names) {
    AccountUser user{name, def ? *def : accounts[0], AdminLevel::kNone};
    if (const AccountUser* known = book.user(name)) {
      user = *known;
      if (def || user.default_account.empty()) user.default_account = def ? *def : accounts[0];
    }
    Association model;
    for (const Setting& s : r.set) {
      if (s.key.starts_with("account") || s.key.starts_with("defaultacc")) continue;
      if (s.key == "partition") {
        model.partition = s.value;
      } else if (s.key.starts_with("admin")) {
        auto level = enum_from_name<AdminLevel>(equals_ci(s.value, "admin") ? "administrator" : lower(s.value));
        if (!level) return refuse(fmt::format(" Unknown admin level: {}", s.value));
        user.admin = *level;
      } else if (auto wrong = set_association(s, book, model)) {
        return refuse(*wrong);
      }
    }
    bool any = false;
    for (const std::string& account : accounts) {
      const Association* above = book.find(account, "");
      if (!above) return refuse(fmt::format(" This account '{}' doesn't exist.\n        Contact your admin to add this account.", account));
      if (book.find(account, name, model.partition)) continue;
      any = true;
      Association a = model;
      a.account = account;
      a.user = name;
      a.parent = above->id;
      lines += fmt::format("  U = {:<9} A = {:<10} C = {:<10}\n", name, account, book.view.cluster);
      out.change.associations.push_back(std::move(a));
    }
    if (!any) continue;
    added += fmt::format("  {}\n", name);
    out.change.users.push_back(std::move(user));
  }
  out.output.text = added.empty() ? " Nothing new added.\n"
                                  : " Adding User(s)\n" + added + " Associations =\n" + lines;
  return out;
}

SacctmgrAnswer add_qos(const Request& r, const Book& book) {
  SacctmgrAnswer out;
  std::string added;
  for (const std::string& name : r.names) {
    if (book.qos(name)) continue;
    Qos qos;
    qos.name = qos.description = name;
    for (const Setting& s : r.set) {
      bool bad = false;
      if (!set_qos_value(s.key, s.value, qos, bad)) return refuse(fmt::format(" Unknown option: {}={}", s.key, s.value));
      if (bad) return refuse(fmt::format(" Bad value for {}: {}", s.key, s.value));
    }
    added += fmt::format("  {}\n", name);
    out.change.qos.push_back(std::move(qos));
  }
  out.output.text = added.empty() ? " Nothing new added.\n" : " Adding QOS(s)\n" + added;
  return out;
}

// The associations that names and conditions choose.
std::vector<const Association*> chosen(const Request& r, const Book& book) {
  std::vector<const Association*> out;
  const std::string* account = value_of(r.where, "account");
  const std::string* user = value_of(r.where, "user");
  const std::string* partition = value_of(r.where, "partition");
  auto in = [](const std::vector<std::string>& list, const std::string& name) {
    return std::find(list.begin(), list.end(), name) != list.end();
  };
  for (const Association& a : book.view.associations) {
    const bool of_user = !a.user.empty();
    if (r.entity == Entity::kAccount && (of_user || !in(r.names, a.account))) continue;
    if (r.entity == Entity::kUser && (!of_user || (!r.names.empty() && !in(r.names, a.user)))) continue;
    if (account && !in(names_in(*account), a.account)) continue;
    if (user && !in(names_in(*user), a.user)) continue;
    if (partition && *partition != a.partition) continue;
    out.push_back(&a);
  }
  return out;
}

SacctmgrAnswer modify(const Request& r, const Book& book) {
  SacctmgrAnswer out;
  if (r.set.empty()) return refuse(" You didn't give me anything to set");
  if (r.entity == Entity::kQos) {
    std::string names;
    for (const std::string& name : r.names) {
      const Qos* known = book.qos(name);
      if (!known) continue;
      Qos qos = *known;
      for (const Setting& s : r.set) {
        bool bad = false;
        if (!set_qos_value(s.key, s.value, qos, bad) || bad)
          return refuse(fmt::format(" Unknown option or bad value: {}={}", s.key, s.value));
      }
      names += fmt::format("  {}\n", name);
      out.change.qos.push_back(std::move(qos));
    }
    out.output.text = names.empty() ? "  Nothing modified\n" : " Modified qos...\n" + names;
    return out;
  }
  std::string lines;
  for (const Association* known : chosen(r, book)) {
    Association a = *known;
    bool of_association = false;
    for (const Setting& s : r.set) {
      const AccountUser* user = book.user(a.user);
      if (s.key.starts_with("defaultacc") && user) {
        if (!book.find(s.value, a.user)) return refuse(fmt::format(" User {} is not in account {}", a.user, s.value));
        out.change.users.push_back({user->name, s.value, user->admin});
      } else if (s.key.starts_with("admin") && user) {
        auto level = enum_from_name<AdminLevel>(equals_ci(s.value, "admin") ? "administrator" : lower(s.value));
        if (!level) return refuse(fmt::format(" Unknown admin level: {}", s.value));
        out.change.users.push_back({user->name, user->default_account, *level});
      } else if (s.key == "rawusage") {
        if (s.value != "0") return refuse(" RawUsage can only be set to 0");
        out.change.reset.push_back(a.id);
      } else if (s.key == "parent") {
        const Association* above = book.find(s.value, "");
        if (!above || !a.user.empty()) return refuse(fmt::format(" Parent account {} doesn't exist.", s.value));
        a.parent = above->id;
        of_association = true;
      } else {
        if (auto wrong = set_association(s, book, a)) return refuse(*wrong);
        of_association = true;
      }
    }
    lines += fmt::format("  C = {:<10} A = {:<20}{}\n", book.view.cluster, a.account,
                         a.user.empty() ? "" : " U = " + a.user);
    if (of_association) out.change.associations.push_back(std::move(a));
  }
  out.output.text = lines.empty() ? "  Nothing modified\n"
                                  : fmt::format(" Modified {} associations...\n{}",
                                                r.entity == Entity::kUser ? "user" : "account", lines);
  return out;
}

SacctmgrAnswer remove(const Request& r, const Book& book) {
  SacctmgrAnswer out;
  if (r.names.empty() && r.where.empty()) return refuse(" No conditions given to remove, not executing.");
  std::string lines;
  if (r.entity == Entity::kQos) {
    for (const std::string& name : r.names) {
      if (!book.qos(name)) continue;
      if (name == "normal") return refuse(" The qos normal cannot be deleted");
      out.change.gone_qos.push_back(name);
      lines += fmt::format("  {}\n", name);
    }
    out.output.text = lines.empty() ? " Nothing deleted\n" : " Deleting QOS(s)...\n" + lines;
    return out;
  }
  auto gone = [&](AssociationId id) {
    const auto& list = out.change.gone_associations;
    return std::find(list.begin(), list.end(), id) != list.end();
  };
  for (const Association* a : chosen(r, book)) {
    if (a->id == kRootAssociation) return refuse(" The account root cannot be deleted");
    out.change.gone_associations.push_back(a->id);
    if (a->user.empty()) out.change.gone_accounts.push_back(a->account);
    lines += fmt::format("  C = {:<10} A = {:<10}{}\n", book.view.cluster, a->account,
                         a->user.empty() ? "" : " U = " + a->user);
  }
  // Below an account everything goes with it; as with Slurm, users in it are named first.
  for (bool more = true; more;) {
    more = false;
    for (const Association& a : book.view.associations)
      if (!gone(a.id) && a.parent != 0 && gone(a.parent)) {
        out.change.gone_associations.push_back(a.id);
        if (a.user.empty()) out.change.gone_accounts.push_back(a.account);
        more = true;
      }
  }
  for (const AccountUser& user : book.view.users) {
    bool left = false, had = false;
    for (const Association& a : book.view.associations)
      if (a.user == user.name) (gone(a.id) ? had : left) = true;
    if (had && !left) out.change.gone_users.push_back(user.name);
  }
  out.output.text = lines.empty() ? " Nothing deleted\n"
                                  : fmt::format(" Deleting {}...\n{}",
                                                r.entity == Entity::kUser ? "users" : "accounts", lines);
  return out;
}

std::string or_empty(const std::optional<std::uint32_t>& number) {
  return number ? fmt::format("{}", *number) : std::string();
}
std::string wall_text(const std::optional<Duration>& wall) {
  if (!wall) return {};
  const std::int64_t s = wall->whole_seconds(), days = s / 86400;
  const std::string clock = fmt::format("{:02}:{:02}:{:02}", s / 3600 % 24, s / 60 % 60, s % 60);
  return days > 0 ? fmt::format("{}-{}", days, clock) : clock;
}

using Row = std::map<std::string, std::string>;

Row row_of(const Association& a, const Book& book) {
  const AssociationLimits& l = a.limits;
  const Association* above = book.find(a.parent);
  return {{"cluster", book.view.cluster}, {"account", a.account}, {"user", a.user},
          {"partition", a.partition},
          {"share", a.shares == kSharesOfParent ? "parent" : fmt::format("{}", a.shares)},
          {"fairshare", a.shares == kSharesOfParent ? "parent" : fmt::format("{}", a.shares)},
          {"priority", a.priority ? fmt::format("{}", a.priority) : ""},
          {"parentname", above && a.user.empty() ? above->account : ""},
          {"id", fmt::format("{}", a.id)},
          {"grpjobs", or_empty(l.group_jobs)}, {"grptres", tres_text(l.group)},
          {"grpsubmit", or_empty(l.group_submitted)}, {"grpwall", wall_text(l.group_wall)},
          {"grptresmins", tres_text(l.group_minutes)}, {"grptresrunmins", tres_text(l.group_run_minutes)},
          {"maxjobs", or_empty(l.jobs)}, {"maxtres", tres_text(l.per_job)},
          {"maxsubmit", or_empty(l.submitted)}, {"maxwall", wall_text(l.wall)},
          {"maxtresmins", tres_text(l.job_minutes)}, {"qos", join(a.qos, ",")},
          {"defaultqos", a.default_qos}, {"def qos", a.default_qos},
          {"grpcpu", l.group.contains("cpu") ? fmt::format("{}", l.group.at("cpu")) : ""},
          {"grpmem", l.group.contains("mem") ? fmt::format("{}", l.group.at("mem")) : ""}};
}

Row row_of(const Qos& q) {
  std::string flags;
  auto flag = [&](bool on, std::string_view name) {
    if (on) flags += fmt::format("{}{}", flags.empty() ? "" : ",", name);
  };
  flag(q.deny_on_limit, "DenyOnLimit");
  flag(q.no_decay, "NoDecay");
  flag(q.part_overrides, "OverPartQOS");
  return {{"name", q.name}, {"id", fmt::format("{}", q.id)}, {"description", q.description},
          {"priority", fmt::format("{}", q.priority)}, {"gracetime", wall_text(q.grace)},
          {"preempt", join(q.preempt, ",")},
          {"preemptmode", q.preempt_mode == ReclaimMode::kDefault ? "cluster" : std::string(enum_name(q.preempt_mode))},
          {"preemptexempttime", wall_text(q.exempt)}, {"flags", flags},
          {"usagefactor", fmt::format("{}.{:06}", q.usage_factor / kFactorOne, q.usage_factor % kFactorOne)},
          {"grptres", tres_text(q.group)}, {"grptresmins", tres_text(q.group_minutes)},
          {"grptresrunmins", tres_text(q.group_run_minutes)}, {"grpjobs", or_empty(q.group_jobs)},
          {"grpsubmit", or_empty(q.group_submitted)}, {"grpwall", wall_text(q.group_wall)},
          {"maxtres", tres_text(q.per_job)}, {"maxwall", wall_text(q.wall)},
          {"maxtrespu", tres_text(q.per_user)}, {"maxjobspu", or_empty(q.jobs_per_user)},
          {"maxsubmitpu", or_empty(q.submitted_per_user)}, {"maxtrespa", tres_text(q.per_account)},
          {"maxjobspa", or_empty(q.jobs_per_account)}, {"maxsubmitpa", or_empty(q.submitted_per_account)},
          {"mintres", tres_text(q.min_per_job)}};
}

struct Known {
  std::string_view key, title;
  int width;
};
// By Slurm's names; a field is found by any prefix, the first that fits.
constexpr Known kKnown[] = {
    {"cluster", "Cluster", 10}, {"account", "Account", 10}, {"user", "User", 10},
    {"partition", "Partition", 10}, {"share", "Share", 9}, {"fairshare", "Share", 9},
    {"priority", "Priority", 10}, {"parentname", "Par Name", 10}, {"grpjobs", "GrpJobs", 7},
    {"grptres", "GrpTRES", 13}, {"grpsubmit", "GrpSubmit", 9}, {"grpwall", "GrpWall", 11},
    {"grptresmins", "GrpTRESMins", 13}, {"grptresrunmins", "GrpTRESRunMins", 13},
    {"maxjobs", "MaxJobs", 7}, {"maxtres", "MaxTRES", 13}, {"maxsubmit", "MaxSubmit", 9},
    {"maxwall", "MaxWall", 11}, {"maxtresmins", "MaxTRESMins", 13}, {"qos", "QOS", 20},
    {"defaultqos", "Def QOS", 9}, {"grpcpu", "GrpCPUs", 8}, {"grpmem", "GrpMem", 7},
    {"name", "Name", 10}, {"gracetime", "GraceTime", 10}, {"preempt", "Preempt", 10},
    {"preemptmode", "PreemptMode", 11}, {"preemptexempttime", "PreemptExemptTime", 19},
    {"flags", "Flags", 20}, {"usagefactor", "UsageFactor", 11}, {"maxtrespu", "MaxTRESPU", 13},
    {"maxtresperuser", "MaxTRESPU", 13}, {"maxjobspu", "MaxJobsPU", 9}, {"maxjobsperuser", "MaxJobsPU", 9},
    {"maxsubmitpu", "MaxSubmitPU", 11}, {"maxtrespa", "MaxTRESPA", 13}, {"maxjobspa", "MaxJobsPA", 9},
    {"maxsubmitpa", "MaxSubmitPA", 11}, {"mintres", "MinTRES", 13}, {"description", "Descr", 20},
    {"descr", "Descr", 20}, {"organization", "Org", 20}, {"org", "Org", 20},
    {"defaultaccount", "Def Acct", 10}, {"adminlevel", "Admin", 9}, {"id", "ID", 6}, {"type", "Type", 8},
    {"controlhost", "ControlHost", 15}, {"rpc", "RPC", 5}};

std::vector<Row> rows_of(const Request& r, const Book& book) {
  std::vector<Row> rows;
  auto named = [&](const std::string& name) {
    return r.names.empty() || std::find(r.names.begin(), r.names.end(), name) != r.names.end();
  };
  if (r.entity == Entity::kQos)
    for (const Qos& q : book.view.qos)
      if (named(q.name)) rows.push_back(row_of(q));
  if (r.entity == Entity::kCluster) rows.push_back({{"cluster", book.view.cluster}, {"name", book.view.cluster}});
  if (r.entity == Entity::kAssociation)
    for (const Association* a : chosen(r, book)) rows.push_back(row_of(*a, book));
  if (r.entity == Entity::kAccount || r.entity == Entity::kUser) {
    std::vector<std::pair<std::string, Row>> bases;
    if (r.entity == Entity::kAccount)
      for (const Account& a : book.view.accounts)
        bases.push_back({a.name, {{"account", a.name}, {"description", a.description}, {"descr", a.description}, {"organization", a.organization}, {"org", a.organization}}});
    else
      for (const AccountUser& u : book.view.users) {
        std::string level(enum_name(u.admin));
        level[0] = static_cast<char>(level[0] - 'a' + 'A');
        bases.push_back({u.name, {{"user", u.name}, {"defaultaccount", u.default_account}, {"adminlevel", level}}});
      }
    const std::string* user = value_of(r.where, "user");
    for (auto& [name, base] : bases) {
      if (!named(name) || (user && r.entity == Entity::kUser && *user != name)) continue;
      if (!r.with_associations) {
        // Clients ask for a user's account without withassoc: it is the default one.
        if (r.entity == Entity::kUser) base["account"] = base["defaultaccount"];
        rows.push_back(base);
        continue;
      }
      for (const Association& a : book.view.associations) {
        if ((r.entity == Entity::kUser ? a.user : a.account) != name) continue;
        Row row = row_of(a, book);
        row.insert(base.begin(), base.end());
        rows.push_back(std::move(row));
      }
    }
  }
  return rows;
}

std::vector<std::string> default_format(const Request& r) {
  switch (r.entity) {
    case Entity::kAccount:
      return r.with_associations ? names_in("account,descr,org,cluster,parentname,user,share,grpjobs,grptres,maxjobs,maxtres,qos,defaultqos") : names_in("account,descr,org");
    case Entity::kUser:
      return r.with_associations ? names_in("user,defaultaccount,adminlevel,cluster,account,partition,share,priority,maxjobs,maxsubmit,maxtres,maxwall,qos,defaultqos") : names_in("user,defaultaccount,adminlevel");
    case Entity::kQos:
      return names_in("name,priority,gracetime,preempt,preemptexempttime,preemptmode,flags,usagefactor,grptres,grptresmins,grpjobs,grpsubmit,grpwall,maxtres,maxwall,maxtrespu,maxjobspu,maxsubmitpu,maxtrespa,maxjobspa,maxsubmitpa,mintres");
    case Entity::kCluster:
      return names_in("cluster");
    default:
      return names_in("cluster,account,user,partition,share,priority,grpjobs,grptres,grpsubmit,grpwall,grptresmins,maxjobs,maxtres,maxsubmit,maxwall,qos,defaultqos,grptresrunmins");
  }
}

SacctmgrAnswer show(const Request& r, const Book& book) {
  SacctmgrAnswer out;
  FieldTable table;
  table.no_header = r.no_header;
  table.parsable = r.parsable;
  table.parsable2 = r.parsable2;
  std::vector<std::string> keys;
  for (const std::string& word : r.format.empty() ? default_format(r) : r.format) {
    auto percent = split_once(word, '%');
    const std::string name = lower(percent ? percent->first : std::string_view(word));
    const Known* found = nullptr;
    for (const Known& known : kKnown)
      if (!found && known.key == name) found = &known;
    for (const Known& known : kKnown)
      if (!found && known.key.starts_with(name)) found = &known;
    if (!found) return refuse(fmt::format(" Unknown field '{}'", word));
    int width = found->width;
    if (percent) width = parse_integer<int>(percent->second).value_or(width);
    table.columns.push_back({std::string(found->title), width == 0 ? found->width : width});
    keys.emplace_back(found->key == "maxtresperuser"  ? "maxtrespu"
                      : found->key == "maxjobsperuser" ? "maxjobspu"
                                                       : found->key);
  }
  for (Row& row : rows_of(r, book)) {
    std::vector<std::string> cells;
    for (const std::string& key : keys) cells.push_back(row[key]);
    table.rows.push_back(std::move(cells));
  }
  out.output.text = table.render();
  return out;
}

}  // namespace

SacctmgrAnswer run_sacctmgr_words(std::span<const std::string> words, const AccountsView& view) {
  Request request;
  if (auto wrong = parse(words, request)) return refuse(*wrong);
  const Book book(view);
  SacctmgrAnswer answer;
  if (request.verb == "show") {
    answer = show(request, book);
  } else if (request.entity == Entity::kCluster || request.entity == Entity::kTres) {
    return refuse("sacctmgr: clusters and TRES follow from the configuration and cannot be changed here");
  } else if (request.verb == "add") {
    if (request.names.empty()) return refuse(" Need a name to add");
    if (request.entity == Entity::kUser) answer = add_users(request, book);
    else if (request.entity == Entity::kQos) answer = add_qos(request, book);
    else answer = add_accounts(request, book);
  } else {
    answer = request.verb == "modify" ? modify(request, book) : remove(request, book);
  }
  answer.immediate = request.immediate;
  return answer;
}

}  // namespace tutti::slurm
