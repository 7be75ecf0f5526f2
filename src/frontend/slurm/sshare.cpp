#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "frontend/slurm/sacctmgr.h"

namespace tutti::slurm {

namespace {

struct Asked {
  std::vector<std::string> accounts, users, format;
  bool all = false, long_form = false, no_header = false, parsable = false, parsable2 = false,
       users_only = false;
};

void append(std::vector<std::string>& list, std::string_view text) {
  for (std::string_view one : split(text, ',', EmptyPieces::kDrop)) list.emplace_back(trim(one));
}

// False for an option it does not know.
bool parse(std::span<const std::string> words, Asked& asked) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    auto value = [&](std::string_view name, char letter) -> std::optional<std::string> {
      const std::string with = fmt::format("--{}=", name), alone = fmt::format("-{}", letter);
      if (word.starts_with(with)) return word.substr(with.size());
      if (word == fmt::format("--{}", name) || word == alone)
        return i + 1 < words.size() ? words[++i] : std::string();
      if (!word.starts_with("--") && word.starts_with(alone)) return word.substr(2);
      return std::nullopt;
    };
    if (auto v = value("accounts", 'A')) append(asked.accounts, *v);
    else if (auto u = value("users", 'u')) append(asked.users, *u);
    else if (auto f = value("format", 'o')) append(asked.format, *f);
    else if (auto f = value("Format", 'o')) append(asked.format, *f);
    else if (word == "--all") asked.all = true;
    else if (word == "--long") asked.long_form = true;
    else if (word == "--noheader") asked.no_header = true;
    else if (word == "--parsable") asked.parsable = true;
    else if (word == "--parsable2") asked.parsable2 = true;
    else if (word == "--Users") asked.users_only = true;
    else if (word.size() > 1 && word[0] == '-' && word[1] != '-')
      for (char letter : word.substr(1)) {
        if (letter == 'a') asked.all = true;
        else if (letter == 'l') asked.long_form = true;
        else if (letter == 'n' || letter == 'h') asked.no_header = true;
        else if (letter == 'p') asked.parsable = true;
        else if (letter == 'P') asked.parsable2 = true;
        else if (letter == 'U') asked.users_only = true;
        else if (letter != 'm' && letter != 'v') return false;
      }
    else return false;
  }
  return true;
}

double part(std::uint64_t of, std::uint64_t all) {
  return all == 0 ? 0.0 : static_cast<double>(of) / static_cast<double>(all);
}

std::string level(const ShareLine& x) {
  if (x.level_kind == 2) return "inf";
  if (x.level_kind == 0) return "0.000000";
  return fmt::format("{:.6f}", std::ldexp(static_cast<double>(x.level_mantissa), x.level_exponent));
}

struct Column {
  std::string_view key, title;
  int width;
};
constexpr Column kColumns[] = {{"account", "Account", -20},       {"user", "User", 10},
                               {"rawshares", "RawShares", 10},    {"normshares", "NormShares", 11},
                               {"rawusage", "RawUsage", 11},      {"normusage", "NormUsage", 11},
                               {"effectvusage", "EffectvUsage", 13}, {"effectusage", "EffectvUsage", 13},
                               {"fairshare", "FairShare", 10},    {"levelfs", "LevelFS", 10},
                               {"grptresmins", "GrpTRESMins", 30}, {"tresrunmins", "TRESRunMins", 30}};

struct Line {
  const Association* association;
  const ShareLine* share;
  int depth;
};

std::string cell(std::string_view key, const Line& line, std::uint64_t all_usage, bool indent) {
  const Association& a = *line.association;
  const ShareLine& s = *line.share;
  const bool root = a.id == kRootAssociation;
  if (key == "account") return std::string(indent ? static_cast<std::size_t>(line.depth) : 0, ' ') + a.account;
  if (key == "user") return a.user;
  if (key == "rawshares")
    return root ? "" : a.shares == kSharesOfParent ? "parent" : fmt::format("{}", a.shares);
  if (key == "normshares") return fmt::format("{:.6f}", root ? 0.0 : part(s.shares, s.all_shares));
  if (key == "rawusage") return fmt::format("{}", s.usage_ms / 1000);
  if (key == "normusage") return root ? "" : fmt::format("{:.6f}", part(s.usage_ms, all_usage));
  if (key.starts_with("effect")) return fmt::format("{:.6f}", root ? 1.0 : part(s.usage_ms, s.parent_usage_ms));
  if (key == "fairshare")
    return a.user.empty() ? "" : fmt::format("{:.6f}", static_cast<double>(s.factor_billionths) / 1e9);
  if (key == "levelfs") return root ? "" : level(s);
  return key == "grptresmins" ? tres_text(a.limits.group_minutes) : "";
}

// Users of an account first, then the accounts below it, both by name.
void list(const AccountsView& view, AssociationId above, int depth, std::vector<Line>& out) {
  std::vector<std::size_t> below;
  for (std::size_t i = 0; i < view.associations.size(); ++i)
    if (view.associations[i].parent == above) below.push_back(i);
  std::sort(below.begin(), below.end(), [&](std::size_t a, std::size_t b) {
    const Association &x = view.associations[a], &y = view.associations[b];
    return std::make_tuple(x.user.empty(), x.user, x.account, x.partition) <
           std::make_tuple(y.user.empty(), y.user, y.account, y.partition);
  });
  for (std::size_t i : below) {
    out.push_back({&view.associations[i], &view.shares[i], depth});
    if (view.associations[i].user.empty()) list(view, view.associations[i].id, depth + 1, out);
  }
}

}  // namespace

Output render_sshare(std::span<const std::string> words, const AccountsView& view, std::string_view me) {
  Output out;
  Asked asked;
  if (!parse(words, asked)) {
    out.errors = "sshare: unrecognized option\nTry \"sshare --help\" for more information\n";
    out.exit_code = 1;
    return out;
  }
  if (asked.users.empty() && !asked.all) asked.users.emplace_back(me);
  if (asked.format.empty())
    append(asked.format, asked.users_only ? "account,fairshare"
                         : asked.long_form
                             ? "account,user,rawshares,normshares,rawusage,normusage,effectvusage,fairshare,levelfs,grptresmins,tresrunmins"
                             : "account,user,rawshares,normshares,rawusage,effectvusage,fairshare");
  FieldTable table;
  table.no_header = asked.no_header;
  table.parsable = asked.parsable;
  table.parsable2 = asked.parsable2;
  std::vector<std::string_view> keys;
  for (const std::string& word : asked.format) {
    auto percent = split_once(word, '%');
    const std::string name = lower(percent ? percent->first : std::string_view(word));
    auto found = std::find_if(std::begin(kColumns), std::end(kColumns),
                              [&](const Column& c) { return c.key.starts_with(name); });
    if (found == std::end(kColumns)) {
      out.errors = fmt::format("sshare: error: Invalid field requested: \"{}\"\n", word);
      out.exit_code = 1;
      return out;
    }
    int width = found->width;
    if (percent) width = parse_integer<int>(percent->second).value_or(width);
    table.columns.push_back({std::string(found->title), width});
    keys.push_back(found->key);
  }
  std::vector<Line> lines;
  std::uint64_t all_usage = 0;
  for (std::size_t i = 0; i < view.associations.size() && i < view.shares.size(); ++i)
    if (view.associations[i].id == kRootAssociation) {
      lines.push_back({&view.associations[i], &view.shares[i], 0});
      all_usage = view.shares[i].usage_ms;
    }
  list(view, kRootAssociation, 1, lines);
  auto in = [](const std::vector<std::string>& names, const std::string& name) {
    return names.empty() || std::find(names.begin(), names.end(), name) != names.end();
  };
  for (const Line& line : lines) {
    const Association& a = *line.association;
    if (!in(asked.accounts, a.account)) continue;
    if (a.user.empty() ? asked.users_only : !asked.all && !in(asked.users, a.user)) continue;
    std::vector<std::string> cells;
    for (std::string_view key : keys) cells.push_back(cell(key, line, all_usage, !asked.users_only));
    table.rows.push_back(std::move(cells));
  }
  out.text = table.render();
  return out;
}

}  // namespace tutti::slurm
