// HttpBodyReader: finds the end of an HTTP/1.1 message's body and extracts its content (RFC 9112 6
// and 7). The lines and the trailer of a chunked body have limits of their own, because they are
// not content. Used by the parsers of net/. One thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "net/http/http_head_reader.h"

namespace lockstep {

inline constexpr size_t kChunkLineBytesMax = 256;         // the size of a chunk and its extensions
inline constexpr size_t kChunkExtensionBytesMax = 16384;  // of all chunks of a body in total
inline constexpr HttpHeadLimits kTrailerLimits = {.bytes_max = 4096, .fields_max = 32};

class HttpBodyReader {
 public:
  enum class State { kReading, kDone, kFailed };
  enum class Framing { kLength, kChunked, kToEnd };

  // `length` is only for Framing::kLength. `what` is the subject of an error: "the request body".
  HttpBodyReader(Framing framing, uint64_t length, std::string_view what);

  // Appends at most `most` bytes of content to `out`. Returns the number of bytes consumed; the
  // rest must be passed again next time.
  size_t feed(std::string_view bytes, std::string& out, size_t most);
  // No more bytes will come. False: the body is incomplete.
  bool end();

  State state() const { return state_; }
  const HttpFailure& failure() const { return failure_; }
  // Remaining content whose size is known.
  uint64_t announced_bytes() const { return framing_ == Framing::kToEnd ? 0 : left_; }

 private:
  enum class Part { kContent, kSizeLine, kChunkEnd, kTrailer };

  size_t take_content(std::string_view bytes, std::string& out, size_t most);
  size_t take_line(std::string_view bytes);
  void end_size_line(std::string_view line);
  void fail(std::string_view why);

  const Framing framing_;
  const std::string what_;
  State state_ = State::kReading;
  Part part_;
  uint64_t left_;     // of the content or chunk
  std::string line_;  // of a chunk, received so far
  size_t extension_bytes_ = 0;
  HttpHeadReader trailer_;
  HttpFailure failure_{400, ""};
};

}  // namespace lockstep
