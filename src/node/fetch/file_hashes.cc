#include "node/fetch/file_hashes.h"

#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>
#include <vector>

#include "base/crypto/hasher.h"
#include "base/files/file_io.h"
#include "base/files/file_time.h"
#include "base/files/mapped_file.h"
#include "base/files/unique_fd.h"
#include "base/hex.h"
#include "base/log.h"
#include "hub/files/piece_store.h"
#include "json/json.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr size_t kHashReadBytes = size_t{1} << 20;

FileStamp stamp_from(const struct stat& status) {
  return {static_cast<uint64_t>(status.st_size), changed_ns(status)};
}

Result<std::string> hash_file(const fs::path& path, const std::atomic<bool>* cancelled) {
  const UniqueFd fd = TRY(open_regular(path));
  Hasher hasher(HashKind::kSha256);
  std::vector<std::byte> bytes(kHashReadBytes);
  for (;;) {
    // relaxed: only a flag, it publishes nothing.
    if (cancelled && cancelled->load(std::memory_order_relaxed)) {
      return Error{ErrorCode::kCancelled, "the check of files was stopped"};
    }
    const ssize_t got = ::read(fd.get(), bytes.data(), bytes.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      return Error{ErrorCode::kInternal, fmt::format("{} cannot be read", path.string())};
    }
    if (got == 0) return hasher.finish_hex();
    hasher.add(std::span(bytes).first(static_cast<size_t>(got)));
  }
}

}  // namespace

Result<FileStamp> stamp_of(const fs::path& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) {
    return Error{ErrorCode::kNotFound, fmt::format("there is no file {}", path.string())};
  }
  if (!S_ISREG(status.st_mode)) {
    return Error{ErrorCode::kInvalidArgument, fmt::format("{} is not a file", path.string())};
  }
  return stamp_from(status);
}

FileHashes::FileHashes(fs::path remembered) : remembered_(std::move(remembered)) {
  const auto text = read_small_file(remembered_);
  if (!text.ok()) return;  // no cache yet
  const auto json = parse_json(text.value());
  if (!json.ok() || !json.value().is_object()) return;
  for (const auto& entry : json.value().get_object()) {
    const auto size = get_int(entry.value(), "size");
    const auto changed = get_int(entry.value(), "changed_ns");
    const auto hash = get_string(entry.value(), "sha256");
    if (!size.ok() || !size.value() || !changed.ok() || !changed.value() || !hash.ok() ||
        !is_hex(hash.value().value_or(""), kSha256Digits) || known_.size() >= kFilesMax) {
      continue;
    }
    known_[std::string(entry.key())] = {{static_cast<uint64_t>(*size.value()), *changed.value()},
                                        *hash.value()};
  }
}

Result<std::string> FileHashes::sha256_of(const fs::path& path,
                                          const std::atomic<bool>* cancelled) {
  const FileStamp stamp = TRY(stamp_of(path));
  {
    const std::lock_guard lock(mutex_);
    const auto found = known_.find(path.string());
    if (found != known_.end() && found->second.stamp == stamp) return found->second.hash;
  }
  std::string hash = TRY(hash_file(path, cancelled));
  if (TRY(stamp_of(path)) != stamp) {
    return Error{ErrorCode::kCorrupt,
                 fmt::format("{} was changed while it was read", path.string())};
  }
  const std::lock_guard lock(mutex_);
  if (known_.size() >= kFilesMax) known_.erase(known_.begin());
  known_[path.string()] = {stamp, hash};
  remember_locked();
  return hash;
}

void FileHashes::remember_locked() {
  JsonObject whole;
  for (const auto& [path, known] : known_) {
    whole[path] = JsonObject{
        {"size", known.stamp.size}, {"changed_ns", known.stamp.changed_ns}, {"sha256", known.hash}};
  }
  std::error_code ignored;
  fs::create_directories(remembered_.parent_path(), ignored);
  const Status written = write_file_atomically(remembered_, dump_json(whole));
  if (!written.ok()) log_warn("node: {}", written.error().message);  // the files will be read again
}

}  // namespace lockstep
