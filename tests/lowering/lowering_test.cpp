// Runs tests/lowering/*.txt. A case is
//
//     env NAME=VALUE           variables of the caller (none otherwise)
//     file NAME                a file of the caller's directory, or /absolute; "stdin" likewise
//     | its lines
//     sbatch WORDS...          the command; also srun, salloc
//     ----
//     what comes out, up to an empty line
//
// `lowering_test --rewrite` (or TUTTI_REWRITE=1) writes what came out into the files; read the
// difference as code.
#include "frontend/slurm/lowering.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "base/text.h"
#include "frontend/canonical.h"
#include "frontend/slurm/lint_shell.h"

namespace tutti::slurm {
namespace {

struct Case {
  std::string head;  // all lines up to ----
  std::string command;
  std::vector<std::string> environment;
  std::map<std::string, std::string> files;
  std::string expected;
  std::size_t line = 0;
};

bool rewriting() {
  const char* variable = std::getenv("TUTTI_REWRITE");
  for (const std::string& word : testing::internal::GetArgvs())
    if (word == "--rewrite") return true;
  return variable && *variable;
}

std::vector<Case> read_cases(const std::filesystem::path& path) {
  std::ifstream in(path);
  std::vector<Case> cases(1);
  bool in_result = false;
  std::string line, file;
  for (std::size_t number = 1; std::getline(in, line); ++number) {
    Case& now = cases.back();
    if (in_result) {
      if (line.empty()) {
        cases.emplace_back();
        in_result = false;
      } else {
        now.expected += line + "\n";
      }
      continue;
    }
    if (line == "----") {
      in_result = true;
      continue;
    }
    now.head += line + "\n";
    if (line.starts_with("env ")) {
      now.environment.push_back(line.substr(4));
    } else if (line.starts_with("file ")) {
      file = line.substr(5);
      now.files[file];
    } else if (line.starts_with("| ") || line == "|") {
      now.files[file] += line.substr(std::min<std::size_t>(2, line.size())) + "\n";
    } else if (!line.empty() && !line.starts_with("#")) {
      now.command = line;
      now.line = number;
    }
  }
  if (cases.back().command.empty()) cases.pop_back();
  return cases;
}

ClientContext context_for(const Case& one) {
  ClientContext context;
  std::vector<std::string> environment{"HOME=/home/alice", "PATH=/usr/bin:/bin", "USER=alice"};
  environment.insert(environment.end(), one.environment.begin(), one.environment.end());
  context.environment = Environment(environment);
  context.work_dir = "/home/alice";
  context.user = "alice";
  context.group = "users";
  context.host = "head01";
  context.uid = 2001;
  context.gid = 100;
  context.pid = 4242;
  context.now = Instant::from_ms(1'796'068'800'000);  // 2026-12-01 00:00 UTC
  context.open_file = [files = one.files](const std::string& path) -> Result<ReadSome> {
    std::string name = path.empty() ? "stdin" : path;
    if (name.starts_with("/home/alice/")) name = name.substr(12);
    auto found = files.find(name);
    if (found == files.end()) return fail(ErrorCode::kNotFound, path);
    return ReadSome([text = found->second, at = std::size_t{0}](std::span<char> into) mutable {
      std::size_t n = text.copy(into.data(), std::min(into.size(), text.size() - at), at);
      at += n;
      return Result<std::size_t>(n);
    });
  };
  return context;
}

std::string marked(std::string_view text) {
  std::string out;
  for (std::string_view line : split(text, '\n', EmptyPieces::kDrop))
    out += "2> " + std::string(line) + "\n";
  return out;
}

std::string error_text(const CommandError& error) {
  std::string out = marked(error.text);
  if (error.span.line > 0)
    out += fmt::format("at {}:{}:{}\n", error.span.file, error.span.line, error.span.column);
  return out + fmt::format("[exit {}]\n", error.exit_code);
}

std::string flag(std::string_view name, bool set) { return set ? fmt::format("{}\n", name) : ""; }

std::string run_sbatch(std::span<const std::string> words, const ClientContext& context) {
  auto lowered = lower_sbatch(words, context);
  if (!lowered) return error_text(lowered.error());
  if (lowered->show != Show::kNothing)
    return fmt::format("show {}\n", static_cast<int>(lowered->show));
  std::string out = marked(lowered->warnings) + canonical_text(lowered->submission.workload);
  Environment plain = context.environment;
  if (lowered->submission.environment != plain.joined()) {
    std::string shown;
    for (std::string_view pair : split(lowered->submission.environment, '\0'))
      shown += " " + std::string(pair);
    out += "environment:" + shown + "\n";
  }
  return out + flag("client: parsable", lowered->parsable) + flag("client: wait", lowered->wait) +
         flag("client: quiet", lowered->quiet) + flag("client: test only", lowered->test_only) +
         flag(fmt::format("client: verbose {}", lowered->verbose), lowered->verbose > 0);
}

std::string run_srun(std::span<const std::string> words, const ClientContext& context) {
  auto lowered = lower_srun(words, context);
  if (!lowered) return error_text(lowered.error());
  if (lowered->show != Show::kNothing)
    return fmt::format("show {}\n", static_cast<int>(lowered->show));
  std::string out = marked(lowered->warnings);
  if (lowered->allocation) out += canonical_text(lowered->allocation->workload);
  for (const StepRequest& step : lowered->steps) out += canonical_text(step);
  if (lowered->steps[0].order.environment != context.environment.pairs())
    out += "environment: " + join(lowered->steps[0].order.environment, " ") + "\n";
  if (lowered->wait_s) out += fmt::format("client: wait {} s\n", *lowered->wait_s);
  if (lowered->immediate_s) out += fmt::format("client: immediate {} s\n", *lowered->immediate_s);
  if (!lowered->het_group.empty()) out += "client: het group " + lowered->het_group + "\n";
  return out + flag("client: label", lowered->label) +
         flag("client: unbuffered", lowered->unbuffered) + flag("client: pty", lowered->pty) +
         flag("client: quiet", lowered->quiet) + flag("client: test only", lowered->test_only) +
         flag("client: disable status", lowered->disable_status) +
         flag("client: quit on interrupt", lowered->quit_on_interrupt) +
         flag("client: kill on bad exit", lowered->kill_on_bad_exit);
}

std::string run_salloc(std::span<const std::string> words, const ClientContext& context) {
  auto lowered = lower_salloc(words, context);
  if (!lowered) return error_text(lowered.error());
  if (lowered->show != Show::kNothing)
    return fmt::format("show {}\n", static_cast<int>(lowered->show));
  std::string out = marked(lowered->warnings) + canonical_text(lowered->submission.workload);
  if (!lowered->command.empty()) out += "run: " + join(lowered->command, " ") + "\n";
  if (lowered->immediate_s) out += fmt::format("client: immediate {} s\n", *lowered->immediate_s);
  if (lowered->kill_command)
    out += fmt::format("client: kill command {}\n", *lowered->kill_command);
  return out + flag("client: no shell", lowered->no_shell) + flag("client: bell", lowered->bell) +
         flag("client: quiet", lowered->quiet);
}

std::string run_case(const Case& one) {
  ClientContext context = context_for(one);
  std::vector<std::string> words;
  std::vector<ShellCommand> commands = shell_commands(one.command);
  if (commands.empty()) return "no command\n";
  for (const ShellWord& word : commands.front().words) words.push_back(word.text);
  std::string command = words.front();
  words.erase(words.begin());
  if (command == "sbatch") return run_sbatch(words, context);
  if (command == "srun") return run_srun(words, context);
  if (command == "salloc") return run_salloc(words, context);
  return "unknown command " + command + "\n";
}

std::vector<std::filesystem::path> case_files() {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(
           std::filesystem::path(TUTTI_SOURCE_DIR) / "tests" / "lowering"))
    if (entry.path().extension() == ".txt") paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  return paths;
}

TEST(Lowering, CasesComeOutAsWritten) {
  std::size_t cases = 0;
  for (const auto& path : case_files()) {
    std::string rewritten;
    for (const Case& one : read_cases(path)) {
      ++cases;
      std::string got = run_case(one);
      EXPECT_TRUE(rewriting() || got == one.expected) << path.filename().string() << ":" << one.line
                                                      << ": " << one.command << "\n--- expected\n"
                                                      << one.expected << "--- got\n"
                                                      << got;
      rewritten += one.head + "----\n" + got + "\n";
    }
    if (rewriting()) std::ofstream(path) << rewritten;
  }
  EXPECT_GE(cases, 40U);
}

// Every option of the table occurs, by its full name, in some case of its command.
TEST(Lowering, EveryOptionIsInSomeCase) {
  std::map<std::string, std::set<std::string>> used;
  for (const auto& path : case_files())
    for (const Case& one : read_cases(path)) {
      std::string text = one.command;
      for (const auto& [name, content] : one.files) text += "\n" + content;
      std::string command = one.command.substr(0, one.command.find(' '));
      for (std::size_t at = 0; (at = text.find("--", at)) != text.npos; at += 2) {
        std::size_t end = text.find_first_of("= \n\"'", at);
        used[command].insert(text.substr(at + 2, end == text.npos ? end : end - at - 2));
      }
    }
  for (Command command : {Command::kSbatch, Command::kSrun, Command::kSalloc})
    for (const OptionFacts& option : options_of(command))
      EXPECT_TRUE(used[std::string(program_name(command))].contains(std::string(option.name)))
          << program_name(command) << " --" << option.name << " is in no case";
}

}  // namespace
}  // namespace tutti::slurm
