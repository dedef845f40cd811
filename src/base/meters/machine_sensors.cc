#include "base/meters/machine_sensors.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <sstream>
#include <string>
#include <system_error>

#include "base/machine/system_file.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

// A machine without a processor this hot or cold has a broken sensor.
constexpr double kCelsiusMax = 200;
// Children of one process.
constexpr size_t kChildrenMax = 256;

// Drivers of the sensors in processors: Intel, AMD, and what a system on a chip calls its own.
bool is_processor_driver(std::string_view name) {
  constexpr std::array<std::string_view, 5> kDrivers{"coretemp", "k10temp", "zenpower",
                                                     "cpu_thermal", "scpi_sensors"};
  return std::find(kDrivers.begin(), kDrivers.end(), name) != kDrivers.end();
}

bool is_processor_zone(std::string_view type) {
  return type == "x86_pkg_temp" || type.find("cpu") != std::string_view::npos ||
         type.find("soc") != std::string_view::npos;
}

bool is_input(const std::string& name) {
  return name.starts_with("temp") && name.ends_with("_input");
}

void add_inputs(const fs::path& chip, std::vector<fs::path>& files) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(chip, ignored)) {
    const bool is_sensor = is_input(entry.path().filename().string());
    if (is_sensor && files.size() < kSensorsMax) files.push_back(entry.path());
  }
}

// statm: "size resident shared ...", in pages.
std::optional<uint64_t> resident_bytes(const fs::path& proc) {
  std::ifstream file(proc / "statm");
  uint64_t size = 0, resident = 0;
  if (!(file >> size >> resident)) return std::nullopt;
  return resident * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
}

}  // namespace

// "cpu  user nice system idle iowait irq softirq steal guest guest_nice"; guests are part of user.
std::optional<CpuTimes> parse_cpu_times(std::string_view text) {
  constexpr int kColumns = 8;
  constexpr int kIdle = 3, kWaitsForDisk = 4;
  if (!text.starts_with("cpu ")) return std::nullopt;
  std::istringstream line{std::string(text.substr(4, text.find('\n')))};
  CpuTimes times;
  uint64_t ticks = 0;
  for (int column = 0; column < kColumns && line >> ticks; ++column) {
    times.all += ticks;
    if (column != kIdle && column != kWaitsForDisk) times.busy += ticks;
  }
  return times.all == 0 ? std::nullopt : std::optional(times);
}

// The kernel may correct a count downwards (man 5 proc, iowait).
std::optional<double> busy_percent(const CpuTimes& before, const CpuTimes& after) {
  if (after.all <= before.all) return std::nullopt;
  const uint64_t busy = after.busy - std::min(after.busy, before.busy);
  const double percent =
      100.0 * static_cast<double>(busy) / static_cast<double>(after.all - before.all);
  return std::min(percent, 100.0);
}

// Each thread lists the children that it started.
std::optional<uint64_t> family_bytes(const fs::path& proc) {
  auto bytes = resident_bytes(proc);
  if (!bytes) return std::nullopt;
  std::error_code ignored;
  size_t count = 0;
  for (const auto& thread : fs::directory_iterator(proc / "task", ignored)) {
    std::ifstream children(thread.path() / "children");
    std::string pid;
    while (children >> pid && count++ < kChildrenMax) {
      *bytes += resident_bytes(proc.parent_path() / pid).value_or(0);
    }
  }
  return bytes;
}

std::vector<fs::path> temperature_files(const fs::path& sys) {
  std::vector<fs::path> files;
  std::error_code ignored;
  for (const auto& chip : fs::directory_iterator(sys / "class/hwmon", ignored)) {
    if (is_processor_driver(word_in(chip.path() / "name"))) add_inputs(chip.path(), files);
  }
  if (!files.empty()) return files;
  for (const auto& zone : fs::directory_iterator(sys / "class/thermal", ignored)) {
    const bool is_meant = is_processor_zone(word_in(zone.path() / "type"));
    if (is_meant && files.size() < kSensorsMax) files.push_back(zone.path() / "temp");
  }
  return files;
}

std::optional<double> highest_celsius(const std::vector<fs::path>& files) {
  std::optional<double> highest;
  for (const fs::path& file : files) {
    const auto thousandths = number_in<int64_t>(file);
    if (!thousandths) continue;
    const double celsius = static_cast<double>(*thousandths) / 1000;
    if (celsius <= 0 || celsius > kCelsiusMax) continue;
    highest = std::max(highest.value_or(celsius), celsius);
  }
  return highest;
}

}  // namespace lockstep
