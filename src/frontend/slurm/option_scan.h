// getopt_long(3) as the Slurm commands use it: short options with attached or separate values and
// in clusters, long options by unambiguous prefix, "=" or blank before a value, "--". A pure
// function of the words; what an option means is its caller's. Texts of errors are glibc's.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/slurm/error_text.h"

namespace tutti::slurm {

enum class Argument : std::uint8_t {
  kNone,
  kRequired,
  kOptional,  // only attached: -K1, --wait=3
  kMaybeNext  // attached, or the next word unless it begins with '-' (squeue -j)
};

// One name of an option. Several may share an id (aliases, --hold and -H); a prefix that fits only
// names of one id is not ambiguous.
struct OptionName {
  std::string_view name;  // "" = only the letter
  char letter = 0;        // 0 = only the name
  Argument argument = Argument::kNone;
  int id = 0;
};

struct FoundOption {
  int id = 0;
  std::string name;  // the full name, or the letter if it has no name
  std::string value;
  bool has_value = false;
  std::size_t word = 0;  // where in argv it began
};

// What the words that are no options mean.
enum class Operands : std::uint8_t {
  kStop,     // the first one ends the options (sbatch, srun, salloc: a command follows)
  kPermute,  // options may follow them (squeue, scancel...)
};

struct ScannedWords {
  std::vector<FoundOption> options;
  std::vector<std::string> operands;
  bool ended_by_dashes = false;
};

struct ScanSettings {
  std::string_view program;  // for the texts
  Operands operands = Operands::kPermute;
  int exit_code = 1;  // of a malformed option: 255 for sbatch, srun and salloc
  bool suggest_help = true;
};

// `words` without the program's name. Errors: the text of glibc ("squeue: unrecognized option
// '--foo'") and, with suggest_help, the line that Slurm adds.
Parsed<ScannedWords> scan_options(std::span<const OptionName> table,
                                  std::span<const std::string> words, const ScanSettings& settings);

}  // namespace tutti::slurm
