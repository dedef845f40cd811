#include "weights/quantised/mlx_quantisation.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "weights/quantised/quantise.h"

namespace lockstep {
namespace {

constexpr std::string_view kAffine = "affine";
constexpr int64_t kMlxGroupStep = 8;
constexpr std::string_view kPrefixes[] = {"", "model.", "language_model.", "language_model.model.",
                                          "model.language_model."};

// The other modes have one form each.
struct FloatMode {
  std::string_view name;
  int64_t bits;
  int64_t group;
};
constexpr FloatMode kFloatModes[] = {{"mxfp4", 4, 32}, {"nvfp4", 4, 16}, {"mxfp8", 8, 32}};

std::string_view mode_of(const StoredMatrix& stored) {
  if (stored.format == StoredFormat::kAffine) return kAffine;
  if (stored.format == StoredFormat::kFp8) return "mxfp8";
  return stored.scale_type == DType::kF8E4M3 ? "nvfp4" : "mxfp4";
}

std::string where(std::string_view module) {
  return module.empty() ? "config.json's \"quantization\""
                        : fmt::format("config.json's \"quantization\" of {:.200}", module);
}

Error unsupported(std::string_view module, const std::string& what) {
  return {ErrorCode::kUnsupported,
          fmt::format("{} says {}; supported are affine with {} bits and groups of a multiple of "
                      "{}, mxfp4 (4 bits, groups of 32), nvfp4 (4, 16) and mxfp8 (8, 32)",
                      where(module), what, kAffineBits, kMlxGroupStep)};
}

}  // namespace

Result<MlxQuantisation> MlxQuantisation::read(const Json& quantisation) {
  MlxQuantisation result;
  if (!quantisation.is_object()) return result;
  result.all_ = TRY(read_entry("", quantisation));
  for (const auto& member : quantisation.get_object()) {
    if (!member.value().is_object()) continue;  // true: like the default; false: not quantised
    std::string name(member.key().data(), member.key().size());
    Entry entry = TRY(read_entry(name, member.value()));
    result.modules_.emplace(std::move(name), std::move(entry));
  }
  return result;
}

Result<MlxQuantisation::Entry> MlxQuantisation::read_entry(std::string_view module,
                                                           const Json& json) {
  const auto field = [&](auto value, auto& to) -> Status {
    if (!value.ok()) {
      return Error{ErrorCode::kCorrupt, where(module) + ": " + value.error().message};
    }
    to = std::move(value.value());
    return Ok{};
  };
  Entry entry;
  TRY(field(get_int(json, "bits"), entry.bits));
  TRY(field(get_int(json, "group_size"), entry.group));
  TRY(field(get_string(json, "mode"), entry.mode));
  const auto mode =
      std::find_if(std::begin(kFloatModes), std::end(kFloatModes),
                   [&](const FloatMode& known) { return entry.mode && *entry.mode == known.name; });
  if (mode != std::end(kFloatModes)) {
    if (entry.bits.value_or(mode->bits) == mode->bits &&
        entry.group.value_or(mode->group) == mode->group) {
      return entry;
    }
    return unsupported(
        module, fmt::format("\"mode\": \"{}\" with {} bits and groups of {}", mode->name,
                            entry.bits.value_or(mode->bits), entry.group.value_or(mode->group)));
  }
  if (entry.mode && *entry.mode != kAffine) {
    return unsupported(module, fmt::format("\"mode\": \"{:.100}\"", *entry.mode));
  }
  const int64_t bits = entry.bits.value_or(4);
  if (bits < 0 || bits > 8 || !is_affine_bits(static_cast<int>(bits))) {
    return unsupported(module, fmt::format("\"bits\": {}", bits));
  }
  const int64_t group = entry.group.value_or(kMlxGroupStep);
  if (group <= 0 || group % kMlxGroupStep != 0) {
    return unsupported(module, fmt::format("\"group_size\": {}", group));
  }
  return entry;
}

Status MlxQuantisation::check(std::string_view module, const StoredMatrix& stored) const {
  const Entry& entry = entry_for(module);
  const std::string_view mode = mode_of(stored);
  const bool agrees = entry.bits.value_or(stored.bits) == stored.bits &&
                      entry.group.value_or(stored.group) == stored.group &&
                      entry.mode.value_or(std::string(mode)) == mode;
  if (agrees) return Ok{};
  return Error{
      ErrorCode::kCorrupt,
      fmt::format("config.json says that {} is quantised to {} bits in groups of {} ({}), but its "
                  "tensors have {} bits in groups of {} ({}): they do not belong together",
                  module, entry.bits.value_or(stored.bits), entry.group.value_or(stored.group),
                  entry.mode.value_or("affine"), stored.bits, stored.group, mode)};
}

// Names in config.json come from MLX's classes, which may have a longer or shorter prefix than the
// tensors.
const MlxQuantisation::Entry& MlxQuantisation::entry_for(std::string_view module) const {
  for (const std::string_view prefix : kPrefixes) {
    const auto found = modules_.find(std::string(prefix).append(module));
    if (found != modules_.end()) return found->second;
    if (!module.starts_with(prefix)) continue;
    const auto shorter = modules_.find(module.substr(prefix.size()));
    if (shorter != modules_.end()) return shorter->second;
  }
  return all_;
}

}  // namespace lockstep
