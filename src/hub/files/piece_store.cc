#include "hub/files/piece_store.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/files/file_io.h"
#include "base/files/mapped_file.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

fs::path seal_path(const fs::path& blob) {
  return blob.string() + ".digests";
}

Status sync_folder(const fs::path& folder) {
  const UniqueFd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  // Some network file systems cannot do it, and do not need it.
  if (!fd.is_open() || (::fsync(fd.get()) != 0 && errno != EINVAL))
    return write_error(folder, errno);
  return Ok{};
}

Status rename_file(const fs::path& from, const fs::path& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) return write_error(to, errno);
  return sync_folder(to.parent_path());
}

Status write_synced(const fs::path& path, std::string_view content) {
  const int flags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NONBLOCK;
  const UniqueFd fd(::open(path.c_str(), flags, 0644));
  if (!fd.is_open()) return write_error(path, errno);
  while (!content.empty()) {
    const ssize_t put = ::write(fd.get(), content.data(), content.size());
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return write_error(path, errno);
    content.remove_prefix(static_cast<size_t>(put));
  }
  return ::fsync(fd.get()) == 0 ? Status(Ok{}) : Status(write_error(path, errno));
}

}  // namespace

fs::path PieceStore::partial_path(const fs::path& blob) {
  return blob.string() + kPartialFileEnding;
}

bool PieceStore::is_whole(const HubFile& file) const {
  std::error_code error;
  return fs::is_regular_file(blob(file), error) && fs::file_size(blob(file), error) == file.size &&
         !error;
}

Result<std::shared_ptr<RangeFile>> PieceStore::partial(const HubFile& file) {
  const std::lock_guard lock(mutex_);
  auto& entry = partials_[file.hash];
  if (!entry) {
    auto opened = RangeFile::open(partial_path(blob(file)), cut(file));
    if (!opened.ok()) {
      partials_.erase(file.hash);
      return opened.error();
    }
    entry = std::move(opened.value());
  }
  return entry;
}

std::shared_ptr<RangeFile> PieceStore::existing_partial(const HubFile& file) {
  {
    const std::lock_guard lock(mutex_);
    const auto found = partials_.find(file.hash);
    if (found != partials_.end()) return found->second;
    std::error_code error;
    if (!fs::exists(RangeFile::journal_of(partial_path(blob(file))), error)) return nullptr;
  }
  auto opened = partial(file);
  return opened.ok() ? opened.value() : nullptr;
}

Result<bool> PieceStore::read(const HubFile& file, uint32_t piece, std::span<std::byte> bytes) {
  if (!is_whole(file)) {
    const auto parts = existing_partial(file);
    if (parts) return parts->read(piece, bytes);
    if (!is_whole(file)) return false;
  }
  return read_whole(file, piece, bytes);
}

Result<bool> PieceStore::peek(const HubFile& file, uint32_t piece,
                              std::span<std::byte> bytes) const {
  if (is_whole(file)) return read_whole(file, piece, bytes);
  return RangeFile::read_piece(partial_path(blob(file)), cut(file), piece, bytes);
}

Result<bool> PieceStore::read_whole(const HubFile& file, uint32_t piece,
                                    std::span<std::byte> bytes) const {
  const UniqueFd fd = TRY(open_regular(blob(file)));
  const ByteRange range = cut(file).range(piece);
  const auto size = static_cast<ssize_t>(bytes.size());
  if (read_at(fd.get(), bytes, range.begin) == size) return true;
  return Error{ErrorCode::kInternal, fmt::format("{} cannot be read", blob(file).string())};
}

std::vector<bool> PieceStore::pieces_here(const HubFile& file) {
  std::vector<bool> here(cut(file).count(), is_whole(file));
  const auto parts = is_whole(file) ? nullptr : existing_partial(file);
  for (uint32_t piece = 0; parts && piece < here.size(); ++piece) here[piece] = parts->has(piece);
  return here;
}

Result<uint64_t> PieceStore::drop(const HubFile& file, std::span<const uint32_t> pieces) {
  uint64_t freed = 0;
  const auto parts = is_whole(file) ? nullptr : existing_partial(file);
  for (const uint32_t piece : pieces) {
    if (!parts || !parts->has(piece)) continue;
    if (!TRY(parts->drop(piece))) break;
    freed += cut(file).range(piece).size();
  }
  return freed;
}

Result<bool> PieceStore::forget_unsealed(const HubFile& file) {
  const std::vector<Digest> digests = sealed(file);
  const auto parts = is_whole(file) ? nullptr : existing_partial(file);
  bool is_any = false;
  for (uint32_t piece = 0; parts && piece < digests.size(); ++piece) {
    const auto own = parts->digest(piece);
    if (!own || *own == digests[piece]) continue;
    TRY(parts->forget(piece));
    is_any = true;
  }
  return is_any;
}

Result<bool> PieceStore::is_hash_right(const HubFile& file) {
  Hasher hasher = hasher_for(file);
  std::vector<std::byte> bytes(piece_bytes_);
  for (uint32_t piece = 0; piece < cut(file).count(); ++piece) {
    const auto part = std::span(bytes).first(cut(file).range(piece).size());
    if (!TRY(read(file, piece, part))) return false;
    hasher.add(part);
  }
  return hasher.finish_hex() == file.hash;
}

Status PieceStore::finish(const HubFile& file) {
  TRY(partial(file));  // an empty file is made here
  const std::lock_guard lock(mutex_);
  TRY(rename_file(partial_path(blob(file)), blob(file)));
  std::error_code ignored;
  fs::remove(RangeFile::journal_of(partial_path(blob(file))), ignored);
  partials_.erase(file.hash);
  return Ok{};
}

Status PieceStore::discard_whole(const HubFile& file) {
  std::error_code error;
  fs::remove(blob(file), error);
  return error ? Status(write_error(blob(file), error.value())) : Status(Ok{});
}

void PieceStore::remove_leftovers(const HubFile& file) {
  std::error_code ignored;
  const fs::path path = partial_path(blob(file));
  fs::remove(path, ignored);
  fs::remove(RangeFile::journal_of(path), ignored);
}

std::vector<Digest> PieceStore::sealed(const HubFile& file) const {
  const auto text = read_small_file(seal_path(blob(file)));
  std::vector<Digest> digests(cut(file).count());
  if (!text.ok() || text.value().size() != digests.size() * sizeof(Digest)) return {};
  std::memcpy(digests.data(), text.value().data(), text.value().size());
  return digests;
}

Status PieceStore::seal(const HubFile& file, std::span<const Digest> digests) {
  const auto bytes = std::as_bytes(digests);
  return write_file_atomically(seal_path(blob(file)),
                               {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

Status write_file_atomically(const fs::path& path, std::string_view content) {
  const fs::path temporary = fmt::format("{}.{}.tmp", path.string(), ::getpid());
  Status status = write_synced(temporary, content);
  if (status.ok()) status = rename_file(temporary, path);
  std::error_code ignored;
  if (!status.ok()) fs::remove(temporary, ignored);
  return status;
}

}  // namespace lockstep
