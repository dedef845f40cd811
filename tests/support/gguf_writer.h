// GgufWriter: a GGUF file of version 3 in memory, value by value, for tests. It checks nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

class GgufWriter {
 public:
  // The format's value types.
  static constexpr uint32_t kUint8 = 0, kInt8 = 1, kUint16 = 2, kInt16 = 3, kUint32 = 4, kInt32 = 5,
                            kFloat32 = 6, kBool = 7, kString = 8, kArray = 9, kUint64 = 10,
                            kInt64 = 11, kFloat64 = 12;

  template <class Number>
  static std::string raw(Number number) {
    std::string bytes(sizeof(Number), '\0');
    std::memcpy(bytes.data(), &number, sizeof(Number));  // tests run on little-endian machines
    return bytes;
  }
  static std::string text(std::string_view text) {
    return raw<uint64_t>(text.size()) + std::string(text);
  }

  GgufWriter& value(std::string_view key, uint32_t type, std::string_view bytes) {
    metadata_ += text(key) + raw(type) + std::string(bytes);
    ++metadata_count_;
    return *this;
  }
  GgufWriter& string(std::string_view key, std::string_view content) {
    return value(key, kString, text(content));
  }
  GgufWriter& integer(std::string_view key, uint32_t number) {
    return value(key, kUint32, raw(number));
  }
  GgufWriter& number(std::string_view key, float number) {
    return value(key, kFloat32, raw(number));
  }
  GgufWriter& boolean(std::string_view key, bool is_true) {
    return value(key, kBool, raw<uint8_t>(is_true ? 1 : 0));
  }
  GgufWriter& array(std::string_view key, uint32_t type, uint64_t count, std::string_view bytes) {
    return value(key, kArray, raw(type) + raw(count) + std::string(bytes));
  }
  GgufWriter& strings(std::string_view key, const std::vector<std::string>& contents) {
    std::string bytes;
    for (const std::string& content : contents) bytes += text(content);
    return array(key, kString, contents.size(), bytes);
  }
  GgufWriter& tensor(std::string_view name, const std::vector<uint64_t>& dimensions, uint32_t type,
                     uint64_t offset) {
    tensors_ += text(name) + raw(static_cast<uint32_t>(dimensions.size()));
    for (const uint64_t dimension : dimensions) tensors_ += raw(dimension);
    tensors_ += raw(type) + raw(offset);
    ++tensor_count_;
    return *this;
  }

  // A tensor with its data, after the earlier ones; dimensions in the format's order.
  GgufWriter& tensor_with(std::string_view name, const std::vector<uint64_t>& dimensions,
                          uint32_t type, std::string_view bytes) {
    tensor(name, dimensions, type, data_.size());
    data_ += bytes;
    data_.resize((data_.size() + 31) / 32 * 32);
    return *this;
  }
  GgufWriter& floats(std::string_view name, const std::vector<uint64_t>& dimensions,
                     const std::vector<float>& values) {
    std::string bytes;
    for (const float value : values) bytes += raw(value);
    return tensor_with(name, dimensions, 0, bytes);
  }

  // With the tensors' data, or with `data_bytes` arbitrary bytes after the header.
  std::string file(size_t data_bytes = 0, uint32_t version = 3) const {
    std::string result = "GGUF" + raw(version) + raw(tensor_count_) + raw(metadata_count_);
    result += metadata_ + tensors_;
    if (data_bytes > 0 || !data_.empty()) result.resize((result.size() + 31) / 32 * 32);
    result += data_;
    result.resize(result.size() + data_bytes, '\x01');
    return result;
  }

 private:
  std::string metadata_;
  std::string tensors_;
  std::string data_;
  uint64_t metadata_count_ = 0;
  uint64_t tensor_count_ = 0;
};

}  // namespace lockstep
