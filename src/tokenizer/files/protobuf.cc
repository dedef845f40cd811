#include "tokenizer/files/protobuf.h"

#include <bit>

namespace lockstep {
namespace {

enum WireType : uint64_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

Error corrupt(const char* what) {
  return {ErrorCode::kCorrupt, std::string("the protobuf ") + what};
}

uint64_t little_endian(std::string_view bytes) {
  uint64_t value = 0;
  for (size_t i = 0; i < bytes.size(); ++i) {
    value |= static_cast<uint64_t>(static_cast<uint8_t>(bytes[i])) << 8 * i;
  }
  return value;
}

}  // namespace

float ProtobufField::as_float() const {
  return std::bit_cast<float>(static_cast<uint32_t>(integer));
}

Result<std::optional<ProtobufField>> ProtobufReader::next() {
  if (rest_.empty()) return std::optional<ProtobufField>();
  const uint64_t key = TRY(varint());
  ProtobufField field;
  if (key >> 3 == 0 || key >> 32 != 0) return corrupt("has a field with an impossible number");
  field.number = static_cast<uint32_t>(key >> 3);
  switch (key & 7) {
    case kVarint:
      field.integer = TRY(varint());
      break;
    case kFixed64:
      field.integer = little_endian(TRY(take(8)));
      break;
    case kFixed32:
      field.integer = little_endian(TRY(take(4)));
      break;
    case kBytes:
      field.bytes = TRY(take(TRY(varint())));
      break;
    default:
      return corrupt("has a field of an unknown kind");
  }
  return std::optional(field);
}

Result<uint64_t> ProtobufReader::varint() {
  uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    const auto byte = static_cast<uint8_t>(TRY(take(1))[0]);
    value |= static_cast<uint64_t>(byte & 0x7F) << shift;
    if (byte < 0x80) return value;
  }
  return corrupt("has a number of more than 64 bits");
}

Result<std::string_view> ProtobufReader::take(uint64_t size) {
  if (size > rest_.size()) return corrupt("ends inside a field");
  const std::string_view bytes = rest_.substr(0, size);
  rest_.remove_prefix(size);
  return bytes;
}

}  // namespace lockstep
