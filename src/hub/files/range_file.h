// RangeFile: a file that arrives in pieces, in any order, and a journal (PATH.pieces) of the pieces
// that are here. A piece is written and on disk (fdatasync) before the journal names it, and torn
// records are ignored, so that after `kill -9` or a power loss no missing piece counts as here. The
// journal keeps the SHA-256 of each piece: later changes by the disk are detected, and machines can
// compare. Any thread; two writers of one piece would be a bug.
#pragma once

#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "base/crypto/secrets.h"
#include "base/files/piece_journal.h"
#include "base/files/unique_fd.h"
#include "base/result.h"

namespace lockstep {

class RangeFile {
 public:
  // Continues an earlier process's file; starts over if size or cut differ. kExhausted for a full
  // disk, kInternal for one that cannot be written.
  static Result<std::unique_ptr<RangeFile>> open(const std::filesystem::path& path, PieceCut cut);
  // Read-only, for listings: the pieces that are here, none without a journal.
  static std::vector<bool> pieces_in(const std::filesystem::path& path, PieceCut cut);
  static uint64_t bytes_in(const std::filesystem::path& path, PieceCut cut);
  // Likewise a piece, even while the file is written; false if it is missing or was changed.
  static Result<bool> read_piece(const std::filesystem::path& path, PieceCut cut, uint32_t piece,
                                 std::span<std::byte> bytes);

  const PieceCut& cut() const { return cut_; }
  bool has(uint32_t piece) const { return digest(piece).has_value(); }
  std::optional<Digest> digest(uint32_t piece) const;
  uint64_t bytes_there() const;

  Status write(uint32_t piece, std::span<const std::byte> bytes);
  // False if the piece is missing, or is not what was written.
  Result<bool> read(uint32_t piece, std::span<std::byte> bytes) const;
  Status forget(uint32_t piece);
  // Forgets the piece and frees its disk space, where the system can. False: the file is mapped now
  // (base/files/mapped_file.h), and nothing was done.
  Result<bool> drop(uint32_t piece);

  static std::filesystem::path journal_of(const std::filesystem::path& path) {
    return piece_journal_of(path);
  }

 private:
  RangeFile(std::filesystem::path path, PieceCut cut, UniqueFd data, UniqueFd journal);
  Status take_up_journal();
  Status append(uint32_t piece, const std::optional<Digest>& digest);

  const std::filesystem::path path_;
  const PieceCut cut_;
  const UniqueFd data_;
  const UniqueFd journal_;
  mutable std::mutex mutex_;  // guards what follows
  std::vector<std::optional<Digest>> digests_;
  uint64_t journal_end_ = 0;
};

// Why a file could not be written: kExhausted for a full disk.
Error write_error(const std::filesystem::path& path, int number);

}  // namespace lockstep
