// scancel.
#include <algorithm>
#include <fmt/format.h>

#include "base/local_time.h"
#include "cli/api_client.h"
#include "cli/slurm_commands.h"
#include "cli/slurm_context.h"
#include "cli/slurm_reading.h"
#include "frontend/slurm/command_options.h"

namespace tutti::cli {

int run_scancel(Words words) {
  LocalZone zone;
  slurm::ClientContext context = client_context(zone);
  auto command = slurm::parse_scancel(words, context);
  if (!command) return finish(command.error());
  if (auto code = shown(command->show, "scancel")) return *code;
  if (command->verbose > 0)
    for (const std::string& name : command->names) print_err(fmt::format("scancel: Terminating job {}\n", name));
  ApiClient api;
  int code = 0;
  for (const ActionRequest& request : command->requests) {
    auto reply = api.post_as<ActionReply>("/v1/actions", request);
    if (!reply) return finish(slurm::command_error("scancel", slurm::slurm_sentence(slurm::as_api_error(reply.error()))));
    for (const ActionResult& result : reply->results) {
      if (!result.error) continue;
      slurm::CommandError error = slurm::scancel_error(*result.error, {"", result.job});
      if (!command->quiet) print_err(error.text);
      code = std::max(code, error.exit_code);
    }
  }
  return code;
}

}  // namespace tutti::cli
