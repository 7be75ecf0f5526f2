// The Slurm-named commands, and the supervisor of a step, in a small static program: half of the time
// of a short command is its start. It does what cli/ does; names it cannot look up are left to `tutti` (whole_program.h).
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "agent/supervisor.h"
#include "cli/slurm_commands.h"
#include "client/whole_program.h"

namespace {

using Command = int (*)(tutti::cli::Words);
struct Named {
  std::string_view name;
  Command run;
};
constexpr Named kCommands[] = {
    {"sbatch", tutti::cli::run_sbatch}, {"squeue", tutti::cli::run_squeue}, {"scancel", tutti::cli::run_scancel},
    {"salloc", tutti::cli::run_salloc}, {"sinfo", tutti::cli::run_sinfo},   {"sacct", tutti::cli::run_sacct},
    {"srun", tutti::cli::run_srun},     {"sprio", tutti::cli::run_sprio},   {"sdiag", tutti::cli::run_sdiag},
};

}  // namespace

int main(int argc, char** argv) {
  tutti::client::remember_arguments(argv);
  std::string_view called = argc > 0 ? argv[0] : "";
  if (std::size_t slash = called.rfind('/'); slash != std::string_view::npos) called.remove_prefix(slash + 1);
  // A step's supervisor, started by an agent: it starts often and must start fast.
  if (called == "tutti" && argc > 1 && argv[1] == std::string_view("supervisor")) return tutti::agent::run_supervisor(argc - 1, argv + 1);
  // An address may be a host's name, and the question would come after the script has been read.
  const char* url = std::getenv("TUTTI_URL");
  if (!url || !*url)
    for (const Named& command : kCommands)
      if (called == command.name) return command.run(std::vector<std::string>(argv + 1, argv + argc));
  tutti::client::become_whole_program();
}
