// JSON text to and from values, with the library hidden in json.cpp. Records are better described
// once in base/archive.h; this is for JSON whose shape is somebody else's.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"

namespace tutti {

// Writes JSON text. Keys and values alternate inside objects; the caller keeps begin/end paired.
class JsonWriter {
 public:
  JsonWriter();
  ~JsonWriter();
  JsonWriter(const JsonWriter&) = delete;
  JsonWriter& operator=(const JsonWriter&) = delete;
  void begin_object();
  void end_object();
  void begin_array();
  void end_array();
  void key(std::string_view name);
  void string(std::string_view value);
  void integer(std::int64_t value);
  void unsigned_integer(std::uint64_t value);
  void number(double value);
  void boolean(bool value);
  void null();
  void raw(std::string_view json);  // an already encoded value
  std::string take();               // the text so far; the writer is empty afterwards

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// A node of a parsed JSON document; valid while its JsonDocument lives.
class JsonNode {
 public:
  JsonNode() = default;
  explicit JsonNode(const void* value) : value_(value) {}
  explicit operator bool() const { return value_ != nullptr; }
  bool is_object() const;
  bool is_array() const;
  bool is_string() const;
  bool is_number() const;
  bool is_bool() const;
  bool is_null() const;
  JsonNode find(std::string_view key) const;  // empty when absent or not an object
  // As find(), looking at member `next` first and leaving the one after the found in it: cheap for
  // whoever asks in the order of the text.
  JsonNode find(std::string_view key, std::size_t& next) const;
  std::size_t size() const;                   // elements of an array or object, else 0
  JsonNode at(std::size_t index) const;       // element of an array
  std::pair<std::string_view, JsonNode> member(std::size_t index) const;  // of an object
  std::string_view as_string(std::string_view fallback = {}) const;
  std::int64_t as_int(std::int64_t fallback = 0) const;
  std::uint64_t as_uint(std::uint64_t fallback = 0) const;
  // The number if it is whole and fits; a negative one or a fraction is no unsigned number.
  std::optional<std::int64_t> exact_int() const;
  std::optional<std::uint64_t> exact_uint() const;
  double as_double(double fallback = 0) const;
  bool as_bool(bool fallback = false) const;

 private:
  const void* value_ = nullptr;
};

class JsonDocument {
 public:
  // Errors: kInvalid with the byte offset. Depth is bounded (64), so is nothing else.
  static Result<JsonDocument> parse(std::string_view text);
  // Keeps the text instead of copying it: for long ones.
  static Result<JsonDocument> parse_own(std::string text);
  JsonDocument(JsonDocument&&) noexcept;
  JsonDocument& operator=(JsonDocument&&) noexcept;
  ~JsonDocument();
  JsonNode root() const;

 private:
  JsonDocument();
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tutti
