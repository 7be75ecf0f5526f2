// `tutti agent`: from the state directory to a running agent.
#include <fmt/format.h>
#include <unistd.h>

#include "agent/namespaces.h"
#include "cli/agent_command.h"
#include "cli/slurm_context.h"
#include "cli/state_dir.h"
#include "cli/tutti_commands.h"
#include "cli/version.h"
#include "wire/token.h"

namespace tutti::cli {

namespace {
int complain(const Error& error) {
  print_err(fmt::format("tutti agent: {}\n", to_string(error)));
  return 1;
}
}  // namespace

int run_agent_command(const std::string& dir, const std::string& name) {
  auto file = read_cluster_file(dir);
  if (!file) return complain(file.error());
  const NodeSpec* node = nullptr;
  for (const NodeSpec& known : file->spec.nodes)
    if (known.name == name) node = &known;
  if (!node) return complain({ErrorCode::kNotFound, "", fmt::format("node {} is not in {}/cluster.json", name, dir), {}});
  auto key = wire::read_key_file(dir + "/agent.key");
  if (!key) return complain(key.error());
  (void)set_pid(dir, "agent." + name, getpid());
  AgentSetup setup;
  setup.state_dir = dir;
  setup.node = name;
  setup.cluster_id = file->cluster_id;
  setup.version = std::string(kVersion);
  setup.controller = wire::Endpoint::at_path(dir + "/api.sock");
  setup.key = *key;
  setup.devices = node->devices;
  setup.is_virtual = node->kind == NodeKind::kVirtual;
  setup.log_path = fmt::format("{}/log/agent.{}.log", dir, name);
  if (setup.is_virtual) {
    auto holder = read_holder(dir, name);
    if (!holder) return complain({ErrorCode::kNotFound, "", fmt::format("the namespaces of {} are not there: `tutti up` makes them", name), {}});
    if (Status entered = agent::enter_node(holder->process); !entered) return complain(entered.error());
    setup.controller = {"", std::string(agent::kSwitchAddress), kAgentPort};
  }
  Status done = run_agent(setup);
  (void)clear_pid(dir, "agent." + name, getpid());
  return done ? 0 : complain(done.error());
}

}  // namespace tutti::cli
