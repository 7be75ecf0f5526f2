// The test program can be started again as a small helper (argv[1] = "agent-test-helper"), so
// that tests run real processes without a second program.
#pragma once

#include <cstdlib>
#include <string>
#include <vector>

#include "agent/process.h"

namespace tutti::agent {

// Commands, each given as arguments after the first:
//   open PATH...          prints the errno name of opening each ("OK" when it opens)
//   make PATH MAJOR MINOR mknod, then as open; prints both
//   bomb                  forks for ever; every process lives on
//   eat MIB               touches so much memory
//   spin MS               burns CPU time
//   enter PID SCRIPT      enters a node's namespaces and runs the script there
//   probe                 prints probe_namespaces()
//   nested-user           prints uid inside a user namespace, then uid, gid and capabilities of a
//                         child spawned with user_namespace
//   node-holder NAME      run_node_holder
struct HelperRun {
  SpawnedProcess process;
  Descriptor output;  // its standard output
};
Result<HelperRun> start_helper(std::vector<std::string> command, SpawnOptions options = {});
// Starts it, waits, and returns its output; `status` as of waitpid.
Result<std::string> run_helper(std::vector<std::string> command, SpawnOptions options = {},
                               int* status = nullptr);

}  // namespace tutti::agent
