// Damages files.
#pragma once

#include <filesystem>
#include <fstream>

namespace lockstep {

inline void spoil_last_byte(const std::filesystem::path& file) {
  std::fstream bytes(file, std::ios::in | std::ios::out | std::ios::binary);
  bytes.seekg(-1, std::ios::end);
  const auto last = static_cast<char>(bytes.get());
  bytes.seekp(-1, std::ios::end);
  bytes.put(static_cast<char>(last ^ 1));
}

}  // namespace lockstep
