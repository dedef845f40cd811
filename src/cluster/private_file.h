// Files that hold a node's secrets and what it remembers: the owner's alone, written whole or not
// at all. Small ones; any thread.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/result.h"

namespace lockstep {

inline constexpr size_t kPrivateFileBytesMax = 1 << 20;

// With all above it. kInvalidArgument where others may look inside a folder that was there.
Status make_private_folder(const std::filesystem::path& folder);
// kNotFound, or kInvalidArgument where others may read it.
Result<std::string> read_private_file(const std::filesystem::path& path);
// False, and nothing is changed, if there is such a file already.
Result<bool> create_private_file(const std::filesystem::path& path, std::string_view content);
Status replace_private_file(const std::filesystem::path& path, std::string_view content);
// The same, except that a power cut may cost the file: it does not wait for the disk, so that an
// event loop may call it.
Status replace_remembered_file(const std::filesystem::path& path, std::string_view content);

}  // namespace lockstep
