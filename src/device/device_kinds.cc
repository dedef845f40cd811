#include "device/device_kinds.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/double_chars.h"

namespace lockstep {
namespace {

constexpr std::string_view kVulkan = "vulkan";
constexpr std::string_view kSlowed = "slowed:";
#if defined(LOCKSTEP_HAS_GPU)
constexpr bool kHasGpus = true;
#else
constexpr bool kHasGpus = false;
#endif

std::optional<double> number_of(std::string_view text) {
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto parsed = double_from_chars(text.data(), end, value);
  if (parsed.ec != std::errc() || parsed.ptr != end) return std::nullopt;
  return value;
}

}  // namespace

std::optional<int> parse_vulkan(std::string_view kind) {
  if (!kind.starts_with(kVulkan)) return std::nullopt;
  kind.remove_prefix(kVulkan.size());
  if (kind.empty()) return 0;
  if (kind.front() != ':') return std::nullopt;
  kind.remove_prefix(1);
  int index = 0;
  const auto [end, error] = std::from_chars(kind.data(), kind.data() + kind.size(), index);
  const bool is_number = error == std::errc() && end == kind.data() + kind.size() && index >= 0;
  return is_number ? std::optional(index) : std::nullopt;
}

std::optional<SlowedMachine> parse_slowed(std::string_view kind) {
  if (!kind.starts_with(kSlowed)) return std::nullopt;
  kind.remove_prefix(kSlowed.size());
  const size_t slash = kind.find('/');
  const auto rate = number_of(kind.substr(0, slash));
  const auto kernel =
      slash == std::string_view::npos ? std::optional(0.0) : number_of(kind.substr(slash + 1));
  const bool is_sane =
      rate && kernel && *rate >= 1e-6 && *rate <= 1e6 && *kernel >= 0 && *kernel <= 1e6;
  if (!is_sane) return std::nullopt;
  return SlowedMachine{*rate, *kernel};
}

Result<std::string_view> device_kind_of(std::string_view kinds, int rank) {
  const auto count = 1 + std::count(kinds.begin(), kinds.end(), ',');
  if (count == 1) return kinds;
  if (rank >= count) {
    return Error{
        ErrorCode::kInvalidArgument,
        fmt::format("\"{}\" names {} devices, which is too few for rank {}", kinds, count, rank)};
  }
  for (int i = 0; i < rank; ++i) kinds.remove_prefix(kinds.find(',') + 1);
  return kinds.substr(0, kinds.find(','));
}

Status check_device_kind(std::string_view kind) {
  const bool is_gpu = parse_vulkan(kind).has_value();
  if (is_gpu && !kHasGpus) {
    return Error{ErrorCode::kUnsupported,
                 "this lockstep was built without GPUs, which needs glslang and Vulkan's headers"};
  }
  if (is_gpu || kind == "auto" || kind == "cpu" || kind == "delayed" || parse_slowed(kind)) {
    return Ok{};
  }
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("there is no device \"{}\"; use {}", kind, kDeviceKinds)};
}

Status check_device_kinds(std::string_view kinds, int ranks) {
  const auto count = static_cast<int>(1 + std::count(kinds.begin(), kinds.end(), ','));
  for (int rank = 0; rank < count; ++rank) {
    const std::string_view kind = TRY(device_kind_of(kinds, rank));
    TRY(check_device_kind(kind));
  }
  if (ranks > 0) TRY(device_kind_of(kinds, ranks - 1));
  return Ok{};
}

}  // namespace lockstep
