#include "base/meters/machine_sensors.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <sstream>
#include <string>
#include <system_error>

namespace lockstep {
namespace {

namespace fs = std::filesystem;

// A machine without a processor this hot or cold has a broken sensor.
constexpr double kCelsiusMax = 200;
// Children of one process.
constexpr size_t kChildrenMax = 256;

template <class Value>
std::optional<Value> number_in(const fs::path& path) {
  std::ifstream file(path);
  Value value = 0;
  return file >> value ? std::optional(value) : std::nullopt;
}

std::string first_word_of(const fs::path& path) {
  std::ifstream file(path);
  std::string word;
  file >> word;
  return word;
}

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

std::optional<uint64_t> meminfo_bytes(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!line.starts_with(key) || line.substr(key.size(), 1) != ":") continue;
    line.remove_prefix(key.size() + 1);
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    uint64_t kilobytes = 0;
    const auto read = std::from_chars(line.data(), line.data() + line.size(), kilobytes);
    if (read.ec != std::errc() || kilobytes > UINT64_MAX / 1024) return std::nullopt;
    return kilobytes * 1024;
  }
  return std::nullopt;
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
    if (is_processor_driver(first_word_of(chip.path() / "name"))) add_inputs(chip.path(), files);
  }
  if (!files.empty()) return files;
  for (const auto& zone : fs::directory_iterator(sys / "class/thermal", ignored)) {
    const bool is_meant = is_processor_zone(first_word_of(zone.path() / "type"));
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
