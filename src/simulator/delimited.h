// Delimited text (RFC 4180 with any separator) row by row: quotes, quotes within quotes, line ends
// of either kind; a row knows its line. Internal to simulator/.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tutti::simulator {

class DelimitedRows {
 public:
  // `text` must live longer.
  DelimitedRows(std::string_view text, char separator) : rest_(text), separator_(separator) {}

  // The next row that is not empty; false at the end. The fields stay valid until the next call.
  bool next();
  const std::vector<std::string_view>& fields() const { return fields_; }
  std::uint32_t line() const { return line_; }  // on which the row begins, from 1

 private:
  std::string_view take_quoted();
  void read_row();

  std::string_view rest_;
  char separator_;
  std::uint32_t line_ = 0, next_line_ = 1;
  std::vector<std::string_view> fields_;
  std::vector<std::unique_ptr<std::string>>
      unquoted_;  // fields whose text is not in the input as it is
};

}  // namespace tutti::simulator
