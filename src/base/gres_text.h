// Slurm's generic resources as text: gpu, gpu:4, gpu:h100:4, gpu:rtxpro6000:8(S:0-1). Source of
// the rules: sbatch(1) --gres, --gpus, --tres-per-node.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace tutti {

struct Gres {
  std::string name;         // "gpu"
  std::string type;         // "h100"; empty: any
  std::uint64_t count = 1;  // of one node, task or job: the option says which
  friend bool operator==(const Gres&, const Gres&) = default;
};

// A list by commas. Also with "gres:" or "gres/" in front, "=" before the count (TRES text), a
// count in k, m, g or t (times 1024), and a trailing "(S:0-1)" or "(IDX:0-3)", which is dropped.
// "none" and an empty text are no resources. Errors: kInvalid, reason "invalid_gres".
Result<std::vector<Gres>> parse_gres_list(std::string_view text);
// The list of --gpus, --gpus-per-node and their like: "4", "h100:2,a100:1", "h100". The name of
// all is "gpu". Errors: kInvalid, reason "invalid_gres".
Result<std::vector<Gres>> parse_gpu_list(std::string_view text);

// "gpu:h100:4", or "gpu:4" without a type.
std::string to_string(const Gres& gres);
std::string to_string(const std::vector<Gres>& list);

}  // namespace tutti
