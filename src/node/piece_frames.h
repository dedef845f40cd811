// What nodes say to each other on a stream of kind "pieces", as frames: one question, its answer,
// and where the answer has a body, that in chunks; then the next question. Pure functions; what
// comes from another node is checked here for its form, and by piece_host.h for its meaning.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/secrets.h"
#include "hub/range_file.h"

namespace lockstep {

inline constexpr const char* kPieceChannel = "pieces";
inline constexpr size_t kPieceChunkBytes = size_t{512} << 10;
inline constexpr size_t kPieceBodyBytesMax = size_t{16} << 20;  // a piece, or a list of files

enum class PieceQuestion : uint8_t {
  kStatus = 1,  // what this node has of the model, and whether it fetches it; body: FetchStatus
  kList = 2,    // its files; body: as hub/model_files.h writes them
  kPiece = 3,   // body: its bytes
  kDigest = 4,
  kState = 5,     // of a piece: whether it is here or being fetched
  kHoldings = 6,  // which pieces are here; body: PieceHoldings
  kSeal = 7,      // of a file whose hash was checked; body: the digests of all pieces
};

enum class PieceState : uint8_t { kIdle, kClaimed, kFetching };

struct PieceAsk {
  PieceQuestion question = PieceQuestion::kStatus;
  std::string model;      // as users write it: DesiredEntry.path
  std::string commit;     // 40 hex digits; empty: not known yet
  std::string file_hash;  // hex digits; empty where no file is meant
  uint32_t piece = 0;
  uint32_t piece_bytes = 0;  // how the asking node cuts files
  // Of the asking node, with kStatus: it fetches the model itself, also from the hub.
  bool wants = false;
  bool uses_hub = false;

  bool operator==(const PieceAsk&) const = default;
};

enum class PieceOutcome : uint8_t { kNo, kYes, kLater };

struct PieceAnswer {
  PieceOutcome outcome = PieceOutcome::kNo;
  PieceState state = PieceState::kIdle;  // where the piece is not here
  Digest digest{};                       // of a piece that is
  uint32_t body_bytes = 0;               // so many follow, in chunks

  bool operator==(const PieceAnswer&) const = default;
};

// What a node tells of one model.
struct FetchStatus {
  std::string commit;     // of what it has or fetches; empty: nothing, or not known yet
  bool is_whole = false;  // all files are there
  bool is_copy = false;   // of another node's folder, which may have changed since
  bool wants = false;     // it fetches them now
  bool uses_hub = false;  // also from the hub
  uint64_t received = 0;  // bytes, from the hub

  bool operator==(const FetchStatus&) const = default;
};

// What a node keeps of one model.
struct PieceHoldings {
  bool takes_copies = false;  // it keeps its share of models, and copies of others' shares
  uint64_t room_bytes = 0;    // free on its disk
  // By the hash of the file; of small ones and whole ones all.
  std::map<std::string, std::vector<bool>> files;

  bool operator==(const PieceHoldings&) const = default;
};

std::string encode_piece_ask(const PieceAsk& ask);
std::string encode_piece_answer(const PieceAnswer& answer);
std::string encode_piece_chunk(std::string_view bytes);
std::string encode_fetch_status(const FetchStatus& status);
std::string encode_piece_holdings(const PieceHoldings& holdings);
std::string encode_seal(std::span<const Digest> digests);

// kCorrupt for what none of the above has written.
Result<PieceAsk> decode_piece_ask(std::string_view frame);
Result<PieceAnswer> decode_piece_answer(std::string_view frame);
// A view into the frame.
Result<std::string_view> decode_piece_chunk(std::string_view frame);
Result<FetchStatus> decode_fetch_status(std::string_view body);
Result<PieceHoldings> decode_piece_holdings(std::string_view body);
Result<std::vector<Digest>> decode_seal(std::string_view body);

}  // namespace lockstep
