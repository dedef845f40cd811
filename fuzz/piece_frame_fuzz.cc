// links: node
// Frames from another node that requests pieces of models, or answers: nothing crashes, and an
// accepted frame is written so that it reads back the same.
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "node/fetch/piece_frames.h"

using namespace lockstep;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view frame(reinterpret_cast<const char*>(data), size);
  if (const auto ask = decode_piece_ask(frame); ask.ok()) {
    LOCKSTEP_CHECK(encode_piece_ask(ask.value()) == frame);
  }
  if (const auto answer = decode_piece_answer(frame); answer.ok()) {
    LOCKSTEP_CHECK(encode_piece_answer(answer.value()) == frame);
  }
  if (const auto chunk = decode_piece_chunk(frame); chunk.ok()) {
    LOCKSTEP_CHECK(encode_piece_chunk(chunk.value()) == frame);
  }
  if (const auto status = decode_fetch_status(frame); status.ok()) {
    LOCKSTEP_CHECK(encode_fetch_status(status.value()) == frame);
  }
  if (const auto holdings = decode_piece_holdings(frame); holdings.ok()) {
    LOCKSTEP_CHECK(encode_piece_holdings(holdings.value()) == frame);
  }
  if (const auto seal = decode_seal(frame); seal.ok()) {
    LOCKSTEP_CHECK(encode_seal(seal.value()) == frame);
  }
  return 0;
}
