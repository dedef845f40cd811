#include "base/text_hash.h"

#include <doctest/doctest.h>

#include <set>
#include <string>

#include "support/colliding_keys.h"

namespace lockstep {

TEST_CASE("SipHash-1-3 has the values of its reference implementation") {
  // The key is the bytes 0 to 15, the text the bytes 0, 1, 2...
  constexpr uint64_t kKey0 = 0x0706050403020100, kKey1 = 0x0f0e0d0c0b0a0908;
  std::string text;
  for (int i = 0; i < 15; ++i) text += static_cast<char>(i);
  CHECK(siphash_1_3(kKey0, kKey1, "") == 0xabac0158050fc4dc);
  CHECK(siphash_1_3(kKey0, kKey1, text.substr(0, 1)) == 0xc9f49bf37d57ca93);
  CHECK(siphash_1_3(kKey0, kKey1, text.substr(0, 8)) == 0x369095118d299a8e);
}

TEST_CASE("texts made to collide do not") {
  std::set<size_t> own;
  std::set<size_t> others;
  for (const std::string& text : murmur_collisions(1000)) {
    own.insert(TextHash()(text));
    others.insert(std::hash<std::string>()(text));
  }
  CHECK(own.size() == 1000);
#ifdef __GLIBCXX__
  CHECK(others.size() == 1);  // else the tests that use such texts show nothing
#endif
}

}  // namespace lockstep
