// One binary, many names: dispatch by the name it was called by, or by its first word.
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "agent/node_holder.h"
#include "agent/supervisor.h"
#include "agent/virtual_cluster.h"
#include "cli/slurm_commands.h"
#include "cli/tutti_commands.h"

namespace {

using Command = int (*)(tutti::cli::Words);
struct Named {
  std::string_view name;
  Command run;
};
constexpr Named kSlurmCommands[] = {
    {"sbatch", tutti::cli::run_sbatch},     {"srun", tutti::cli::run_srun},
    {"salloc", tutti::cli::run_salloc},     {"scancel", tutti::cli::run_scancel},
    {"squeue", tutti::cli::run_squeue},     {"sinfo", tutti::cli::run_sinfo},
    {"sacct", tutti::cli::run_sacct},       {"scontrol", tutti::cli::run_scontrol},
    {"sacctmgr", tutti::cli::run_sacctmgr}, {"sshare", tutti::cli::run_sshare},
    {"sprio", tutti::cli::run_sprio},       {"sdiag", tutti::cli::run_sdiag},
};

}  // namespace

int main(int argc, char** argv) {
  std::string_view called = argc > 0 ? argv[0] : "tutti";
  if (std::size_t slash = called.rfind('/'); slash != std::string_view::npos) called.remove_prefix(slash + 1);
  std::string_view first = argc > 1 ? argv[1] : "";
  // The two small processes of a node come first: they start often and must start fast.
  if (first == "supervisor") return tutti::agent::run_supervisor(argc - 1, argv + 1);
  if (first == "node-holder") return tutti::agent::run_node_holder();
  std::vector<std::string> words(argv + (argc > 0 ? 1 : 0), argv + argc);
  for (const Named& command : kSlurmCommands) {
    if (called == command.name) return command.run(words);
    if (first == command.name) return command.run(tutti::cli::Words(words).subspan(1));
  }
  return tutti::cli::run_tutti(words);
}
