// Checkpoints whose draft layer is always right, or never: a golden case in which every layer adds
// nothing, so that a token decides the next one, and in which the draft layer hands the next
// token's embedding on, or its negative.
#pragma once

#include <doctest/doctest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "json/json.h"
#include "support/golden.h"
#include "tensor/half.h"

namespace lockstep {

// `of`: a case of kDraftGoldenCases in bfloat16 that stores its draft layer as one more layer.
inline void write_planted_drafts(const std::string& of, bool is_right,
                                 const std::filesystem::path& folder) {
  std::filesystem::create_directory(folder);
  const std::filesystem::path from = golden_folder(of);
  std::filesystem::copy_file(from / "config.json", folder / "config.json");
  std::ifstream file(from / "model.safetensors", std::ios::binary);
  std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
  uint64_t length = 0;
  REQUIRE(bytes.size() > sizeof(length));
  std::memcpy(&length, bytes.data(), sizeof(length));
  const auto header = parse_json(std::string_view(bytes.data() + sizeof(length), length));
  REQUIRE(header.ok());
  const auto values_of = [&](const Json& tensor) {
    const JsonArray& offsets = find(tensor, "data_offsets")->as_array();
    char* const data = bytes.data() + sizeof(length) + length;
    return std::pair(data + offsets[0].as_int64(), data + offsets[1].as_int64());
  };
  const auto fill = [&](const Json& tensor, float value) {
    const uint16_t bits = bf16_of(value);
    const auto [begin, end] = values_of(tensor);
    for (char* at = begin; at < end; at += sizeof(bits)) std::memcpy(at, &bits, sizeof(bits));
  };
  int planted = 0;
  for (const auto& entry : header.value().as_object()) {
    const std::string_view name = entry.key();
    if (name.ends_with("o_proj.weight") || name.ends_with("down_proj.weight")) {
      fill(entry.value(), 0);
    } else if (name.ends_with(".enorm.weight")) {
      fill(entry.value(), 1);
    } else if (name.ends_with(".shared_head.norm.weight")) {
      const auto [begin, end] = values_of(*find(header.value(), "model.norm.weight"));
      std::copy(begin, end, values_of(entry.value()).first);
    } else if (name.ends_with(".eh_proj.weight")) {
      fill(entry.value(), 0);
      const int64_t rows = find(entry.value(), "shape")->as_array()[0].as_int64();
      const uint16_t one = bf16_of(is_right ? 1.0F : -1.0F);
      for (int64_t row = 0; row < rows; ++row) {
        char* const at = values_of(entry.value()).first + (row * 2 * rows + row) * 2;
        std::memcpy(at, &one, sizeof(one));
      }
      ++planted;
    }
  }
  REQUIRE(planted == 1);
  std::ofstream out(folder / "model.safetensors", std::ios::binary);
  REQUIRE(out.write(bytes.data(), static_cast<std::streamsize>(bytes.size())).good());
}

}  // namespace lockstep
