#include "simulator/gunzip.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>

namespace tutti::simulator {

bool is_gzip(std::string_view bytes) { return bytes.starts_with("\x1f\x8b"); }

Result<std::string> gunzip(std::string_view bytes, std::size_t most) {
  constexpr std::size_t kPiece = std::size_t{1} << 20;
  constexpr int kGzipOnly = 16 + MAX_WBITS;
  z_stream stream{};
  if (inflateInit2(&stream, kGzipOnly) != Z_OK)
    return fail(ErrorCode::kExhausted, "no memory to unpack gzip");
  std::string out;
  std::size_t used = 0, read = 0;
  int state = Z_OK;
  while (state == Z_OK) {
    if (out.size() - used < kPiece) out.resize(std::max(out.size() * 2, kPiece * 2));
    const std::size_t piece = std::min(bytes.size() - read, kPiece);
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data() + read));
    stream.avail_in = static_cast<uInt>(piece);
    stream.next_out = reinterpret_cast<Bytef*>(out.data() + used);
    stream.avail_out = static_cast<uInt>(std::min(out.size() - used, kPiece));
    const uInt room = stream.avail_out;
    state = inflate(&stream, Z_NO_FLUSH);
    read += piece - stream.avail_in;
    used += room - stream.avail_out;
    if (used > most) state = Z_MEM_ERROR;
    // Another member follows, or padding that nobody needs.
    if (state == Z_STREAM_END && is_gzip(bytes.substr(read))) state = inflateReset(&stream);
  }
  inflateEnd(&stream);
  out.resize(used);
  if (state == Z_STREAM_END) return out;
  if (state == Z_MEM_ERROR)
    return fail(ErrorCode::kExhausted, fmt::format("more than {} bytes unpacked", most));
  return fail(ErrorCode::kCorrupt,
              read == bytes.size() ? "the gzip data ends early"
                                   : fmt::format("the gzip data is damaged near byte {}", read));
}

}  // namespace tutti::simulator
