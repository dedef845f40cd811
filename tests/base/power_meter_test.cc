// The meter over a folder that looks like /sys/class/powercap.
#include "base/machine/power_meter.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <fstream>

using namespace lockstep;

namespace {

namespace fs = std::filesystem;

class PowercapFolder {
 public:
  PowercapFolder() {
    std::string name = (fs::temp_directory_path() / "lockstep_power_XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  ~PowercapFolder() { fs::remove_all(path_); }

  const fs::path& path() const { return path_; }
  void write(const std::string& zone, const std::string& file, const std::string& text) const {
    fs::create_directories(path_ / zone);
    std::ofstream(path_ / zone / file) << text << "\n";
  }
  void add(const std::string& zone, const std::string& name, uint64_t energy_uj) const {
    write(zone, "name", name);
    write(zone, "max_energy_range_uj", "1000000000");
    set(zone, energy_uj);
  }
  void set(const std::string& zone, uint64_t energy_uj) const {
    write(zone, "energy_uj", std::to_string(energy_uj));
  }

 private:
  fs::path path_;
};

}  // namespace

TEST_CASE("packages and memory are counted once, sub-domains and the board are not") {
  const PowercapFolder folder;
  folder.add("intel-rapl:0", "package-0", 5'000'000);
  folder.add("intel-rapl:1", "package-1", 0);
  folder.add("intel-rapl:0:0", "core", 0);
  folder.add("intel-rapl:0:1", "dram", 0);
  folder.add("intel-rapl:2", "psys", 0);
  folder.add("intel-rapl-mmio:0", "package-0", 0);
  auto meter = PowerMeter::open(folder.path());
  REQUIRE(meter.has_value());
  CHECK(meter->joules() == 0);
  folder.set("intel-rapl:0", 7'000'000);
  folder.set("intel-rapl:1", 3'000'000);
  folder.set("intel-rapl:0:1", 500'000);
  for (const char* zone : {"intel-rapl:0:0", "intel-rapl:2", "intel-rapl-mmio:0"}) {
    folder.set(zone, 90'000'000);
  }
  CHECK(meter->joules() == 5.5);
}

TEST_CASE("a counter that wraps continues") {
  const PowercapFolder folder;
  folder.add("intel-rapl:0", "package-0", 999'000'000);
  auto meter = PowerMeter::open(folder.path());
  REQUIRE(meter.has_value());
  folder.set("intel-rapl:0", 2'000'000);
  CHECK(meter->joules() == 3);
  folder.set("intel-rapl:0", 2'500'000);
  CHECK(meter->joules() == 3.5);
}

TEST_CASE("a counter that vanishes adds nothing") {
  const PowercapFolder folder;
  folder.add("intel-rapl:0", "package-0", 1'000'000);
  auto meter = PowerMeter::open(folder.path());
  REQUIRE(meter.has_value());
  folder.set("intel-rapl:0", 4'000'000);
  CHECK(meter->joules() == 3);
  fs::remove(folder.path() / "intel-rapl:0" / "energy_uj");
  CHECK(meter->joules() == 3);
}

TEST_CASE("without counters there is no meter") {
  const PowercapFolder folder;
  CHECK_FALSE(PowerMeter::open(folder.path()).has_value());
  CHECK_FALSE(PowerMeter::open(folder.path() / "missing").has_value());
  folder.write("intel-rapl:0", "name", "package-0");  // without a readable energy_uj
  CHECK_FALSE(PowerMeter::open(folder.path()).has_value());
  folder.add("intel-rapl:1", "package-1", 1);
  folder.write("intel-rapl:1", "energy_uj", "no number");
  CHECK_FALSE(PowerMeter::open(folder.path()).has_value());
}

TEST_CASE("a gauge shows the mean power of the last whole interval") {
  using std::chrono::milliseconds;
  const PowercapFolder folder;
  folder.add("intel-rapl:0", "package-0", 0);
  const PowerGauge::Clock::time_point start{};
  PowerGauge gauge(PowerMeter::open(folder.path()), start);
  CHECK_FALSE(gauge.watts(start).has_value());
  folder.set("intel-rapl:0", 100'000'000);
  CHECK_FALSE(gauge.watts(start + milliseconds(999)).has_value());
  CHECK(gauge.watts(start + milliseconds(2'000)).value() == doctest::Approx(50));
  folder.set("intel-rapl:0", 110'000'000);
  CHECK(gauge.watts(start + milliseconds(2'500)).value() == doctest::Approx(50));
  CHECK(gauge.watts(start + milliseconds(3'000)).value() == doctest::Approx(10));
  PowerGauge none(std::nullopt, start);
  CHECK_FALSE(none.watts(start + milliseconds(5'000)).has_value());
}
