// The two format languages of squeue and sinfo. -o: "%[[.]size]letter" with any text between; -O:
// "name[:[.][size][text]]" by commas. A parsed format is a list of columns over the fields of one
// command; which letters and names exist is the command's own table.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/slurm/view_text.h"

namespace tutti::slurm {

inline constexpr std::uint32_t kTextOnly = 0xFFFFFFFF;

struct FormatColumn {
  std::uint32_t field = kTextOnly;  // index into the command's table
  CellShape shape;
  std::string suffix;  // as it is, after the cell
};

struct ParsedFormat {
  std::vector<FormatColumn> columns;
  std::vector<std::string> unknown;  // letters or names that are no field, as written
};

// kTextOnly when there is no such letter.
using LetterLookup = std::function<std::uint32_t(char letter)>;
using NameLookup = std::function<std::uint32_t(std::string_view lower_name)>;

// "%%x" means "%x": doubled signs count as one, as in squeue (clients rely on it). "%all" is every
// letter of `all` with '|' between. An unknown letter stays in the text as written.
ParsedFormat parse_letter_format(std::string_view text, const LetterLookup& lookup,
                                 std::string_view all);
// Names in any case. Without ':' 20 wide and cut; "NAME:" unpadded; "NAME:TEXT" unpadded plus
// TEXT; "NAME:.12;" right in 12, then ";". An unknown name is left out and reported.
ParsedFormat parse_name_format(std::string_view text, const NameLookup& lookup);

}  // namespace tutti::slurm
