// tutti top: who holds which GPU, one line per node.
#include <csignal>
#include <ctime>
#include <fmt/format.h>
#include <map>
#include <unistd.h>

#include "cli/api_client.h"
#include "cli/slurm_context.h"
#include "cli/tutti_commands.h"
#include "model/views.h"

namespace tutti::cli {

namespace {

struct Holder {
  std::uint32_t job = 0;
  std::string user, name;
};

// Cut to so many columns, one for each character; no character is cut in two. Filled with blanks.
std::string column(std::string_view text, std::size_t width) {
  std::size_t end = 0, characters = 0;
  while (end < text.size() && characters < width) {
    ++end;
    while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) ++end;
    ++characters;
  }
  return std::string(text.substr(0, end)) + std::string(width - characters, ' ');
}

std::string render(const StateView& view) {
  std::map<std::string, std::map<std::uint16_t, Holder>> holders;
  std::string jobs;
  for (const WorkloadView& w : view.workloads)
    for (const GangView& g : w.gangs) {
      if (g.gang.state == GangState::kPending || g.gang.state == GangState::kDone) continue;
      std::size_t gpus = 0;
      for (std::size_t i = 0; i < g.gang.slots.size(); ++i) {
        gpus += g.gang.slots[i].gpus.size();
        for (std::uint16_t gpu : g.gang.slots[i].gpus)
          holders[g.nodes[i]][gpu] = {g.gang.id.value(), w.workload.user, w.workload.name};
      }
      std::int64_t seconds = g.gang.started.is_set() ? (view.now - g.gang.started).whole_seconds() : 0;
      jobs += fmt::format("{:>8} {} {} {:<10} {:>5} GPUs {:>8} s\n", g.gang.id.value(), column(w.workload.user, 10), column(w.workload.name, 20),
                          enum_name(g.gang.state), gpus, seconds);
    }
  std::string text = fmt::format("cluster {}\n{:<16} {:<10} GPUs (a letter per job, . free)\n", view.cluster, "NODE", "STATE");
  std::map<std::uint32_t, char> letters;
  for (const NodeView& node : view.nodes) {
    if (node.spec.kind == NodeKind::kPlanned && node.gpus_allocated.empty() && node.cpus_allocated == 0) continue;
    std::string gpus;
    for (std::uint16_t i = 0; i < node.spec.devices.size(); ++i) {
      auto found = holders[node.spec.name].find(i);
      if (found == holders[node.spec.name].end()) {
        gpus += '.';
        continue;
      }
      auto [it, is_new] = letters.try_emplace(found->second.job, static_cast<char>('A' + letters.size() % 26));
      gpus += it->second;
    }
    std::string state = node.state.drained ? "drained" : node.state.down ? "down" : std::string(enum_name(node.state.status));
    text += fmt::format("{} {:<10} {}\n", column(node.spec.name, 16), state, gpus);
  }
  for (const auto& [job, letter] : letters) text += fmt::format("  {} = job {}\n", letter, job);
  return text + (jobs.empty() ? "nothing runs\n" : jobs);
}

}  // namespace

int run_top(const TopOptions& options) {
  ApiClient api;
  bool live = isatty(1) && !options.once && !options.json;
  while (true) {
    auto text = api.get("/v1/state?states=running&with=workloads,nodes");
    if (!text) {
      print_err(fmt::format("tutti top: {}\n", text.error().message));
      return 1;
    }
    if (options.json) {
      print_out(*text + "\n");
      return 0;
    }
    auto view = from_json<StateView>(std::string_view(*text));
    if (!view) {
      print_err(fmt::format("tutti top: {}\n", view.error().message));
      return 1;
    }
    print_out((live ? "\x1b[H\x1b[2J" : "") + render(*view));
    if (!live) return 0;
    timespec pause{1, 0};
    nanosleep(&pause, nullptr);
  }
}

}  // namespace tutti::cli
