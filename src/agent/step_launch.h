// What a supervisor finds out before any rank is forked: everything that can be refused is refused
// here, as the user, naming the path. Used by the supervisor process only.
#pragma once

#include <sys/resource.h>

#include <cstdint>
#include <string>
#include <vector>

#include "agent/process.h"
#include "agent/supervisor_protocol.h"

namespace tutti::agent {

constexpr int kNoStream = -1;        // /dev/null
constexpr int kAttachedStream = -2;  // a pipe to the supervisor, to be made

// Where the streams of one rank go: a descriptor owned by LaunchPlan::files, or one of the above.
struct RankStreams {
  int in = kNoStream, out = kNoStream, err = kNoStream;
  bool err_is_out = false;
};

struct LaunchPlan {
  std::string program;            // what to execute
  std::vector<std::string> argv;  // argv[0] as the user wrote it
  std::vector<ResourceLimit> limits;
  std::vector<RankStreams> streams;  // one per rank of this node
  std::vector<Descriptor> files;
  std::vector<std::string> notes;  // for the step's stderr, when it starts
  int notes_file = kNoStream;      // descriptor of the step's stderr, or one of the above
};

// Moves this process into the step's cgroups. Moving waits for a grace period of the kernel (some
// milliseconds on v1), so a forked child does it while the supervisor prepares; ranks are forked
// after finish() only, and so are born inside.
class CgroupMove {
 public:
  Status start(const std::vector<std::string>& procs_files);
  Status finish();

 private:
  pid_t mover_ = 0;
};

// Takes the identity of the job's user for good: groups, gid, uid. The process becomes inspectable
// by that user again (its /proc files belong to him), as a rank would be.
Status become_user(const JobFacts& job, const std::vector<std::uint32_t>& groups);

// Changes the working directory and umask of this process to the step's, writes the script, opens
// files. The order's directory is of the user's.
tl::expected<LaunchPlan, Refusal> plan_launch(const SupervisorOrder& order);

// The path that execvp would run, and 0; else an errno.
std::pair<std::string, int> resolve_program(const std::string& name, std::string_view path);

// The soft limits of the submitter within the hard limits here; one that has to be lowered, or
// is not known, gets a note.
std::vector<ResourceLimit> fit_limits(const std::vector<Rlimit>& wanted,
                                      std::vector<std::string>& notes);

}  // namespace tutti::agent
