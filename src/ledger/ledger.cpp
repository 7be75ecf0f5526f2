#include "ledger/ledger.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace tutti::ledger {

namespace {

constexpr std::uint64_t kWhole = 1000;  // thousandths of a GPU

std::size_t at_level(Level level) { return static_cast<std::size_t>(level); }

bool may_be_held_in(Level level) { return level != Level::kDown && level != Level::kFree; }

}  // namespace

Units TypeTotals::sum() const { return std::accumulate(levels.begin(), levels.end(), Units{0}); }

std::uint64_t Ledger::Type::held() const {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < kLevels; ++i)
    if (may_be_held_in(static_cast<Level>(i))) sum += now[i];
  return sum;
}

// What is neither held nor down is free. GPUs that are held when their node goes down count as
// held until they are given back.
void Ledger::Type::set_free() {
  const std::uint64_t all = gpus * kWhole, taken = held();
  now[at_level(Level::kDown)] = std::min(down * kWhole, all - taken);
  now[at_level(Level::kFree)] = all - taken - now[at_level(Level::kDown)];
}

Status Ledger::advance(Instant at) {
  if (at < now_)
    return invalid(fmt::format("the ledger is at {} ms, {} ms is before it", now_.ms(), at.ms()));
  const auto passed = static_cast<std::uint64_t>((at - now_).ms());
  if (passed == 0) return {};
  for (auto& [name, type] : types_) {
    type.totals.capacity += type.gpus * kWhole * passed;
    for (std::size_t i = 0; i < kLevels; ++i) type.totals.levels[i] += type.now[i] * passed;
  }
  now_ = at;
  return {};
}

void Ledger::settle(Account& account) {
  account.units[at_level(account.level)] +=
      account.permille * static_cast<std::uint64_t>((now_ - account.since).ms());
  account.since = now_;
}

Result<Ledger::Account*> Ledger::holding(Holder holder, Instant at) {
  auto found = accounts_.find(holder);
  if (found == accounts_.end() || found->second.permille == 0)
    return invalid(fmt::format("holder {} holds nothing", holder));
  if (auto status = advance(at); !status) return tl::make_unexpected(status.error());
  settle(found->second);
  return &found->second;
}

Status Ledger::set_capacity(std::string_view name, std::uint64_t gpus, std::uint64_t down,
                            Instant at) {
  if (auto status = advance(at); !status) return status;
  auto found = types_.find(name);
  if (found == types_.end()) {
    found = types_.emplace(std::string(name), Type{}).first;
    found->second.totals.type = std::string(name);
  }
  Type& type = found->second;
  if (type.held() > gpus * kWhole)
    return invalid(fmt::format("{} GPUs of type {} are fewer than what is held", gpus, name));
  type.gpus = gpus;
  type.down = std::min(down, gpus);
  type.set_free();
  return {};
}

Status Ledger::hold(Holder holder, std::string_view name, std::uint64_t permille, Level level,
                    Instant at) {
  auto found = types_.find(name);
  if (found == types_.end()) return invalid(fmt::format("no GPUs of type {}", name));
  if (!may_be_held_in(level) || permille == 0)
    return invalid(
        fmt::format("{} thousandths cannot be held in level {}", permille, enum_name(level)));
  Type& type = found->second;
  if (type.held() + permille > type.gpus * kWhole)
    return invalid(fmt::format("{} thousandths of type {} are more than the {} that are not held",
                               permille, name, type.gpus * kWhole - type.held()));
  auto [account, fresh] = accounts_.try_emplace(holder);
  if (!fresh) return invalid(fmt::format("holder {} has held before", holder));
  if (auto status = advance(at); !status) {
    accounts_.erase(account);
    return status;
  }
  account->second.type = found->first;
  account->second.level = level;
  account->second.permille = permille;
  account->second.since = now_;
  type.now[at_level(level)] += permille;
  type.set_free();
  return {};
}

Status Ledger::change(Holder holder, Level level, Instant at) {
  if (!may_be_held_in(level))
    return invalid(fmt::format("nothing is held in level {}", enum_name(level)));
  auto account = holding(holder, at);
  if (!account) return tl::make_unexpected(account.error());
  Type& type = types_.find((*account)->type)->second;
  type.now[at_level((*account)->level)] -= (*account)->permille;
  type.now[at_level(level)] += (*account)->permille;
  (*account)->level = level;
  return {};
}

Status Ledger::resize(Holder holder, std::uint64_t permille, Instant at) {
  auto account = holding(holder, at);
  if (!account) return tl::make_unexpected(account.error());
  Type& type = types_.find((*account)->type)->second;
  if (type.held() - (*account)->permille + permille > type.gpus * kWhole)
    return invalid(fmt::format("{} thousandths of type {} are more than there are", permille,
                               (*account)->type));
  std::uint64_t& now = type.now[at_level((*account)->level)];
  now = now - (*account)->permille + permille;
  (*account)->permille = permille;
  type.set_free();
  return {};
}

Status Ledger::release(Holder holder, Instant at) { return resize(holder, 0, at); }

Units Ledger::lose(Holder holder, Units amount, Instant at) {
  auto found = accounts_.find(holder);
  if (found == accounts_.end() || !advance(at)) return 0;
  Account& account = found->second;
  settle(account);
  Units& useful = account.units[at_level(Level::kProgressing)];
  const Units moved = std::min(amount, useful);
  useful -= moved;
  account.units[at_level(Level::kLost)] += moved;
  auto& levels = types_.find(account.type)->second.totals.levels;
  levels[at_level(Level::kProgressing)] -= moved;
  levels[at_level(Level::kLost)] += moved;
  return moved;
}

std::vector<TypeTotals> Ledger::totals(Instant at) {
  std::vector<TypeTotals> out;
  if (!advance(at)) return out;
  out.reserve(types_.size());
  for (const auto& [name, type] : types_) out.push_back(type.totals);
  return out;
}

std::array<Units, kLevels> Ledger::of(Holder holder) const {
  auto found = accounts_.find(holder);
  if (found == accounts_.end()) return {};
  std::array<Units, kLevels> units = found->second.units;
  units[at_level(found->second.level)] +=
      found->second.permille * static_cast<std::uint64_t>((now_ - found->second.since).ms());
  return units;
}

std::uint64_t Ledger::present(Level level) const {
  std::uint64_t sum = 0;
  for (const auto& [name, type] : types_) sum += type.now[at_level(level)];
  return sum;
}

}  // namespace tutti::ledger
