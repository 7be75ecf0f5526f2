#include "base/archive.h"

#include <fmt/format.h>

namespace tutti {

void Decoder::set_error(std::string_view name, std::string_view what) {
  if (error_) return;
  std::string where = path_.empty() ? std::string(name) : fmt::format("{}.{}", path_, name);
  error_ = Error{ErrorCode::kInvalid, {}, fmt::format("field \"{}\" {}", where, what), {}};
}

}  // namespace tutti
