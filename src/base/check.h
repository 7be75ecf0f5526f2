// CHECK(condition): a broken invariant ends the program, in release builds too. Never for input.
#pragma once

namespace tutti::detail {
[[noreturn]] void check_failed(const char* condition, const char* file, int line);
}

#define TUTTI_CHECK(condition)                                       \
  do {                                                               \
    if (!(condition)) [[unlikely]]                                   \
      ::tutti::detail::check_failed(#condition, __FILE__, __LINE__); \
  } while (false)
