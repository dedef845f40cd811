#include "hub/files/range_file.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/crypto/hasher.h"
#include "base/files/file_io.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

UniqueFd open_for_writing(const fs::path& path) {
  return UniqueFd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
}

bool sync_data(int fd) {
#ifdef __APPLE__
  return ::fsync(fd) == 0;
#else
  return ::fdatasync(fd) == 0;
#endif
}

// A file system that cannot do it keeps the bytes, which are not read any more.
void give_back(int fd, ByteRange range) {
#ifdef __linux__
  (void)::fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(range.begin),
                    static_cast<off_t>(range.size()));
#elif defined(__APPLE__)
  // Whole blocks of the file system alone can be given back (man 2 fcntl, F_PUNCHHOLE).
  constexpr uint64_t kBlockBytes = 4096;
  const uint64_t begin = (range.begin + kBlockBytes - 1) / kBlockBytes * kBlockBytes;
  const uint64_t end = range.end / kBlockBytes * kBlockBytes;
  if (begin >= end) return;
  fpunchhole_t hole{};
  hole.fp_offset = static_cast<off_t>(begin);
  hole.fp_length = static_cast<off_t>(end - begin);
  (void)::fcntl(fd, F_PUNCHHOLE, &hole);
#else
  (void)fd;
  (void)range;
#endif
}

Result<bool> read_checked(const fs::path& path, int fd, ByteRange range, const Digest& expected,
                          std::span<std::byte> bytes) {
  LOCKSTEP_CHECK(bytes.size() == range.size());
  const ssize_t got = read_at(fd, bytes, range.begin);
  if (got < 0) {
    return Error{ErrorCode::kInternal,
                 fmt::format("{} cannot be read: {}", path.string(), std::strerror(errno))};
  }
  return static_cast<size_t>(got) == bytes.size() && sha256(bytes) == expected;
}

}  // namespace

Error write_error(const fs::path& path, int number) {
  if (number == ENOSPC || number == EDQUOT) {
    return {
        ErrorCode::kExhausted,
        fmt::format(
            "the disk is full at {}; free some space and pull again, which resumes the download",
            path.parent_path().string())};
  }
  return {ErrorCode::kInternal,
          fmt::format("{} cannot be written: {}", path.string(), std::strerror(number))};
}

RangeFile::RangeFile(fs::path path, PieceCut cut, UniqueFd data, UniqueFd journal)
    : path_(std::move(path)),
      cut_(cut),
      data_(std::move(data)),
      journal_(std::move(journal)),
      digests_(cut.count()) {}

Result<std::unique_ptr<RangeFile>> RangeFile::open(const fs::path& path, PieceCut cut) {
  UniqueFd data = open_for_writing(path);
  if (!data.is_open()) return write_error(path, errno);
  UniqueFd journal = open_for_writing(journal_of(path));
  if (!journal.is_open()) return write_error(journal_of(path), errno);
  std::unique_ptr<RangeFile> file(new RangeFile(path, cut, std::move(data), std::move(journal)));
  TRY(file->take_up_journal());
  return file;
}

std::vector<bool> RangeFile::pieces_in(const fs::path& path, PieceCut cut) {
  std::vector<bool> is_there(cut.count());
  const auto journal = open_regular(journal_of(path));
  if (!journal.ok()) return is_there;
  read_piece_journal(journal.value().get(), cut,
                     [&](uint32_t piece, const std::optional<Digest>& digest) {
                       is_there[piece] = digest.has_value();
                     });
  return is_there;
}

Result<bool> RangeFile::read_piece(const fs::path& path, PieceCut cut, uint32_t piece,
                                   std::span<std::byte> bytes) {
  const auto journal = open_regular(journal_of(path));
  const auto data = open_regular(path);
  if (!journal.ok() || !data.ok()) return false;
  std::optional<Digest> expected;
  const auto note = [&](uint32_t named, const std::optional<Digest>& digest) {
    if (named == piece) expected = digest;
  };
  read_piece_journal(journal.value().get(), cut, note);
  if (!expected) return false;
  return read_checked(path, data.value().get(), cut.range(piece), *expected, bytes);
}

uint64_t RangeFile::bytes_in(const fs::path& path, PieceCut cut) {
  const std::vector<bool> is_there = pieces_in(path, cut);
  uint64_t bytes = 0;
  for (uint32_t piece = 0; piece < cut.count(); ++piece) {
    if (is_there[piece]) bytes += cut.range(piece).size();
  }
  return bytes;
}

Status RangeFile::take_up_journal() {
  struct stat status {};
  const bool is_whole_length =
      ::fstat(data_.get(), &status) == 0 && static_cast<uint64_t>(status.st_size) == cut_.size;
  if (is_whole_length) {
    journal_end_ = read_piece_journal(
        journal_.get(), cut_,
        [&](uint32_t piece, const std::optional<Digest>& digest) { digests_[piece] = digest; });
  }
  if (journal_end_ == 0) {  // new, or of another file: its content does not count
    const std::vector<std::byte> head = encode_journal_head(cut_);
    if (::ftruncate(journal_.get(), 0) != 0 || ::ftruncate(data_.get(), 0) != 0 ||
        ::ftruncate(data_.get(), static_cast<off_t>(cut_.size)) != 0 || !sync_data(data_.get()) ||
        !write_at(journal_.get(), head, 0)) {
      return write_error(path_, errno);
    }
    journal_end_ = head.size();
  }
  if (::ftruncate(journal_.get(), static_cast<off_t>(journal_end_)) != 0) {
    return write_error(path_, errno);
  }
  return Ok{};
}

std::optional<Digest> RangeFile::digest(uint32_t piece) const {
  const std::lock_guard lock(mutex_);
  return digests_.at(piece);
}

uint64_t RangeFile::bytes_there() const {
  const std::lock_guard lock(mutex_);
  uint64_t bytes = 0;
  for (uint32_t piece = 0; piece < cut_.count(); ++piece) {
    if (digests_[piece]) bytes += cut_.range(piece).size();
  }
  return bytes;
}

Status RangeFile::write(uint32_t piece, std::span<const std::byte> bytes) {
  const ByteRange range = cut_.range(piece);
  LOCKSTEP_CHECK(bytes.size() == range.size());
  if (!write_at(data_.get(), bytes, range.begin) || !sync_data(data_.get())) {
    return write_error(path_, errno);
  }
  return append(piece, sha256(bytes));
}

Result<bool> RangeFile::read(uint32_t piece, std::span<std::byte> bytes) const {
  const auto expected = digest(piece);
  if (!expected) return false;
  return read_checked(path_, data_.get(), cut_.range(piece), *expected, bytes);
}

Status RangeFile::forget(uint32_t piece) {
  return append(piece, std::nullopt);
}

// The journal forgets the piece before its space is freed, never the other way round.
Result<bool> RangeFile::drop(uint32_t piece) {
  if (!has(piece)) return true;
  if (::flock(data_.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) return false;
    return write_error(path_, errno);
  }
  const Status forgotten = forget(piece);
  if (forgotten.ok() && sync_data(journal_.get())) {
    give_back(data_.get(), cut_.range(piece));
  }
  ::flock(data_.get(), LOCK_UN);
  if (!forgotten.ok()) return forgotten.error();
  return true;
}

Status RangeFile::append(uint32_t piece, const std::optional<Digest>& digest) {
  const std::vector<std::byte> record = encode_journal_record(piece, digest);
  const std::lock_guard lock(mutex_);
  if (!write_at(journal_.get(), record, journal_end_)) return write_error(path_, errno);
  journal_end_ += record.size();
  digests_.at(piece) = digest;
  return Ok{};
}

}  // namespace lockstep
