#include "cluster/brain/meters_json.h"

#include <cmath>
#include <string_view>

#include "cluster/json_fields.h"

namespace lockstep {
namespace {

// Fractions travel as integers in these parts.
constexpr double kLoadParts = 1000;  // of the whole
constexpr double kCelsiusParts = 1000;
constexpr int64_t kCelsiusMax = 1000;
constexpr int64_t kCoresMax = 1 << 20;

std::optional<int64_t> in_parts(const std::optional<double>& value, double parts) {
  if (!value || !std::isfinite(*value) || *value < 0) return std::nullopt;
  return std::llround(*value * parts);
}

std::optional<double> from_parts(const std::optional<int64_t>& value, double parts) {
  if (!value) return std::nullopt;
  return static_cast<double>(*value) / parts;
}

Result<std::optional<int64_t>> known(const Json& object, std::string_view key, int64_t most) {
  if (find(object, key) == nullptr) return std::optional<int64_t>();
  return std::optional(TRY(number_field(object, key, most)));
}

}  // namespace

Json meters_json(const MachineMeters& meters) {
  JsonObject json;
  const auto add = [&json](std::string_view key, const std::optional<int64_t>& value) {
    if (value && *value >= 0) json[key] = *value;
  };
  add("load", in_parts(meters.cpu_percent, kLoadParts / 100));
  add("memory_bytes", meters.memory_bytes);
  add("memory_used_bytes", meters.memory_used_bytes);
  add("process_bytes", meters.process_bytes);
  add("temperature", in_parts(meters.temperature_c, kCelsiusParts));
  add("disk_free_bytes", meters.disk_free_bytes);
  add("uptime_s", meters.uptime_s);
  add("cores", meters.cores);
  return json;
}

Result<MachineMeters> meters_field(const Json& object) {
  MachineMeters meters;
  const Json* const json = find(object, "meters");
  if (json == nullptr) return meters;
  if (!json->is_object()) return Error{ErrorCode::kCorrupt, "\"meters\" must be an object"};
  const auto load = TRY(known(*json, "load", std::llround(kLoadParts)));
  meters.cpu_percent = from_parts(load, kLoadParts / 100);
  meters.memory_bytes = TRY(known(*json, "memory_bytes", kNumberMax));
  meters.memory_used_bytes = TRY(known(*json, "memory_used_bytes", kNumberMax));
  meters.process_bytes = TRY(known(*json, "process_bytes", kNumberMax));
  const auto most = kCelsiusMax * std::llround(kCelsiusParts);
  meters.temperature_c = from_parts(TRY(known(*json, "temperature", most)), kCelsiusParts);
  meters.disk_free_bytes = TRY(known(*json, "disk_free_bytes", kNumberMax));
  meters.uptime_s = TRY(known(*json, "uptime_s", kNumberMax));
  meters.cores = TRY(known(*json, "cores", kCoresMax));
  return meters;
}

}  // namespace lockstep
