// Enough of the shell's grammar to see which commands a script runs and with which words: quotes,
// line continuations, comments, here-documents, pipes and lists. Nothing is executed or expanded;
// "$X" and "$(...)" stay in a word as they are written. A script that is no shell script gives
// commands that mean nothing, never an error. Work and memory are linear in the text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tutti::slurm {

struct ShellWord {
  std::string text;  // without quotes and escapes
  std::uint32_t line = 0, column = 0;
  bool expands = false;  // has $ or ` outside of single quotes
};

struct ShellCommand {
  std::vector<ShellWord> assignments;  // "NAME=value" before the command, or of `export`
  std::vector<ShellWord> words;        // the command and its arguments; empty for assignments alone
  bool in_background = false;          // ends with &
};

// The simple commands in the order written, those of $(...) left out. Shell keywords (if, then, do,
// !, {...) and `exec`, `time`, `nohup` in front of a command are dropped.
std::vector<ShellCommand> shell_commands(std::string_view text);

}  // namespace tutti::slurm
