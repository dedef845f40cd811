// TarArchive: several files in one, in the format that every `tar` reads (POSIX ustar), built in
// memory. For fault reports. A value; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace lockstep {

class TarArchive {
 public:
  static constexpr size_t kNameBytesMax = 99;
  static constexpr size_t kBytesMax = size_t{64} << 20;

  explicit TarArchive(int64_t modified_s) : modified_s_(modified_s) {}

  // A regular file (0644). kInvalidArgument for an empty name or one beyond kNameBytesMax,
  // kExhausted beyond kBytesMax.
  Status add(std::string_view name, std::string_view content);
  // The whole archive.
  std::string bytes() const;

 private:
  int64_t modified_s_;  // since 1970, of all files
  std::string blocks_;
};

}  // namespace lockstep
