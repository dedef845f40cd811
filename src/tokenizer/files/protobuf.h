// ProtobufReader: reads the fields of one protobuf message in order. For sentence_piece_file.cc.
// Wire format: https://protobuf.dev/programming-guides/encoding/
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/result.h"

namespace lockstep {

struct ProtobufField {
  uint32_t number = 0;
  uint64_t integer = 0;    // of a varint or a fixed number
  std::string_view bytes;  // of a string or a message

  float as_float() const;
  bool as_bool() const { return integer != 0; }
  int32_t as_int() const { return static_cast<int32_t>(integer); }
};

class ProtobufReader {
 public:
  explicit ProtobufReader(std::string_view message) : rest_(message) {}

  // Nullopt at the end; kCorrupt if the bytes are not a message.
  Result<std::optional<ProtobufField>> next();

 private:
  Result<uint64_t> varint();
  Result<std::string_view> take(uint64_t size);

  std::string_view rest_;
};

}  // namespace lockstep
