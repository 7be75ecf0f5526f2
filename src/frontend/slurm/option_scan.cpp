#include "frontend/slurm/option_scan.h"

#include <fmt/format.h>

#include "base/text.h"

namespace tutti::slurm {
namespace {

struct Scan {
  std::span<const OptionName> table;
  std::span<const std::string> words;
  const ScanSettings& settings;
  ScannedWords out;
  std::size_t next = 0;

  tl::unexpected<CommandError> error(const std::string& what) const {
    std::string text = fmt::format("{}: {}\n", settings.program, what);
    if (settings.suggest_help)
      text += fmt::format("Try \"{} --help\" for more information\n", settings.program);
    return tl::unexpected(CommandError{settings.exit_code, std::move(text), {}});
  }

  void take(const OptionName& option, std::string value, bool has_value, std::size_t word) {
    std::string name =
        option.name.empty() ? std::string(1, option.letter) : std::string(option.name);
    out.options.push_back({option.id, std::move(name), std::move(value), has_value, word});
  }

  Parsed<void> long_option(std::size_t word);
  Parsed<void> short_options(std::size_t word);
  bool takes_next(const OptionName& option) const {
    return option.argument == Argument::kMaybeNext && next < words.size() &&
           !words[next].starts_with('-');
  }
  // The option of this name or unambiguous prefix; several candidates of one id count as one.
  Parsed<const OptionName*> find_long(std::string_view name, const std::string& shown) const;
};

Parsed<const OptionName*> Scan::find_long(std::string_view name, const std::string& shown) const {
  const OptionName* found = nullptr;
  std::vector<std::string_view> possible;
  bool ambiguous = false;
  for (const OptionName& option : table) {
    if (option.name.empty() || !option.name.starts_with(name)) continue;
    if (option.name.size() == name.size()) return &option;
    possible.push_back(option.name);
    if (!found)
      found = &option;
    else if (found->id != option.id || found->argument != option.argument)
      ambiguous = true;
  }
  if (ambiguous) {
    std::string list;
    for (std::string_view one : possible) list += fmt::format(" '--{}'", one);
    return error(fmt::format("option '--{}' is ambiguous; possibilities:{}", shown, list));
  }
  if (!found) return error(fmt::format("unrecognized option '--{}'", shown));
  return found;
}

Parsed<void> Scan::long_option(std::size_t word) {
  std::string_view text = std::string_view(words[word]).substr(2);
  auto pieces = split_once(text, '=');
  std::string_view name = pieces ? pieces->first : text;
  auto option = find_long(name, std::string(text));
  if (!option) return tl::unexpected(option.error());
  const OptionName& found = **option;
  if (pieces) {
    if (found.argument == Argument::kNone)
      return error(fmt::format("option '--{}' doesn't allow an argument", found.name));
    take(found, std::string(pieces->second), true, word);
  } else if (found.argument == Argument::kRequired) {
    if (next >= words.size())
      return error(fmt::format("option '--{}' requires an argument", found.name));
    take(found, words[next++], true, word);
  } else if (takes_next(found)) {
    take(found, words[next++], true, word);
  } else {
    take(found, "", false, word);
  }
  return {};
}

Parsed<void> Scan::short_options(std::size_t word) {
  std::string_view cluster = std::string_view(words[word]).substr(1);
  for (std::size_t i = 0; i < cluster.size(); ++i) {
    const OptionName* found = nullptr;
    for (const OptionName& option : table)
      if (option.letter == cluster[i]) found = &option;
    if (!found || cluster[i] == 0)
      return error(fmt::format("invalid option -- '{}'", cluster.substr(i, 1)));
    std::string_view rest = cluster.substr(i + 1);
    if (found->argument == Argument::kNone) {
      take(*found, "", false, word);
      continue;
    }
    if (rest.empty() && takes_next(*found)) {
      take(*found, words[next++], true, word);
      return {};
    }
    if (!rest.empty() || found->argument != Argument::kRequired) {
      take(*found, std::string(rest), !rest.empty(), word);
      return {};
    }
    if (next >= words.size())
      return error(fmt::format("option requires an argument -- '{}'", cluster.substr(i, 1)));
    take(*found, words[next++], true, word);
    return {};
  }
  return {};
}

}  // namespace

Parsed<ScannedWords> scan_options(std::span<const OptionName> table,
                                  std::span<const std::string> words,
                                  const ScanSettings& settings) {
  Scan scan{table, words, settings, {}, 0};
  while (scan.next < words.size()) {
    const std::string& word = words[scan.next];
    if (word == "--") {
      scan.out.ended_by_dashes = true;
      ++scan.next;
      break;
    }
    if (word.size() < 2 || word[0] != '-') {
      if (settings.operands == Operands::kStop) break;
      scan.out.operands.push_back(word);
      ++scan.next;
      continue;
    }
    std::size_t at = scan.next++;
    auto done = word[1] == '-' ? scan.long_option(at) : scan.short_options(at);
    if (!done) return tl::unexpected(done.error());
  }
  for (; scan.next < words.size(); ++scan.next) scan.out.operands.push_back(words[scan.next]);
  return std::move(scan.out);
}

}  // namespace tutti::slurm
