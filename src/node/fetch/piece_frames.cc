#include "node/fetch/piece_frames.h"

#include <utility>
#include <vector>

#include "base/byte_text.h"
#include "base/hex.h"
#include "cluster/state/desired_state.h"

namespace lockstep {
namespace {

constexpr uint8_t kAsk = 'q', kAnswer = 'a', kChunk = 'c', kStatus = 's', kHoldings = 'h',
                  kSeal = 'e';
constexpr uint8_t kWants = 1, kUsesHub = 2, kIsWhole = 4, kIsCopy = 8;
constexpr uint8_t kTakesCopies = 1;
constexpr size_t kHeldFilesMax = 10'000;

Error corrupt_piece(const char* what) {
  return {ErrorCode::kCorrupt, std::string("a node sent an invalid ") + what};
}

void append_text(std::vector<std::byte>& out, std::string_view text) {
  append_number(out, static_cast<uint16_t>(text.size()));
  append_bytes(out, bytes_of(text));
}

std::string read_text(ByteReader& reader) {
  const auto size = reader.number<uint16_t>();
  return std::string(text_of(reader.take(size)));
}

std::string frame_of(const std::vector<std::byte>& bytes) {
  return std::string(text_of(bytes));
}

bool is_commit(std::string_view text) {
  return text.empty() || is_hex(text, kSha1Digits);
}

bool is_hash(std::string_view text) {
  return text.empty() || is_hex(text, kSha1Digits) || is_hex(text, kSha256Digits);
}

}  // namespace

std::string encode_piece_ask(const PieceAsk& ask) {
  std::vector<std::byte> out;
  append_number(out, kAsk);
  append_number(out, static_cast<uint8_t>(ask.question));
  append_number(out,
                static_cast<uint8_t>((ask.wants ? kWants : 0) | (ask.uses_hub ? kUsesHub : 0)));
  append_text(out, ask.model);
  append_text(out, ask.commit);
  append_text(out, ask.file_hash);
  append_number(out, ask.piece);
  append_number(out, ask.piece_bytes);
  return frame_of(out);
}

Result<PieceAsk> decode_piece_ask(std::string_view frame) {
  ByteReader reader(bytes_of(frame));
  PieceAsk ask;
  const auto kind = reader.number<uint8_t>();
  const auto question = reader.number<uint8_t>();
  const auto flags = reader.number<uint8_t>();
  ask.model = read_text(reader);
  ask.commit = read_text(reader);
  ask.file_hash = read_text(reader);
  ask.piece = reader.number<uint32_t>();
  ask.piece_bytes = reader.number<uint32_t>();
  const bool is_known = question >= static_cast<uint8_t>(PieceQuestion::kStatus) &&
                        question <= static_cast<uint8_t>(PieceQuestion::kSeal);
  if (!reader.is_complete() || kind != kAsk || !is_known || flags > (kWants | kUsesHub) ||
      ask.model.empty() || ask.model.size() > kModelPathBytesMax || !is_commit(ask.commit) ||
      !is_hash(ask.file_hash) || ask.piece_bytes == 0 || ask.piece_bytes > kPieceBodyBytesMax) {
    return corrupt_piece("request for pieces");
  }
  ask.question = static_cast<PieceQuestion>(question);
  ask.wants = (flags & kWants) != 0;
  ask.uses_hub = (flags & kUsesHub) != 0;
  return ask;
}

std::string encode_piece_answer(const PieceAnswer& answer) {
  std::vector<std::byte> out;
  append_number(out, kAnswer);
  append_number(out, static_cast<uint8_t>(answer.outcome));
  append_number(out, static_cast<uint8_t>(answer.state));
  append_bytes(out, answer.digest);
  append_number(out, answer.body_bytes);
  return frame_of(out);
}

Result<PieceAnswer> decode_piece_answer(std::string_view frame) {
  ByteReader reader(bytes_of(frame));
  PieceAnswer answer;
  const auto kind = reader.number<uint8_t>();
  const auto outcome = reader.number<uint8_t>();
  const auto state = reader.number<uint8_t>();
  reader.fill(answer.digest);
  answer.body_bytes = reader.number<uint32_t>();
  if (!reader.is_complete() || kind != kAnswer ||
      outcome > static_cast<uint8_t>(PieceOutcome::kLater) ||
      state > static_cast<uint8_t>(PieceState::kFetching) ||
      answer.body_bytes > kPieceBodyBytesMax) {
    return corrupt_piece("answer with pieces");
  }
  answer.outcome = static_cast<PieceOutcome>(outcome);
  answer.state = static_cast<PieceState>(state);
  return answer;
}

std::string encode_piece_chunk(std::string_view bytes) {
  std::string frame(1, static_cast<char>(kChunk));
  frame += bytes;
  return frame;
}

Result<std::string_view> decode_piece_chunk(std::string_view frame) {
  if (frame.size() < 2 || static_cast<uint8_t>(frame[0]) != kChunk ||
      frame.size() > kPieceChunkBytes + 1) {
    return corrupt_piece("part of a piece");
  }
  return frame.substr(1);
}

std::string encode_fetch_status(const FetchStatus& status) {
  std::vector<std::byte> out;
  append_number(out, kStatus);
  append_number(
      out, static_cast<uint8_t>((status.wants ? kWants : 0) | (status.uses_hub ? kUsesHub : 0) |
                                (status.is_whole ? kIsWhole : 0) | (status.is_copy ? kIsCopy : 0)));
  append_text(out, status.commit);
  append_number(out, status.received);
  return frame_of(out);
}

Result<FetchStatus> decode_fetch_status(std::string_view body) {
  ByteReader reader(bytes_of(body));
  FetchStatus status;
  const auto kind = reader.number<uint8_t>();
  const auto flags = reader.number<uint8_t>();
  status.commit = read_text(reader);
  status.received = reader.number<uint64_t>();
  if (!reader.is_complete() || kind != kStatus ||
      flags > (kWants | kUsesHub | kIsWhole | kIsCopy) || !is_commit(status.commit)) {
    return corrupt_piece("status of a model");
  }
  status.wants = (flags & kWants) != 0;
  status.uses_hub = (flags & kUsesHub) != 0;
  status.is_whole = (flags & kIsWhole) != 0;
  status.is_copy = (flags & kIsCopy) != 0;
  return status;
}

std::string encode_piece_holdings(const PieceHoldings& holdings) {
  std::vector<std::byte> out;
  append_number(out, kHoldings);
  append_number(out, static_cast<uint8_t>(holdings.takes_copies ? kTakesCopies : 0));
  append_number(out, holdings.room_bytes);
  append_number(out, static_cast<uint32_t>(holdings.files.size()));
  for (const auto& [hash, pieces] : holdings.files) {
    append_text(out, hash);
    append_number(out, static_cast<uint32_t>(pieces.size()));
    std::vector<std::byte> bits((pieces.size() + 7) / 8);
    for (size_t i = 0; i < pieces.size(); ++i) {
      if (pieces[i]) bits[i / 8] |= std::byte{1} << i % 8;
    }
    append_bytes(out, bits);
  }
  return frame_of(out);
}

Result<PieceHoldings> decode_piece_holdings(std::string_view body) {
  ByteReader reader(bytes_of(body));
  PieceHoldings holdings;
  const auto kind = reader.number<uint8_t>();
  const auto flags = reader.number<uint8_t>();
  holdings.room_bytes = reader.number<uint64_t>();
  const auto files = reader.number<uint32_t>();
  const Error senseless = corrupt_piece("list of pieces");
  if (kind != kHoldings || flags > kTakesCopies || files > kHeldFilesMax) return senseless;
  holdings.takes_copies = flags != 0;
  for (uint32_t i = 0; i < files && !reader.has_failed(); ++i) {
    const std::string hash = read_text(reader);
    const auto count = reader.number<uint32_t>();
    const auto bits = reader.take((size_t{count} + 7) / 8);
    // Ascending, so that each value has one encoding only.
    const bool is_next = holdings.files.empty() || holdings.files.rbegin()->first < hash;
    if (reader.has_failed() || hash.empty() || !is_hash(hash) || !is_next) return senseless;
    std::vector<bool> pieces(count);
    for (size_t k = 0; k < 8 * bits.size(); ++k) {
      const bool is_set = (bits[k / 8] >> k % 8 & std::byte{1}) != std::byte{0};
      if (k >= count && is_set) return senseless;
      if (k < count) pieces[k] = is_set;
    }
    holdings.files.emplace(hash, std::move(pieces));
  }
  if (!reader.is_complete()) return senseless;
  return holdings;
}

std::string encode_seal(std::span<const Digest> digests) {
  std::vector<std::byte> out;
  append_number(out, kSeal);
  for (const Digest& digest : digests) append_bytes(out, digest);
  return frame_of(out);
}

Result<std::vector<Digest>> decode_seal(std::string_view body) {
  ByteReader reader(bytes_of(body));
  const auto kind = reader.number<uint8_t>();
  if (kind != kSeal || reader.rest().empty() || reader.rest().size() % sizeof(Digest) != 0) {
    return corrupt_piece("list of digests of a file");
  }
  std::vector<Digest> digests(reader.rest().size() / sizeof(Digest));
  for (Digest& digest : digests) reader.fill(digest);
  return digests;
}

}  // namespace lockstep
