// Decisions from the figures of macOS, on any system.
#include "base/machine/mac_system.h"

#include <doctest/doctest.h>

using namespace lockstep;

namespace {

constexpr uint64_t kGib = uint64_t{1} << 30;

}  // namespace

TEST_CASE("a Mac's file pages count as free memory only without pressure") {
  const MacPages pages{.free = 1000, .purgeable = 10, .file_backed = 500, .page_bytes = 16'384};
  CHECK(mac_available_bytes(pages, MacPressure::kNormal) == 1510 * 16'384);
  CHECK(mac_available_bytes(pages, MacPressure::kWarning) == 1010 * 16'384);
  CHECK(mac_available_bytes(pages, MacPressure::kCritical) == 1010 * 16'384);
  CHECK(mac_available_bytes({}, MacPressure::kNormal) == 0);
}

TEST_CASE("the kernel's level of memory pressure is 1, 2 or 4") {
  CHECK(mac_pressure(0) == MacPressure::kNormal);  // some versions say 0
  CHECK(mac_pressure(1) == MacPressure::kNormal);
  CHECK(mac_pressure(2) == MacPressure::kWarning);
  CHECK(mac_pressure(3) == MacPressure::kWarning);
  CHECK(mac_pressure(4) == MacPressure::kCritical);
  CHECK(mac_pressure(99) == MacPressure::kCritical);
}

TEST_CASE("processors made for efficiency do not compute") {
  CHECK(mac_computing_cores({{"Performance", 24}, {"Efficiency", 8}}) == 24);  // M3 Ultra
  CHECK(mac_computing_cores({{"Super", 6}, {"Performance", 12}}) == 18);
  CHECK(mac_computing_cores({{"Super", 6}, {"Performance", 12}, {"Efficiency", 4}}) == 18);
  CHECK(mac_computing_cores({{"", 8}, {"", 2}}) == 8);   // without names: the fastest kind
  CHECK(mac_computing_cores({{"Efficiency", 4}}) == 4);  // it has no others
  CHECK(mac_computing_cores({}) == 0);
}

TEST_CASE("the GPU's limit: 0 is the system's own choice, and none exceeds the memory") {
  CHECK(mac_gpu_bytes_max(512 * kGib, 0) == 384 * kGib);
  CHECK(mac_gpu_bytes_max(512 * kGib, 491'520) == 480 * kGib);
  CHECK(mac_gpu_bytes_max(16 * kGib, 491'520) == 16 * kGib);
  CHECK(mac_gpu_bytes_max(16 * kGib, ~uint64_t{0}) == 16 * kGib);
  CHECK(mac_gpu_bytes_max(0, 0) == 0);
}

TEST_CASE("readers say nothing on a system that is no Mac") {
  if (kIsMac) return;
  CHECK_FALSE(mac_sysctl_number("hw.memsize").has_value());
  CHECK_FALSE(mac_sysctl_text("hw.model").has_value());
  CHECK_FALSE(mac_swapped_bytes().has_value());
  CHECK_FALSE(read_mac_pressure().has_value());
  CHECK_FALSE(read_mac_thermal_level().has_value());
  CHECK(mac_core_kinds().empty());
}
