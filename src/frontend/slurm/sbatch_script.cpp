#include "frontend/slurm/sbatch_script.h"

#include <fmt/format.h>

#include "base/text.h"

namespace tutti::slurm {
namespace {

constexpr std::string_view kMagic = "#SBATCH";
constexpr std::string_view kMistakenMagic = "#SLURM";

bool is_blank(std::string_view text) { return trim(text).empty(); }

// Splits the rest of a #SBATCH line as Slurm's get_argument() does: quotes, backslashes, and an
// unquoted '#' that ends the line.
Parsed<void> split_words(ScriptDirective& out, std::string_view file) {
  std::string_view line = out.line;
  auto fatal = [&](std::string what) {
    return tl::unexpected(CommandError{1,
                                       fmt::format("sbatch: fatal: {}: line {}: {} in [{}]\n", file,
                                                   out.span.line, what, trim(line)),
                                       out.span});
  };
  std::size_t i = 0;
  while (true) {
    while (i < line.size() && is_space(line[i])) ++i;
    if (i >= line.size() || line[i] == '#') return {};
    if (out.words.empty()) out.span.column = static_cast<std::uint32_t>(kMagic.size() + i + 1);
    if (line[i] == ':') return fatal("Unexpected `:`");
    std::string word;
    char quote = 0;
    for (; i < line.size() && (quote || !is_space(line[i])); ++i) {
      char c = line[i];
      if (c == '\\') {
        if (i + 1 < line.size()) word += line[++i];
      } else if (quote && c == quote) {
        quote = 0;
      } else if (!quote && (c == '"' || c == '\'')) {
        quote = c;
      } else if (!quote && c == '#') {
        break;
      } else {
        word += c;
      }
    }
    if (quote) return fatal(fmt::format("Unmatched `{}`", quote));
    out.words.push_back(std::move(word));
  }
}

}  // namespace

Parsed<std::string> ScriptReader::read() {
  std::string text;
  char buffer[16384];
  while (true) {
    auto got = read_(std::span(buffer, std::min(sizeof buffer, kMaxScriptBytes + 1 - text.size())));
    if (!got)
      return tl::unexpected(command_error(
          "sbatch", fmt::format("Unable to read {}: {}", shown_, got.error().message)));
    if (*got == 0) return text;
    text.append(buffer, *got);
    if (text.size() > kMaxScriptBytes)
      return tl::unexpected(command_error(
          "sbatch", fmt::format("{} is larger than a batch script may be (4 MiB)", shown_)));
  }
}

Parsed<void> check_script(std::string_view text) {
  auto refuse = [](std::initializer_list<std::string_view> lines) {
    CommandError error{1, "", {}};
    for (std::string_view line : lines) error.text += fmt::format("sbatch: error: {}\n", line);
    return tl::unexpected(std::move(error));
  };
  if (text.empty()) return refuse({"Batch script is empty!"});
  if (is_blank(text)) return refuse({"Batch script contains only whitespace!"});
  if (!text.starts_with("#!"))
    return refuse({"This does not look like a batch script.  The first",
                   "line must start with #! followed by the path to an interpreter.",
                   "For instance: #!/bin/sh"});
  if (text.find('\0') != text.npos)
    return refuse(
        {"The Slurm controller does not allow scripts that", "contain a NULL character '\\0'."});
  if (text.find("\r\n") != text.npos)
    return refuse({"Batch script contains DOS line breaks (\\r\\n)",
                   "instead of expected UNIX line breaks (\\n)."});
  return {};
}

std::string wrapped_script(std::string_view command) {
  return fmt::format("#!/bin/sh\n# This script was created by sbatch --wrap.\n\n{}\n", command);
}

Parsed<ScriptDirectives> script_directives(std::string_view text, std::string_view file) {
  ScriptDirectives out;
  std::uint32_t number = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    std::size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view line = text.substr(begin, end - begin);
    begin = end + 1;
    ++number;
    if (line.starts_with(kMistakenMagic))
      out.warnings +=
          "sbatch: error: Change from #SLURM to #SBATCH in your script and verify the options are "
          "valid in sbatch\n";
    if (!line.starts_with(kMagic)) {
      std::string_view first = trim(line);
      if (!first.empty() && first.front() != '#') break;
      continue;
    }
    ScriptDirective directive;
    directive.line = line.substr(kMagic.size());
    directive.span = {std::string(file), number, 1};
    if (auto done = split_words(directive, file); !done) return tl::unexpected(done.error());
    if (directive.words.empty()) continue;
    directive.starts_component = directive.words[0] == "hetjob" || directive.words[0] == "packjob";
    out.list.push_back(std::move(directive));
  }
  return out;
}

}  // namespace tutti::slurm
