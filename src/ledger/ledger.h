// Ledger: every GPU-second of a cluster in exactly one level, in integers. It owns nothing but
// sums; whoever knows what a GPU does (the simulator, the controller) says when that changes.
// Promise: at any moment the sum over all levels equals capacity times time, per GPU type, exactly.
//
// Amounts are GPU-permille-milliseconds ("units"): a thousandth of a GPU for a millisecond. 64 bits
// carry 100,000 GPUs for 2,900 years.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/enum_names.h"
#include "base/error.h"
#include "base/time.h"

namespace tutti::ledger {

// From worthless to useful; the order in which reports list them. Design: runtime.md, "The ledger".
enum class Level : std::uint8_t {
  kDown,         // its node cannot take work
  kFree,         // could be given to somebody
  kReserved,     // held empty for a named gang
  kStarting,     // roll call, image, mode change, rendezvous
  kNoProcess,    // held, and no process of its owner uses it
  kNoContext,    // a process, but no GPU context
  kIdleContext,  // a context, but no kernels
  kNoProgress,   // kernels, but the work does not advance
  kProgressing,
  kLost,     // had been progressing; thrown away since the last checkpoint
  kUnknown,  // held, and nobody reports what it does
  kOther,    // used by a stranger
};
constexpr std::size_t kLevels = 12;

using Units = std::uint64_t;
constexpr Units kUnitsPerGpuSecond = 1'000'000;

// Whoever holds GPUs: the number of a gang's life. Never used twice.
using Holder = std::uint64_t;

struct TypeTotals {
  std::string type;
  Units capacity = 0;  // GPUs times time
  std::array<Units, kLevels> levels{};
  Units sum() const;
};

class Ledger {
 public:
  explicit Ledger(Instant start) : start_(start), now_(start) {}

  // `gpus` of the type exist from `at` on, `down` of which cannot take work; neither counts those
  // that are held. Times must not go back: kInvalid. Cost of every call: O(types).
  Status set_capacity(std::string_view type, std::uint64_t gpus, std::uint64_t down, Instant at);

  // From `at` on the holder has so many thousandths of GPUs. Errors: it has some already, there is
  // no such capacity (nothing changes).
  Status hold(Holder holder, std::string_view type, std::uint64_t permille, Level level,
              Instant at);
  // What it does with all that it holds changes. Errors: it holds nothing.
  Status change(Holder holder, Level level, Instant at);
  // It holds more or less. Errors: as hold() and change().
  Status resize(Holder holder, std::uint64_t permille, Instant at);
  Status release(Holder holder, Instant at);

  // Books what a holder, present or past, has made of its progress since `since` as lost: moves
  // min(amount, what it has in kProgressing) to kLost. Returns what was moved.
  Units lose(Holder holder, Units amount, Instant at);

  Instant start() const { return start_; }
  // Sums up to `at`, by type name; at must not be before the last change.
  std::vector<TypeTotals> totals(Instant at);
  // Of one holder, present or past, up to the last call that moved the time on.
  std::array<Units, kLevels> of(Holder holder) const;
  // How many thousandths are in a level now, over all types.
  std::uint64_t present(Level level) const;
  // Forgets what a past holder had in each level; totals keep it.
  void forget(Holder holder) { accounts_.erase(holder); }

 private:
  struct Type {
    TypeTotals totals;
    std::uint64_t gpus = 0, down = 0;
    std::array<std::uint64_t, kLevels> now{};  // thousandths; kFree is what is left
    std::uint64_t held() const;
    void set_free();
  };
  struct Account {
    std::string_view type;  // a key of types_
    Level level = Level::kFree;
    std::uint64_t permille = 0;  // 0 = has given everything back
    Instant since;
    std::array<Units, kLevels> units{};
  };
  Status advance(Instant at);
  void settle(Account& account);
  Result<Account*> holding(Holder holder, Instant at);

  Instant start_, now_;
  std::map<std::string, Type, std::less<>> types_;
  std::map<Holder, Account> accounts_;
};

}  // namespace tutti::ledger

namespace tutti {
template <>
struct EnumNames<ledger::Level> {
  using L = ledger::Level;
  static constexpr std::array kTable{std::pair{L::kDown, std::string_view("down")},
                                     std::pair{L::kFree, std::string_view("free")},
                                     std::pair{L::kReserved, std::string_view("reserved")},
                                     std::pair{L::kStarting, std::string_view("starting")},
                                     std::pair{L::kNoProcess, std::string_view("no_process")},
                                     std::pair{L::kNoContext, std::string_view("no_context")},
                                     std::pair{L::kIdleContext, std::string_view("idle_context")},
                                     std::pair{L::kNoProgress, std::string_view("no_progress")},
                                     std::pair{L::kProgressing, std::string_view("progressing")},
                                     std::pair{L::kLost, std::string_view("lost")},
                                     std::pair{L::kUnknown, std::string_view("unknown")},
                                     std::pair{L::kOther, std::string_view("other")}};
};
}  // namespace tutti
