// Memory, processors, disks and the clock: facts in, findings out, and facts read from a fake
// machine.
#include <sys/stat.h>

#include "doctor/check_support.h"
#include "doctor/checks/clock_checks.h"
#include "doctor/checks/memory_checks.h"
#include "doctor/checks/processor_checks.h"
#include "doctor/checks/storage_checks.h"

using namespace lockstep;

namespace {

constexpr uint64_t kGib = uint64_t{1} << 30;

MemoryFacts good_memory() {
  return {.total_bytes = 64 * kGib, .available_bytes = 50 * kGib, .huge_pages = "madvise"};
}

ProcessorFacts good_processor() {
  return {.machine_cores = 8,
          .allowed_cores = 8,
          .driver = "intel_pstate",
          .governor = "performance",
          .highest_khz = 4'000'000,
          .allowed_khz = 4'000'000};
}

StorageFacts good_storage() {
  return {.models = "/models",
          .models_free_bytes = 500 * kGib,
          .can_write_models = true,
          .home = "/h",
          .home_free_bytes = 500 * kGib,
          .private_files = {{"/h", true, 0700}, {"/h/cluster_key", false, 0600}}};
}

}  // namespace

TEST_CASE("all findings of a machine without faults are good") {
  check_all_well(judge_memory(good_memory()));
  check_all_well(judge_processor(good_processor()));
  check_all_well(judge_storage(good_storage()));
  check_all_well(judge_clock({true}));
}

TEST_CASE("memory: little free memory, limits, swapping and huge pages") {
  MemoryFacts facts = good_memory();
  facts.available_bytes = kGib / 2;
  CHECK(severity_of(judge_memory(facts), "memory") == Severity::kProblem);
  facts.available_bytes = 4 * kGib;  // of 64
  CHECK(severity_of(judge_memory(facts), "memory") == Severity::kNote);
  facts.available_bytes = std::nullopt;
  CHECK(severity_of(judge_memory(facts), "memory") == Severity::kNote);

  facts = good_memory();
  facts.limit_bytes = 8 * kGib;
  facts.swapped_bytes = 2 * kGib;
  facts.huge_pages = "never";
  const Findings findings = judge_memory(facts);
  for (const char* check : {"memory_limit", "swap", "huge_pages"}) {
    CHECK(severity_of(findings, check) == Severity::kNote);
    CHECK_FALSE(found(findings, check)->mend.empty());
  }
  check_sentences(findings);
  facts.limit_bytes = 64 * kGib;  // not below the machine's memory
  CHECK_FALSE(found(judge_memory(facts), "memory_limit").has_value());
}

TEST_CASE("memory facts are read from the system's files") {
  const FolderOfTest root;
  root.write("proc/meminfo",
             "MemTotal:       2097152 kB\nSwapTotal:  1000 kB\nSwapFree:  400 kB\nOdd: x\n");
  root.write("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
  root.write("sys/fs/cgroup/memory.max", "1073741824\n");
  const MemoryFacts facts = collect_memory(SystemFiles(root.path()));
  CHECK(facts.total_bytes == 2 * kGib);
  CHECK(facts.swapped_bytes == 600 * 1024);
  CHECK(facts.huge_pages == "madvise");
  CHECK(facts.limit_bytes == kGib);
  root.write("sys/fs/cgroup/memory.max", "max\n");
  CHECK_FALSE(collect_memory(SystemFiles(root.path())).limit_bytes.has_value());
  const FolderOfTest empty;
  CHECK_FALSE(collect_memory(SystemFiles(empty.path())).total_bytes.has_value());
}

TEST_CASE("processors: quota, governor, heat and power") {
  ProcessorFacts facts = good_processor();
  facts.allowed_cores = 2;
  CHECK(severity_of(judge_processor(facts), "cores") == Severity::kNote);

  struct Case {
    const char* driver;
    const char* governor;
    Severity severity;
  };
  for (const Case& one : {Case{"acpi-cpufreq", "powersave", Severity::kProblem},
                          Case{"intel_pstate", "powersave", Severity::kNote},
                          Case{"amd-pstate-epp", "powersave", Severity::kNote},
                          Case{"acpi-cpufreq", "schedutil", Severity::kNote},
                          Case{"acpi-cpufreq", "performance", Severity::kOk}}) {
    facts.driver = one.driver;
    facts.governor = one.governor;
    CHECK(severity_of(judge_processor(facts), "governor") == one.severity);
  }

  facts = good_processor();
  facts.throttle_count = 3;
  facts.allowed_khz = 2'000'000;
  facts.power_limits = {{"package-0", "long_term", 65, 125}, {"package-0", "peak_power", 200, 0}};
  facts.has_energy_counters = true;
  const Findings findings = judge_processor(facts);
  for (const char* check : {"heat", "frequency", "power_limit", "power_meter"}) {
    CHECK(severity_of(findings, check) == Severity::kNote);
  }
  CHECK(found(findings, "power_limit")->sentence ==
        "package-0 may take 65 W (long_term) of the 125 W that it is built for");
  facts.can_read_energy = true;
  CHECK(severity_of(judge_processor(facts), "power_meter") == Severity::kOk);
  facts.governor = "";  // a virtual machine has none
  CHECK_FALSE(found(judge_processor(facts), "governor").has_value());
}

TEST_CASE("processor facts are read from the system's files") {
  const FolderOfTest root;
  root.write("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "schedutil\n");
  root.write("sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq", "4000000\n");
  root.write("sys/devices/system/cpu/cpu0/thermal_throttle/package_throttle_count", "4\n");
  root.write("sys/devices/system/cpu/cpu1/thermal_throttle/package_throttle_count", "7\n");
  const std::string zone = "sys/class/powercap/intel-rapl:0/";
  root.write(zone + "name", "package-0\n");
  root.write(zone + "energy_uj", "12\n");
  root.write(zone + "constraint_0_name", "long_term\n");
  root.write(zone + "constraint_0_power_limit_uw", "65000000\n");
  root.write(zone + "constraint_0_max_power_uw", "125000000\n");
  const ProcessorFacts facts = collect_processor(SystemFiles(root.path()));
  CHECK(facts.machine_cores >= facts.allowed_cores);
  CHECK(facts.allowed_cores >= 1);
  CHECK(facts.governor == "schedutil");
  CHECK(facts.highest_khz == 4'000'000);
  CHECK(facts.throttle_count == 7);
  REQUIRE(facts.power_limits.size() == 1);
  CHECK(facts.power_limits.front().limit_w == 65);
  CHECK(facts.can_read_energy);
}

TEST_CASE("disks: space for models and permissions of keys") {
  StorageFacts facts = good_storage();
  facts.models_free_bytes = kGib / 2;
  CHECK(severity_of(judge_storage(facts), "models_space") == Severity::kProblem);
  facts.models_free_bytes = 5 * kGib;
  CHECK(severity_of(judge_storage(facts), "models_space") == Severity::kNote);
  facts.can_write_models = false;
  CHECK(severity_of(judge_storage(facts), "models_folder") == Severity::kProblem);
  facts.settings_error = "HF_ENDPOINT must be an address";
  CHECK(severity_of(judge_storage(facts), "hub_settings") == Severity::kProblem);
  facts.home = "";
  CHECK(severity_of(judge_storage(facts), "home") == Severity::kProblem);

  facts = good_storage();
  facts.home_free_bytes = 1000;
  CHECK(severity_of(judge_storage(facts), "home") == Severity::kProblem);
  facts.private_files = {{"/h/cluster_key", false, 0640}};
  const auto finding = found(judge_storage(facts), "key_rights");
  REQUIRE(finding.has_value());
  CHECK(finding->severity == Severity::kProblem);
  CHECK(finding->sentence == "others can read the secret in /h/cluster_key (mode 640)");
  CHECK(finding->mend == "chmod 600 /h/cluster_key");
  facts.private_files = {{"/h", true, 0755}};
  CHECK(found(judge_storage(facts), "key_rights")->mend == "chmod 700 /h");
  facts.private_files = {{"/h", true, 0700, false}};
  CHECK(severity_of(judge_storage(facts), "key_rights") == Severity::kProblem);
}

TEST_CASE("the permissions of a node's keys are read from its folder") {
  const FolderOfTest home;
  home.write("cluster_key", "x");
  home.write("name", "not secret");
  REQUIRE(::chmod((home.path() / "cluster_key").c_str(), 0644) == 0);
  const std::vector<FileRights> files = list_private_files(home.path());
  REQUIRE(files.size() == 2);  // the folder and the key
  CHECK(files[0].is_folder);
  CHECK(files[0].mode == 0700);
  CHECK(files[1].mode == 0644);
  CHECK(files[1].is_ours);
  CHECK(list_private_files(home.path() / "missing").empty());
}

TEST_CASE("the clock: synchronised, not synchronised, not known") {
  CHECK(severity_of(judge_clock({true}), "clock") == Severity::kOk);
  CHECK(severity_of(judge_clock({false}), "clock") == Severity::kNote);
  CHECK(judge_clock({}).empty());
}
