#include "base/named_values.h"

#include <doctest/doctest.h>

using namespace lockstep;

TEST_CASE("values and names map to each other; an unknown name's error lists the known ones") {
  enum class Fruit { kApple, kPear, kPlum };
  constexpr NamedValues<Fruit, 3> kFruits{
      {{Fruit::kApple, "apple"}, {Fruit::kPear, "pear"}, {Fruit::kPlum, "plum"}}};
  CHECK(value_named(kFruits, "pear", "fruit").value() == Fruit::kPear);
  CHECK(name_in(kFruits, Fruit::kPlum) == "plum");
  CHECK(name_in(kFruits, static_cast<Fruit>(9)).empty());
  const auto none = value_named(kFruits, "", "fruit");
  REQUIRE_FALSE(none.ok());
  CHECK(none.error().code == ErrorCode::kInvalidArgument);
  CHECK(none.error().message == "unknown fruit ''; choose apple, pear or plum");
}
