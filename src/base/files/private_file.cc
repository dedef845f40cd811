#include "base/files/private_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/files/file_io.h"
#include "base/files/unique_fd.h"

namespace lockstep {
namespace {

constexpr mode_t kOthers = S_IRWXG | S_IRWXO;

// By number: looking up the name may use the network.
std::string user_text(uid_t user) {
  return "user " + std::to_string(user);
}

Error private_file_error(const std::filesystem::path& path, std::string_view what) {
  return {ErrorCode::kInternal,
          path.string() + " cannot be " + std::string(what) + ": " + std::strerror(errno)};
}

// Writes a new file in the folder of `path`; on disk when this returns if `reaches_disk`.
Result<std::filesystem::path> write_beside(const std::filesystem::path& path,
                                           std::string_view content, bool reaches_disk) {
  std::string name = path.string() + ".XXXXXX";
  const UniqueFd fd(::mkstemp(name.data()));  // 0600
  if (!fd.is_open()) return private_file_error(path, "written");
  while (!content.empty()) {
    const ssize_t count = ::write(fd.get(), content.data(), content.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    content.remove_prefix(static_cast<size_t>(count));
  }
  if (!content.empty() || (reaches_disk && ::fsync(fd.get()) != 0)) {
    const Error error = private_file_error(path, "written");
    ::unlink(name.c_str());
    return error;
  }
  return std::filesystem::path(name);
}

Status replace_file(const std::filesystem::path& path, std::string_view content,
                    bool reaches_disk) {
  const std::filesystem::path written = TRY(write_beside(path, content, reaches_disk));
  if (::rename(written.c_str(), path.c_str()) != 0) {
    const Error error = private_file_error(path, "written");
    ::unlink(written.c_str());
    return error;
  }
  return Ok{};
}

void sync_folder(const std::filesystem::path& path) {
  const UniqueFd folder(::open(path.parent_path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.is_open()) ::fsync(folder.get());
}

// `refused`: permission bits that it must not have.
Result<std::string> read_guarded_file(const std::filesystem::path& path, mode_t refused) {
  const UniqueFd fd = TRY(open_regular(path));
  struct stat facts {};
  if (::fstat(fd.get(), &facts) != 0) return private_file_error(path, "read");
  const bool is_ours = facts.st_uid == ::geteuid() || facts.st_uid == 0 || ::geteuid() == 0;
  if (!is_ours) {
    return Error{ErrorCode::kInvalidArgument, path.string() + " belongs to " +
                                                  user_text(facts.st_uid) + ": run chown " +
                                                  std::to_string(::geteuid()) + " on it"};
  }
  if ((facts.st_mode & refused) != 0) {
    return Error{ErrorCode::kInvalidArgument,
                 "other users may read " + path.string() + ": run chmod 600 on it"};
  }
  if (static_cast<size_t>(facts.st_size) > kPrivateFileBytesMax) {
    return Error{ErrorCode::kCorrupt,
                 path.string() +
                     " is not a regular file of at most 1 MiB, as key files must be: replace it"};
  }
  std::string content(static_cast<size_t>(facts.st_size), '\0');
  size_t length = 0;
  while (length < content.size()) {
    const ssize_t count = ::read(fd.get(), content.data() + length, content.size() - length);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return private_file_error(path, "read");
    if (count == 0) break;
    length += static_cast<size_t>(count);
  }
  content.resize(length);
  return content;
}

}  // namespace

Status make_private_folder(const std::filesystem::path& folder) {
  std::error_code error;
  if (!folder.parent_path().empty()) {
    std::filesystem::create_directories(folder.parent_path(), error);
  }
  if (::mkdir(folder.c_str(), S_IRWXU) == 0) return Ok{};
  struct stat facts {};
  if (::stat(folder.c_str(), &facts) != 0) return private_file_error(folder, "made");
  if (!S_ISDIR(facts.st_mode)) {
    return Error{ErrorCode::kInvalidArgument, folder.string() + " is not a folder"};
  }
  if (facts.st_uid != ::geteuid()) {
    return Error{
        ErrorCode::kInvalidArgument,
        folder.string() + " belongs to " + user_text(facts.st_uid) + " and this process runs as " +
            user_text(::geteuid()) +
            ": start lockstep as that user, or set LOCKSTEP_HOME to a folder that this one owns"};
  }
  if ((facts.st_mode & kOthers) != 0) {
    return Error{ErrorCode::kInvalidArgument, "other users may enter " + folder.string() +
                                                  ", which holds keys: run chmod 700 on it"};
  }
  return Ok{};
}

Result<std::string> read_private_file(const std::filesystem::path& path) {
  return read_guarded_file(path, kOthers);
}

Result<std::string> read_secret_file(const std::filesystem::path& path) {
  constexpr const char* kSpace = " \t\r\n";
  std::string secret = TRY(read_guarded_file(path, S_IRWXO));
  secret.erase(0, std::min(secret.find_first_not_of(kSpace), secret.size()));
  secret.erase(secret.find_last_not_of(kSpace) + 1);
  if (!secret.empty()) return secret;
  return Error{ErrorCode::kInvalidArgument, path.string() + " is empty: write the secret into it"};
}

Result<bool> create_private_file(const std::filesystem::path& path, std::string_view content) {
  const std::filesystem::path written = TRY(write_beside(path, content, true));
  const bool is_first = ::link(written.c_str(), path.c_str()) == 0;  // never replaces a file
  const int reason = errno;
  ::unlink(written.c_str());
  errno = reason;
  if (!is_first && reason != EEXIST) return private_file_error(path, "written");
  sync_folder(path);
  return is_first;
}

Status replace_private_file(const std::filesystem::path& path, std::string_view content) {
  TRY(replace_file(path, content, true));
  sync_folder(path);
  return Ok{};
}

Status replace_remembered_file(const std::filesystem::path& path, std::string_view content) {
  return replace_file(path, content, false);
}

}  // namespace lockstep
