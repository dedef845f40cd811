#include "model/options/kv_kind.h"

#include <fmt/core.h>

#include "base/named_values.h"

namespace lockstep {
namespace {

constexpr NamedValues<KvKind, 4> kKvNames{{
    {KvKind::kF32, "f32"},
    {KvKind::kBF16, "bf16"},
    {KvKind::kF16, "f16"},
    {KvKind::kQ8, "q8"},
}};

}  // namespace

Result<KvKind> parse_kv_kind(std::string_view name) {
  return value_named(kKvNames, name, "kind of keys and values");
}

std::string_view kv_kind_name(KvKind kind) {
  return name_in(kKvNames, kind);
}

KvKind kv_of(bool exact, std::optional<KvKind> kv) {
  return kv.value_or(exact ? KvKind::kF32 : kKvDefault);
}

Status check_kv(bool exact, std::optional<KvKind> kv) {
  if (!exact || !kv || *kv == KvKind::kF32) return Ok{};
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("--exact keeps keys and values in float32: leave out --kv {}",
                           kv_kind_name(*kv))};
}

}  // namespace lockstep
