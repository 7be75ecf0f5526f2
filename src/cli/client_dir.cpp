// Which cluster a command means. On its own, so that a command needs no more of state_dir.h than this.
#include <cstdlib>
#include <unistd.h>

#include "cli/state_dir.h"
#include "cli/system_names.h"

namespace tutti::cli {

namespace {
std::string own_dir() {
  if (geteuid() == 0) return "/var/lib/tutti";
  if (const char* state = std::getenv("XDG_STATE_HOME"); state && *state) return std::string(state) + "/tutti";
  const char* home = std::getenv("HOME");
  std::string folder = home && *home ? home : home_directory(getuid()).value_or("/tmp");
  return folder + "/.local/state/tutti";
}

bool exists(const std::string& path) { return access(path.c_str(), F_OK) == 0; }
}  // namespace

std::string default_state_dir() {
  if (const char* dir = std::getenv("TUTTI_STATE"); dir && *dir) return dir;
  return own_dir();
}

std::string client_state_dir() {
  if (const char* dir = std::getenv("TUTTI_STATE"); dir && *dir) return dir;
  std::string own = own_dir();
  if (exists(own + "/cluster.json") || geteuid() == 0) return own;
  if (exists("/var/lib/tutti/cluster.json") || exists("/var/lib/tutti/api.sock")) return "/var/lib/tutti";
  return own;
}

}  // namespace tutti::cli
