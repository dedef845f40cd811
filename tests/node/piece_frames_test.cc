#include "node/piece_frames.h"

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

TEST_CASE("piece frames: what is written is read as the same") {
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

TEST_CASE("piece frames: what breaks their form or a limit is refused") {
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
  CHECK(!changed([](PieceAsk& ask) { ask.question = static_cast<PieceQuestion>(6); }));
  CHECK(!decode_piece_answer(encode_piece_answer({.body_bytes = 1u << 31})).ok());
  CHECK(!decode_piece_chunk("c").ok());
  CHECK(!decode_piece_chunk(encode_piece_chunk(std::string(kPieceChunkBytes + 1, 'x'))).ok());
  CHECK(!decode_fetch_status(encode_fetch_status({.commit = "nonsense"})).ok());
}
