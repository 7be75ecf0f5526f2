// --export and --export-file: which variables of the submitter a job or a step gets.
#include <fmt/format.h>

#include "base/text.h"
#include "frontend/slurm/lowering_parts.h"

namespace tutti::slurm {
namespace {

constexpr std::size_t kMaxExportFileBytes = std::size_t{4} << 20;
constexpr std::string_view kPlainPath = "/usr/local/bin:/usr/bin:/bin";

// "A,B='x,y',C" at commas outside of quotes; the quotes go.
std::vector<std::string> export_tokens(std::string_view text) {
  std::vector<std::string> tokens(1);
  char quote = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '\\' && i + 1 < text.size())
      tokens.back() += text[++i];
    else if (quote ? c == quote : (c == '"' || c == '\''))
      quote = quote ? 0 : c;
    else if (c == ',' && !quote)
      tokens.emplace_back();
    else
      tokens.back() += c;
  }
  std::erase(tokens, "");
  return tokens;
}

bool always_exported(std::string_view pair) {
  return pair.starts_with("SLURM_") || pair.starts_with("SPANK_");
}

void copy_if(const Environment& from, Environment& to, bool (*wanted)(std::string_view)) {
  for (const std::string& pair : from.pairs())
    if (auto parts = split_once(pair, '='); parts && wanted(pair))
      to.set(parts->first, parts->second);
}

// What a login would have set, as far as it is known here.
Environment login_environment(const Environment& caller) {
  Environment out;
  for (std::string_view name : {"HOME", "USER", "LOGNAME", "SHELL"})
    if (auto value = caller.get(name)) out.set(name, *value);
  out.set("PATH", kPlainPath);
  return out;
}

}  // namespace

Parsed<Environment> exported_environment(Command command, const JobOptions& options,
                                         const ClientContext& context) {
  const Environment& caller = context.environment;
  std::vector<std::string> tokens = export_tokens(options.export_names);
  bool all = !options.export_given || tokens.empty();
  bool none = tokens.size() == 1 && equals_ci(tokens.front(), "NONE");
  for (const std::string& token : tokens) all = all || equals_ci(token, "ALL");
  if (!options.export_file.empty()) all = false;
  Environment out = all ? caller : login_environment(caller);
  if (!options.export_file.empty()) {
    auto text = read_file(context.open_file, absolute_path(context, options.export_file),
                          kMaxExportFileBytes);
    if (!text)
      return tl::unexpected(command_error(
          program_name(command),
          fmt::format("Could not open user environment file {}", options.export_file)));
    for (std::string_view pair : split(*text, '\0', EmptyPieces::kDrop))
      if (auto parts = split_once(trim(pair), '=')) out.set(parts->first, parts->second);
  }
  for (const std::string& token : tokens) {
    if (none || equals_ci(token, "ALL")) continue;
    if (auto parts = split_once(token, '=')) {
      // With ALL the caller's own value goes before the given one (sbatch(1)).
      if (!(all && caller.get(parts->first))) out.set(parts->first, parts->second);
    } else if (auto value = caller.get(token)) {
      out.set(token, *value);
    }
  }
  if (!all) copy_if(caller, out, always_exported);
  if (command == Command::kSbatch && options.export_given)
    out.set("SLURM_EXPORT_ENV", options.export_names);
  return out;
}

}  // namespace tutti::slurm
