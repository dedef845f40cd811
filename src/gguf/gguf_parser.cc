#include "gguf/gguf_parser.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace lockstep {
namespace {

constexpr uint64_t kAlignmentDefault = 32;
constexpr uint64_t kAlignmentMax = 1 << 20;
constexpr std::string_view kAlignmentKey = "general.alignment";

// The format's value types.
enum ValueType : uint32_t {
  kUint8 = 0,
  kInt8 = 1,
  kUint16 = 2,
  kInt16 = 3,
  kUint32 = 4,
  kInt32 = 5,
  kFloat32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kUint64 = 10,
  kInt64 = 11,
  kFloat64 = 12,
};

Error corrupt_gguf(std::string message) {
  return {ErrorCode::kCorrupt, std::move(message)};
}

Error bad_gguf_tensor(std::string_view name, const std::string& what) {
  return corrupt_gguf("the GGUF tensor \"" + std::string(name) + "\" " + what);
}

// 0 for types that are not numbers.
size_t number_bytes(uint32_t type) {
  switch (type) {
    case kUint8:
    case kInt8:
    case kBool:
      return 1;
    case kUint16:
    case kInt16:
      return 2;
    case kUint32:
    case kInt32:
    case kFloat32:
      return 4;
    case kUint64:
    case kInt64:
    case kFloat64:
      return 8;
    default:
      return 0;
  }
}

uint64_t little_endian(std::span<const std::byte> bytes) {
  uint64_t value = 0;
  for (size_t i = 0; i < bytes.size(); ++i) value |= std::to_integer<uint64_t>(bytes[i]) << 8 * i;
  return value;
}

// Nullopt beyond 64 bits, or if a row is not a whole number of blocks.
std::optional<uint64_t> blocks_bytes(const std::vector<uint64_t>& dimensions,
                                     const GgufBlock& block) {
  const uint64_t row = dimensions.empty() ? 1 : dimensions[0];
  if (row % block.elements != 0) return std::nullopt;
  uint64_t bytes = block.bytes;
  if (__builtin_mul_overflow(bytes, row / block.elements, &bytes)) return std::nullopt;
  for (size_t i = 1; i < dimensions.size(); ++i) {
    if (__builtin_mul_overflow(bytes, dimensions[i], &bytes)) return std::nullopt;
  }
  return bytes;
}

// The format wants lower_snake_case words with dots; keys appear in errors for the user.
bool is_key(std::string_view text) {
  return !text.empty() && text.size() <= kGgufNameBytesMax &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; });
}

}  // namespace

GgufValue gguf_number(uint32_t value_type, std::span<const std::byte> bytes) {
  const uint64_t bits = little_endian(bytes);
  switch (value_type) {
    case kInt8:
      return int64_t{static_cast<int8_t>(bits)};
    case kInt16:
      return int64_t{static_cast<int16_t>(bits)};
    case kInt32:
      return int64_t{static_cast<int32_t>(bits)};
    case kInt64:
      return static_cast<int64_t>(bits);
    case kFloat32:
      return double{std::bit_cast<float>(static_cast<uint32_t>(bits))};
    case kFloat64:
      return std::bit_cast<double>(bits);
    case kBool:
      return bits != 0;
    default:
      if (bits > INT64_MAX) return bits;
      return static_cast<int64_t>(bits);
  }
}

Result<GgufFile> GgufParser::parse() {
  GgufFile result;
  TRY(read_header());
  TRY(read_metadata(result));
  TRY(read_tensors(result));
  TRY(place_tensors(result));
  return result;
}

Status GgufParser::read_header() {
  if (!GgufFile::has_magic(file_)) return corrupt_gguf("the file does not begin with \"GGUF\"");
  position_ = kGgufMagic.size();
  const uint64_t version = TRY(read_unsigned(4));
  if (version > 0xFFFF) {
    return Error{ErrorCode::kUnsupported, "big-endian GGUF files are not supported"};
  }
  if (version != 2 && version != 3) {
    return Error{ErrorCode::kUnsupported, "GGUF version " + std::to_string(version) +
                                              " is not supported; versions 2 and 3 are"};
  }
  tensor_count_ = TRY(read_unsigned(8));
  metadata_count_ = TRY(read_unsigned(8));
  if (tensor_count_ > kGgufTensorsMax || metadata_count_ > kGgufMetadataMax) {
    return corrupt_gguf("the GGUF header claims " + std::to_string(tensor_count_) +
                        " tensors and " + std::to_string(metadata_count_) +
                        " values, more than any model has");
  }
  return Ok{};
}

Status GgufParser::read_metadata(GgufFile& result) {
  for (uint64_t i = 0; i < metadata_count_; ++i) {
    const std::string_view key = TRY(read_string());
    if (!is_key(key)) {
      return corrupt_gguf("GGUF value " + std::to_string(i) + " has an invalid key of " +
                          std::to_string(key.size()) + " bytes");
    }
    const auto type = static_cast<uint32_t>(TRY(read_unsigned(4)));
    auto value = read_value(type);
    if (!value.ok()) {
      return Error{value.error().code,
                   "GGUF value " + std::string(key) + ": " + value.error().message};
    }
    if (!result.metadata_.emplace(key, std::move(value.value())).second) {
      return corrupt_gguf("the GGUF value " + std::string(key) + " appears twice");
    }
  }
  const auto alignment = TRY(result.integer(kAlignmentKey));
  alignment_ = static_cast<uint64_t>(alignment.value_or(kAlignmentDefault));
  if (alignment_ == 0 || alignment_ > kAlignmentMax || alignment_ % 8 != 0) {
    return corrupt_gguf("general.alignment is " + std::to_string(*alignment) +
                        ", which is not a multiple of 8 up to " + std::to_string(kAlignmentMax));
  }
  return Ok{};
}

Status GgufParser::read_tensors(GgufFile& result) {
  for (uint64_t i = 0; i < tensor_count_; ++i) {
    result.tensors_.push_back(TRY(read_tensor()));
    const std::string_view name = result.tensors_.back().name;
    if (!result.tensor_index_.emplace(name, i).second)
      return bad_gguf_tensor(name, "appears twice");
  }
  return Ok{};
}

Result<GgufTensor> GgufParser::read_tensor() {
  GgufTensor tensor;
  tensor.name = TRY(read_string());
  if (tensor.name.size() > kGgufNameBytesMax) {
    return corrupt_gguf("a GGUF tensor has a name of " + std::to_string(tensor.name.size()) +
                        " bytes");
  }
  const uint64_t dimension_count = TRY(read_unsigned(4));
  if (dimension_count > kGgufDimensionsMax) {
    return bad_gguf_tensor(tensor.name, "has " + std::to_string(dimension_count) +
                                            " dimensions, more than " +
                                            std::to_string(kGgufDimensionsMax));
  }
  for (uint64_t i = 0; i < dimension_count; ++i) {
    tensor.dimensions.push_back(TRY(read_unsigned(8)));
  }
  tensor.type_id = static_cast<uint32_t>(TRY(read_unsigned(4)));
  tensor.offset = TRY(read_unsigned(8));  // within the data, until place_tensors()
  return tensor;
}

// The data begin at the next multiple of the alignment; tensors must not overlap there.
Status GgufParser::place_tensors(GgufFile& result) {
  const uint64_t data_begin = (position_ + alignment_ - 1) / alignment_ * alignment_;
  std::vector<const GgufTensor*> in_order;
  for (GgufTensor& tensor : result.tensors_) {
    if (tensor.offset % alignment_ != 0) {
      return bad_gguf_tensor(tensor.name, "begins at byte " + std::to_string(tensor.offset) +
                                              ", which is not aligned to " +
                                              std::to_string(alignment_));
    }
    if (__builtin_add_overflow(tensor.offset, data_begin, &tensor.offset) ||
        tensor.offset > file_.size()) {
      return bad_gguf_tensor(tensor.name, "begins past the end of the file");
    }
    const auto block = gguf_block(tensor.type_id);
    if (!block) continue;
    const auto bytes = blocks_bytes(tensor.dimensions, *block);
    if (!bytes) {
      return bad_gguf_tensor(tensor.name,
                             "has a shape that " + std::string(block->name) + " cannot store");
    }
    if (*bytes > file_.size() - tensor.offset) {
      return bad_gguf_tensor(tensor.name, "needs " + std::to_string(*bytes) + " bytes at " +
                                              std::to_string(tensor.offset) + " but the file has " +
                                              std::to_string(file_.size()));
    }
    tensor.bytes = file_.subspan(tensor.offset, *bytes);
    in_order.push_back(&tensor);
  }
  std::sort(in_order.begin(), in_order.end(), [](const GgufTensor* a, const GgufTensor* b) {
    return std::pair(a->offset, a->bytes.size()) < std::pair(b->offset, b->bytes.size());
  });
  for (size_t i = 1; i < in_order.size(); ++i) {
    const GgufTensor& before = *in_order[i - 1];
    if (before.offset + before.bytes.size() > in_order[i]->offset) {
      return bad_gguf_tensor(in_order[i]->name, "overlaps " + std::string(before.name));
    }
  }
  return Ok{};
}

Result<GgufValue> GgufParser::read_value(uint32_t type) {
  if (type == kString) return GgufValue(TRY(read_string()));
  if (type == kArray) return GgufValue(TRY(read_array(1)));
  const size_t size = number_bytes(type);
  if (size == 0) return corrupt_gguf("the value type " + std::to_string(type) + " does not exist");
  return gguf_number(type, TRY(take(size)));
}

Result<GgufArray> GgufParser::read_array(int depth) {
  if (depth > kGgufArrayDepthMax) {
    return Error{ErrorCode::kUnsupported,
                 "arrays in arrays, deeper than " + std::to_string(kGgufArrayDepthMax)};
  }
  GgufArray array;
  const auto type = static_cast<uint32_t>(TRY(read_unsigned(4)));
  array.count = TRY(read_unsigned(8));
  if (const size_t size = number_bytes(type); size > 0) {
    array.number_type = type;
    uint64_t bytes = 0;
    if (__builtin_mul_overflow(array.count, uint64_t{size}, &bytes)) bytes = UINT64_MAX;
    array.numbers = TRY(take(bytes));
    return array;
  }
  if (type != kString && type != kArray) {
    return corrupt_gguf("the value type " + std::to_string(type) + " does not exist");
  }
  // Each element has at least the 8 bytes of a length.
  if (array.count > (file_.size() - position_) / 8) {
    return corrupt_gguf("an array claims " + std::to_string(array.count) +
                        " elements, more than the file has room for");
  }
  for (uint64_t i = 0; i < array.count; ++i) {
    if (type == kString) {
      array.strings.push_back(TRY(read_string()));
    } else {
      array.arrays.push_back(TRY(read_array(depth + 1)));
    }
  }
  return array;
}

Result<std::string_view> GgufParser::read_string() {
  const uint64_t size = TRY(read_unsigned(8));
  const auto bytes = TRY(take(size));
  return std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

Result<uint64_t> GgufParser::read_unsigned(size_t size) {
  return little_endian(TRY(take(size)));
}

Result<std::span<const std::byte>> GgufParser::take(uint64_t size) {
  if (size > file_.size() - position_) {
    return corrupt_gguf("the GGUF file ends at byte " + std::to_string(file_.size()) + ", but " +
                        std::to_string(size) + " bytes are needed at " + std::to_string(position_));
  }
  const auto bytes = file_.subspan(position_, size);
  position_ += size;
  return bytes;
}

}  // namespace lockstep
