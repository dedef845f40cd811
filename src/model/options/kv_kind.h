// How keys and values are stored (KvKind in kernels/kernels.h), as an option: its names on the
// command line, its default, and what it means together with --exact. Pure functions.
#pragma once

#include <optional>
#include <string_view>

#include "base/result.h"
#include "kernels/kernels.h"

namespace lockstep {

// Chosen by the measurements in docs/precision.md.
inline constexpr KvKind kKvDefault = KvKind::kF16;

Result<KvKind> parse_kv_kind(std::string_view name);
std::string_view kv_kind_name(KvKind kind);

// `kv` is not set if nobody asked for a kind: then it is kF32 with --exact, else the default.
KvKind kv_of(bool exact, std::optional<KvKind> kv);
// kInvalidArgument for --exact together with a kind that rounds.
Status check_kv(bool exact, std::optional<KvKind> kv);

}  // namespace lockstep
