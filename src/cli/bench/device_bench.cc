#include "cli/bench/device_bench.h"

#include <fmt/core.h>

#include <cmath>
#include <fstream>

#include "base/machine/machine.h"
#include "base/version.h"
#include "cli/text/output.h"
#include "cluster/identity.h"

namespace lockstep {
namespace {

constexpr double kBytesPerGib = uint64_t{1} << 30;
// Ranks do more for an exchange than wait for the device and the link.
constexpr double kExchangeUs = 5;

// Three digits that count.
double rounded(double value) {
  if (!(value > 0)) return 0;
  const double unit = std::pow(10, std::floor(std::log10(value)) - 2);
  return unit >= 1 ? std::round(value / unit) * unit : std::round(value / unit) / (1 / unit);
}

std::string device_memory_text(const DeviceFacts& facts) {
  if (!facts.is_gpu) return "";
  const double gib = static_cast<double>(facts.memory_bytes) / kBytesPerGib;
  return fmt::format(", {:.2f} GiB of {} memory", gib,
                     facts.has_own_memory ? "its own" : "the machine's");
}

void print_device(const DeviceFacts& facts) {
  print_line(fmt::format("{}: {}{}", facts.kind, facts.name, device_memory_text(facts)));
  if (!facts.reason.empty()) print_line("the processor, because " + facts.reason);
  if (!facts.problem.empty()) return print_line("its speed is unknown: " + facts.problem);
  const DeviceSpeed& speed = facts.speed;
  print_line(fmt::format("reads weights of 4 bits   {:>10.3g} GB/s", speed.read_gb_s));
  print_line(fmt::format("overhead of an operation  {:>10.3g} us", speed.kernel_us));
  print_line(fmt::format("waiting for the device    {:>10.3g} us", speed.wait_us));
  print_line(fmt::format("prompts                   {:>10.3g} TFLOPS", speed.operations_s / 1e12));
}

Status write_profile(const DeviceBenchFlags& flags, const DeviceFacts& facts) {
  const uint64_t budget = TRY(device_budget(facts, default_budget_bytes(), 0));
  const std::string name = flags.name.empty() ? machine_name() : flags.name;
  const Json profile = TRY(profile_json(name, facts, budget));
  std::ofstream file(flags.profile, std::ios::trunc);
  file << dump_json(profile) << '\n';
  file.flush();
  if (file) return Ok{};
  return Error{ErrorCode::kInvalidArgument, fmt::format("cannot write {}", flags.profile)};
}

}  // namespace

Result<Json> profile_json(const std::string& name, const DeviceFacts& facts,
                          uint64_t budget_bytes) {
  if (!facts.problem.empty()) return Error{ErrorCode::kUnsupported, facts.problem};
  const DeviceSpeed& speed = facts.speed;
  return Json(JsonObject{
      {"machines",
       JsonArray{JsonObject{
           {"name", name},
           {"device", facts.name},
           {"lockstep", kVersion},
           {"memory_gib", rounded(static_cast<double>(budget_bytes) / kBytesPerGib)},
           {"read_gb_s", rounded(speed.read_gb_s)},
           {"kernel_us", rounded(speed.kernel_us)},
           {"exchange_us", rounded(speed.wait_us + kExchangeUs)},
           {"prefill_tflops", rounded(speed.operations_s / 1e12)},
           {"measured", JsonArray{"memory_gib", "read_gb_s", "kernel_us", "prefill_tflops"}},
           {"estimates", JsonArray{"exchange_us"}}}}}});
}

Status bench_device(const DeviceBenchFlags& flags) {
  const int threads = flags.threads > 0 ? flags.threads : available_core_count();
  show_progress("measuring the device ...");
  const auto facts = examine_device(flags.device, threads);
  clear_progress();
  if (!facts.ok()) return facts.error();
  if (flags.json) {
    print_json(device_json(facts.value()));
  } else {
    print_device(facts.value());
  }
  if (flags.profile.empty()) return Ok{};
  TRY(write_profile(flags, facts.value()));
  if (!flags.json) {
    print_line(fmt::format("written to {0}; `lockstep plan MODEL --cluster {0}` plans with it",
                           flags.profile));
  }
  return Ok{};
}

}  // namespace lockstep
