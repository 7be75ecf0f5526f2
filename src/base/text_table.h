// Tables for people: columns as wide as their content, in as many terminal columns as there are.
// (Slurm's own tables have fixed widths and are the front end's.) Widths are counted in terminal
// columns of UTF-8 text; control characters never reach the terminal.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tutti {

// Terminal columns a UTF-8 text takes: 2 for wide (CJK, emoji), 0 for combining characters, 1 for
// every byte that is no UTF-8.
std::size_t display_width(std::string_view text);
// The text cut to `width` columns with "…" as the last one where something was cut off.
std::string cut_to_width(std::string_view text, std::size_t width);
// Control characters (also escape sequences and line ends) as '?'.
std::string printable(std::string_view text);

enum class Align : std::uint8_t { kLeft, kRight };
// What gives way when the table is wider than the terminal.
enum class Shrink : std::uint8_t { kNever, kAllowed };

struct TextColumn {
  std::string title;
  Align align = Align::kLeft;
  Shrink shrink = Shrink::kNever;
};

class TextTable {
 public:
  explicit TextTable(std::vector<TextColumn> columns);
  // Missing cells are empty, surplus ones are a defect of the caller.
  void add_row(std::vector<std::string> cells);
  std::size_t row_count() const { return rows_.size(); }

  // Title line and rows, two blanks between columns, no blanks at the end of a line, each line
  // with its '\n'. The widest columns that may shrink do so, down to 6, until the table fits in
  // `width` (0: no limit); if that is not enough it stays too wide rather than lose a column.
  std::string render(std::size_t width = 80) const;

 private:
  std::vector<std::size_t> fitted_widths(std::size_t width) const;
  std::string line(const std::vector<std::string>& cells,
                   const std::vector<std::size_t>& widths) const;

  std::vector<TextColumn> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace tutti
