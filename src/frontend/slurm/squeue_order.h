// The order of squeue's rows, found from keys that are taken from each row once: a row need not stay
// for the sort.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/slurm/squeue_fields.h"

namespace tutti::slurm {

class RowOrder {
 public:
  // `spec`: letters of -o with '+' or '-' before, commas between (squeue -S).
  explicit RowOrder(std::string_view spec);
  // Makes room for so many rows.
  void expect(std::size_t rows);
  // Letters that are no field.
  const std::string& unknown() const { return unknown_; }
  // The next row. Cost: linear in the keys.
  void add(const JobContext& context, const JobRow& row);
  // The numbers of the rows, counted from 0 as they were added, in order; to be called once. Equal
  // rows follow their job ids, array elements and components.
  std::vector<std::uint32_t> take();

 private:
  using Texts = std::map<std::string, std::uint64_t, std::less<>>;
  struct Key {
    char letter = 'i';
    bool descending = false;
    Texts texts;  // each with a number, by first appearance
    const Texts::value_type* last = nullptr;  // the one found last
  };
  std::vector<Key> keys_;
  bool by_id_ = false;  // a letter asks for it: what comes after has no say
  bool ids_descending_ = false;
  std::string unknown_, space_;
  std::vector<std::uint64_t> values_;  // for each row its keys, then its ids
  std::size_t rows_ = 0;
};

}  // namespace tutti::slurm
