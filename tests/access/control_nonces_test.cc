#include "access/control_nonces.h"

#include <doctest/doctest.h>

#include <utility>

namespace lockstep {

TEST_CASE("a nonce is accepted once, by its maker, and for a short time") {
  auto made = ControlNonces::create();
  ControlNonces nonces = std::move(made.value());
  auto made_by_others = ControlNonces::create();
  ControlNonces others = std::move(made_by_others.value());
  const ControlNonces::Clock::time_point now{std::chrono::hours(5)};
  const std::string nonce = nonces.make(now).value();
  CHECK(nonce != nonces.make(now).value());
  CHECK(!others.use(nonce, now));
  CHECK(!nonces.use(nonce, now - std::chrono::seconds(1)));
  CHECK(nonces.use(nonce, now + std::chrono::seconds(29)));
  CHECK(!nonces.use(nonce, now + std::chrono::seconds(29)));
  CHECK(!nonces.use(nonces.make(now).value(), now + ControlNonces::kLife));
  std::string changed = nonces.make(now).value();
  changed[15] = changed[15] == '0' ? '1' : '0';  // another time
  CHECK(!nonces.use(changed, now));
  for (const char* text : {"", "0", "a b c"}) CHECK(!nonces.use(text, now));
}

TEST_CASE("used nonces are limited in number, until they expire") {
  auto made = ControlNonces::create();
  ControlNonces nonces = std::move(made.value());
  const ControlNonces::Clock::time_point now{std::chrono::hours(5)};
  for (size_t i = 0; i < ControlNonces::kUsedMax; ++i) {
    REQUIRE(nonces.use(nonces.make(now).value(), now));
  }
  CHECK(!nonces.use(nonces.make(now).value(), now));
  const auto later = now + ControlNonces::kLife;
  CHECK(nonces.use(nonces.make(later).value(), later));
}

}  // namespace lockstep
