// CowTable<T>: records by a growing number, as an immutable snapshot for the price of a list of
// pointers. It owns nothing but references: records are std::shared_ptr<const T>, held in chunks
// of 256 consecutive ids, and a copy of the table shares all chunks. The first change to a chunk
// after a copy clones that chunk, so a snapshot, once taken, never changes.
//
// Made for the published state of the controller: one thread changes its table and hands copies
// to readers; a copy may be read by any thread without a lock, but a single CowTable object is
// not to be changed while another thread copies or reads that very object.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace tutti {

template <class T>
class CowTable {
 public:
  using Key = std::uint32_t;
  using Pointer = std::shared_ptr<const T>;
  static constexpr Key kChunkSize = 256;

 private:
  struct Chunk {
    std::array<Pointer, kChunkSize> slots;
    Key used = 0;
  };
  // Chunks that hold something, by number (id / 256). Ids grow, so new ones come last.
  struct Entry {
    Key number = 0;
    std::shared_ptr<Chunk> chunk;
    // The table's copies_ when it made the chunk: if no copy was made since, nobody shares it.
    std::uint64_t made_at = 0;
  };

 public:
  // Over (id, record) in increasing order of id. Valid until its table changes.
  class Iterator {
   public:
    using value_type = std::pair<Key, const Pointer&>;
    value_type operator*() const { return {id(), (*entries_)[entry_].chunk->slots[slot_]}; }
    Key id() const { return (*entries_)[entry_].number * kChunkSize + slot_; }
    Iterator& operator++() {
      ++slot_;
      settle();
      return *this;
    }
    friend bool operator==(const Iterator& a, const Iterator& b) {
      return a.entry_ == b.entry_ && a.slot_ == b.slot_;
    }

   private:
    friend class CowTable;
    Iterator(const std::vector<Entry>* entries, std::size_t entry, Key slot)
        : entries_(entries), entry_(entry), slot_(slot) {
      settle();
    }
    // Moves forward to the next used slot, or to the end.
    void settle() {
      for (; entry_ < entries_->size(); ++entry_, slot_ = 0) {
        const auto& slots = (*entries_)[entry_].chunk->slots;
        while (slot_ < kChunkSize && !slots[slot_]) ++slot_;
        if (slot_ < kChunkSize) return;
      }
      slot_ = 0;
    }
    const std::vector<Entry>* entries_;
    std::size_t entry_;
    Key slot_;
  };

  CowTable() = default;
  CowTable(const CowTable& other)
      : entries_(other.entries_), size_(other.size_), copies_(other.count_copy()) {}
  CowTable(CowTable&& other) noexcept
      : entries_(std::move(other.entries_)),
        size_(std::exchange(other.size_, 0)),
        copies_(other.copies_.load(std::memory_order_relaxed)) {
    other.entries_.clear();
  }
  CowTable& operator=(CowTable other) noexcept {
    entries_.swap(other.entries_);
    size_ = other.size_;
    copies_.store(other.copies_.load(std::memory_order_relaxed), std::memory_order_relaxed);
    return *this;
  }

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

  // Null when the id is not in the table. The pointer lives as long as any table that holds the
  // record. Cost: a search among size/256 chunks.
  const T* find(Key id) const {
    const Pointer* slot = slot_of(id);
    return slot ? slot->get() : nullptr;
  }
  // As find(), sharing ownership.
  Pointer share(Key id) const {
    const Pointer* slot = slot_of(id);
    return slot ? *slot : Pointer{};
  }

  // Adds the record or replaces the one of that id; a null record erases. Cost: at most one chunk
  // cloned (256 reference counts), and moving the list of chunks if id is smaller than one there.
  void put(Key id, Pointer record) {
    if (!record) {
      erase(id);
      return;
    }
    std::size_t at = position(id / kChunkSize);
    if (at == entries_.size() || entries_[at].number != id / kChunkSize) {
      entries_.insert(entries_.begin() + static_cast<std::ptrdiff_t>(at),
                      Entry{id / kChunkSize, std::make_shared<Chunk>(),
                            copies_.load(std::memory_order_relaxed)});
    }
    Chunk& chunk = writable(entries_[at]);
    Pointer& slot = chunk.slots[id % kChunkSize];
    if (!slot) {
      ++chunk.used;
      ++size_;
    }
    slot = std::move(record);
  }

  // False when there was nothing. A chunk left empty is dropped.
  bool erase(Key id) {
    std::size_t at = position(id / kChunkSize);
    if (at == entries_.size() || entries_[at].number != id / kChunkSize) return false;
    if (!entries_[at].chunk->slots[id % kChunkSize]) return false;
    --size_;
    if (entries_[at].chunk->used == 1) {
      entries_.erase(entries_.begin() + static_cast<std::ptrdiff_t>(at));
      return true;
    }
    Chunk& chunk = writable(entries_[at]);
    chunk.slots[id % kChunkSize].reset();
    --chunk.used;
    return true;
  }

  Iterator begin() const { return Iterator(&entries_, 0, 0); }
  Iterator end() const { return Iterator(&entries_, entries_.size(), 0); }
  // The first record whose id is at least `id`, or end().
  Iterator begin_at(Key id) const {
    std::size_t at = position(id / kChunkSize);
    bool inside = at < entries_.size() && entries_[at].number == id / kChunkSize;
    return Iterator(&entries_, at, inside ? id % kChunkSize : 0);
  }
  // Calls visit(id, const T&) in increasing order of id.
  template <class Visit>
  void for_each(Visit&& visit) const {
    for (auto it = begin(); it != end(); ++it) visit(it.id(), *(*it).second);
  }

  // Chunks held now, and how many of them another table holds too: what a copy costs and shares.
  std::size_t chunk_count() const { return entries_.size(); }
  std::size_t shared_chunk_count() const {
    std::size_t count = 0;
    for (const Entry& entry : entries_) count += entry.chunk.use_count() > 1;
    return count;
  }

 private:
  std::size_t position(Key number) const {
    // Mostly the newest chunks are touched.
    if (entries_.empty() || entries_.back().number < number) return entries_.size();
    std::size_t low = 0, high = entries_.size() - 1;
    while (low < high) {
      std::size_t middle = (low + high) / 2;
      if (entries_[middle].number < number)
        low = middle + 1;
      else
        high = middle;
    }
    return low;
  }
  const Pointer* slot_of(Key id) const {
    std::size_t at = position(id / kChunkSize);
    if (at == entries_.size() || entries_[at].number != id / kChunkSize) return nullptr;
    return &entries_[at].chunk->slots[id % kChunkSize];
  }
  // Not by the chunk's reference count: reading that does not order our writes after the last
  // reads of whoever let go. A chunk that was shared once is never written again, by anybody.
  Chunk& writable(Entry& entry) {
    std::uint64_t copies = copies_.load(std::memory_order_relaxed);
    if (entry.made_at != copies) {
      entry.chunk = std::make_shared<Chunk>(*entry.chunk);
      entry.made_at = copies;
    }
    return *entry.chunk;
  }
  // Both sides of a copy move on to a number that no entry was made at.
  std::uint64_t count_copy() const { return copies_.fetch_add(1, std::memory_order_relaxed) + 1; }

  std::vector<Entry> entries_;
  std::size_t size_ = 0;
  // Atomic, for readers may copy one published table at the same time.
  mutable std::atomic<std::uint64_t> copies_{0};
};

}  // namespace tutti
