#include "journal/blob.h"

#include <fmt/format.h>

// The one-shot EVP interface loads OpenSSL's providers (about 1 ms at first use); the block
// functions are deprecated in its favour but need nothing.
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/sha.h>

namespace tutti::journal {

BlobId blob_id(std::string_view data) {
  SHA256_CTX context;
  std::array<std::uint8_t, SHA256_DIGEST_LENGTH> digest;
  SHA256_Init(&context);
  SHA256_Update(&context, data.data(), data.size());
  SHA256_Final(digest.data(), &context);
  BlobId id;
  std::copy_n(digest.begin(), id.bytes.size(), id.bytes.begin());
  return id;
}

std::string to_string(const BlobId& id) {
  std::string text;
  for (std::uint8_t byte : id.bytes) text += fmt::format("{:02x}", byte);
  return text;
}

namespace {
int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}
}  // namespace

Result<BlobId> parse_blob_id(std::string_view text) {
  BlobId id;
  if (text.size() != 2 * id.bytes.size()) {
    return invalid(fmt::format("blob id \"{}\": expected 32 hexadecimal digits", text));
  }
  for (std::size_t i = 0; i < id.bytes.size(); ++i) {
    const int high = hex_digit(text[2 * i]);
    const int low = hex_digit(text[2 * i + 1]);
    if (high < 0 || low < 0) {
      return invalid(fmt::format("blob id \"{}\": expected lower-case hexadecimal digits", text));
    }
    id.bytes[i] = static_cast<std::uint8_t>(high * 16 + low);
  }
  return id;
}

}  // namespace tutti::journal
