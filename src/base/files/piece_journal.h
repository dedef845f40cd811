// Files that arrive in pieces, or of which a machine keeps only a part: how they are cut, and the
// journal next to such a file (PATH.pieces) that lists the pieces that are there, with their
// SHA-256. hub/files/range_file.h writes both; mapped_file.h reads the journal, so that a hole is
// never taken for zeros. Pure functions; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <vector>

#include "base/crypto/secrets.h"
#include "base/result.h"

namespace lockstep {

struct ByteRange {
  uint64_t begin = 0;
  uint64_t end = 0;  // after the last byte

  uint64_t size() const { return end - begin; }
  bool operator==(const ByteRange&) const = default;
};

inline constexpr uint64_t kFilePieceBytes = uint64_t{8} << 20;
// The ending of the names of such files.
inline constexpr const char* kPartialFileEnding = ".lockstep";

// How a file of `size` bytes is cut: the last piece may be shorter; an empty file has none.
struct PieceCut {
  uint64_t size = 0;
  uint64_t piece_bytes = kFilePieceBytes;

  uint32_t count() const { return static_cast<uint32_t>((size + piece_bytes - 1) / piece_bytes); }
  ByteRange range(uint32_t piece) const;
  bool operator==(const PieceCut&) const = default;
};

std::filesystem::path piece_journal_of(const std::filesystem::path& file);

// The journal begins with a head, followed by records in chronological order.
inline constexpr uint64_t kJournalHeadBytes = 24;
std::vector<std::byte> encode_journal_head(const PieceCut& cut);
std::vector<std::byte> encode_journal_record(uint32_t piece, const std::optional<Digest>& digest);

// The end of the last valid record, 0 if it is not a journal for this cut. A torn record and
// everything after it are ignored. `use` gets no digest for a piece that was forgotten.
uint64_t read_piece_journal(
    int fd, const PieceCut& cut,
    const std::function<void(uint32_t piece, const std::optional<Digest>& digest)>& use);

// The holes of a file of `size` bytes, from its journal; ascending, adjacent ones merged. kCorrupt
// if the journal is missing or belongs to another file: then no byte is known to be there.
Result<std::vector<ByteRange>> missing_ranges(const std::filesystem::path& file, uint64_t size);

}  // namespace lockstep
