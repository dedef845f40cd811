#include "node/wire/event_codec.h"

#include <doctest/doctest.h>

#include <limits>
#include <string>
#include <vector>

using namespace lockstep;

namespace {

template <class Kind>
using Is = std::type_identity<Kind>;

// Examples of each kind, as many as take different ways through the codec. A kind without any does
// not compile.
std::vector<RequestEvent::Kind> examples(Is<RequestEvent::Started>) {
  return {RequestEvent::Started{0}, RequestEvent::Started{std::numeric_limits<int>::max()}};
}
std::vector<RequestEvent::Kind> examples(Is<RequestEvent::Token>) {
  return {RequestEvent::Token{-1}, RequestEvent::Token{123'456}};
}
std::vector<RequestEvent::Kind> examples(Is<RequestEvent::Logprobs>) {
  return {RequestEvent::Logprobs{{{7, -0.5f}}},
          RequestEvent::Logprobs{std::vector<TokenLogprob>(kTopLogprobsMax + 1, {8, -2.0f})}};
}
std::vector<RequestEvent::Kind> examples(Is<RequestEvent::Row>) {
  return {RequestEvent::Row{}, RequestEvent::Row{{1.5f, -0.0f}}, RequestEvent::Row{{2}, true}};
}
std::vector<RequestEvent::Kind> examples(Is<RequestEvent::Ended>) {
  return {RequestEvent::Ended{FinishReason::kStop}, RequestEvent::Ended{FinishReason::kLength},
          RequestEvent::Ended{Error{ErrorCode::kInvalidArgument, ""}},
          RequestEvent::Ended{Error{ErrorCode::kInternal, "rank 1 was lost"}}};
}
std::vector<RequestEvent::Kind> examples(Is<RequestEvent::Busy>) {
  return {RequestEvent::Busy{}};
}
std::vector<RequestEvent::Kind> examples(Is<RequestEvent::Progress>) {
  return {RequestEvent::Progress{0, 0}, RequestEvent::Progress{4'096, 64}};
}
std::vector<RequestEvent::Kind> examples(Is<RequestEvent::Paused>) {
  return {RequestEvent::Paused{""}, RequestEvent::Paused{"rank 1 was lost"}};
}
std::vector<RequestEvent::Kind> examples(Is<RequestEvent::Resumed>) {
  return {RequestEvent::Resumed{0}, RequestEvent::Resumed{58}};
}

bool is_same(const RequestEvent::Started& a, const RequestEvent::Started& b) {
  return a.cached_tokens == b.cached_tokens;
}
bool is_same(const RequestEvent::Token& a, const RequestEvent::Token& b) {
  return a.token == b.token;
}
bool is_same(const RequestEvent::Logprobs& a, const RequestEvent::Logprobs& b) {
  const auto equal = [](const TokenLogprob& x, const TokenLogprob& y) {
    return x.token == y.token && x.logprob == y.logprob;
  };
  return std::equal(a.logprobs.begin(), a.logprobs.end(), b.logprobs.begin(), b.logprobs.end(),
                    equal);
}
bool is_same(const RequestEvent::Row& a, const RequestEvent::Row& b) {
  return a.values == b.values && a.is_draft == b.is_draft;
}
bool is_same(const RequestEvent::Ended& a, const RequestEvent::Ended& b) {
  if (a.outcome.ok() != b.outcome.ok()) return false;
  if (a.outcome.ok()) return a.outcome.value() == b.outcome.value();
  return a.outcome.error().code == b.outcome.error().code &&
         a.outcome.error().message == b.outcome.error().message;
}
bool is_same(const RequestEvent::Busy&, const RequestEvent::Busy&) {
  return true;
}
bool is_same(const RequestEvent::Progress& a, const RequestEvent::Progress& b) {
  return a.done == b.done && a.cached_tokens == b.cached_tokens;
}
bool is_same(const RequestEvent::Paused& a, const RequestEvent::Paused& b) {
  return a.reason == b.reason;
}
bool is_same(const RequestEvent::Resumed& a, const RequestEvent::Resumed& b) {
  return a.recomputed_tokens == b.recomputed_tokens;
}

template <size_t kIndex>
void check_kind() {
  using Kind = std::variant_alternative_t<kIndex, RequestEvent::Kind>;
  CAPTURE(kIndex);
  const auto all = examples(Is<Kind>());
  CHECK(!all.empty());
  for (const RequestEvent::Kind& what : all) {
    REQUIRE(what.index() == kIndex);
    const std::string bytes = encode_event({~uint64_t{1}, what});
    CHECK(static_cast<size_t>(static_cast<uint8_t>(bytes[0])) == kIndex);
    const auto event = decode_event(bytes);
    REQUIRE_MESSAGE(event.ok(), event.error().message);
    CHECK(event.value().id == ~uint64_t{1});
    REQUIRE(event.value().what.index() == kIndex);
    CHECK(is_same(std::get<Kind>(event.value().what), std::get<Kind>(what)));
    CHECK(encode_event(event.value()) == bytes);
  }
}

template <size_t... kIndices>
void check_kinds(std::index_sequence<kIndices...>) {
  (check_kind<kIndices>(), ...);
}

// The bytes of an event of this kind that has nothing but its id, with others after it.
std::string raw_event(size_t kind, const std::string& rest) {
  std::string bytes(1, static_cast<char>(kind));
  return bytes + std::string(sizeof(uint64_t), '\x01') + rest;
}

constexpr size_t kStarted = 0, kToken = 1, kLogprobs = 2, kRow = 3, kEnded = 4, kBusy = 5,
                 kProgress = 6, kPaused = 7, kResumed = 8;

}  // namespace

TEST_CASE("every kind of event arrives unchanged") {
  check_kinds(std::make_index_sequence<std::variant_size_v<RequestEvent::Kind>>());
}

TEST_CASE("invalid events are refused") {
  CHECK_FALSE(decode_event("").ok());
  CHECK_FALSE(decode_event(std::string(8, '\0')).ok());
  CHECK_FALSE(decode_event(raw_event(std::variant_size_v<RequestEvent::Kind>, "")).ok());
  CHECK_FALSE(decode_event(raw_event(255, "1234")).ok());
  CHECK(decode_event(raw_event(kStarted, "1234")).ok());
  CHECK_FALSE(decode_event(raw_event(kStarted, "\xff\xff\xff\xff")).ok());
  CHECK_FALSE(decode_event(raw_event(kStarted, "12345")).ok());
  CHECK_FALSE(decode_event(raw_event(kToken, "123")).ok());
  CHECK_FALSE(decode_event(raw_event(kToken, "12345")).ok());
  CHECK_FALSE(decode_event(raw_event(kLogprobs, "")).ok());
  CHECK_FALSE(decode_event(raw_event(kLogprobs, "1234")).ok());
  CHECK(decode_event(raw_event(kLogprobs, std::string(21 * 8, '\0'))).ok());
  CHECK_FALSE(decode_event(raw_event(kLogprobs, std::string(22 * 8, '\0'))).ok());
  CHECK(decode_event(raw_event(kRow, "m1234")).ok());
  CHECK(decode_event(raw_event(kRow, "d")).ok());
  CHECK_FALSE(decode_event(raw_event(kRow, "")).ok());
  CHECK_FALSE(decode_event(raw_event(kRow, "x1234")).ok());
  CHECK_FALSE(decode_event(raw_event(kRow, "m12345")).ok());
  CHECK_FALSE(decode_event(raw_event(kEnded, "")).ok());
  CHECK_FALSE(decode_event(raw_event(kEnded, std::string("\x02\0\0\0", 4))).ok());
  CHECK_FALSE(decode_event(raw_event(kEnded, std::string("\0\0\0\0x", 5))).ok());
  CHECK(decode_event(raw_event(kEnded, std::string("\x08\x01\0\0x", 5))).ok());
  CHECK_FALSE(decode_event(raw_event(kEnded, std::string("\x09\x01\0\0x", 5))).ok());
  const std::string error("\x08\x01\0\0", 4);
  CHECK(decode_event(raw_event(kEnded, error + std::string(kErrorBytesMax, 'x'))).ok());
  CHECK_FALSE(decode_event(raw_event(kEnded, error + std::string(kErrorBytesMax + 1, 'x'))).ok());
  CHECK_FALSE(decode_event(raw_event(kBusy, "1")).ok());
  CHECK(decode_event(raw_event(kProgress, "12341234")).ok());
  CHECK_FALSE(decode_event(raw_event(kProgress, "1234123")).ok());
  CHECK_FALSE(decode_event(raw_event(kProgress, "\xff\xff\xff\xff" + std::string(4, '\1'))).ok());
  CHECK_FALSE(decode_event(raw_event(kProgress, std::string(4, '\1') + "\xff\xff\xff\xff")).ok());
  CHECK(decode_event(raw_event(kPaused, std::string(kErrorBytesMax, 'x'))).ok());
  CHECK_FALSE(decode_event(raw_event(kPaused, std::string(kErrorBytesMax + 1, 'x'))).ok());
  CHECK_FALSE(decode_event(raw_event(kResumed, "123")).ok());
  CHECK_FALSE(decode_event(raw_event(kResumed, "\xff\xff\xff\xff")).ok());
}

TEST_CASE("a long sentence is cut between characters") {
  std::string sentence(kErrorBytesMax - 1, 'x');
  sentence += "\xc3\xbc and more";
  const auto event =
      decode_event(encode_event({1, RequestEvent::Ended{Error{ErrorCode::kInternal, sentence}}}));
  REQUIRE(event.ok());
  const auto* ended = event.value().as<RequestEvent::Ended>();
  REQUIRE(ended);
  REQUIRE(!ended->outcome.ok());
  CHECK(ended->outcome.error().message == std::string(kErrorBytesMax - 1, 'x'));
}
