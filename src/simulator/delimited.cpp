#include "simulator/delimited.h"

#include <algorithm>

#include "base/text.h"

namespace tutti::simulator {

// After the opening quote; leaves the rest behind the closing one.
std::string_view DelimitedRows::take_quoted() {
  std::string text;
  while (!rest_.empty()) {
    char c = rest_.front();
    rest_.remove_prefix(1);
    if (c == '\n') ++next_line_;
    if (c != '"') {
      text += c;
    } else if (!rest_.empty() && rest_.front() == '"') {
      text += '"';
      rest_.remove_prefix(1);
    } else {
      break;
    }
  }
  unquoted_.push_back(std::make_unique<std::string>(std::move(text)));
  return *unquoted_.back();
}

void DelimitedRows::read_row() {
  while (true) {
    const bool quoted = !rest_.empty() && rest_.front() == '"';
    if (quoted) {
      rest_.remove_prefix(1);
      fields_.push_back(take_quoted());
    }
    // Behind a quoted field only blanks may come; whatever it is, it is passed over.
    std::size_t end = 0;
    while (end < rest_.size() && rest_[end] != separator_ && rest_[end] != '\n') ++end;
    if (!quoted) fields_.push_back(trim(rest_.substr(0, end)));
    rest_.remove_prefix(end);
    if (rest_.empty()) return;
    const char c = rest_.front();
    rest_.remove_prefix(1);
    if (c == '\n') {
      ++next_line_;
      return;
    }
  }
}

bool DelimitedRows::next() {
  while (!rest_.empty()) {
    fields_.clear();
    unquoted_.clear();
    line_ = next_line_;
    read_row();
    if (std::any_of(fields_.begin(), fields_.end(), [](auto field) { return !field.empty(); }))
      return true;
  }
  return false;
}

}  // namespace tutti::simulator
