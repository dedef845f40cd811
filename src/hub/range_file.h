// RangeFile: a file that arrives in pieces, in any order, and a journal beside it (PATH.pieces) of
// the pieces that are there. A piece is written and on the disk (fdatasync) before the journal
// names it, and a record that was torn is not believed, so that after `kill -9` or a loss of power
// nothing is taken for there that is not. The journal keeps the SHA-256 of each piece: what the
// disk changes later is found, and machines can compare. Any thread; two writers of one piece would
// be a mistake.
#pragma once

#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "base/piece_journal.h"
#include "base/result.h"
#include "base/secrets.h"
#include "base/unique_fd.h"

namespace lockstep {

class RangeFile {
 public:
  // Takes up what an earlier process left; of another size or cut it is begun anew. kExhausted for
  // a full disk, kInternal for one that cannot be written.
  static Result<std::unique_ptr<RangeFile>> open(const std::filesystem::path& path, PieceCut cut);
  // Only looks, for those who list what there is: which pieces are there, none without a journal.
  static std::vector<bool> pieces_in(const std::filesystem::path& path, PieceCut cut);
  static uint64_t bytes_in(const std::filesystem::path& path, PieceCut cut);
  // Likewise a piece, whoever writes the file; false if it is not there or not what was written.
  static Result<bool> read_piece(const std::filesystem::path& path, PieceCut cut, uint32_t piece,
                                 std::span<std::byte> bytes);

  const PieceCut& cut() const { return cut_; }
  bool has(uint32_t piece) const { return digest(piece).has_value(); }
  std::optional<Digest> digest(uint32_t piece) const;
  uint64_t bytes_there() const;

  Status write(uint32_t piece, std::span<const std::byte> bytes);
  // False if the piece is not there, or is not what was written.
  Result<bool> read(uint32_t piece, std::span<std::byte> bytes) const;
  Status forget(uint32_t piece);
  // Forgets the piece and gives its room on the disk back, where the system can. False: somebody
  // has the file mapped now (base/mapped_file.h), and nothing was done.
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
  mutable std::mutex mutex_;  // of what follows
  std::vector<std::optional<Digest>> digests_;
  uint64_t journal_end_ = 0;
};

// Why a file could not be written: kExhausted for a full disk.
Error write_error(const std::filesystem::path& path, int number);

}  // namespace lockstep
