#include "base/files/piece_journal.h"

#include <fcntl.h>
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <span>

#include "base/check.h"
#include "base/crypto/hasher.h"
#include "base/files/file_io.h"
#include "base/files/unique_fd.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

struct Head {
  std::array<char, 8> magic{'l', 's', 'p', 'i', 'e', 'c', 'e', '1'};
  uint64_t size = 0;
  uint64_t piece_bytes = 0;

  bool operator==(const Head&) const = default;
};
static_assert(sizeof(Head) == kJournalHeadBytes);

struct Record {
  uint32_t piece = 0;
  uint32_t is_there = 0;  // 0: forgotten again
  Digest digest{};
  uint64_t check = 0;  // of the three above: tells a record from leftovers of a crash
};

uint64_t check_of(const Record& record) {
  const Digest digest = sha256(std::as_bytes(std::span(&record, 1)).first(offsetof(Record, check)));
  uint64_t check;
  std::memcpy(&check, digest.data(), sizeof(check));
  return check;
}

template <class Value>
std::vector<std::byte> raw_bytes(const Value& value) {
  const auto bytes = std::as_bytes(std::span(&value, 1));
  return {bytes.begin(), bytes.end()};
}

template <class Value>
bool read_value(int fd, Value& value, uint64_t offset) {
  const auto bytes = std::as_writable_bytes(std::span(&value, 1));
  return read_at(fd, bytes, offset) == static_cast<ssize_t>(bytes.size());
}

}  // namespace

ByteRange PieceCut::range(uint32_t piece) const {
  LOCKSTEP_CHECK(piece < count());
  const uint64_t begin = piece * piece_bytes;
  return {begin, std::min(begin + piece_bytes, size)};
}

fs::path piece_journal_of(const fs::path& file) {
  return file.string() + ".pieces";
}

std::vector<std::byte> encode_journal_head(const PieceCut& cut) {
  return raw_bytes(Head{.size = cut.size, .piece_bytes = cut.piece_bytes});
}

std::vector<std::byte> encode_journal_record(uint32_t piece, const std::optional<Digest>& digest) {
  Record record{.piece = piece, .is_there = digest ? 1u : 0u, .digest = digest.value_or(Digest{})};
  record.check = check_of(record);
  return raw_bytes(record);
}

uint64_t read_piece_journal(
    int fd, const PieceCut& cut,
    const std::function<void(uint32_t piece, const std::optional<Digest>& digest)>& use) {
  Head head;
  const Head expected{.size = cut.size, .piece_bytes = cut.piece_bytes};
  if (!read_value(fd, head, 0) || head != expected) return 0;
  uint64_t end = sizeof(head);
  Record record;
  while (read_value(fd, record, end) && record.check == check_of(record) &&
         record.piece < cut.count()) {
    use(record.piece, record.is_there ? std::optional(record.digest) : std::nullopt);
    end += sizeof(record);
  }
  return end;
}

Result<std::vector<ByteRange>> missing_ranges(const fs::path& file, uint64_t size) {
  const fs::path journal = piece_journal_of(file);
  const auto fd = open_regular(journal);
  Head head;
  const bool is_read = fd.ok() && read_value(fd.value().get(), head, 0);
  const PieceCut cut{.size = size, .piece_bytes = is_read ? head.piece_bytes : 0};
  std::vector<bool> is_there;
  const auto note = [&](uint32_t piece, const std::optional<Digest>& digest) {
    is_there[piece] = digest.has_value();
  };
  // A piece has at least one byte, so that their number fits.
  const bool is_sound =
      is_read && head.size == size && cut.piece_bytes > 0 && size / cut.piece_bytes < UINT32_MAX;
  if (is_sound) is_there.resize(cut.count());
  if (!is_sound || read_piece_journal(fd.value().get(), cut, note) == 0) {
    return Error{ErrorCode::kCorrupt,
                 fmt::format("{} is part of a model's file, and {}, which records which part, is "
                             "missing or damaged; load the model again",
                             file.string(), journal.filename().string())};
  }
  std::vector<ByteRange> missing;
  for (uint32_t piece = 0; piece < cut.count(); ++piece) {
    if (is_there[piece]) continue;
    const ByteRange range = cut.range(piece);
    if (!missing.empty() && missing.back().end == range.begin) {
      missing.back().end = range.end;
    } else {
      missing.push_back(range);
    }
  }
  return missing;
}

}  // namespace lockstep
