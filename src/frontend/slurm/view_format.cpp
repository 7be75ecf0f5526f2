#include "frontend/slurm/view_format.h"

#include "base/text.h"

namespace tutti::slurm {
namespace {

// "[.]digits" at the front of `text`; what was read is removed. A size beyond a line is no size.
CellShape read_shape(std::string_view& text) {
  CellShape shape;
  if (!text.empty() && text.front() == '.') {
    shape.right = true;
    text.remove_prefix(1);
  }
  while (!text.empty() && is_digit(text.front())) {
    if (shape.width < 100'000) shape.width = shape.width * 10 + (text.front() - '0');
    text.remove_prefix(1);
  }
  return shape;
}

void append_text(ParsedFormat& out, std::string_view text) {
  if (text.empty()) return;
  if (out.columns.empty()) out.columns.push_back({});
  out.columns.back().suffix += text;
}

}  // namespace

ParsedFormat parse_letter_format(std::string_view text, const LetterLookup& lookup,
                                 std::string_view all) {
  ParsedFormat out;
  while (!text.empty()) {
    std::size_t percent = text.find('%');
    append_text(out, text.substr(0, percent));
    if (percent == std::string_view::npos) break;
    text.remove_prefix(percent);
    std::string_view start = text;
    while (!text.empty() && text.front() == '%') text.remove_prefix(1);
    if (text.starts_with("all")) {
      text.remove_prefix(3);
      for (std::size_t i = 0; i < all.size(); ++i)
        out.columns.push_back({lookup(all[i]), {}, i + 1 < all.size() ? "|" : ""});
      continue;
    }
    CellShape shape = read_shape(text);
    std::uint32_t field = text.empty() ? kTextOnly : lookup(text.front());
    if (field != kTextOnly) {
      text.remove_prefix(1);
      out.columns.push_back({field, shape, {}});
      continue;
    }
    if (text.empty()) break;
    out.unknown.emplace_back(text.substr(0, 1));
    text.remove_prefix(1);
    std::string_view written = start.substr(0, start.size() - text.size());
    while (written.starts_with("%%")) written.remove_prefix(1);
    append_text(out, written);
  }
  return out;
}

ParsedFormat parse_name_format(std::string_view text, const NameLookup& lookup) {
  ParsedFormat out;
  while (!text.empty()) {
    std::size_t comma = text.find(',');
    std::string_view piece = text.substr(0, comma);
    text = comma == std::string_view::npos ? std::string_view() : text.substr(comma + 1);
    if (piece.empty()) continue;
    std::size_t colon = piece.find(':');
    std::string_view name = piece.substr(0, colon);
    std::uint32_t field = lookup(lower(trim(name)));
    if (field == kTextOnly) {
      out.unknown.emplace_back(name);
      continue;
    }
    FormatColumn column{field, {20, false}, {}};
    if (colon != std::string_view::npos) {
      std::string_view rest = piece.substr(colon + 1);
      column.shape = read_shape(rest);
      column.suffix = std::string(rest);
    }
    out.columns.push_back(std::move(column));
  }
  return out;
}

}  // namespace tutti::slurm
