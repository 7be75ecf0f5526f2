// Secrets: making, keeping and comparing bearer tokens.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace tutti::wire {

// Compares in a time that depends on the lengths only. Empty is equal to nothing, itself included,
// so a missing token never matches a missing secret.
bool equal_constant_time(std::string_view a, std::string_view b);

// 32 bytes from the kernel's generator as 64 hexadecimal digits.
std::string make_token();

// Writes `token` and a newline to a new file of mode 0600 and puts it in place of `path` in one
// step.
Status write_key_file(const std::string& path, std::string_view token);
// Reads such a file. kDenied if others than its owner may read or write it, or if its owner is
// neither this user nor root; kInvalid if it is empty, longer than 4 KiB or not a regular file.
Result<std::string> read_key_file(const std::string& path);

}  // namespace tutti::wire
