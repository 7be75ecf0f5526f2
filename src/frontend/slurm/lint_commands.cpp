// The classics of distributed training: how many launchers a script starts, for which world, and
// where they are to meet.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "base/text.h"
#include "frontend/slurm/lint_parts.h"
#include "frontend/slurm/lowering.h"

namespace tutti::slurm {
namespace {

using Variables = std::map<std::string, std::string>;
constexpr int kMaxShellDepth = 3;

bool is_name_char(char c) {
  return is_digit(c) || c == '_' || (to_lower(c) >= 'a' && to_lower(c) <= 'z');
}

// Puts in the variables that are known; others stay as they are written.
std::string expand(std::string_view text, const Variables& variables) {
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    if (text[i] != '$' || i + 1 >= text.size()) {
      out += text[i++];
      continue;
    }
    bool braces = text[i + 1] == '{';
    std::size_t begin = i + (braces ? 2 : 1), end = begin;
    while (end < text.size() && is_name_char(text[end])) ++end;
    std::size_t stop = end;
    std::string_view otherwise;
    if (braces) {
      stop = std::min(text.find('}', end), text.size());
      std::string_view rest = text.substr(end, stop - end);
      if (rest.starts_with(":-") || rest.starts_with("-"))
        otherwise = rest.substr(rest.find('-') + 1);
      stop = std::min(stop + 1, text.size());
    }
    auto known = variables.find(std::string(text.substr(begin, end - begin)));
    if (end > begin && known != variables.end())
      out += known->second;
    else if (end > begin && !otherwise.empty())
      out += otherwise;
    else
      out += text.substr(i, stop - i);
    i = std::max(stop, i + 1);
  }
  return out;
}

std::string base_of(std::string_view path) {
  std::size_t slash = path.rfind('/');
  return std::string(slash == path.npos ? path : path.substr(slash + 1));
}

struct Launcher {
  enum class Kind : std::uint8_t { kTorch, kAccelerate, kDeepSpeed } kind = Kind::kTorch;
  std::size_t arguments = 0;  // its first argument
  std::string name;
};

// The first launcher among the words, behind whatever wraps it (env, a container runner...).
std::optional<Launcher> find_launcher(const std::vector<std::string>& words) {
  using Kind = Launcher::Kind;
  for (std::size_t i = 0; i < words.size(); ++i) {
    std::string name = base_of(words[i]);
    bool module = words[i] == "-m" && i > 0 && i + 1 < words.size();
    if (module &&
        (words[i + 1] == "torch.distributed.run" || words[i + 1] == "torch.distributed.launch"))
      return Launcher{Kind::kTorch, i + 2, words[i + 1]};
    if (module && words[i + 1].starts_with("accelerate"))
      return Launcher{Kind::kAccelerate, i + 2, "accelerate"};
    if (name == "torchrun") return Launcher{Kind::kTorch, i + 1, name};
    if (name == "accelerate" && i + 1 < words.size() && words[i + 1] == "launch")
      return Launcher{Kind::kAccelerate, i + 2, "accelerate launch"};
    if (name == "deepspeed") return Launcher{Kind::kDeepSpeed, i + 1, name};
  }
  return std::nullopt;
}

// The value of one of the launcher's options; '-' and '_' are the same to all of them.
std::optional<std::string> launcher_option(const std::vector<std::string>& words,
                                           const Launcher& launcher, std::string_view name) {
  for (std::size_t i = launcher.arguments; i < words.size(); ++i) {
    if (!words[i].starts_with("-")) {
      // The first word that is neither option nor value is the program; its options are its own.
      bool value = i > launcher.arguments && words[i - 1].starts_with("--") &&
                   words[i - 1].find('=') == std::string::npos;
      if (!value) return std::nullopt;
      continue;
    }
    auto pieces = split_once(words[i], '=');
    std::string key(pieces ? pieces->first : std::string_view(words[i]));
    std::ranges::replace(key, '_', '-');
    if (key != fmt::format("--{}", name)) continue;
    if (pieces) return std::string(pieces->second);
    return i + 1 < words.size() ? words[i + 1] : std::string();
  }
  return std::nullopt;
}

std::optional<std::uint32_t> as_number(const std::optional<std::string>& text) {
  return text ? parse_integer<std::uint32_t>(*text) : std::nullopt;
}

class CommandLint {
 public:
  explicit CommandLint(Lint& lint) : lint_(lint), role_(lint.workload.roles.front()) {
    nodes_ = role_.nodes_min;
    variables_ = {{"SLURM_NNODES", std::to_string(nodes_)},
                  {"SLURM_JOB_NUM_NODES", std::to_string(nodes_)},
                  {"SLURM_NTASKS", std::to_string(role_.tasks)},
                  {"SLURM_NPROCS", std::to_string(role_.tasks)},
                  {"SLURM_CPUS_PER_TASK", std::to_string(role_.cpus_per_task)}};
    if (role_.tasks_per_node > 0)
      variables_["SLURM_NTASKS_PER_NODE"] = std::to_string(role_.tasks_per_node);
    if (role_.gpus_per_node > 0) {
      variables_["SLURM_GPUS_PER_NODE"] = std::to_string(role_.gpus_per_node);
      variables_["SLURM_GPUS_ON_NODE"] = std::to_string(role_.gpus_per_node);
    }
  }
  void run(std::string_view text) { run_commands(shell_commands(text), std::nullopt, 0); }

 private:
  // How the commands at hand are started: once, or by srun's tasks.
  struct Started {
    std::uint32_t tasks = 1, nodes = 1;
    Span span;
    bool certain = true;
  };
  void run_commands(const std::vector<ShellCommand>& commands, const std::optional<Started>& by,
                    int depth);
  void run_command(const ShellCommand& command, const std::optional<Started>& by, int depth);
  void run_words(const std::vector<std::string>& words, const std::optional<Started>& by,
                 const Span& span, int depth);
  std::optional<Started> started_by_srun(const std::vector<std::string>& words, const Span& span,
                                         std::vector<std::string>& command);
  void assign(const ShellWord& word, bool in_step);
  void check_launcher(const std::vector<std::string>& words, const Launcher& launcher,
                      const std::optional<Started>& by, const Span& span);
  void check_world(const std::string& name, std::uint32_t world_nodes,
                   std::optional<std::uint32_t> ranks, const std::optional<Started>& by,
                   const Span& span);
  void check_meeting(const std::vector<std::string>& words, const Launcher& launcher,
                     const Span& span);
  void check_port(std::string_view port, const Span& span);
  void check_address(std::string_view address, const Span& span, bool in_step);
  bool holds_whole_nodes() const;
  Span span_of(const ShellWord& word) const { return {lint_.request.file, word.line, word.column}; }

  Lint& lint_;
  const RoleAsk& role_;
  std::uint32_t nodes_ = 1;
  Variables variables_;
  std::set<std::string> told_;
};

void CommandLint::run_commands(const std::vector<ShellCommand>& commands,
                               const std::optional<Started>& by, int depth) {
  for (const ShellCommand& command : commands) run_command(command, by, depth);
}

void CommandLint::run_command(const ShellCommand& command, const std::optional<Started>& by,
                              int depth) {
  for (const ShellWord& word : command.assignments) assign(word, by.has_value());
  if (command.words.empty()) return;
  std::vector<std::string> words;
  for (const ShellWord& word : command.words)
    words.push_back(word.expands ? expand(word.text, variables_) : word.text);
  // Inside "bash -c" lines are those of the text; only the outer place is known.
  Span span = by ? by->span : span_of(command.words.front());
  run_words(words, by, span, depth);
}

void CommandLint::run_words(const std::vector<std::string>& words, const std::optional<Started>& by,
                            const Span& span, int depth) {
  if (depth > kMaxShellDepth) return;
  std::string name = base_of(words.front());
  if (name == "srun" || name == "mpirun") {
    if (name == "mpirun") return;
    std::vector<std::string> command;
    auto started = started_by_srun(words, span, command);
    if (started && !command.empty()) run_words(command, started, span, depth + 1);
    return;
  }
  if (name == "ssh" || name == "pdsh" || name == "clush" || name == "echo") return;
  if ((name == "bash" || name == "sh" || name == "env") && words.size() > 2) {
    auto inner = std::ranges::find_if(words, [](const std::string& word) {
      return word == "-c" || word == "-lc" || word == "-ec" || word == "-xc";
    });
    if (inner != words.end() && inner + 1 != words.end()) {
      run_commands(shell_commands(*(inner + 1)), by, depth + 1);
      return;
    }
  }
  if (auto launcher = find_launcher(words)) check_launcher(words, *launcher, by, span);
}

std::optional<CommandLint::Started> CommandLint::started_by_srun(
    const std::vector<std::string>& words, const Span& span, std::vector<std::string>& command) {
  ClientContext context;
  context.work_dir = "/";
  context.environment.set("SLURM_JOB_ID", "1");
  for (const auto& [name, value] : variables_)
    if (name == "SLURM_NTASKS" || name == "SLURM_NTASKS_PER_NODE" || name == "SLURM_JOB_NUM_NODES")
      context.environment.set(name, value);
  std::vector<std::string> arguments(words.begin() + 1, words.end());
  bool unknown = std::ranges::any_of(
      arguments, [](const std::string& word) { return word.find('$') != word.npos; });
  auto lowered = lower_srun(arguments, context);
  if (!lowered) {
    // A value that only the shell knows is not ours to judge.
    if (!unknown) {
      std::string_view text = split(lowered.error().text, '\n').front();
      lint_.add(Severity::kError, "option-invalid", span, std::string(text));
    }
    return std::nullopt;
  }
  const StepRequest& step = lowered->steps.front();
  command = step.order.argv;
  Started started;
  started.span = span;
  started.nodes = step.nodes_min > 0 ? step.nodes_min : nodes_;
  started.tasks = step.tasks > 0 ? step.tasks : started.nodes * std::max(step.tasks_per_node, 1U);
  // "srun $OPTIONS torchrun": what $OPTIONS says is not known.
  started.certain = command.empty() || !command.front().starts_with("$");
  return started;
}

bool CommandLint::holds_whole_nodes() const {
  if (role_.exclusive) return true;
  constexpr std::uint32_t kUsualGpusPerNode = 8;
  std::uint32_t most = kUsualGpusPerNode;
  if (lint_.request.cluster) {
    most = 0;
    for (const NodeSpec& node : lint_.request.cluster->nodes) {
      auto gpus =
          static_cast<std::uint32_t>(std::ranges::count(node.devices, "gpu", &DeviceSpec::kind));
      most = std::max(most, gpus);
    }
  }
  return most > 0 && role_.gpus_per_node >= most;
}

void CommandLint::check_port(std::string_view port, const Span& span) {
  auto number = parse_integer<std::uint32_t>(port);
  if (!number || *number == 0 || holds_whole_nodes()) return;
  if (!told_.insert(fmt::format("port {}", *number)).second) return;
  lint_.add(Severity::kWarning, "fixed-port", span,
            fmt::format("port {} is the same for every job: two of them on one node collide. "
                        "Derive it from the job: $((20000 + SLURM_JOB_ID % 20000))",
                        *number));
}

void CommandLint::check_address(std::string_view address, const Span& span, bool in_step) {
  if (nodes_ < 2) return;
  bool loopback = address == "localhost" || address.starts_with("127.") || address == "::1" ||
                  address == "0.0.0.0";
  // On every node its own name: each rank waits for itself.
  bool own_name =
      in_step && (address.starts_with("$(hostname") || address.starts_with("`hostname"));
  if (!loopback && !own_name) return;
  if (!told_.insert(fmt::format("address {}", address)).second) return;
  lint_.add(Severity::kError, "address-not-reachable", span,
            fmt::format("the job has {} nodes, and {} means another machine on each of them: use "
                        "$(scontrol show hostnames | head -n 1)",
                        nodes_, address));
}

void CommandLint::assign(const ShellWord& word, bool in_step) {
  auto parts = split_once(word.text, '=');
  if (!parts) return;
  std::string value = word.expands ? expand(parts->second, variables_) : std::string(parts->second);
  if (parts->first == "MASTER_PORT") check_port(value, span_of(word));
  if (parts->first == "MASTER_ADDR") check_address(value, span_of(word), in_step);
  // Only plain values are followed further.
  if (value.find('$') == value.npos && value.find('`') == value.npos)
    variables_[std::string(parts->first)] = value;
  else
    variables_.erase(std::string(parts->first));
}

void CommandLint::check_meeting(const std::vector<std::string>& words, const Launcher& launcher,
                                const Span& span) {
  for (std::string_view option : {"rdzv-endpoint", "main-process-ip", "master-addr"}) {
    auto value = launcher_option(words, launcher, option);
    if (!value || value->empty()) continue;
    std::size_t colon = option == "rdzv-endpoint" ? value->rfind(':') : std::string::npos;
    check_address(value->substr(0, colon), span, false);
    if (colon != std::string::npos) check_port(value->substr(colon + 1), span);
  }
  for (std::string_view option : {"master-port", "main-process-port"})
    if (auto value = launcher_option(words, launcher, option)) check_port(*value, span);
}

void CommandLint::check_world(const std::string& name, std::uint32_t world_nodes,
                              std::optional<std::uint32_t> ranks, const std::optional<Started>& by,
                              const Span& span) {
  std::uint32_t launchers = by ? by->tasks : 1;
  std::string world = fmt::format("{} node{}", world_nodes, world_nodes == 1 ? "" : "s");
  if (ranks) {
    std::uint64_t total = std::uint64_t{world_nodes} * *ranks;
    world += fmt::format(" x {} = {} ranks", *ranks, total);
  }
  if (!by) {
    if (world_nodes > 1)
      lint_.add(Severity::kError, "launcher-on-one-node", span,
                fmt::format("{} for a world of {} is started on the first node only: the others "
                            "are never joined; put srun --ntasks-per-node=1 before it",
                            name, world));
    return;
  }
  if (launchers == world_nodes) return;
  if (launchers < world_nodes)
    lint_.add(
        Severity::kError, "launcher-missing", span,
        fmt::format("starts {} launcher{}, each for a world of {}: it waits for launchers that "
                    "are never started",
                    launchers, launchers == 1 ? "" : "s", world));
  else if (world_nodes == 1 && launchers == by->nodes)
    lint_.add(Severity::kWarning, "worlds-apart", span,
              fmt::format("starts {} launchers, each for a world of its own ({}): they do not know "
                          "of each other; say --nnodes={} and where to meet",
                          launchers, world, launchers));
  else
    lint_.add(Severity::kError, "launcher-per-task", span,
              fmt::format("starts {} launchers, each for a world of {}: the job will fail; use "
                          "--ntasks-per-node=1 on srun or the script",
                          launchers, world));
}

void CommandLint::check_launcher(const std::vector<std::string>& words, const Launcher& launcher,
                                 const std::optional<Started>& by, const Span& span) {
  using Kind = Launcher::Kind;
  check_meeting(words, launcher, span);
  auto option = [&](std::string_view name) { return launcher_option(words, launcher, name); };
  std::optional<std::string> nodes_text, ranks_text;
  if (launcher.kind == Kind::kTorch) {
    nodes_text = option("nnodes");
    ranks_text = option("nproc-per-node");
  } else if (launcher.kind == Kind::kAccelerate) {
    nodes_text = option("num-machines");
    ranks_text = std::nullopt;
  } else {
    // Without srun deepspeed goes to the other nodes by itself (ssh).
    if (!by) return;
    nodes_text = std::to_string(by->nodes);
    ranks_text = option("num-gpus");
  }
  std::optional<std::uint32_t> ranks = as_number(ranks_text);
  if (ranks_text && (*ranks_text == "gpu" || *ranks_text == "auto") && role_.gpus_per_node > 0)
    ranks = role_.gpus_per_node;
  if (ranks && role_.gpus_per_node > 0 && *ranks > role_.gpus_per_node)
    lint_.add(Severity::kWarning, "more-ranks-than-gpus", span,
              fmt::format("starts {} ranks on a node, the job holds {} GPUs there", *ranks,
                          role_.gpus_per_node));
  if (by && !by->certain) return;
  // An elastic world, "1:4", is content with what comes.
  std::uint32_t world_nodes = 1;
  if (nodes_text) {
    auto number = as_number(nodes_text);
    if (!number) return;
    world_nodes = *number;
  }
  check_world(launcher.name, world_nodes, ranks, by, span);
}

}  // namespace

void lint_commands(Lint& lint) {
  if (lint.workload.roles.empty()) return;
  CommandLint(lint).run(lint.request.text);
}

}  // namespace tutti::slurm
