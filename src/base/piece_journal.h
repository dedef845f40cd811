// Files that arrive in pieces, or of which a machine keeps a part: how they are cut, and the
// journal beside such a file (PATH.pieces) that says which pieces are there, with their SHA-256.
// hub/range_file.h writes both; mapped_file.h reads the journal, so that a hole is never taken for
// zeros. Pure functions; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <vector>

#include "base/result.h"
#include "base/secrets.h"

namespace lockstep {

struct ByteRange {
  uint64_t begin = 0;
  uint64_t end = 0;  // behind the last byte

  uint64_t size() const { return end - begin; }
  bool operator==(const ByteRange&) const = default;
};

inline constexpr uint64_t kFilePieceBytes = uint64_t{8} << 20;
// What the names of such files end in.
inline constexpr const char* kPartialFileEnding = ".lockstep";

// How a file of `size` bytes is cut: the last piece is shorter; an empty file has none.
struct PieceCut {
  uint64_t size = 0;
  uint64_t piece_bytes = kFilePieceBytes;

  uint32_t count() const { return static_cast<uint32_t>((size + piece_bytes - 1) / piece_bytes); }
  ByteRange range(uint32_t piece) const;
  bool operator==(const PieceCut&) const = default;
};

std::filesystem::path piece_journal_of(const std::filesystem::path& file);

// The journal begins with a head; then come records, in the order in which things happened.
inline constexpr uint64_t kJournalHeadBytes = 24;
std::vector<std::byte> encode_journal_head(const PieceCut& cut);
std::vector<std::byte> encode_journal_record(uint32_t piece, const std::optional<Digest>& digest);

// The end of the last sound record, 0 if it is no journal for this cut. A record that was torn is
// not believed, nor what follows it. `use` gets no digest of a piece that was forgotten.
uint64_t read_piece_journal(
    int fd, const PieceCut& cut,
    const std::function<void(uint32_t piece, const std::optional<Digest>& digest)>& use);

// The holes of a file of `size` bytes, by its journal; ascending, and none beside another. kCorrupt
// where the journal is missing or is another file's: then nothing is known to be there.
Result<std::vector<ByteRange>> missing_ranges(const std::filesystem::path& file, uint64_t size);

}  // namespace lockstep
