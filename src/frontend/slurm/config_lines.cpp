#include "frontend/slurm/config_lines.h"

#include <fmt/format.h>

#include "base/text.h"

namespace tutti::slurm {
namespace {

constexpr int kMaxIncludeDepth = 8;
constexpr std::size_t kMaxTextBytes = std::size_t{4} << 20;

// One physical line and where its characters are, after continued lines were joined.
struct Joined {
  std::string text;
  std::vector<std::pair<std::size_t, std::uint32_t>> starts;  // offset of each physical line
};

class Reader {
 public:
  Reader(const ReadConfigFile& read_file, std::vector<Diagnostic>& diagnostics, ConfigLines& out)
      : read_file_(read_file), diagnostics_(diagnostics), out_(out) {}
  void read(const std::string& path, const Span& from, int depth);

 private:
  void take_line(const std::string& file, const Joined& joined, int depth);
  Span span_at(const std::string& file, const Joined& joined, std::size_t offset) const;
  std::string take_value(const std::string& file, const Joined& joined, std::size_t& at);

  const ReadConfigFile& read_file_;
  std::vector<Diagnostic>& diagnostics_;
  ConfigLines& out_;
  std::string folder_;
  std::size_t bytes_ = 0;
};

Span Reader::span_at(const std::string& file, const Joined& joined, std::size_t offset) const {
  Span span{file, 0, 0};
  for (const auto& [start, line] : joined.starts)
    if (start <= offset) {
      span.line = line;
      span.column = static_cast<std::uint32_t>(offset - start + 1);
    }
  return span;
}

void Reader::read(const std::string& path, const Span& from, int depth) {
  auto text = read_file_(path);
  if (!text) {
    if (depth > 0)
      add_problem(diagnostics_, Severity::kError, "config-include", from,
                  fmt::format("cannot read the included file {}: {}", path, text.error().message));
    else if (text.error().code != ErrorCode::kNotFound)
      add_problem(diagnostics_, Severity::kError, "config-include", {path, 0, 0},
                  text.error().message);
    return;
  }
  if (depth == 0) {
    out_.found = true;
    std::size_t slash = path.rfind('/');
    folder_ = slash == path.npos ? "" : path.substr(0, slash + 1);
  }
  bytes_ += text->size();
  if (bytes_ > kMaxTextBytes) {
    add_problem(diagnostics_, Severity::kError, "config-include", {path, 0, 0},
                "the configuration is larger than 4 MiB");
    return;
  }
  Joined joined;
  std::uint32_t number = 0;
  for (std::string_view line : split(*text, '\n')) {
    ++number;
    if (line.ends_with('\r')) line.remove_suffix(1);
    joined.starts.emplace_back(joined.text.size(), number);
    std::string_view body = line;
    while (!body.empty() && is_space(body.back())) body.remove_suffix(1);
    // A comment ends the line, a backslash at its end does not continue it.
    bool comment = trim(body).starts_with('#');
    if (!comment && body.ends_with('\\')) {
      body.remove_suffix(1);
      joined.text += body;
      joined.text += ' ';
      continue;
    }
    joined.text += line;
    take_line(path, joined, depth);
    joined = {};
  }
  if (!joined.text.empty()) take_line(path, joined, depth);
}

// A value ends at a blank outside of quotes.
std::string Reader::take_value(const std::string& file, const Joined& joined, std::size_t& at) {
  const std::string& text = joined.text;
  std::string value;
  bool quoted = false;
  std::size_t opened = at;
  for (; at < text.size() && (quoted || (!is_space(text[at]) && text[at] != '#')); ++at) {
    if (text[at] == '"') {
      quoted = !quoted;
      opened = at;
    } else if (text[at] == '\\' && at + 1 < text.size() &&
               (text[at + 1] == '"' || text[at + 1] == '#')) {
      value += text[++at];
    } else {
      value += text[at];
    }
  }
  if (quoted)
    add_problem(diagnostics_, Severity::kError, "config-syntax", span_at(file, joined, opened),
                "this quote is not closed on its line");
  return value;
}

void Reader::take_line(const std::string& file, const Joined& joined, int depth) {
  const std::string& text = joined.text;
  ConfigLine line;
  std::size_t at = 0;
  while (true) {
    while (at < text.size() && is_space(text[at])) ++at;
    if (at >= text.size() || text[at] == '#') break;
    std::size_t start = at;
    while (at < text.size() && text[at] != '=' && text[at] != '#' && !is_space(text[at])) ++at;
    std::string key = text.substr(start, at - start);
    Span span = span_at(file, joined, start);
    if (line.words.empty() && equals_ci(key, "include")) {
      std::string target(trim(split(std::string_view(text).substr(at), '#').front()));
      if (target.empty())
        add_problem(diagnostics_, Severity::kError, "config-include", span,
                    "include without a file name");
      else if (depth + 1 >= kMaxIncludeDepth)
        add_problem(diagnostics_, Severity::kError, "config-include", span,
                    fmt::format("includes are nested deeper than {}: does {} include itself?",
                                kMaxIncludeDepth, target));
      else
        read(target.starts_with('/') ? target : folder_ + target, span, depth + 1);
      return;
    }
    // "+=" and blanks around "=" are read as Slurm does.
    std::size_t equals = at;
    while (equals < text.size() && (text[equals] == ' ' || text[equals] == '\t')) ++equals;
    if (equals >= text.size() || text[equals] != '=' || key.empty()) {
      add_problem(
          diagnostics_, Severity::kError, "config-syntax", span,
          fmt::format("expected KEY=VALUE, not {}", quote(key.empty() ? text.substr(at, 1) : key)));
      if (key.empty()) ++at;
      continue;
    }
    at = equals + 1;
    while (at < text.size() && (text[at] == ' ' || text[at] == '\t')) ++at;
    std::string value = take_value(file, joined, at);
    line.words.push_back({std::move(key), std::move(value), std::move(span)});
  }
  if (!line.words.empty()) out_.lines.push_back(std::move(line));
}

}  // namespace

void add_problem(std::vector<Diagnostic>& diagnostics, Severity severity, std::string_view code,
                 const Span& span, std::string message) {
  diagnostics.push_back({severity, std::string(code), std::move(message), span});
}

ConfigLines read_config_lines(const std::string& path, const ReadConfigFile& read_file,
                              std::vector<Diagnostic>& diagnostics) {
  ConfigLines out;
  Reader(read_file, diagnostics, out).read(path, {}, 0);
  return out;
}

}  // namespace tutti::slurm
