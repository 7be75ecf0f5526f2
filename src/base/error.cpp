#include "base/error.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fmt/format.h>

#include "base/check.h"

namespace tutti {

std::string to_string(const Error& error) {
  if (error.span.file.empty() && error.span.line == 0) return error.message;
  return fmt::format("{}:{}:{}: {}", error.span.file, error.span.line, error.span.column,
                     error.message);
}

tl::unexpected<Error> fail_errno(int errno_value, std::string_view what) {
  ErrorCode code = ErrorCode::kUnavailable;
  switch (errno_value) {
    case ENOENT:
    case ENOTDIR:
      code = ErrorCode::kNotFound;
      break;
    case EACCES:
    case EPERM:
      code = ErrorCode::kDenied;
      break;
    case ENOSPC:
    case ENOMEM:
    case EMFILE:
    case ENFILE:
    case EDQUOT:
      code = ErrorCode::kExhausted;
      break;
    case EEXIST:
    case EBUSY:
      code = ErrorCode::kConflict;
      break;
    default:
      break;
  }
  return fail(code, fmt::format("{}: {}", what, strerror(errno_value)));
}

namespace detail {
void check_failed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "tutti: invariant broken: %s at %s:%d\n", condition, file, line);
  std::abort();
}
}  // namespace detail

}  // namespace tutti
