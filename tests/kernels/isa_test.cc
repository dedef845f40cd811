#include "kernels/isa.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <optional>
#include <set>
#include <string>

namespace lockstep {
namespace {

// Sets LOCKSTEP_ISA for a scope. Tests of one program run one after the other.
class ChosenIsa {
 public:
  explicit ChosenIsa(const char* name) {
    if (const char* old = std::getenv("LOCKSTEP_ISA")) old_ = old;
    if (name == nullptr) {
      unsetenv("LOCKSTEP_ISA");
    } else {
      setenv("LOCKSTEP_ISA", name, 1);
    }
  }
  ~ChosenIsa() {
    if (old_) {
      setenv("LOCKSTEP_ISA", old_->c_str(), 1);
    } else {
      unsetenv("LOCKSTEP_ISA");
    }
  }

 private:
  std::optional<std::string> old_;
};

}  // namespace

TEST_CASE("scalar is always available and first, and names are unique") {
  const auto tables = available_kernels();
  REQUIRE(!tables.empty());
  CHECK(std::string(tables.front()->name) == "scalar");
  std::set<std::string> names;
  for (const KernelTable* table : tables) names.insert(table->name);
  CHECK(names.size() == tables.size());
}

TEST_CASE("by default the fastest kernels are chosen") {
  for (const char* wish : {static_cast<const char*>(nullptr), ""}) {
    const ChosenIsa isa(wish);
    auto chosen = choose_kernels();
    REQUIRE(chosen.ok());
    CHECK(chosen.value() == available_kernels().back());
  }
}

TEST_CASE("LOCKSTEP_ISA chooses each available table by its name") {
  for (const KernelTable* table : available_kernels()) {
    const ChosenIsa isa(table->name);
    auto chosen = choose_kernels();
    REQUIRE(chosen.ok());
    CHECK(chosen.value() == table);
  }
}

TEST_CASE("an unknown LOCKSTEP_ISA is an error that lists the possible names") {
  const ChosenIsa isa("mmx");
  auto chosen = choose_kernels();
  REQUIRE(!chosen.ok());
  CHECK(chosen.error().code == ErrorCode::kInvalidArgument);
  CHECK(chosen.error().message.find("'mmx'") != std::string::npos);
  for (const KernelTable* table : available_kernels()) {
    CHECK(chosen.error().message.find(table->name) != std::string::npos);
  }
}

}  // namespace lockstep
