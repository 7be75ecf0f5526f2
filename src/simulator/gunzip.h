// Job logs come compressed; whoever has one should not have to unpack it first.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace tutti::simulator {

bool is_gzip(std::string_view bytes);

// The whole content, of one or more members. Errors: kCorrupt where the data is damaged or ends
// early, kExhausted above `most` bytes.
Result<std::string> gunzip(std::string_view bytes, std::size_t most = std::size_t{4} << 30);

}  // namespace tutti::simulator
