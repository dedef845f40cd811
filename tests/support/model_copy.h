// ModelCopy: a temporary copy of a checkpoint folder in which a test changes bytes of tensors and
// entries of config.json.
#pragma once

#include <doctest/doctest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

#include "json/json.h"
#include "support/golden.h"
#include "support/temporary_folder.h"

namespace lockstep {

class ModelCopy {
 public:
  explicit ModelCopy(const std::filesystem::path& from) {
    for (const auto& entry : std::filesystem::directory_iterator(from)) {
      if (entry.path().filename() == "golden.json") continue;
      std::filesystem::copy_file(entry.path(), folder_.path() / entry.path().filename());
    }
  }

  std::string path() const { return folder_.path().string(); }

  // Writes `bytes` into the tensor of "model.safetensors", starting at its byte `at`.
  void overwrite(std::string_view tensor, size_t at, std::string_view bytes) {
    std::fstream file(folder_.path() / "model.safetensors",
                      std::ios::in | std::ios::out | std::ios::binary);
    uint64_t header_size = 0;
    file.read(reinterpret_cast<char*>(&header_size), sizeof header_size);
    std::string header(header_size, '\0');
    file.read(header.data(), static_cast<std::streamsize>(header_size));
    REQUIRE(file.good());
    const auto json = parse_json(header);
    REQUIRE(json.ok());
    const Json* entry = find(json.value(), tensor);
    REQUIRE(entry != nullptr);
    const JsonArray& offsets = find(*entry, "data_offsets")->as_array();
    const auto begin = offsets[0].to_number<uint64_t>(), end = offsets[1].to_number<uint64_t>();
    REQUIRE(at + bytes.size() <= end - begin);
    file.seekp(static_cast<std::streamoff>(sizeof header_size + header_size + begin + at));
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    REQUIRE(file.good());
  }

  // `to` may not be longer than `from`.
  void rename_tensor(const std::string& from, const std::string& to) {
    const std::filesystem::path path = folder_.path() / "model.safetensors";
    std::ifstream in(path, std::ios::binary);
    std::string bytes((std::istreambuf_iterator<char>(in)), {});
    const size_t at = bytes.find('"' + from + '"');
    REQUIRE(at != std::string::npos);
    REQUIRE(to.size() <= from.size());
    bytes.replace(at, from.size() + 2, '"' + to + '"' + std::string(from.size() - to.size(), ' '));
    std::ofstream(path, std::ios::binary) << bytes;
  }

  // nullptr removes a member.
  void change_config(std::string_view key, Json value) {
    const std::string path = (folder_.path() / "config.json").string();
    Json json = json_of_file(path);
    if (value.is_null()) {
      json.as_object().erase(key);
    } else {
      json.as_object()[key] = std::move(value);
    }
    std::ofstream(path) << dump_json(json);
  }

 private:
  TemporaryFolder folder_;
};

}  // namespace lockstep
