// IdSet: a set of numbers that come in runs, in increasing order. 64 consecutive numbers share one
// word, so a long queue of jobs costs a byte each; inserting, erasing and finding take a search
// among size/64 words at best and size at worst. Iterators stay valid while other words change.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>

namespace tutti {

class IdSet {
  using Words = std::map<std::uint32_t, std::uint64_t>;  // number / 64 -> bits, never 0

 public:
  using value_type = std::uint32_t;

  class const_iterator {
   public:
    using value_type = std::uint32_t;
    using difference_type = std::ptrdiff_t;
    using pointer = const std::uint32_t*;
    using reference = std::uint32_t;
    using iterator_category = std::input_iterator_tag;

    std::uint32_t operator*() const {
      return word_->first * 64 + static_cast<std::uint32_t>(std::countr_zero(left_));
    }
    const_iterator& operator++() {
      left_ &= left_ - 1;
      if (left_ == 0) enter(std::next(word_));
      return *this;
    }
    friend bool operator==(const const_iterator& a, const const_iterator& b) {
      return a.word_ == b.word_ && a.left_ == b.left_;
    }

   private:
    friend class IdSet;
    const_iterator(const Words* words, Words::const_iterator word) : words_(words) { enter(word); }
    void enter(Words::const_iterator word) {
      word_ = word;
      left_ = word == words_->end() ? 0 : word->second;
    }
    const Words* words_;
    Words::const_iterator word_;
    std::uint64_t left_ = 0;  // of its word, from here on
  };
  using iterator = const_iterator;

  // Whether the number is new.
  bool insert(std::uint32_t id) {
    auto word = words_.empty() || words_.rbegin()->first < id / 64
                    ? words_.emplace_hint(words_.end(), id / 64, 0)
                    : words_.try_emplace(id / 64, 0).first;
    const bool fresh = (word->second & bit(id)) == 0;
    word->second |= bit(id);
    size_ += fresh;
    return fresh;
  }
  // How many were erased: 0 or 1.
  std::size_t erase(std::uint32_t id) {
    auto word = words_.find(id / 64);
    if (word == words_.end() || (word->second & bit(id)) == 0) return 0;
    word->second &= ~bit(id);
    if (word->second == 0) words_.erase(word);
    --size_;
    return 1;
  }
  void clear() {
    words_.clear();
    size_ = 0;
  }
  bool contains(std::uint32_t id) const {
    auto word = words_.find(id / 64);
    return word != words_.end() && (word->second & bit(id)) != 0;
  }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const_iterator begin() const { return {&words_, words_.begin()}; }
  const_iterator end() const { return {&words_, words_.end()}; }
  friend bool operator==(const IdSet& a, const IdSet& b) { return a.words_ == b.words_; }

 private:
  static std::uint64_t bit(std::uint32_t id) { return std::uint64_t{1} << (id % 64); }
  Words words_;
  std::size_t size_ = 0;
};

}  // namespace tutti
