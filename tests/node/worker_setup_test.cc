#include "node/wire/worker_setup.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <string>
#include <string_view>

namespace lockstep {
namespace {

// Gives each kind of field a value that is not its default and valid in a group of four.
void change(bool& field) {
  field = !field;
}
void change(int& field) {
  field = 2;
}
void change(uint64_t& field) {
  field = UINT64_MAX;
}
void change(double& field) {
  field = 1.0 / 3;
}
void change(std::string& field) {
  field = "a \"quoted\" text";
}
void change(std::filesystem::path& field) {
  field = "/models/a \"quoted\" name";
}
void change(std::vector<double>& field) {
  field = {3, 1.0 / 3, 1e-9, 7};
}
void change(LinkKind& field) {
  field = LinkKind::kVerbs;
}
void change(Topology& field) {
  field = Topology::kRing;
}
void change(Wire& field) {
  field = Wire::kQ8;
}
void change(std::optional<KvKind>& field) {
  field = KvKind::kQ8;
}
void change(SumAlgorithm& field) {
  field = SumAlgorithm::kTree;
}

// Changes the field with this number, counted through the nested structs, if there is one.
class ChangeOne {
 public:
  explicit ChangeOne(int number) : left_(number) {}

  template <class Field>
  void operator()(std::string_view name, Field& field) {
    if (left_-- != 0) return;
    change(field);
    changed_ = name;
  }
  void operator()(std::string_view, LinkOptions& link) { for_each_link_field(link, *this); }

  const std::string& changed() const { return changed_; }

 private:
  int left_;
  std::string changed_;
};

// Stands for a value of any type in `requires` below; never converted.
struct AnyValue {
  template <class Value>
  operator Value() const {
    std::abort();
  }
};

// How many fields an aggregate has.
template <class Struct, class... Values>
constexpr int field_count(Values... values) {
  if constexpr (requires { Struct{values..., AnyValue{}}; }) {
    return field_count<Struct>(values..., AnyValue{});
  } else {
    return static_cast<int>(sizeof...(values));
  }
}

WorkerSetup setup_of_four() {
  WorkerSetup setup;
  setup.spec.shares = equal_shares(4);
  return setup;
}

}  // namespace

TEST_CASE("no field of a set-up is left out") {
  WorkerSetup setup;
  int of_link = 0, of_spec = 0, of_setup = 0;
  for_each_link_field(setup.spec.link, [&](std::string_view, const auto&) { ++of_link; });
  for_each_group_field(setup.spec, [&](std::string_view, const auto&) { ++of_spec; });
  for_each_setup_field(setup, [&](std::string_view, const auto&) { ++of_setup; });
  CHECK(of_link == field_count<LinkOptions>());
  CHECK(of_spec == field_count<GroupSpec>());
  const int not_listed = 3;  // the spec itself, and the hosts and paths, which are not sent
  CHECK(of_setup - of_spec + not_listed == field_count<WorkerSetup>());
}

TEST_CASE("each field of a set-up reaches the worker") {
  int count = 0;
  while (true) {
    WorkerSetup setup = setup_of_four();
    ChangeOne one(count);
    for_each_setup_field(setup, one);
    if (one.changed().empty()) break;
    CAPTURE(one.changed());
    CHECK_FALSE(setup == setup_of_four());
    const auto decoded = decode_setup(encode_setup(setup));
    REQUIRE_MESSAGE(decoded.ok(), decoded.error().message);
    CHECK(decoded.value() == setup);
    ++count;
  }
  CHECK(count > 20);
}

TEST_CASE("a set-up that lacks a field or contradicts itself is refused") {
  const std::string whole = encode_setup(setup_of_four());
  REQUIRE(decode_setup(whole).ok());
  WorkerSetup setup = setup_of_four();
  for_each_setup_field(setup, [&](std::string_view name, const auto&) {
    std::string other = whole;
    const size_t at = other.find("\"" + std::string(name) + "\":");
    REQUIRE(at != std::string::npos);
    other[at + 1] = '_';
    CAPTURE(other);
    CHECK_FALSE(decode_setup(other).ok());
  });
  SUBCASE("kv") {
    std::string other = whole;
    const std::string unset = "\"kv\":null";
    REQUIRE(other.find(unset) != std::string::npos);
    other.replace(other.find(unset), unset.size(), "\"kv\":\"f8\"");
    CHECK_FALSE(decode_setup(other).ok());
    setup.spec.bits = 7;
  }
  SUBCASE("bits") {
    setup.spec.bits = 7;
  }
  SUBCASE("stages") {
    setup.spec.link.stages = 3;
  }
  SUBCASE("threads") {
    setup.spec.threads = -1;
  }
  SUBCASE("rank") {
    setup.rank = 4;
  }
  CHECK_FALSE(decode_setup(encode_setup(setup)).ok());
}

}  // namespace lockstep
