// A batch script as sbatch reads it: what makes a text a script, and its #SBATCH lines. Rules,
// texts and exit codes are sbatch's (22.05); the limit of 4 MiB is Slurm's max_script_size.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/slurm/client_context.h"
#include "frontend/slurm/error_text.h"

namespace tutti::slurm {

inline constexpr std::size_t kMaxScriptBytes = std::size_t{4} << 20;

// Reads a script piece by piece and refuses it as soon as it is larger than a script may be, so
// that an endless or huge input costs no more than that.
class ScriptReader {
 public:
  // `shown` is the name used in texts.
  ScriptReader(ReadSome read, std::string shown)
      : read_(std::move(read)), shown_(std::move(shown)) {}
  Parsed<std::string> read();

 private:
  ReadSome read_;
  std::string shown_;
};

// Refuses what is no script: empty, only blanks, without "#!", with a NUL or with DOS line ends.
Parsed<void> check_script(std::string_view text);

// The script that --wrap makes.
std::string wrapped_script(std::string_view command);

struct ScriptDirective {
  std::vector<std::string> words;  // quotes and escapes resolved
  Span span;                       // of the first word
  std::string_view line;           // all behind "#SBATCH"
  bool starts_component = false;   // "#SBATCH hetjob"
};
struct ScriptDirectives {
  std::vector<ScriptDirective> list;
  std::string warnings;  // whole lines for stderr
};
// The #SBATCH lines up to the first command. The views point into `text`. Errors: an unmatched
// quote or a ":" at the start of a word, with the line.
Parsed<ScriptDirectives> script_directives(std::string_view text, std::string_view file);

}  // namespace tutti::slurm
