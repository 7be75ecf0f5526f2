// The step supervisor: a small single-threaded process per step and node that outlives agent and
// controller. It becomes the user, holds the ranks at the barrier, releases them at the go, keeps
// their output and their exit statuses, and ends whatever they leave behind. It decides nothing:
// see supervisor_protocol.h for what it is told and what it tells.
#pragma once

namespace tutti::agent {

// `tutti supervisor`: started by an agent only, with the descriptors of supervisor_protocol.h.
// Returns the exit status of the process: 0 unless the order could not be read.
int run_supervisor(int argc, char** argv);

}  // namespace tutti::agent
