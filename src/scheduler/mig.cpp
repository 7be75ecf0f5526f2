#include "scheduler/mig.h"

#include <array>

#include "base/text.h"

namespace tutti::scheduler {

namespace {

constexpr std::array<std::uint16_t, 7> kEach{0, 1, 2, 3, 4, 5, 6};
constexpr std::array<std::uint16_t, 4> kEven{0, 2, 4, 6};
constexpr std::array<std::uint16_t, 3> kEvenToFour{0, 2, 4};
constexpr std::array<std::uint16_t, 2> kHalves{0, 4};
constexpr std::array<std::uint16_t, 1> kFirst{0};
constexpr std::array<std::uint16_t, 4> kEachOfFour{0, 1, 2, 3};
constexpr std::array<std::uint16_t, 2> kHalvesOfFour{0, 2};

// Names of the seven-slice GPUs, in the order of kSevenSlices.
struct Model {
  std::string_view type;
  std::uint64_t least_memory_mib;
  std::array<std::string_view, 6> names;
};
// Of one type the larger first: the first that is not too large counts.
constexpr std::array kSevenSliceModels{
    Model{"a100", 60'000, {"1g.10gb", "1g.20gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb"}},
    Model{"a100", 0, {"1g.5gb", "1g.10gb", "2g.10gb", "3g.20gb", "4g.20gb", "7g.40gb"}},
    Model{"h100", 95'000, {"1g.12gb", "1g.24gb", "2g.24gb", "3g.48gb", "4g.48gb", "7g.96gb"}},
    Model{"h100", 90'000, {"1g.12gb", "1g.24gb", "2g.24gb", "3g.47gb", "4g.47gb", "7g.94gb"}},
    Model{"h100", 0, {"1g.10gb", "1g.20gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb"}},
    Model{"h200", 0, {"1g.18gb", "1g.35gb", "2g.35gb", "3g.71gb", "4g.71gb", "7g.141gb"}},
    Model{"gh200", 120'000, {"1g.18gb", "1g.36gb", "2g.36gb", "3g.72gb", "4g.72gb", "7g.144gb"}},
    Model{"gh200", 0, {"1g.12gb", "1g.24gb", "2g.24gb", "3g.48gb", "4g.48gb", "7g.96gb"}},
    Model{"b200", 0, {"1g.23gb", "1g.45gb", "2g.45gb", "3g.90gb", "4g.90gb", "7g.180gb"}},
};
const std::array<MigProfile, 6> kSevenSlices{
    MigProfile{"", 1, kEach},   MigProfile{"", 2, kEven},  MigProfile{"", 2, kEvenToFour},
    MigProfile{"", 4, kHalves}, MigProfile{"", 4, kFirst}, MigProfile{"", 8, kFirst}};

struct FourSlices {
  std::string_view type;
  std::array<std::string_view, 3> names;
};
constexpr std::array kFourSliceModels{
    FourSlices{"a30", {"1g.6gb", "2g.12gb", "4g.24gb"}},
    FourSlices{"rtxpro6000", {"1g.24gb", "2g.48gb", "4g.96gb"}}};
const std::array<MigProfile, 3> kFourSlices{MigProfile{"", 1, kEachOfFour},
                                            MigProfile{"", 2, kHalvesOfFour},
                                            MigProfile{"", 4, kFirst}};

bool is_of(std::string_view gpu_type, std::string_view model) {
  std::string plain;
  for (char c : lower(gpu_type))
    if (c != ' ' && c != '-' && c != '_') plain += c;
  std::size_t at = plain.find(model);
  // "gh200" is no "h200".
  return at != std::string::npos && (at == 0 || plain[at - 1] != 'g');
}

}  // namespace

std::optional<MigProfile> mig_profile(std::string_view gpu_type, std::uint64_t memory_mib,
                                      std::string_view profile) {
  const bool media = profile.ends_with("+me");
  const std::string_view plain = media ? profile.substr(0, profile.size() - 3) : profile;
  auto found = [&](MigProfile out, std::string_view name) {
    out.name = name;
    out.media = media;
    return std::optional(out);
  };
  for (const Model& model : kSevenSliceModels) {
    if (!is_of(gpu_type, model.type)) continue;
    if (memory_mib > 0 && memory_mib < model.least_memory_mib) continue;
    for (std::size_t i = 0; i < model.names.size(); ++i)
      if (model.names[i] == plain && (!media || i == 0))
        return found(kSevenSlices[i], model.names[i]);
    if (memory_mib > 0 || model.type != "h100") return std::nullopt;
  }
  for (const FourSlices& model : kFourSliceModels)
    if (is_of(gpu_type, model.type))
      for (std::size_t i = 0; i < model.names.size(); ++i)
        if (model.names[i] == plain && (!media || i < 2))
          return found(kFourSlices[i], model.names[i]);
  return std::nullopt;
}

}  // namespace tutti::scheduler
