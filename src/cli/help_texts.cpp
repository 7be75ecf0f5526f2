#include "cli/help_texts.h"

#include <fmt/format.h>
#include <unistd.h>

#include "frontend/slurm/command_options.h"
#include "frontend/slurm/options.h"

namespace tutti::cli {

std::string find_program(const std::string& name, const std::string& path) {
  if (name.find('/') != std::string::npos) return name;
  std::size_t at = 0;
  while (at <= path.size()) {
    std::size_t end = path.find(':', at);
    if (end == std::string::npos) end = path.size();
    std::string candidate = path.substr(at, end - at) + "/" + name;
    if (access(candidate.c_str(), X_OK) == 0) return candidate;
    at = end + 1;
  }
  return name;
}

namespace {

struct Summary {
  std::string_view program, usage, what;
};
constexpr Summary kSummaries[] = {
    {"sbatch", "sbatch [OPTIONS...] [SCRIPT [ARGUMENTS...]]", "Submit a batch script"},
    {"srun", "srun [OPTIONS...] COMMAND [ARGUMENTS...]", "Run ranks, in an allocation of their own or as a step of a job"},
    {"salloc", "salloc [OPTIONS...] [COMMAND [ARGUMENTS...]]", "Obtain an allocation and run a command while it lasts"},
    {"scancel", "scancel [OPTIONS...] [JOB_ID[_ARRAY_ID][.STEP_ID]...]", "Cancel or signal jobs and steps"},
    {"squeue", "squeue [OPTIONS...]", "List jobs"},
    {"sinfo", "sinfo [OPTIONS...]", "List nodes and partitions"},
    {"sacct", "sacct [OPTIONS...]", "List jobs, also finished ones, with what they used"},
    {"scontrol", "scontrol [OPTIONS...] COMMAND", "Look at and change jobs, nodes and partitions"},
    {"sprio", "sprio [OPTIONS...]", "Show the parts of the priority of waiting jobs"},
    {"sacctmgr", "sacctmgr [OPTIONS...] add|modify|delete|show ENTITY [NAMES] [where ...] [set KEY=VALUE...]", "Show and change accounts, users, QOSs and their limits"},
    {"sshare", "sshare [OPTIONS...]", "Show the shares and the usage of accounts and users"},
    {"sdiag", "sdiag [OPTIONS...]", "Show counters of the controller"},
};

const Summary& summary_of(std::string_view program) {
  for (const Summary& s : kSummaries)
    if (s.program == program) return s;
  return kSummaries[0];
}

std::string option_line(std::string_view name, char letter, slurm::Argument argument) {
  if (name.empty()) return fmt::format("  -{}\n", letter);
  std::string line = letter ? fmt::format("  -{}, --{}", letter, name) : fmt::format("      --{}", name);
  if (argument == slurm::Argument::kRequired) line += "=VALUE";
  if (argument == slurm::Argument::kOptional) line += "[=VALUE]";
  return line + "\n";
}

// Of the commands that ask and change.
std::string known_option_lines(std::string_view program) {
  std::string honoured, accepted;
  for (const auto& [option, has_effect] : slurm::known_options(program))
    (has_effect ? honoured : accepted) += option_line(option.name, option.letter, option.argument);
  std::string text;
  if (program == "scontrol") {
    text = fmt::format("\nCommands:\n  {}\n", fmt::join(slurm::scontrol_keywords(), " "));
  }
  text += fmt::format("\nOptions (man {} of Slurm 22.05 says what they mean):\n{}", program, honoured);
  if (!accepted.empty()) text += "\nAccepted without effect:\n" + accepted;
  return text;
}

std::string option_lines(slurm::Command command) {
  std::string honoured, accepted, refused;
  for (const slurm::OptionFacts& option : slurm::options_of(command)) {
    std::string line = option_line(option.name, option.letter, option.argument);
    switch (option.effect) {
      case slurm::Effect::kHonoured:
        honoured += line;
        break;
      case slurm::Effect::kRefused:
        refused += line;
        break;
      default:
        accepted += line;
    }
  }
  std::string text = "\nOptions (man sbatch, srun and salloc of Slurm 22.05 say what they mean):\n" + honoured;
  if (!accepted.empty()) text += "\nAccepted without effect; `tutti why JOB` and `tutti lint` say so:\n" + accepted;
  if (!refused.empty()) text += "\nRefused:\n" + refused;
  return text;
}

}  // namespace

std::string usage_text(std::string_view program) { return fmt::format("Usage: {}\n", summary_of(program).usage); }

std::string help_text(std::string_view program) {
  const Summary& summary = summary_of(program);
  std::string text = fmt::format("{}\n{}.\n", usage_text(program), summary.what);
  if (program == "sbatch") return text + option_lines(slurm::Command::kSbatch);
  if (program == "srun") return text + option_lines(slurm::Command::kSrun);
  if (program == "salloc") return text + option_lines(slurm::Command::kSalloc);
  return text + known_option_lines(program);
}

}  // namespace tutti::cli
