// tutti whatif submit|drain|quota|add-nodes.
#include <algorithm>
#include <fmt/format.h>

#include "base/hostlist.h"
#include "base/local_time.h"
#include "base/text.h"
#include "base/text_table.h"
#include "cli/api_client.h"
#include "cli/slurm_context.h"
#include "cli/tutti_commands.h"
#include "frontend/slurm/lowering.h"
#include "model/views.h"
#include "model/whatif.h"

namespace tutti::cli {

namespace {

std::string start_text(Instant at, Instant now, const TimeZone& zone) {
  if (!at.is_set()) return "not planned";
  if (at <= now) return "now";
  return format_time(at, zone);
}

void print_reply(const WhatIfReply& reply) {
  LocalZone zone;
  if (!reply.rows.empty()) {
    print_out(fmt::format("{:<10} {:<16} {:<10} {:<20} {:<20} {}\n", "JOB", "NAME", "USER", "BEFORE", "AFTER", "NODES"));
    for (const WhatIfRow& row : reply.rows) {
      std::string before = row.is_new ? "-" : start_text(row.before, reply.now, zone);
      std::string nodes = row.nodes.empty() ? "" : fold_hostlist(row.nodes);
      print_out(fmt::format("{:<10} {:<16} {:<10} {:<20} {:<20} {}\n", row.is_new ? "(new)" : row.job, row.name, row.user, before,
                            start_text(row.after, reply.now, zone), nodes));
      if (!row.after.is_set() && !row.text.empty()) print_out(fmt::format("           {}: {}\n", row.reason, row.text));
    }
  }
  print_out(fmt::format("{} other waiting jobs: no difference\n", reply.unchanged));
  for (const std::string& note : reply.notes) print_out(note + "\n");
}

Result<WhatIfRequest> with_scripts(const std::vector<std::string>& scripts) {
  WhatIfRequest request;
  LocalZone zone;
  slurm::ClientContext context = client_context(zone);
  for (const std::string& script : scripts) {
    std::vector<std::string> words = {script};
    auto lowered = slurm::lower_sbatch(words, context);
    if (!lowered) return invalid(lowered.error().text);
    lowered->submission.workload.name = lowered->submission.workload.name.empty() ? script : lowered->submission.workload.name;
    // Its text is of no account to a plan.
    lowered->submission.script.clear();
    lowered->submission.environment.clear();
    request.submissions.push_back(std::move(lowered->submission));
  }
  return request;
}

// "4:like=node01,partition=batch" or "4:cpus=128,gpus=h100:8,mem=1000000".
Result<WhatIfRequest> with_nodes(const std::string& text) {
  auto parts = split_once(text, ':');
  auto count = parse_integer<std::uint32_t>(parts ? parts->first : text);
  if (!count || *count == 0)
    return invalid(fmt::format("add-nodes {}: expected N:KEY=VALUE,... as in 4:like=node01 or 2:cpus=64,gpus=h100:8,mem=512000", text));
  WhatIfRequest request;
  request.add_nodes = *count;
  for (std::string_view piece : split(parts ? parts->second : std::string_view(), ',', EmptyPieces::kDrop)) {
    auto pair = split_once(piece, '=');
    if (!pair) return invalid(fmt::format("add-nodes: {}: expected KEY=VALUE", piece));
    auto [key, value] = *pair;
    auto number = parse_integer<std::uint32_t>(value);
    if (key == "like") {
      ApiClient api;
      auto view = api.get_as<StateView>("/v1/state?with=nodes,partitions");
      if (!view) return tl::unexpected<Error>(view.error());
      auto node = std::find_if(view->nodes.begin(), view->nodes.end(), [&](const NodeView& n) { return n.spec.name == value; });
      if (node == view->nodes.end()) return invalid(fmt::format("add-nodes: like={}: there is no such node", value));
      request.node = node->spec;
      request.node.name = "new";
      for (const PartitionSpec& p : view->partitions)
        if (std::find(p.nodes.begin(), p.nodes.end(), value) != p.nodes.end()) request.partitions.push_back(p.name);
    } else if (key == "cpus" && number) {
      request.node.cpus = *number;
    } else if (key == "mem" && number) {
      request.node.memory_mib = *number;
    } else if (key == "features") {
      for (std::string_view each : split(value, '+', EmptyPieces::kDrop)) request.node.features.emplace_back(each);
    } else if (key == "gpus") {
      auto typed = split_once(value, ':');
      auto gpus = parse_integer<std::uint32_t>(typed ? typed->second : value);
      if (!gpus || *gpus > 64) return invalid(fmt::format("add-nodes: gpus={}: expected [TYPE:]N", value));
      DeviceSpec device;
      if (typed) device.type = std::string(typed->first);
      request.node.devices.assign(*gpus, device);
    } else if (key == "partition") {
      request.partitions.assign(1, std::string(value));
    } else {
      return invalid(fmt::format("add-nodes: {}: expected like, cpus, gpus, mem (MiB), features or partition", piece));
    }
  }
  return request;
}

}  // namespace

int run_whatif(const WhatIfOptions& options) {
  Result<WhatIfRequest> request = WhatIfRequest{};
  if (!options.scripts.empty()) request = with_scripts(options.scripts);
  if (!options.add_nodes.empty()) request = with_nodes(options.add_nodes);
  if (!request) {
    print_err(fmt::format("tutti whatif: {}\n", request.error().message));
    return 1;
  }
  request->drain = options.drain;
  request->quotas = options.quotas;
  ApiClient api;
  auto reply = api.post_as<WhatIfReply>("/v1/whatif", *request);
  if (!reply) {
    print_err(fmt::format("tutti whatif: {}\n", reply.error().message));
    return 1;
  }
  if (options.json)
    print_out(to_json(*reply) + "\n");
  else
    print_reply(*reply);
  return 0;
}

}  // namespace tutti::cli
