// This file stands for cli/system_names.cpp and wire/resolve.cpp in the client program: the linker
// takes these definitions because they come first. A statically linked program has no name service
// worth trusting, so local files are read, and what they do not answer is left to the whole program.
#include "client/whole_program.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <climits>
#include <cstring>
#include <string_view>

#include "base/text.h"
#include "cli/system_names.h"
#include "wire/resolve.h"

namespace tutti::client {

namespace {
char** arguments = nullptr;

void complain(std::string_view text, std::string_view about, int error) {
  const std::string line = "tutti: " + std::string(text) + std::string(about) + ": " + std::strerror(error) + "\n";
  [[maybe_unused]] ssize_t n = write(2, line.data(), line.size());
}
}  // namespace

void remember_arguments(char** argv) { arguments = argv; }

void become_whole_program() {
  char path[PATH_MAX + 16] = {};
  const ssize_t n = readlink("/proc/self/exe", path, PATH_MAX - 1);
  char* const slash = n > 0 ? std::strrchr(path, '/') : nullptr;
  if (slash) {
    std::strcpy(slash + 1, "tutti");
    execv(path, arguments);
  }
  complain("cannot start the whole program ", path, errno);
  _exit(1);
}

namespace {

// A line "name:password:ID:..." of a file as /etc/passwd or /etc/group.
struct Entry {
  std::string name;
  std::array<std::string, 7> fields;
};

// Empty if it cannot be read.
std::string text_of(const char* path) {
  std::string text;
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return text;
  char buffer[4096];
  for (ssize_t n; (n = read(fd, buffer, sizeof buffer)) > 0;) text.append(buffer, static_cast<std::size_t>(n));
  close(fd);
  return text;
}

// The first entry that matches; nothing also if another name service has a say before it.
template <class Matches>
std::optional<Entry> find_entry(const char* path, const Matches& matches) {
  const std::string text = text_of(path);
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    // Lines of other name services in between begin with a sign: they decide who is first.
    if (line.starts_with('+') || line.starts_with('-')) return std::nullopt;
    Entry entry;
    for (std::string& field : entry.fields) {
      const std::size_t colon = std::min(line.find(':'), line.size());
      field = line.substr(0, colon);
      line.remove_prefix(std::min(colon + 1, line.size()));
    }
    if (!matches(entry)) continue;
    entry.name = entry.fields[0];
    return entry;
  }
  return std::nullopt;
}

std::optional<Entry> find_id(const char* path, std::uint32_t id) {
  return find_entry(path, [id](const Entry& entry) {
    std::uint32_t found = 0;
    const std::string& number = entry.fields[2];
    const auto [stop, error] = std::from_chars(number.data(), number.data() + number.size(), found);
    return error == std::errc() && stop == number.data() + number.size() && found == id;
  });
}

bool has_name(const char* path, const std::string& name) {
  return find_entry(path, [&](const Entry& entry) { return entry.fields[0] == name; }).has_value();
}

Entry entry_of(const char* path, std::uint32_t id) {
  std::optional<Entry> entry = find_id(path, id);
  if (!entry) become_whole_program();
  return std::move(*entry);
}

}  // namespace

}  // namespace tutti::client

namespace tutti::cli {

std::optional<std::string> user_name(std::uint32_t uid) { return client::entry_of("/etc/passwd", uid).name; }
bool user_exists(const std::string& name) {
  if (!client::has_name("/etc/passwd", name)) client::become_whole_program();
  return true;
}
std::optional<std::string> group_name(std::uint32_t gid) { return client::entry_of("/etc/group", gid).name; }
std::optional<std::string> home_directory(std::uint32_t uid) { return client::entry_of("/etc/passwd", uid).fields[5]; }

// The first address that /etc/hosts has for the name.
std::string numeric_address(const std::string& host) {
  const std::string text = client::text_of("/etc/hosts");
  for (std::string_view line : split(text, '\n', EmptyPieces::kDrop)) {
    line = line.substr(0, line.find('#'));
    std::string_view address;
    while (!(line = trim(line)).empty()) {
      const std::string_view word = line.substr(0, line.find_first_of(" \t"));
      line.remove_prefix(word.size());
      if (address.empty())
        address = word;
      else if (equals_ci(word, host))
        return std::string(address);
    }
  }
  client::become_whole_program();
}

}  // namespace tutti::cli

namespace tutti::wire {

Result<std::vector<Address>> resolve(const std::string&, std::uint16_t) { client::become_whole_program(); }

}  // namespace tutti::wire
