#include "model/options/kv_kind.h"

#include <doctest/doctest.h>

namespace lockstep {
namespace {

constexpr KvKind kKinds[] = {KvKind::kF32, KvKind::kBF16, KvKind::kF16, KvKind::kQ8};

}  // namespace

TEST_CASE("kinds of keys and values have names") {
  for (const KvKind kind : kKinds) CHECK(parse_kv_kind(kv_kind_name(kind)).value() == kind);
  const auto unknown = parse_kv_kind("f8");
  REQUIRE_FALSE(unknown.ok());
  CHECK(unknown.error().message ==
        "unknown kind of keys and values 'f8'; choose f32, bf16, f16 or q8");
}

TEST_CASE("keys and values are exact with --exact, and refuse to be rounded") {
  CHECK(kv_of(false, {}) == kKvDefault);
  CHECK(kv_of(true, {}) == KvKind::kF32);
  CHECK(kv_of(false, KvKind::kQ8) == KvKind::kQ8);
  CHECK(check_kv(true, {}).ok());
  CHECK(check_kv(true, KvKind::kF32).ok());
  for (const KvKind kind : kKinds) CHECK(check_kv(false, kind).ok());
  const Status refused = check_kv(true, KvKind::kF16);
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().code == ErrorCode::kInvalidArgument);
  CHECK(refused.error().message == "--exact keeps keys and values in float32: leave out --kv f16");
}

TEST_CASE("pages of every kind are whole floats, whatever the dimension of a head") {
  for (const KvKind kind : kKinds) {
    for (int head_dim : {1, 7, 31, 32, 33, 64, 75, 576}) {
      CHECK(page_head_stride(kind, head_dim) % sizeof(float) == 0);
    }
  }
  CHECK(page_head_stride(KvKind::kF32, 128) == 64 * 128 * 4);
  CHECK(page_head_stride(KvKind::kF16, 75) == 64 * 75 * 2);
  CHECK(page_head_stride(KvKind::kQ8, 75) == 64 * (75 + 3 * 2));
}

}  // namespace lockstep
