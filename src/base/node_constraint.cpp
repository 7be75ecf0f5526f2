#include "base/node_constraint.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace tutti {

namespace {
using Kind = NodeConstraint::Kind;
constexpr unsigned kMaxDepth = 16;
constexpr std::size_t kMaxLength = 4096;

bool is_feature_character(char c) {
  return is_digit(c) || (to_lower(c) >= 'a' && to_lower(c) <= 'z') ||
         std::string_view("_.-=+:/").find(c) != std::string_view::npos;
}

class ConstraintParser {
 public:
  explicit ConstraintParser(std::string_view text) : text_(text) {}

  Result<NodeConstraint> parse() {
    if (text_.size() > kMaxLength) return bad("longer than 4096 characters");
    auto result = parse_chain(0);
    if (result && at_ < text_.size()) return bad("expected & or |");
    return result;
  }

 private:
  tl::unexpected<Error> bad(std::string_view why) const {
    return invalid(fmt::format("constraint {}: {} at character {}", quote(text_), why, at_ + 1),
                   "invalid_constraint");
  }
  char peek() {
    while (at_ < text_.size() && is_space(text_[at_])) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }

  Result<NodeConstraint> parse_chain(unsigned depth) {
    if (depth > kMaxDepth) return bad("nested too deeply");
    auto left = parse_term(depth);
    while (left && (peek() == '&' || peek() == '|')) {
      Kind kind = text_[at_++] == '&' ? Kind::kAll : Kind::kAny;
      auto right = parse_term(depth);
      if (!right) return right;
      append(*left, kind, std::move(*right));
    }
    return left;
  }

  // a&b&c is one node with three children, so that equal constraints are equal trees.
  static void append(NodeConstraint& left, Kind kind, NodeConstraint right) {
    if (left.kind != kind || left.node_count != 0) {
      NodeConstraint parent{kind, {}, 0, {}};
      parent.children.push_back(std::move(left));
      left = std::move(parent);
    }
    if (right.kind == kind && right.node_count == 0) {
      std::move(right.children.begin(), right.children.end(), std::back_inserter(left.children));
    } else {
      left.children.push_back(std::move(right));
    }
  }

  Result<NodeConstraint> parse_term(unsigned depth) {
    NodeConstraint term;
    char open = peek();
    if (open == '(' || open == '[') {
      ++at_;
      auto inner = parse_chain(depth + 1);
      if (!inner) return inner;
      char close = open == '(' ? ')' : ']';
      if (peek() != close) return bad(fmt::format("expected {}", close));
      ++at_;
      term = std::move(*inner);
      // [a*2&b*1] only groups; [a|b] asks for one and the same on all nodes.
      if (open == '[' && term.kind == Kind::kAny && term.node_count == 0) term.kind = Kind::kSame;
    } else {
      std::size_t start = at_;
      while (at_ < text_.size() && is_feature_character(text_[at_])) ++at_;
      if (at_ == start) return bad("expected a feature");
      term.feature = std::string(text_.substr(start, at_ - start));
    }
    if (peek() != '*') return term;
    std::size_t start = ++at_;
    while (at_ < text_.size() && is_digit(text_[at_])) ++at_;
    auto count = parse_integer<std::uint32_t>(text_.substr(start, at_ - start));
    if (!count || *count == 0) return bad("expected a number of nodes after *");
    if (term.node_count != 0) return bad("a second * on one term");
    term.node_count = *count;
    return term;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

// The children of a chain, with parentheses where a child is itself a chain or counted group.
std::string chain_text(const NodeConstraint& constraint, char separator) {
  std::string out;
  for (const NodeConstraint& child : constraint.children) {
    bool first = out.empty();
    if (!first) out += separator;
    bool chain = child.kind == Kind::kAll || child.kind == Kind::kAny;
    // The first child needs none: reading goes from left to right.
    bool parentheses = chain && child.node_count == 0 && !first;
    std::string text = to_string(child);
    out += parentheses ? fmt::format("({})", text) : text;
  }
  return out;
}
}  // namespace

Result<NodeConstraint> parse_node_constraint(std::string_view text) {
  return ConstraintParser(text).parse();
}

std::string to_string(const NodeConstraint& constraint) {
  std::string out;
  switch (constraint.kind) {
    case Kind::kFeature:
      out = constraint.feature;
      break;
    case Kind::kSame:
      out = fmt::format("[{}]", chain_text(constraint, '|'));
      break;
    case Kind::kAll:
    case Kind::kAny:
      out = chain_text(constraint, constraint.kind == Kind::kAll ? '&' : '|');
      if (constraint.node_count != 0) out = fmt::format("({})", out);
      break;
  }
  if (constraint.node_count != 0) out += fmt::format("*{}", constraint.node_count);
  return out;
}

bool node_may_serve(const NodeConstraint& constraint,
                    const std::function<bool(std::string_view)>& has_feature) {
  auto serves = [&](const NodeConstraint& child) { return node_may_serve(child, has_feature); };
  auto counted = [](const NodeConstraint& child) { return child.node_count != 0; };
  const auto& children = constraint.children;
  switch (constraint.kind) {
    case Kind::kFeature:
      return has_feature(constraint.feature);
    case Kind::kAll:
      // Every uncounted child must hold here; of the counted ones, one is enough to be useful.
      if (!std::all_of(children.begin(), children.end(),
                       [&](const auto& child) { return counted(child) || serves(child); }))
        return false;
      return std::none_of(children.begin(), children.end(), counted) ||
             std::any_of(children.begin(), children.end(),
                         [&](const auto& child) { return counted(child) && serves(child); });
    case Kind::kAny:
    case Kind::kSame:
      return std::any_of(children.begin(), children.end(), serves);
  }
  return false;
}

}  // namespace tutti
