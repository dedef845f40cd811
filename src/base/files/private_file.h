// Files with a node's secrets and what it remembers: accessible to the owner only, written whole or
// not at all. Small ones; any thread.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/result.h"

namespace lockstep {

inline constexpr size_t kPrivateFileBytesMax = 1 << 20;

// Creates missing parents too. kInvalidArgument if an existing folder belongs to another user, even
// for root (that user could replace root's files, and could not read them), or if others have
// access to it.
Status make_private_folder(const std::filesystem::path& folder);
// kNotFound, or kInvalidArgument if others may read it, or if neither we nor root own it; root may
// read any owner's.
Result<std::string> read_private_file(const std::filesystem::path& path);
// A secret put there by others for this program, like systemd's credentials and mounted Secrets:
// root may own it, and its group may read it. Surrounding spaces and line ends are removed. Errors
// of read_private_file(), and kInvalidArgument if it is empty.
Result<std::string> read_secret_file(const std::filesystem::path& path);
// False, with nothing changed, if the file exists already.
Result<bool> create_private_file(const std::filesystem::path& path, std::string_view content);
Status replace_private_file(const std::filesystem::path& path, std::string_view content);
// The same, but a power cut may lose the file: it does not wait for the disk, so an event loop may
// call it.
Status replace_remembered_file(const std::filesystem::path& path, std::string_view content);

}  // namespace lockstep
