// NodeSet: a set of node indexes as bits.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "model/ids.h"

namespace tutti::scheduler {

class NodeSet {
 public:
  NodeSet() = default;
  explicit NodeSet(std::size_t nodes) : words_((nodes + 63) / 64) {}

  void add(NodeIndex node) { words_[node / 64] |= std::uint64_t{1} << (node % 64); }
  void remove(NodeIndex node) { words_[node / 64] &= ~(std::uint64_t{1} << (node % 64)); }
  bool contains(NodeIndex node) const { return (words_[node / 64] >> (node % 64)) & 1; }

  std::size_t count() const {
    std::size_t sum = 0;
    for (std::uint64_t word : words_) sum += static_cast<std::size_t>(std::popcount(word));
    return sum;
  }
  bool empty() const {
    for (std::uint64_t word : words_)
      if (word != 0) return false;
    return true;
  }
  bool intersects(const NodeSet& other) const {
    for (std::size_t i = 0; i < words_.size() && i < other.words_.size(); ++i)
      if ((words_[i] & other.words_[i]) != 0) return true;
    return false;
  }
  NodeSet& operator&=(const NodeSet& other) {
    for (std::size_t i = 0; i < words_.size(); ++i) words_[i] &= other.words_[i];
    return *this;
  }
  NodeSet& operator|=(const NodeSet& other) {
    for (std::size_t i = 0; i < words_.size(); ++i) words_[i] |= other.words_[i];
    return *this;
  }
  NodeSet& operator-=(const NodeSet& other) {
    for (std::size_t i = 0; i < words_.size(); ++i) words_[i] &= ~other.words_[i];
    return *this;
  }

  // Calls visit(node) in increasing order.
  template <class Visit>
  void for_each(Visit&& visit) const {
    for (std::size_t i = 0; i < words_.size(); ++i) {
      for (std::uint64_t word = words_[i]; word != 0; word &= word - 1)
        visit(static_cast<NodeIndex>(i * 64 + static_cast<std::size_t>(std::countr_zero(word))));
    }
  }
  friend bool operator==(const NodeSet&, const NodeSet&) = default;

 private:
  std::vector<std::uint64_t> words_;
};

}  // namespace tutti::scheduler
