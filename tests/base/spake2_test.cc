#include "base/crypto/spake2.h"

#include <doctest/doctest.h>

#include "base/hex.h"

using namespace lockstep;

namespace {

struct Vector {  // RFC 9382, appendix B
  const char* identity_a;
  const char* identity_b;
  const char* w;
  const char* x;
  const char* y;
  const char* share_a;
  const char* share_b;
  const char* confirmation_a;
  const char* confirmation_b;
};

constexpr Vector kVector = {
    "server",
    "client",
    "2ee57912099d31560b3a44b1184b9b4866e904c49d12ac5042c97dca461b1a5f",
    "43dd0fd7215bdcb482879fca3220c6a968e66d70b1356cac18bb26c84a78d729",
    "dcb60106f276b02606d8ef0a328c02e4b629f84f89786af5befb0bc75b6e66be",
    "04a56fa807caaa53a4d28dbb9853b9815c61a411118a6fe516a8798434751470f9"
    "010153ac33d0d5f2047ffdb1a3e42c9b4e6be662766e1eeb4116988ede5f912c",
    "0406557e482bd03097ad0cbaa5df82115460d951e3451962f1eaf4367a420676d0"
    "9857ccbc522686c83d1852abfa8ed6e4a1155cf8f1543ceca528afb591a1e0b7",
    "58ad4aa88e0b60d5061eb6b5dd93e80d9c4f00d127c65b3b35b1b5281fee38f0",
    "d3e2e547f1ae04f2dbdbf0fc4b79f8ecff2dff314b5d32fe9fcef2fb26dc459b",
};

Spake2::Scalar scalar(const char* hex) {
  Spake2::Scalar bytes{};
  REQUIRE(from_hex(hex, bytes));
  return bytes;
}

struct Pair {
  Spake2 a;
  Spake2 b;
};

Pair run(std::string_view password_a, std::string_view password_b, std::string_view context_b) {
  const auto context = std::as_bytes(std::span(std::string_view("session 1")));
  auto a = Spake2::start({Spake2::Side::kA, "joiner", "member", context}, password_a);
  auto b = Spake2::start(
      {Spake2::Side::kB, "joiner", "member", std::as_bytes(std::span(context_b))}, password_b);
  REQUIRE(a.ok());
  REQUIRE(b.ok());
  REQUIRE(a.value().finish(b.value().share()).ok());
  REQUIRE(b.value().finish(a.value().share()).ok());
  return {std::move(a.value()), std::move(b.value())};
}

}  // namespace

TEST_CASE("spake2: shares and confirmations match RFC 9382") {
  const auto start = [](Spake2::Side side, const char* secret) {
    auto made = Spake2::start_with({side, kVector.identity_a, kVector.identity_b, {}},
                                   scalar(kVector.w), scalar(secret));
    REQUIRE(made.ok());
    return std::move(made.value());
  };
  Spake2 a = start(Spake2::Side::kA, kVector.x);
  Spake2 b = start(Spake2::Side::kB, kVector.y);
  CHECK(to_hex(a.share()) == kVector.share_a);
  CHECK(to_hex(b.share()) == kVector.share_b);
  REQUIRE(a.finish(b.share()).ok());
  REQUIRE(b.finish(a.share()).ok());
  CHECK(to_hex(a.confirmation()) == kVector.confirmation_a);
  CHECK(to_hex(b.confirmation()) == kVector.confirmation_b);
  CHECK(a.expected_confirmation() == b.confirmation());
  CHECK(b.expected_confirmation() == a.confirmation());
}

TEST_CASE("spake2: the same PIN in the same session is confirmed, another PIN or session is not") {
  const Pair same = run("12345678", "12345678", "session 1");
  CHECK(same.a.confirmation() == same.b.expected_confirmation());
  CHECK(same.b.confirmation() == same.a.expected_confirmation());
  const Pair wrong = run("12345678", "12345679", "session 1");
  CHECK(wrong.a.confirmation() != wrong.b.expected_confirmation());
  CHECK(wrong.b.confirmation() != wrong.a.expected_confirmation());
  const Pair between = run("12345678", "12345678", "session 2");
  CHECK(between.a.confirmation() != between.b.expected_confirmation());
}

TEST_CASE("spake2: a share that is not a point is refused") {
  auto a = Spake2::start({Spake2::Side::kA, "joiner", "member", {}}, "12345678");
  REQUIRE(a.ok());
  Spake2::Share bad = a.value().share();
  bad[40] ^= std::byte{1};
  CHECK(a.value().finish(bad).error().code == ErrorCode::kCorrupt);
  CHECK(a.value().finish(std::span(bad).first(1)).error().code == ErrorCode::kCorrupt);
  CHECK(a.value().finish({}).error().code == ErrorCode::kCorrupt);
  const std::byte infinity{0};
  CHECK(a.value().finish({&infinity, 1}).error().code == ErrorCode::kCorrupt);
}
