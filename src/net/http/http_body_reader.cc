#include "net/http/http_body_reader.h"

#include <algorithm>
#include <utility>

#include "base/hex.h"

namespace lockstep {
namespace {

constexpr size_t kSizeDigitsMax = 15;  // 60 bits

}  // namespace

HttpBodyReader::HttpBodyReader(Framing framing, uint64_t length, std::string_view what)
    : framing_(framing),
      what_(what),
      part_(framing == Framing::kChunked ? Part::kSizeLine : Part::kContent),
      left_(framing == Framing::kLength ? length : 0),
      trailer_(HttpHeadReader::Kind::kTrailer, kTrailerLimits, "the trailer of " + what_) {
  if (framing == Framing::kLength && length == 0) state_ = State::kDone;
}

size_t HttpBodyReader::feed(std::string_view bytes, std::string& out, size_t most) {
  size_t taken = 0;
  const size_t before = out.size();
  while (state_ == State::kReading && taken < bytes.size()) {
    const std::string_view rest = bytes.substr(taken);
    if (part_ == Part::kContent) {
      const size_t room = most - (out.size() - before);
      if (room == 0) break;
      taken += take_content(rest, out, room);
    } else if (part_ == Part::kTrailer) {
      taken += trailer_.feed(rest);
      if (trailer_.state() == HttpHeadReader::State::kDone) state_ = State::kDone;
      if (trailer_.state() == HttpHeadReader::State::kFailed) {
        failure_ = trailer_.failure();
        state_ = State::kFailed;
      }
    } else {
      taken += take_line(rest);
    }
  }
  return taken;
}

bool HttpBodyReader::end() {
  if (framing_ == Framing::kToEnd && state_ == State::kReading) state_ = State::kDone;
  return state_ == State::kDone;
}

size_t HttpBodyReader::take_content(std::string_view bytes, std::string& out, size_t most) {
  size_t count = std::min(bytes.size(), most);
  if (framing_ != Framing::kToEnd) {
    count = static_cast<size_t>(std::min<uint64_t>(count, left_));
    left_ -= count;
    if (left_ == 0) {
      if (framing_ == Framing::kLength) state_ = State::kDone;
      part_ = Part::kChunkEnd;
    }
  }
  out.append(bytes.substr(0, count));
  return count;
}

// The line of a chunk's size, or the line end after the chunk.
size_t HttpBodyReader::take_line(std::string_view bytes) {
  const size_t end = bytes.find('\n');
  const size_t count = std::min(end, bytes.size() - 1) + 1;  // npos: all of it
  const size_t most = part_ == Part::kChunkEnd ? 2 : kChunkLineBytesMax;
  if (line_.size() + count > most) {
    fail(part_ == Part::kChunkEnd ? "a chunk is longer than it says"
                                  : "a chunk's line is too long");
    return count;
  }
  line_.append(bytes.substr(0, count));
  if (end == std::string_view::npos) return count;
  std::string_view line = line_;
  line.remove_suffix(1);
  if (line.empty() || line.back() != '\r') {
    fail("a line of a chunk does not end with CR LF");
    return count;
  }
  line.remove_suffix(1);
  if (part_ == Part::kChunkEnd) {
    part_ = Part::kSizeLine;
  } else {
    end_size_line(line);
  }
  line_.clear();
  return count;
}

void HttpBodyReader::end_size_line(std::string_view line) {
  size_t digits = 0;
  uint64_t size = 0;
  while (digits < line.size() && hex_digit(line[digits]) >= 0) {
    if (digits == kSizeDigitsMax) return fail("a chunk's size is too large");
    size = size * 16 + static_cast<uint64_t>(hex_digit(line[digits++]));
  }
  const std::string_view extension = line.substr(digits);
  const size_t semicolon = extension.find_first_not_of(" \t");
  const bool is_extension = semicolon != std::string_view::npos && extension[semicolon] == ';';
  if (digits == 0 || (!extension.empty() && !is_extension) || !is_field_text(extension)) {
    return fail("a chunk's size is not a hexadecimal number");
  }
  extension_bytes_ += extension.size();
  if (extension_bytes_ > kChunkExtensionBytesMax)
    return fail("its chunks have too many extensions");
  left_ = size;
  part_ = size == 0 ? Part::kTrailer : Part::kContent;
}

void HttpBodyReader::fail(std::string_view why) {
  state_ = State::kFailed;
  failure_ = {400, what_ + " is not valid HTTP: " + std::string(why)};
}

}  // namespace lockstep
