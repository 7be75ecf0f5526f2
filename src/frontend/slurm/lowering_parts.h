// Shared by the sources that lower sbatch, srun and salloc.
#pragma once

#include "frontend/slurm/lowering.h"

namespace tutti::slurm {

struct Lowering {
  Command command = Command::kSbatch;
  const ClientContext& context;
  std::string warnings;

  std::string_view program() const { return program_name(command); }
  tl::unexpected<CommandError> refuse(std::string_view what, int exit_code = 1) const {
    return tl::unexpected(command_error(program(), what, exit_code));
  }
  tl::unexpected<CommandError> fatal(std::string_view what) const;
  // As if the controller had refused it for that reason.
  tl::unexpected<CommandError> refuse_for(std::string_view reason) const;
  void warn(std::string_view what);
};

// The GPUs of a component, whatever option they were given with.
struct GpuAsk {
  std::string type;
  std::optional<std::uint32_t> per_node;
  std::uint32_t per_task = 0, total = 0;
  // Each is a part: a MIG profile, or so much memory or compute of a device.
  std::string profile;
  std::uint64_t memory_mib = 0;
  std::uint32_t share_permille = 0;
};
Parsed<GpuAsk> lower_gpus(Lowering& lowering, const JobOptions& options);
Parsed<RoleAsk> lower_role(Lowering& lowering, const JobOptions& options);
// All but launch.script, launch.environment and the kind.
Parsed<Workload> lower_workload(Lowering& lowering, const std::vector<JobOptions>& components);
// Relative to the caller's directory.
std::string absolute_path(const ClientContext& context, std::string_view path);
std::string base_name(std::string_view path);
Show show_of(const JobOptions& options);

}  // namespace tutti::slurm
