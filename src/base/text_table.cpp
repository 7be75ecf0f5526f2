#include "base/text_table.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"

namespace tutti {

namespace {
constexpr std::size_t kGap = 2;
constexpr std::size_t kNarrowest = 6;

struct CodePoint {
  char32_t value = 0;
  std::size_t bytes = 1;
};

// The first character; a byte that does not begin a valid sequence stands alone as U+FFFD.
CodePoint first_of(std::string_view text) {
  auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  unsigned char lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  std::size_t bytes = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < bytes) return {0xFFFD, 1};
  char32_t value = lead & (0x7F >> bytes);
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return {0xFFFD, 1};
    value = value << 6 | (byte(i) & 0x3F);
  }
  constexpr char32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  bool surrogate = value >= 0xD800 && value <= 0xDFFF;
  if (value < kSmallest[bytes] || value > 0x10FFFF || surrogate) return {0xFFFD, 1};
  return {value, bytes};
}

struct Block {
  char32_t first, last;
};
// Combining marks, joiners and variation selectors (Unicode general category Mn, the common ones).
constexpr Block kZeroWidth[] = {
    {0x0300, 0x036F}, {0x0483, 0x0489}, {0x0591, 0x05BD}, {0x0610, 0x061A}, {0x064B, 0x065F},
    {0x1AB0, 0x1AFF}, {0x1DC0, 0x1DFF}, {0x200B, 0x200F}, {0x202A, 0x202E}, {0x2060, 0x2064},
    {0x20D0, 0x20FF}, {0xFE00, 0xFE0F}, {0xFE20, 0xFE2F}, {0xFEFF, 0xFEFF}};
// East Asian Wide and Fullwidth (Unicode TR 11), and emoji.
constexpr Block kWide[] = {{0x1100, 0x115F},   {0x2E80, 0x303E},   {0x3041, 0x33FF},
                           {0x3400, 0x4DBF},   {0x4E00, 0x9FFF},   {0xA000, 0xA4CF},
                           {0xAC00, 0xD7A3},   {0xF900, 0xFAFF},   {0xFE30, 0xFE6F},
                           {0xFF00, 0xFF60},   {0xFFE0, 0xFFE6},   {0x1F300, 0x1F64F},
                           {0x1F680, 0x1F6FF}, {0x1F900, 0x1F9FF}, {0x20000, 0x3FFFD}};

template <std::size_t N>
bool in_blocks(const Block (&blocks)[N], char32_t c) {
  return std::any_of(blocks, blocks + N, [&](Block b) { return c >= b.first && c <= b.last; });
}

std::size_t width_of(char32_t c) {
  if (c < 0x300) return 1;
  if (in_blocks(kZeroWidth, c)) return 0;
  return in_blocks(kWide, c) ? 2 : 1;
}
}  // namespace

std::size_t display_width(std::string_view text) {
  std::size_t width = 0;
  while (!text.empty()) {
    CodePoint c = first_of(text);
    width += width_of(c.value);
    text.remove_prefix(c.bytes);
  }
  return width;
}

std::string cut_to_width(std::string_view text, std::size_t width) {
  if (display_width(text) <= width) return std::string(text);
  if (width == 0) return "";
  std::size_t used = 0, end = 0;
  while (end < text.size()) {
    CodePoint c = first_of(text.substr(end));
    if (used + width_of(c.value) > width - 1) break;
    used += width_of(c.value);
    end += c.bytes;
  }
  return std::string(text.substr(0, end)) + "\u2026";
}

std::string printable(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    CodePoint c = first_of(text);
    // C0, DEL, C1 and bytes that are no UTF-8, which some terminals take for C1.
    bool control = c.value < 0x20 || (c.value >= 0x7F && c.value < 0xA0) ||
                   (c.value == 0xFFFD && c.bytes == 1);
    if (control)
      out += '?';
    else
      out += text.substr(0, c.bytes);
    text.remove_prefix(c.bytes);
  }
  return out;
}

TextTable::TextTable(std::vector<TextColumn> columns) : columns_(std::move(columns)) {}

void TextTable::add_row(std::vector<std::string> cells) {
  TUTTI_CHECK(cells.size() <= columns_.size());
  cells.resize(columns_.size());
  for (std::string& cell : cells) cell = printable(cell);
  rows_.push_back(std::move(cells));
}

std::vector<std::size_t> TextTable::fitted_widths(std::size_t width) const {
  std::vector<std::size_t> widths;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    std::size_t widest = display_width(columns_[i].title);
    for (const auto& row : rows_) widest = std::max(widest, display_width(row[i]));
    widths.push_back(widest);
  }
  if (width == 0 || widths.empty()) return widths;
  std::size_t total = std::accumulate(widths.begin(), widths.end(), kGap * (columns_.size() - 1));
  while (total > width) {
    std::size_t victim = columns_.size();
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (columns_[i].shrink == Shrink::kNever || widths[i] <= kNarrowest) continue;
      if (victim == columns_.size() || widths[i] > widths[victim]) victim = i;
    }
    if (victim == columns_.size()) break;
    --widths[victim];
    --total;
  }
  return widths;
}

std::string TextTable::line(const std::vector<std::string>& cells,
                            const std::vector<std::size_t>& widths) const {
  std::string out;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    std::string cell = cut_to_width(cells[i], widths[i]);
    std::string padding(widths[i] - display_width(cell), ' ');
    if (i > 0) out.append(kGap, ' ');
    out += columns_[i].align == Align::kRight ? padding + cell : cell + padding;
  }
  out.erase(out.find_last_not_of(' ') + 1);
  return out + "\n";
}

std::string TextTable::render(std::size_t width) const {
  std::vector<std::size_t> widths = fitted_widths(width);
  std::vector<std::string> titles;
  for (const TextColumn& column : columns_) titles.push_back(column.title);
  std::string out = line(titles, widths);
  for (const auto& row : rows_) out += line(row, widths);
  return out;
}

}  // namespace tutti
