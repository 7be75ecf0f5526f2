// Errors as values: what went wrong, where, and what was expected. Nothing in Tutti throws across
// a module's edge; functions that can fail return Result<T>.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

namespace tutti {

enum class ErrorCode : std::uint8_t {
  kInvalid,      // the input is malformed; trying again cannot help
  kNotFound,     // names something that does not exist
  kDenied,       // the caller may not do this
  kConflict,     // not possible in the present state
  kUnavailable,  // the other side does not answer; trying again may help
  kExhausted,    // out of disk, descriptors, memory or a bounded queue
  kCorrupt,      // stored data is damaged
  kInternal,     // a defect of ours
};

// A place in a text; line and column count from 1, 0 = unknown.
struct Span {
  std::string file;
  std::uint32_t line = 0;
  std::uint32_t column = 0;
};

struct Error {
  ErrorCode code = ErrorCode::kInternal;
  // A stable word for programs ("invalid_partition"); empty where nobody tells cases apart.
  std::string reason;
  // For people: what, where, and what was expected.
  std::string message;
  Span span;
};

// "file:line:col: message", or the message alone when the place is unknown.
std::string to_string(const Error& error);

template <class T>
using Result = tl::expected<T, Error>;
using Status = Result<void>;

inline tl::unexpected<Error> fail(ErrorCode code, std::string message, std::string reason = {}) {
  return tl::unexpected<Error>(Error{code, std::move(reason), std::move(message), {}});
}
inline tl::unexpected<Error> invalid(std::string message, std::string reason = {}) {
  return fail(ErrorCode::kInvalid, std::move(message), std::move(reason));
}
// An error with the text of errno: "WHAT: No such file or directory".
tl::unexpected<Error> fail_errno(int errno_value, std::string_view what);

// One finding about an input text. Front ends report all of them, not the first.
enum class Severity : std::uint8_t { kNote, kWarning, kError };
struct Diagnostic {
  Severity severity = Severity::kWarning;
  std::string code;  // stable, kebab-case: "unsupported-option"
  std::string message;
  Span span;
};

}  // namespace tutti
