#include "frontend/slurm/lint_shell.h"

#include <algorithm>
#include <array>

#include "base/text.h"

namespace tutti::slurm {
namespace {

constexpr std::size_t kMaxCommands = 20'000;

class Splitter {
 public:
  explicit Splitter(std::string_view text) : text_(text) {}
  std::vector<ShellCommand> run();

 private:
  char peek(std::size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  bool end() const { return at_ >= text_.size(); }
  void advance() {
    if (text_[at_] == '\n') {
      ++line_;
      line_start_ = at_ + 1;
    }
    ++at_;
  }
  void take(std::string& into) {
    into += text_[at_];
    advance();
  }
  void skip_blanks();
  void word();
  void redirection();
  void quoted(ShellWord& word);
  void bracketed(ShellWord& word, char open, char close);
  void finish_command(bool in_background);
  void skip_here_documents();

  std::string_view text_;
  std::size_t at_ = 0, line_start_ = 0;
  std::uint32_t line_ = 1;
  ShellCommand command_;
  bool skip_next_word_ = false;  // the target of a redirection
  std::vector<std::string> here_documents_;
  bool here_document_next_ = false;
  std::vector<ShellCommand> out_;
};

bool is_assignment(std::string_view text) {
  std::size_t equals = text.find('=');
  if (equals == 0 || equals == text.npos || is_digit(text[0])) return false;
  return std::all_of(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(equals), [](char c) {
    return is_digit(c) || c == '_' || (to_lower(c) >= 'a' && to_lower(c) <= 'z');
  });
}

bool is_prefix_word(std::string_view text) {
  constexpr std::array<std::string_view, 14> kWords{"if",    "then", "elif",  "else", "while",
                                                    "until", "do",   "!",     "{",    "}",
                                                    "exec",  "time", "nohup", "fi"};
  return std::find(kWords.begin(), kWords.end(), text) != kWords.end();
}

void Splitter::skip_blanks() {
  while (!end()) {
    if (peek() == ' ' || peek() == '\t') {
      advance();
    } else if (peek() == '\\' && peek(1) == '\n') {
      advance();
      advance();
    } else {
      return;
    }
  }
}

// $(...), ${...}: up to the bracket that closes it, quotes and inner brackets respected.
void Splitter::bracketed(ShellWord& word, char open, char close) {
  std::size_t depth = 0;
  char quote = 0;
  while (!end()) {
    char c = peek();
    if (c == '\\' && quote != '\'' && at_ + 1 < text_.size()) {
      take(word.text);
    } else if (quote) {
      if (c == quote) quote = 0;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == open) {
      ++depth;
    } else if (c == close && --depth == 0) {
      take(word.text);
      return;
    }
    take(word.text);
  }
}

void Splitter::quoted(ShellWord& word) {
  char quote = peek();
  advance();
  while (!end() && peek() != quote) {
    if (quote == '"' && peek() == '\\' && at_ + 1 < text_.size()) {
      advance();
      if (peek() == '\n') {
        advance();
        continue;
      }
      take(word.text);
    } else if (quote == '"' && peek() == '$' && (peek(1) == '(' || peek(1) == '{')) {
      word.expands = true;
      char open = peek(1);
      take(word.text);
      bracketed(word, open, open == '(' ? ')' : '}');
    } else {
      if (quote == '"' && (peek() == '$' || peek() == '`')) word.expands = true;
      take(word.text);
    }
  }
  if (!end()) advance();
}

void Splitter::word() {
  ShellWord word;
  word.line = line_;
  word.column = static_cast<std::uint32_t>(at_ - line_start_ + 1);
  constexpr std::string_view kEnds = " \t\n;&|()<>";
  while (!end() && kEnds.find(peek()) == kEnds.npos) {
    char c = peek();
    if (c == '\\') {
      advance();
      if (end()) break;
      if (peek() == '\n')
        advance();
      else
        take(word.text);
    } else if (c == '"' || c == '\'') {
      quoted(word);
    } else if (c == '$' && (peek(1) == '(' || peek(1) == '{')) {
      word.expands = true;
      char open = peek(1);
      take(word.text);
      bracketed(word, open, open == '(' ? ')' : '}');
    } else if (c == '`') {
      word.expands = true;
      take(word.text);
      while (!end() && peek() != '`') take(word.text);
      if (!end()) take(word.text);
    } else {
      if (c == '$') word.expands = true;
      take(word.text);
    }
  }
  if (here_document_next_) {
    here_documents_.push_back(word.text);
    here_document_next_ = false;
    return;
  }
  if (std::exchange(skip_next_word_, false)) return;
  // "2" of "2>file" belongs to the redirection.
  bool number = !word.text.empty() && std::ranges::all_of(word.text, is_digit);
  if (number && (peek() == '<' || peek() == '>')) return;
  if (command_.words.empty() && is_prefix_word(word.text)) return;
  bool exporting = !command_.words.empty() && command_.words[0].text == "export";
  if ((command_.words.empty() || exporting) && is_assignment(word.text))
    command_.assignments.push_back(std::move(word));
  else
    command_.words.push_back(std::move(word));
}

void Splitter::redirection() {
  bool here = peek() == '<' && peek(1) == '<' && peek(2) != '<';
  while (!end() && (peek() == '<' || peek() == '>')) advance();
  if (peek() == '&') advance();
  if (here && peek() == '-') advance();
  here_document_next_ = here;
  skip_next_word_ = !here;
  skip_blanks();
}

void Splitter::skip_here_documents() {
  for (const std::string& delimiter : here_documents_) {
    while (!end()) {
      std::size_t stop = std::min(text_.find('\n', at_), text_.size());
      std::string_view line = text_.substr(at_, stop - at_);
      while (at_ < stop) advance();
      if (!end()) advance();
      while (line.starts_with('\t')) line.remove_prefix(1);
      if (line == delimiter) break;
    }
  }
  here_documents_.clear();
}

void Splitter::finish_command(bool in_background) {
  skip_next_word_ = here_document_next_ = false;
  command_.in_background = in_background;
  if ((!command_.words.empty() || !command_.assignments.empty()) && out_.size() < kMaxCommands)
    out_.push_back(std::move(command_));
  command_ = {};
}

std::vector<ShellCommand> Splitter::run() {
  while (!end()) {
    skip_blanks();
    if (end()) break;
    char c = peek();
    if (c == '#') {
      while (!end() && peek() != '\n') advance();
    } else if (c == '\n') {
      finish_command(false);
      advance();
      skip_here_documents();
    } else if (c == '&' && peek(1) == '>') {
      advance();
      redirection();
    } else if (c == ';' || c == '&' || c == '|' || c == '(' || c == ')') {
      bool background = c == '&' && peek(1) != '&';
      advance();
      finish_command(background);
    } else if (c == '<' || c == '>') {
      redirection();
    } else {
      word();
    }
  }
  finish_command(false);
  return std::move(out_);
}

}  // namespace

std::vector<ShellCommand> shell_commands(std::string_view text) { return Splitter(text).run(); }

}  // namespace tutti::slurm
