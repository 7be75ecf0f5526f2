#include "frontend/slurm/client_context.h"

#include <fmt/format.h>

namespace tutti::slurm {
namespace {
bool names(std::string_view pair, std::string_view name) {
  return pair.size() > name.size() && pair[name.size()] == '=' && pair.starts_with(name);
}
}  // namespace

std::optional<std::string_view> Environment::get(std::string_view name) const {
  for (const std::string& pair : pairs_)
    if (names(pair, name)) return std::string_view(pair).substr(name.size() + 1);
  return std::nullopt;
}

void Environment::set(std::string_view name, std::string_view value) {
  std::string whole = fmt::format("{}={}", name, value);
  for (std::string& pair : pairs_)
    if (names(pair, name)) {
      pair = std::move(whole);
      return;
    }
  pairs_.push_back(std::move(whole));
}

void Environment::remove(std::string_view name) {
  std::erase_if(pairs_, [&](const std::string& pair) { return names(pair, name); });
}

std::string Environment::joined() const {
  std::string out;
  for (const std::string& pair : pairs_) {
    if (!out.empty()) out += '\0';
    out += pair;
  }
  return out;
}

Result<std::string> read_file(const OpenFile& open_file, const std::string& path,
                              std::size_t limit) {
  if (!open_file) return fail(ErrorCode::kNotFound, fmt::format("cannot open {}", path));
  auto read = open_file(path);
  if (!read) return tl::unexpected(read.error());
  std::string text;
  char buffer[16384];
  while (true) {
    auto got = (*read)(std::span(buffer, std::min(sizeof buffer, limit + 1 - text.size())));
    if (!got) return tl::unexpected(got.error());
    if (*got == 0) return text;
    text.append(buffer, *got);
    if (text.size() > limit)
      return fail(ErrorCode::kExhausted, fmt::format("{} is larger than {} bytes", path, limit));
  }
}

}  // namespace tutti::slurm
