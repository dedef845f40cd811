#include "node/fetch/piece_frames.h"

#include <doctest/doctest.h>

using namespace lockstep;

namespace {

const std::string kCommit = "c0ffee" + std::string(34, '0');

PieceAsk example() {
  return {.question = PieceQuestion::kPiece,
          .model = "org/tiny",
          .commit = kCommit,
          .file_hash = std::string(64, 'a'),
          .piece = 7,
          .piece_bytes = 8 << 20,
          .wants = true,
          .uses_hub = true};
}

}  // namespace

TEST_CASE("piece frames: they are read as written") {
  CHECK(decode_piece_ask(encode_piece_ask(example())).value() == example());
  PieceAnswer answer{.outcome = PieceOutcome::kYes,
                     .state = PieceState::kFetching,
                     .body_bytes = kPieceBodyBytesMax};
  answer.digest.fill(std::byte{9});
  CHECK(decode_piece_answer(encode_piece_answer(answer)).value() == answer);
  const FetchStatus status{.commit = kCommit,
                           .is_whole = true,
                           .wants = true,
                           .uses_hub = false,
                           .received = 1ull << 40};
  CHECK(decode_fetch_status(encode_fetch_status(status)).value() == status);
  CHECK(decode_piece_chunk(encode_piece_chunk("bytes")).value() == "bytes");
}

TEST_CASE("piece frames: malformed frames and those over a limit are refused") {
  const std::string whole = encode_piece_ask(example());
  for (size_t size = 0; size < whole.size(); ++size) {
    CHECK(!decode_piece_ask(whole.substr(0, size)).ok());
  }
  CHECK(!decode_piece_ask(whole + "x").ok());
  const auto changed = [](auto change) {
    PieceAsk ask = example();
    change(ask);
    return decode_piece_ask(encode_piece_ask(ask)).ok();
  };
  CHECK(!changed([](PieceAsk& ask) { ask.model = ""; }));
  CHECK(!changed([](PieceAsk& ask) { ask.model = std::string(5000, 'm'); }));
  CHECK(!changed([](PieceAsk& ask) { ask.commit = "main"; }));
  CHECK(!changed([](PieceAsk& ask) { ask.file_hash = "../../etc/passwd"; }));
  CHECK(!changed([](PieceAsk& ask) { ask.piece_bytes = 0; }));
  CHECK(!changed([](PieceAsk& ask) { ask.piece_bytes = 1u << 30; }));
  CHECK(!changed([](PieceAsk& ask) { ask.question = static_cast<PieceQuestion>(8); }));
  CHECK(!decode_piece_answer(encode_piece_answer({.body_bytes = 1u << 31})).ok());
  CHECK(!decode_piece_chunk("c").ok());
  CHECK(!decode_piece_chunk(encode_piece_chunk(std::string(kPieceChunkBytes + 1, 'x'))).ok());
  CHECK(!decode_fetch_status(encode_fetch_status({.commit = "nonsense"})).ok());
}

TEST_CASE("piece frames: holdings and seals are read as written, and other bytes are refused") {
  PieceHoldings holdings{.takes_copies = true, .room_bytes = 1ull << 41, .files = {}};
  CHECK(decode_piece_holdings(encode_piece_holdings(holdings)).value() == holdings);
  holdings.files[std::string(40, 'b')] = {true, false, true};
  holdings.files[std::string(64, 'a')] = std::vector<bool>(16, true);
  holdings.files[std::string(64, 'c')] = {};
  const std::string whole = encode_piece_holdings(holdings);
  CHECK(decode_piece_holdings(whole).value() == holdings);
  for (size_t size = 0; size < whole.size(); ++size) {
    CHECK(!decode_piece_holdings(whole.substr(0, size)).ok());
  }
  CHECK(!decode_piece_holdings(whole + "x").ok());
  PieceHoldings odd = holdings;
  odd.files["../../etc/passwd"] = {true};
  CHECK(!decode_piece_holdings(encode_piece_holdings(odd)).ok());
  std::string bits = encode_piece_holdings({.files = {{std::string(40, 'b'), {true}}}});
  bits.back() = '\x03';  // a piece beyond the end of the file
  CHECK(!decode_piece_holdings(bits).ok());
  // An impossible count is refused before memory is allocated for it.
  std::string huge = encode_piece_holdings({.files = {{std::string(40, 'b'), {}}}});
  huge[huge.size() - 1] = '\x7f';
  CHECK(!decode_piece_holdings(huge).ok());

  std::vector<Digest> digests(3);
  digests[1].fill(std::byte{7});
  CHECK(decode_seal(encode_seal(digests)).value() == digests);
  CHECK(!decode_seal(encode_seal({})).ok());
  CHECK(!decode_seal(encode_seal(digests) + "x").ok());
  CHECK(!decode_seal("").ok());
}
