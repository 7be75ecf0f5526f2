// The test program is its own supervisor: an agent under test starts /proc/self/exe with the first
// argument "supervisor", and this takes over before GoogleTest's main.
#include <cstdlib>
#include <cstring>

#include "agent/supervisor.h"

namespace {

__attribute__((constructor)) void become_supervisor(int argc, char** argv) {
  if (argc < 2 || std::strcmp(argv[1], "supervisor") != 0) return;
  std::_Exit(tutti::agent::run_supervisor(argc, argv));
}

}  // namespace
