#include "base/meters/machine_gauge.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <string>

#include "base/machine/meminfo.h"
#include "base/meters/machine_sensors.h"
#include "support/comes_true.h"
#include "support/temporary_folder.h"

namespace lockstep {
namespace {

constexpr const char* kStat =
    "cpu  100 10 50 800 40 0 5 5 7 0\n"
    "cpu0 50 5 25 400 20 0 2 3 3 0\n";

}  // namespace

TEST_CASE("the load of a machine is the share of time that was neither idle nor a wait for disks") {
  const auto before = parse_cpu_times(kStat);
  REQUIRE(before);
  CHECK(before->all == 1010);
  CHECK(before->busy == 170);
  const auto after = parse_cpu_times("cpu  130 10 50 860 50 0 5 5 7 0\n");
  REQUIRE(after);
  CHECK(*busy_percent(*before, *after) == doctest::Approx(30));
  CHECK_FALSE(busy_percent(*before, *before));   // no time has passed
  CHECK(*busy_percent({10, 20}, {9, 30}) == 0);  // the kernel has corrected a count
  CHECK_FALSE(parse_cpu_times(""));
  CHECK_FALSE(parse_cpu_times("cpu0 1 2 3 4\n"));
  CHECK_FALSE(parse_cpu_times("cpu  a b\n"));
}

TEST_CASE("a line of meminfo is read in bytes") {
  const std::string text = "MemTotal:       16303428 kB\nMemFree:  1 kB\nHugePages_Total:   0\n";
  CHECK(*meminfo_bytes(text, "MemTotal") == uint64_t{16303428} * 1024);
  CHECK(*meminfo_bytes(text, "MemFree") == 1024);
  CHECK_FALSE(meminfo_bytes(text, "Mem"));
  CHECK_FALSE(meminfo_bytes("MemTotal: much\n", "MemTotal"));
  CHECK_FALSE(meminfo_bytes("", "MemTotal"));
}

TEST_CASE("the memory of a process includes that of its children") {
  const TemporaryFolder proc;
  proc.write("7/statm", "900 100 3 4 5 6 7\n");
  proc.write("7/task/7/children", "8 9 ");
  proc.write("7/task/70/children", "10 ");
  proc.write("8/statm", "900 20 0\n");
  proc.write("10/statm", "900 3 0\n");  // 9 has ended meanwhile
  const auto page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  CHECK(*family_bytes(proc.path() / "7") == 123 * page);
  CHECK_FALSE(family_bytes(proc.path() / "77"));
}

TEST_CASE("the temperature is that of the hottest processor sensor") {
  const TemporaryFolder sys;
  CHECK_FALSE(highest_celsius(temperature_files(sys.path())));
  sys.write("class/thermal/thermal_zone0/type", "acpitz\n");
  sys.write("class/thermal/thermal_zone0/temp", "95000\n");
  sys.write("class/thermal/thermal_zone1/type", "x86_pkg_temp\n");
  sys.write("class/thermal/thermal_zone1/temp", "51000\n");
  CHECK(*highest_celsius(temperature_files(sys.path())) == 51);
  sys.write("class/hwmon/hwmon0/name", "nvme\n");
  sys.write("class/hwmon/hwmon0/temp1_input", "88000\n");
  sys.write("class/hwmon/hwmon1/name", "coretemp\n");
  sys.write("class/hwmon/hwmon1/temp1_input", "61500\n");
  sys.write("class/hwmon/hwmon1/temp2_input", "62250\n");
  sys.write("class/hwmon/hwmon1/temp3_input", "-274000\n");  // broken
  sys.write("class/hwmon/hwmon1/temp2_max", "100000\n");
  CHECK(*highest_celsius(temperature_files(sys.path())) == 62.25);
}

TEST_CASE("a gauge reads this machine, at most once a second") {
  using Clock = MachineGauge::Clock;
  const TemporaryFolder folder;
  const auto start = Clock::now();
  MachineGauge gauge(folder.path() / "models" / "later", start);
  const MachineMeters first = gauge.meters(start);
  CHECK_FALSE(first.cpu_percent);
  CHECK(first.uptime_s == 0);
  CHECK(*first.cores >= 1);
#ifdef __linux__
  CHECK(*first.memory_bytes > 0);
  CHECK(*first.memory_used_bytes <= *first.memory_bytes);
  CHECK(*first.process_bytes > 0);
#endif
  CHECK(gauge.meters(start + std::chrono::milliseconds(900)) == first);
  CHECK(gauge.meters(start + std::chrono::seconds(2)).uptime_s == 2);
  // The nearest folder that exists tells.
  int seconds = 2;
  CHECK(comes_true([&] {
    return gauge.meters(start + std::chrono::seconds(++seconds)).disk_free_bytes.has_value() ||
           seconds > 29;
  }));
  // A disk that does not answer is not known.
  CHECK_FALSE(gauge.meters(Clock::now() + std::chrono::hours(1)).disk_free_bytes);
}

}  // namespace lockstep
