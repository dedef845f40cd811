// MemorySafetensors: a safetensors file in memory, tensor by tensor, for tests. It checks nothing.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

class MemorySafetensors {
 public:
  template <class Number>
  static std::string bytes_of(const std::vector<Number>& numbers) {
    std::string bytes(numbers.size() * sizeof(Number), '\0');
    // Tests run on little-endian machines.
    if (!numbers.empty()) std::memcpy(bytes.data(), numbers.data(), bytes.size());
    return bytes;
  }

  MemorySafetensors& tensor(std::string_view name, std::string_view dtype,
                            const std::vector<int64_t>& shape, const std::string& bytes) {
    if (!header_.empty()) header_ += ",";
    header_ +=
        "\"" + std::string(name) + "\":{\"dtype\":\"" + std::string(dtype) + "\",\"shape\":[";
    for (size_t i = 0; i < shape.size(); ++i) {
      header_ += (i == 0 ? "" : ",") + std::to_string(shape[i]);
    }
    header_ += "],\"data_offsets\":[" + std::to_string(data_.size()) + ",";
    data_ += bytes;
    header_ += std::to_string(data_.size()) + "]}";
    return *this;
  }
  template <class Number>
  MemorySafetensors& tensor(std::string_view name, std::string_view dtype,
                            const std::vector<int64_t>& shape, const std::vector<Number>& numbers) {
    return tensor(name, dtype, shape, bytes_of(numbers));
  }
  // Every element has the bytes of `number`.
  template <class Number>
  MemorySafetensors& filled(std::string_view name, std::string_view dtype,
                            const std::vector<int64_t>& shape, Number number) {
    size_t count = 1;
    for (const int64_t size : shape) count *= static_cast<size_t>(size);
    return tensor(name, dtype, shape, std::vector<Number>(count, number));
  }

  MemorySafetensors& written_for(std::string_view library) {
    if (!header_.empty()) header_ += ",";
    header_ += "\"__metadata__\":{\"format\":\"" + std::string(library) + "\"}";
    return *this;
  }

  std::string file() const {
    const std::string header = "{" + header_ + "}";
    std::string length(8, '\0');
    for (int i = 0; i < 8; ++i) length[i] = static_cast<char>(header.size() >> 8 * i);
    return length + header + data_;
  }

 private:
  std::string header_;
  std::string data_;
};

}  // namespace lockstep
