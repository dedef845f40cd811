// Messages of a "pieces" stream between nodes, as frames: one question, its answer, the answer's
// body in chunks, if any; then the next question. Pure functions; they check the form of what
// another node sent, piece_host.h its meaning.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/crypto/secrets.h"
#include "base/result.h"
#include "hub/files/range_file.h"

namespace lockstep {

inline constexpr const char* kPieceChannel = "pieces";
inline constexpr size_t kPieceChunkBytes = size_t{512} << 10;
inline constexpr size_t kPieceBodyBytesMax = size_t{16} << 20;  // a piece, or a list of files

enum class PieceQuestion : uint8_t {
  kStatus = 1,  // what this node has of the model, and whether it fetches it; body: FetchStatus
  kList = 2,    // its files; body: see hub/files/model_files.h
  kPiece = 3,   // body: its bytes
  kDigest = 4,
  kState = 5,     // of a piece: here, or being fetched
  kHoldings = 6,  // which pieces are here; body: PieceHoldings
  kSeal = 7,      // of a file whose hash was checked; body: the digests of all pieces
};

enum class PieceState : uint8_t { kIdle, kClaimed, kFetching };

struct PieceAsk {
  PieceQuestion question = PieceQuestion::kStatus;
  std::string model;      // as users write it: DesiredEntry.path
  std::string commit;     // 40 hex digits; empty: not known yet
  std::string file_hash;  // hex digits; empty if no file is meant
  uint32_t piece = 0;
  uint32_t piece_bytes = 0;  // how the asking node cuts files
  // With kStatus: the asking node fetches the model itself; it also uses the hub.
  bool wants = false;
  bool uses_hub = false;

  bool operator==(const PieceAsk&) const = default;
};

enum class PieceOutcome : uint8_t { kNo, kYes, kLater };

struct PieceAnswer {
  PieceOutcome outcome = PieceOutcome::kNo;
  PieceState state = PieceState::kIdle;  // if the piece is not here
  Digest digest{};                       // if it is here
  uint32_t body_bytes = 0;               // in the chunks that follow

  bool operator==(const PieceAnswer&) const = default;
};

// A node's report on one model.
struct FetchStatus {
  std::string commit;     // what it has or fetches; empty: nothing, or not known yet
  bool is_whole = false;  // all files are here
  bool is_copy = false;   // of another node's folder, which may have changed since
  bool wants = false;     // it fetches them now
  bool uses_hub = false;  // also from the hub
  uint64_t received = 0;  // bytes, from the hub

  bool operator==(const FetchStatus&) const = default;
};

// The pieces of one model that a node keeps.
struct PieceHoldings {
  bool takes_copies = false;  // it keeps its share of models, and copies of others' shares
  uint64_t room_bytes = 0;    // free on its disk
  // By the file's hash; small and whole files have all pieces.
  std::map<std::string, std::vector<bool>> files;

  bool operator==(const PieceHoldings&) const = default;
};

std::string encode_piece_ask(const PieceAsk& ask);
std::string encode_piece_answer(const PieceAnswer& answer);
std::string encode_piece_chunk(std::string_view bytes);
std::string encode_fetch_status(const FetchStatus& status);
std::string encode_piece_holdings(const PieceHoldings& holdings);
std::string encode_seal(std::span<const Digest> digests);

// kCorrupt for anything that the functions above do not write.
Result<PieceAsk> decode_piece_ask(std::string_view frame);
Result<PieceAnswer> decode_piece_answer(std::string_view frame);
// A view into the frame.
Result<std::string_view> decode_piece_chunk(std::string_view frame);
Result<FetchStatus> decode_fetch_status(std::string_view body);
Result<PieceHoldings> decode_piece_holdings(std::string_view body);
Result<std::vector<Digest>> decode_seal(std::string_view body);

}  // namespace lockstep
