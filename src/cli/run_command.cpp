// tutti run: queue a command, wait for its place, run it here, stream its output.
#include <fmt/format.h>
#include <unistd.h>

#include "base/duration_text.h"
#include "base/local_time.h"
#include "cli/slurm_context.h"
#include "cli/step_client.h"
#include "cli/tutti_commands.h"
#include "frontend/slurm/lowering.h"

namespace tutti::cli {

int run_run(const RunOptions& options) {
  // The same words as for srun, so that both mean the same.
  std::vector<std::string> words{"--quiet"};
  auto add = [&](std::string name, const std::string& value) {
    if (!value.empty()) words.push_back("--" + name + "=" + value);
  };
  std::uint32_t tasks = options.tasks ? options.tasks : options.nodes;
  add("nodes", std::to_string(options.nodes));
  add("ntasks", std::to_string(tasks));
  add("gpus", options.gpus);
  add("cpus-per-task", options.cpus ? std::to_string(options.cpus) : "");
  add("mem", options.memory);
  add("time", options.time);
  add("partition", options.partition);
  add("job-name", options.name);
  bool terminal = isatty(0) && isatty(1) && tasks == 1;
  if (terminal) words.push_back("--pty");
  words.push_back("--");
  words.insert(words.end(), options.command.begin(), options.command.end());
  LocalZone zone;
  slurm::ClientContext context = client_context(zone);
  context.environment.remove("SLURM_JOB_ID");  // a job of its own, also inside another
  if (!options.queue.empty()) context.environment.set("TUTTI_QUEUE", options.queue);
  auto lowered = slurm::lower_srun(words, context);
  if (!lowered) return finish(lowered.error());
  ApiClient api;
  SubmitRequest request;
  request.submissions.push_back(std::move(*lowered->allocation));
  auto reply = api.submit(request);
  if (!reply || reply->results.empty() || reply->results[0].error) {
    std::string what = reply && !reply->results.empty() ? reply->results[0].error->message : reply ? "no answer" : reply.error().message;
    print_err(fmt::format("tutti run: {}\n", what));
    return 1;
  }
  StepClientOptions client;
  client.program = "tutti run";
  client.owns_allocation = true;
  client.pty = terminal;
  client.label = tasks > 1;
  client.detach_keys = true;
  return StepClient(api, std::move(client)).run(reply->results[0].id.value(), std::move(lowered->steps));
}

}  // namespace tutti::cli
