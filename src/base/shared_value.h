// SharedValue<T>: a value whose equal copies live once. Copying it counts a reference; edit() gives
// this owner a T of its own to change. For parts of records that are the same in thousands of
// records (a job's resource limits, what it asks for): with unify() a record takes over the part
// of another one that is equal. Reads look like those of a T; every default-made SharedValue of a
// type shares one T{}.
//
// May be copied and read by several threads at once, like a shared_ptr to const.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <memory>
#include <utility>

namespace tutti {

template <class T>
concept List = requires(const T& list) {
  typename T::value_type;
  list.begin();
  list[0];
};

template <class T>
class SharedValue {
 public:
  using value_type = T;
  SharedValue() : value_(shared_default()) {}
  // NOLINTNEXTLINE(google-explicit-constructor): stands where a T stood
  SharedValue(T value) : value_(std::make_shared<T>(std::move(value))) {}

  template <class U = T>
    requires List<U>
  // NOLINTNEXTLINE(google-explicit-constructor)
  SharedValue(std::initializer_list<typename U::value_type> list) : SharedValue(T(list)) {}

  const T& get() const { return *value_; }
  const T& operator*() const { return *value_; }
  const T* operator->() const { return value_.get(); }
  // NOLINTNEXTLINE(google-explicit-constructor)
  operator const T&() const { return *value_; }

  // This owner's own value; a copy is made first, whoever else has it.
  T& edit() {
    auto own = std::make_shared<T>(*value_);
    T& value = *own;
    value_ = std::move(own);
    return value;
  }
  // Shares `other`'s value if the two are equal; says whether they are.
  bool unify(const SharedValue& other) {
    if (value_ == other.value_) return true;
    if (!(*value_ == *other.value_)) return false;
    value_ = other.value_;
    return true;
  }
  bool is_shared_default() const { return value_ == shared_default(); }

  // What a reader of a list needs, where T is one.
  auto begin() const
    requires List<T>
  {
    return value_->begin();
  }
  auto end() const
    requires List<T>
  {
    return value_->end();
  }
  std::size_t size() const
    requires List<T>
  {
    return value_->size();
  }
  bool empty() const
    requires List<T>
  {
    return value_->empty();
  }
  const auto& operator[](std::size_t index) const
    requires List<T>
  {
    return (*value_)[index];
  }
  const auto& front() const
    requires List<T>
  {
    return value_->front();
  }
  const auto& back() const
    requires List<T>
  {
    return value_->back();
  }

  friend bool operator==(const SharedValue& a, const SharedValue& b) {
    return a.value_ == b.value_ || *a.value_ == *b.value_;
  }

 private:
  static const std::shared_ptr<const T>& shared_default() {
    static const std::shared_ptr<const T> kDefault = std::make_shared<const T>();
    return kDefault;
  }
  std::shared_ptr<const T> value_;
};

}  // namespace tutti
