// Files of Linux's /proc and /sys: text, or one number or word.
#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>

namespace lockstep {

// Empty if the file cannot be read, here and below.
inline std::string text_in(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Nullopt if the file cannot be read or does not begin with a number.
template <class Value>
std::optional<Value> number_in(const std::filesystem::path& path) {
  std::ifstream file(path);
  Value value = 0;
  return file >> value ? std::optional(value) : std::nullopt;
}

inline std::string word_in(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::string word;
  file >> word;
  return word;
}

}  // namespace lockstep
