#include "planner/profiles/profiles.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <span>

#include "base/check.h"
#include "planner/profiles/profiles_table.h"

namespace lockstep {
namespace {

constexpr double kGib = uint64_t{1} << 30;
constexpr double kGigabytesPerS = 1e3;  // to bytes per microsecond
constexpr double kGbitPerS = 125;       // to bytes per microsecond
constexpr double kTeraPerS = 1e6;       // to operations per microsecond
constexpr std::string_view kTexts[] = {"name",      "profile", "count",    "about",    "source",
                                       "estimates", "device",  "lockstep", "measured", "software"};

struct FigureRange {
  std::string_view key;
  double least;
  double most;
};
constexpr FigureRange kMachineFigures[] = {
    {"memory_gib", 0.01, 1e6}, {"reserved_gib", 0, 1e6},   {"bandwidth_gb_s", 0.01, 1e6},
    {"efficiency", 0.01, 1},   {"read_gb_s", 0.01, 1e6},   {"kernel_us", 0, 1e4},
    {"exchange_us", 0, 1e6},   {"prefill_tflops", 0, 1e6}, {"idle_w", 0, 1e5},
    {"load_w", 0, 1e5},        {"price_usd", 0, 1e8}};
constexpr FigureRange kLinkFigures[] = {{"latency_us", 0, 1e7}, {"gbit_s", 1e-3, 1e5}};
constexpr std::string_view kLinkTexts[] = {"profile", "kind",   "between",
                                           "about",   "source", "estimates"};

// The figures of an object, by key; keys in `texts` are skipped.
class Figures {
 public:
  static Result<Figures> read(const JsonObject& json, std::span<const FigureRange> ranges,
                              std::span<const std::string_view> texts, std::string_view what) {
    Figures figures(json, what);
    for (const auto& entry : json) {
      const std::string_view key = entry.key();
      const auto range = std::find_if(ranges.begin(), ranges.end(),
                                      [&](const FigureRange& r) { return r.key == key; });
      if (range != ranges.end()) {
        TRY(check(entry.value(), *range, what));
      } else if (std::find(texts.begin(), texts.end(), key) == texts.end()) {
        return Error{ErrorCode::kInvalidArgument,
                     fmt::format("{} has an unknown key \"{}\"; known figures are {}", what, key,
                                 names(ranges))};
      }
    }
    return figures;
  }

  std::optional<double> get(std::string_view key) const {
    const Json* value = json_->if_contains(key);
    return value ? std::optional(value->to_number<double>()) : std::nullopt;
  }
  // Refuses a figure that has no effect without another one.
  Status check_together(std::string_view key, std::string_view with, std::string_view what) const {
    if (!get(key) || get(with)) return Ok{};
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("\"{}\" of {} also needs \"{}\"", key, what, with)};
  }
  void take(std::string_view key, double unit, double& target) const {
    if (const auto value = get(key)) target = *value * unit;
  }

 private:
  Figures(const JsonObject& json, std::string_view) : json_(&json) {}

  static Status check(const Json& value, const FigureRange& range, std::string_view what) {
    if (value.is_number()) {
      const auto number = value.to_number<double>();
      if (number >= range.least && number <= range.most) return Ok{};
    }
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("\"{}\" of {} must be a number from {} to {}", range.key, what,
                             range.least, range.most)};
  }

  static std::string names(std::span<const FigureRange> ranges) {
    std::string text;
    for (const FigureRange& range : ranges) {
      text += fmt::format("{}{}", text.empty() ? "" : ", ", range.key);
    }
    return text;
  }

  const JsonObject* json_;
};

JsonObject parse_table(std::string_view text) {
  auto json = parse_json(text, DuplicateKeys::kRefuse);
  LOCKSTEP_CHECK(json.ok() && json.value().is_object());
  return std::move(json.value().as_object());
}

std::vector<ProfileName> names_of(std::string_view table) {
  std::vector<ProfileName> names;
  for (const auto& entry : parse_table(table)) {
    names.push_back({std::string(entry.key()), std::string(entry.value().at("about").as_string())});
  }
  return names;
}

Result<JsonObject> find_profile(std::string_view table, std::string_view kind,
                                std::string_view name) {
  const JsonObject all = parse_table(table);
  if (const Json* found = all.if_contains(name)) return found->as_object();
  std::string known;
  for (const auto& entry : all) {
    known += fmt::format("{}{}", known.empty() ? "" : ", ", std::string_view(entry.key()));
  }
  return Error{ErrorCode::kNotFound,
               fmt::format("there is no {} profile \"{}\"; known are: {}", kind, name, known)};
}

bool has_estimates(const JsonObject& json) {
  const Json* estimates = json.if_contains("estimates");
  return estimates && estimates->is_array() && !estimates->get_array().empty();
}

// Whether lockstep itself measured the read rate; kInvalidArgument for a figure that is not there.
Result<bool> is_measured(const JsonObject& json, std::string_view what) {
  const Json* measured = json.if_contains("measured");
  if (measured == nullptr) return false;
  bool has_rate = false;
  const bool is_list = measured->is_array();
  for (const Json& key : is_list ? measured->get_array() : JsonArray{Json()}) {
    const bool is_there = key.is_string() && json.contains(std::string_view(key.get_string()));
    if (!is_there) {
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("\"measured\" of {} must list figures that it has", what)};
    }
    has_rate |= std::string_view(key.get_string()) == "read_gb_s";
  }
  return has_rate;
}

// Own figures of its speed replace those of a profile.
Status read_origin(const JsonObject& json, Machine& machine, std::string_view what) {
  if (json.contains("software")) machine.is_other_software = true;
  if (json.contains("read_gb_s")) machine.is_other_software = false;
  if (!TRY(is_measured(json, what))) return Ok{};
  machine.measured_on = TRY(get_string(Json(json), "device")).value_or("this machine");
  return Ok{};
}

}  // namespace

std::vector<ProfileName> machine_profiles() {
  return names_of(kMachineProfiles);
}

std::vector<ProfileName> link_profiles() {
  return names_of(kLinkProfiles);
}

Result<Machine> machine_profile(std::string_view name) {
  const JsonObject json = TRY(find_profile(kMachineProfiles, "machine", name));
  return read_machine(json, {.name = std::string(name)}, fmt::format("profile {}", name));
}

Result<LinkFigures> link_profile(std::string_view name) {
  const JsonObject json = TRY(find_profile(kLinkProfiles, "link", name));
  return read_link(json, {}, fmt::format("profile {}", name));
}

Result<Machine> read_machine(const JsonObject& json, Machine machine, std::string_view what) {
  const Figures figures = TRY(Figures::read(json, kMachineFigures, kTexts, what));
  TRY(figures.check_together("reserved_gib", "memory_gib", what));
  TRY(figures.check_together("efficiency", "bandwidth_gb_s", what));
  if (const auto memory = figures.get("memory_gib")) {
    const double left = *memory - figures.get("reserved_gib").value_or(0);
    if (left <= 0) {
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("\"reserved_gib\" of {} leaves no memory", what)};
    }
    machine.memory_bytes = static_cast<uint64_t>(left * kGib);
  }
  if (const auto bandwidth = figures.get("bandwidth_gb_s")) {
    machine.read_bytes_per_us = *bandwidth * figures.get("efficiency").value_or(1) * kGigabytesPerS;
  }
  figures.take("read_gb_s", kGigabytesPerS, machine.read_bytes_per_us);  // measured
  figures.take("kernel_us", 1, machine.kernel_us);
  figures.take("exchange_us", 1, machine.exchange_us);
  figures.take("prefill_tflops", kTeraPerS, machine.operations_per_us);
  figures.take("idle_w", 1, machine.idle_w);
  figures.take("load_w", 1, machine.load_w);
  figures.take("price_usd", 1, machine.price_usd);
  machine.has_estimates |= has_estimates(json);
  TRY(read_origin(json, machine, what));
  if (machine.memory_bytes == 0 || machine.read_bytes_per_us == 0) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{} needs \"profile\", or \"memory_gib\" and \"read_gb_s\"", what)};
  }
  return machine;
}

Result<LinkFigures> read_link(const JsonObject& json, LinkFigures link, std::string_view what) {
  const Figures figures = TRY(Figures::read(json, kLinkFigures, kLinkTexts, what));
  if (const auto kind = TRY(get_string(Json(json), "kind"))) {
    link.kind = TRY(parse_link_kind(*kind));
  }
  figures.take("latency_us", 1, link.latency_us);
  figures.take("gbit_s", kGbitPerS, link.bytes_per_us);
  if (link.bytes_per_us == 0) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{} needs \"profile\", or \"latency_us\" and \"gbit_s\"", what)};
  }
  return link;
}

PublishedConstants m3_ultra_constants() {
  constexpr std::string_view kName = "mac-studio-m3-ultra";
  const auto json = find_profile(kMachineProfiles, "machine", kName);
  const auto link = link_profile("tb5-rdma");
  LOCKSTEP_CHECK(json.ok() && link.ok());
  const auto number = [&](std::string_view key) {
    return json.value().at(key).to_number<double>();
  };
  return {.efficiency = number("efficiency"),
          .kernel_us = number("kernel_us"),
          .exchange_us = number("exchange_us") + link.value().latency_us};
}

}  // namespace lockstep
