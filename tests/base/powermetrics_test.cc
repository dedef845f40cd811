// The samples of `powermetrics`, in the form of a recorded output, and the meter over a program
// that prints them.
#include "base/machine/powermetrics.h"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>

#include "base/machine/power_meter.h"

using namespace lockstep;

namespace {

namespace fs = std::filesystem;

constexpr const char* kAppleSample =
    "\n*** Sampled system activity (Fri Sep 11 13:41:47 2026 -0700) (2000.00ms elapsed) ***\n\n\n"
    "**** Processor usage ****\n\n"
    "E-Cluster HW active frequency: 1049 MHz\n"
    "CPU 0 frequency: 1359 MHz\n\n"
    "CPU Power: 823 mW\nGPU Power: 26 mW\nANE Power: 323 mW\n"
    "Combined Power (CPU + GPU + ANE): 1172 mW\n";

constexpr const char* kIntelSample =
    "*** Sampled system activity (Thu Feb 24 10:00:00 2022 +0000) (500.50ms elapsed) ***\n"
    "Intel energy model derived package power (CPUs+GT+SA): 2.75W\n";

// A program named as the argument that prints `text` and then waits to be killed.
class PowerProgram {
 public:
  PowerProgram(const std::string& text, const std::string& then) {
    std::string name = (fs::temp_directory_path() / "lockstep_meter_XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    folder_ = name;
    std::ofstream(folder_ / "text") << text;
    std::ofstream(path()) << "#!/bin/sh\ncat '" << (folder_ / "text").string() << "'\n" << then;
    REQUIRE(::chmod(path().c_str(), 0755) == 0);
  }
  ~PowerProgram() { fs::remove_all(folder_); }
  fs::path path() const { return folder_ / "meter"; }

 private:
  fs::path folder_;
};

// The meter's sum once it is `wanted`, or nullopt once the program has ended; else after 10 s.
std::optional<double> joules_until(PowerMeter& meter, double wanted) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  std::optional<double> joules = meter.joules();
  while (joules && *joules < wanted && std::chrono::steady_clock::now() < deadline) {
    joules = meter.joules();
  }
  return joules;
}

}  // namespace

TEST_CASE("each sample of powermetrics adds its power over its time, on Apple silicon and Intel") {
  PowermetricsSum sum;
  sum.add(kAppleSample);
  CHECK(sum.joules() == doctest::Approx(1.172 * 2));
  sum.add(kIntelSample);
  CHECK(sum.joules() == doctest::Approx(1.172 * 2 + 2.75 * 0.5005));
}

TEST_CASE("an output that is cut anywhere has the same sum") {
  const std::string whole = std::string(kAppleSample) + kIntelSample + kAppleSample;
  PowermetricsSum at_once;
  at_once.add(whole);
  for (size_t piece : {size_t{1}, size_t{7}, size_t{100}}) {
    PowermetricsSum sum;
    for (size_t at = 0; at < whole.size(); at += piece) sum.add(whole.substr(at, piece));
    CHECK(sum.joules() == at_once.joules());
  }
}

TEST_CASE("power without a sample's time, twice in one sample or damaged adds nothing") {
  PowermetricsSum sum;
  sum.add("Combined Power (CPU + GPU + ANE): 1000 mW\n");
  CHECK(sum.joules() == 0);
  sum.add("*** Sampled system activity (x) (1000.00ms elapsed) ***\n");
  for (const char* damaged :
       {"Combined Power (CPU + GPU + ANE): mW\n", "Combined Power (CPU + GPU + ANE): 1000\n",
        "Combined Power (CPU + GPU + ANE): 99999999999999 W\n"}) {
    sum.add(damaged);
  }
  CHECK(sum.joules() == 0);
  sum.add(std::string(2 * PowermetricsSum::kLineBytesMax, 'x'));
  sum.add("Combined Power (CPU + GPU + ANE): 1000 mW\n");  // the end of the long line
  CHECK(sum.joules() == 0);
  sum.add("Combined Power (CPU + GPU + ANE): 1000 mW\nCombined Power (CPU + GPU + ANE): 1 W\n");
  CHECK(sum.joules() == doctest::Approx(1));
  sum.add(
      "*** Sampled system activity (x) (99999999999.0ms elapsed) ***\n"
      "Combined Power (CPU + GPU + ANE): 1000 mW\n");
  CHECK(sum.joules() == doctest::Approx(1));
}

TEST_CASE("a meter over a program sums its samples while it runs") {
  const PowerProgram program(std::string(kAppleSample) + kAppleSample, "exec tail -f /dev/null\n");
  auto meter = PowerMeter::of_program(program.path());
  REQUIRE(meter.has_value());
  const auto joules = joules_until(*meter, 4.6);
  REQUIRE(joules.has_value());
  CHECK(*joules == doctest::Approx(2 * 2 * 1.172));
}

TEST_CASE("a meter whose program has ended says so, and a gauge then shows no power") {
  const PowerProgram program("powermetrics must be invoked as the superuser\n", "exit 1\n");
  auto meter = PowerMeter::of_program(program.path());
  REQUIRE(meter.has_value());
  CHECK_FALSE(joules_until(*meter, 1).has_value());
  using std::chrono::seconds;
  const PowerGauge::Clock::time_point start{};
  PowerGauge gauge(std::move(meter), start);
  CHECK_FALSE(gauge.watts(start + seconds(2)).has_value());
  CHECK_FALSE(gauge.watts(start + seconds(4)).has_value());
}
