// A Mac's settings, RDMA and interfaces: facts in, findings out, and the tools played by programs
// of the same names.
#include "doctor/checks/mac_checks.h"

#include "base/bytes_text.h"
#include "base/files/mapped_file.h"
#include "doctor/check_support.h"
#include "doctor/checks/memory_checks.h"
#include "doctor/checks/network_checks.h"
#include "doctor/checks/processor_checks.h"
#include "doctor/checks/rdma_checks.h"

using namespace lockstep;

namespace {

constexpr uint64_t kGibOfMac = uint64_t{1} << 30;

MacFacts good_mac() {
  return {.power = {.sleep_minutes = 0, .restarts_after_power_failure = true},
          .thermal_level = 0,
          .pressure = MacPressure::kNormal,
          .memory_bytes = 512 * kGibOfMac,
          .gpu_limit_mb = 0,
          .files = FileLimits{.soft = 256, .hard = std::nullopt},
          .service = {.is_loaded = true, .state = "running", .pid = 7},
          .domain = "gui/501",
          .is_root = true};
}

// Folders and files like those of a Mac Studio with cables in ports 1 to 4, all in the bridge.
MacAnswers mac_answers() {
  MacAnswers answers;
  auto thunderbolt = read_small_file(LOCKSTEP_SOURCE_DIR "/tests/data/mac_tools/studio.json");
  REQUIRE(thunderbolt.ok());
  answers.thunderbolt = std::move(thunderbolt.value());
  answers.rdma_switch = "enabled\n";
  answers.hardware_ports = "Hardware Port: Wi-Fi\nDevice: en1\n";
  answers.interfaces = "bridge0: flags=8863<UP,RUNNING> mtu 1500\n";
  for (int port = 1; port <= 6; ++port) {
    const std::string interface = "en" + std::to_string(port + 1);
    answers.hardware_ports +=
        "Hardware Port: Thunderbolt " + std::to_string(port) + "\nDevice: " + interface + "\n";
    answers.interfaces += "\tmember: " + interface + " flags=3<LEARNING,DISCOVER>\n";
  }
  answers.interfaces += "en0: flags=8863<UP,RUNNING> mtu 1500\n\tmedia: autoselect (10Gbase-T)\n";
  return answers;
}

RdmaFacts mac_rdma(const MacAnswers& answers) {
  RdmaFacts facts{.verbs = {.library = "librdma.dylib",
                            .has_library = true,
                            .ports = {{"rdma_en3", 1, true, true, {"10.86.0.1"}}}}};
  facts.interfaces = {{.name = "en3", .is_up = true, .addresses = {"10.86.0.1"}}};
  add_apple_rdma(answers, facts);
  return facts;
}

}  // namespace

TEST_CASE("a Mac without faults is well") {
  check_all_well(judge_mac(good_mac()));
}

TEST_CASE("a Mac that falls asleep is a problem, unless sleep is switched off") {
  MacFacts facts = good_mac();
  facts.power.sleep_minutes = 10;
  CHECK(severity_of(judge_mac(facts), "sleep") == Severity::kProblem);
  CHECK(found(judge_mac(facts), "sleep")->mend == "sudo pmset -a sleep 0");
  facts.power.is_sleep_disabled = true;
  CHECK(severity_of(judge_mac(facts), "sleep") == Severity::kOk);
  facts.power = {.is_low_power = true, .restarts_after_power_failure = false};
  CHECK_FALSE(found(judge_mac(facts), "sleep").has_value());
  CHECK(severity_of(judge_mac(facts), "power_failure") == Severity::kNote);
  CHECK(severity_of(judge_mac(facts), "low_power") == Severity::kNote);
  check_sentences(judge_mac(facts));
}

TEST_CASE("heat and memory pressure are told by their levels") {
  MacFacts facts = good_mac();
  for (uint64_t level = 1; level <= 9; ++level) {
    facts.thermal_level = level;
    CHECK(severity_of(judge_mac(facts), "heat") == Severity::kNote);
  }
  facts.thermal_level = std::nullopt;
  CHECK_FALSE(found(judge_mac(facts), "heat").has_value());
  facts.speed_limit_percent = 85;
  CHECK(severity_of(judge_mac(facts), "heat") == Severity::kNote);
  facts.pressure = MacPressure::kWarning;
  CHECK(severity_of(judge_mac(facts), "memory_pressure") == Severity::kNote);
  facts.pressure = MacPressure::kCritical;
  CHECK(severity_of(judge_mac(facts), "memory_pressure") == Severity::kProblem);
}

TEST_CASE("the GPU's share of the memory: macOS's choice, an owner's, and one too large") {
  MacFacts facts = good_mac();
  CHECK(found(judge_mac(facts), "gpu_memory")->sentence.find(bytes_text(384 * kGibOfMac)) !=
        std::string::npos);
  facts.gpu_limit_mb = 480 * 1024;
  CHECK(severity_of(judge_mac(facts), "gpu_memory") == Severity::kOk);
  facts.gpu_limit_mb = 511 * 1024;
  CHECK(severity_of(judge_mac(facts), "gpu_memory") == Severity::kNote);
  facts.gpu_limit_mb = std::nullopt;
  CHECK_FALSE(found(judge_mac(facts), "gpu_memory").has_value());
}

TEST_CASE("open files: a low hard limit is a note") {
  MacFacts facts = good_mac();
  facts.files->hard = 1024;
  CHECK(severity_of(judge_mac(facts), "open_files") == Severity::kNote);
  facts.files->hard = 10'240;
  CHECK(severity_of(judge_mac(facts), "open_files") == Severity::kOk);
}

TEST_CASE("launchd: a plist that is not loaded, a service that fails, and none at all") {
  MacFacts facts = good_mac();
  facts.service = {};
  CHECK_FALSE(found(judge_mac(facts), "launchd").has_value());
  facts.plist = "/Library/LaunchDaemons/lockstep.plist";
  facts.domain = "system";
  CHECK(found(judge_mac(facts), "launchd")->mend ==
        "sudo launchctl bootstrap system /Library/LaunchDaemons/lockstep.plist");
  facts.service = {.is_loaded = true, .state = "not running", .last_exit_code = 0};
  CHECK(severity_of(judge_mac(facts), "launchd") == Severity::kNote);
  facts.service.last_exit_code = 78;
  facts.service.stderr_path = "/tmp/lockstep.log";
  CHECK(severity_of(judge_mac(facts), "launchd") == Severity::kProblem);
  CHECK(found(judge_mac(facts), "launchd")->mend.find("tail /tmp/lockstep.log") == 0);
  check_sentences(judge_mac(facts));
}

TEST_CASE("power: only root can read it, which is said once") {
  MacFacts facts = good_mac();
  facts.is_root = false;
  CHECK(severity_of(judge_mac(facts), "power_meter") == Severity::kNote);
}

TEST_CASE("the tools of macOS are asked by name, with their arguments") {
  const FolderOfTest folder;
  write_tool(folder, "pmset", "if [ \"$*\" = -g ]; then echo ' sleep 10'; else echo \"$@\"; fi");
  write_tool(folder, "rdma_ctl", "[ \"$*\" = status ] && echo enabled");
  write_tool(folder, "ifconfig", "[ \"$*\" = -a ] && echo 'en0: flags=1<UP> mtu 1'");
  write_tool(folder, "networksetup", "echo 'Hardware Port: X'; exit 3");
  write_tool(folder, "launchctl",
             "case \"$*\" in\n\"limit maxfiles\") echo ' maxfiles 256 1024';;\n"
             "print\\ gui/*/lockstep) exit 113;;\n"
             "\"print system/lockstep\") printf 'system/lockstep = {\\n\\tpid = 9\\n}\\n';;\nesac");
  write_tool(folder, "system_profiler", "[ \"$*\" = 'SPThunderboltDataType -json' ] && echo '{}'");
  const ToolsInPath path(folder);
  const MacAnswers answers = ask_mac_tools();
  CHECK(answers.power_settings == " sleep 10\n");
  CHECK(answers.thermal == "-g therm\n");
  CHECK(answers.rdma_switch == "enabled\n");
  CHECK(answers.interfaces == "en0: flags=1<UP> mtu 1\n");
  CHECK(answers.hardware_ports.empty());  // it failed
  CHECK(answers.thunderbolt == "{}\n");
  CHECK(answers.user_service.empty());
  const MacFacts facts = collect_mac(answers);
  CHECK(facts.power.sleep_minutes == 10);
  CHECK(facts.files->hard == 1024);
  CHECK(facts.service.pid == 9);
  CHECK(facts.domain == "system");
}

TEST_CASE("RDMA on a Mac: a bridge that joins two cables is a problem, one that is down is none") {
  MacAnswers answers = mac_answers();
  CHECK(severity_of(judge_rdma(mac_rdma(answers)), "thunderbolt_bridge") == Severity::kProblem);
  answers.interfaces.replace(answers.interfaces.find("UP,"), 3, "");
  CHECK_FALSE(found(judge_rdma(mac_rdma(answers)), "thunderbolt_bridge").has_value());
  answers.interfaces = "bridge0: flags=1<UP> mtu 1\n\tmember: en3 flags=3\n";
  CHECK(severity_of(judge_rdma(mac_rdma(answers)), "thunderbolt_bridge") == Severity::kNote);
  answers.rdma_switch = "who knows\n";
  CHECK(severity_of(judge_rdma(mac_rdma(answers)), "rdma_switch") == Severity::kNote);
}

TEST_CASE("RDMA on a Mac: an idle port is a fault only with a cable to another Mac") {
  const MacAnswers answers = mac_answers();
  RdmaFacts facts = mac_rdma(answers);
  facts.bridge_members.clear();
  CHECK(severity_of(judge_rdma(facts), "rdma_port") == Severity::kOk);
  facts.verbs.ports.push_back({"rdma_en7", 1, false, true, {}});  // free
  facts.verbs.ports.push_back({"rdma_en5", 1, false, true, {}});  // a drive
  CHECK(severity_of(judge_rdma(facts), "rdma_port") == Severity::kOk);
  facts.verbs.ports.push_back({"rdma_en4", 1, false, true, {}});  // a Mac without RDMA
  const auto without = found(judge_rdma(facts), "rdma_port");
  REQUIRE(without->severity == Severity::kProblem);
  CHECK(without->sentence.find("offers no RDMA") != std::string::npos);
  facts.verbs.ports.pop_back();
  facts.verbs.ports[0].is_active = false;  // its Mac offers RDMA
  CHECK(found(judge_rdma(facts), "rdma_port")->mend.find("sudo ifconfig en3 up") !=
        std::string::npos);
  facts.verbs = {.library = "librdma.dylib", .problem = "it cannot be loaded"};
  CHECK(severity_of(judge_rdma(facts), "rdma_library") == Severity::kProblem);
}

TEST_CASE("a Mac's interfaces get their speed, and the wireless one its kind") {
  std::vector<InterfaceFacts> interfaces{{.name = "en0"}, {.name = "en1"}, {.name = "en2"}};
  add_mac_media(interfaces, mac_answers());
  CHECK(interfaces[0].speed_mbit_s == 10'000);
  CHECK_FALSE(interfaces[0].is_wireless);
  CHECK(interfaces[1].is_wireless);
  CHECK(interfaces[2].speed_mbit_s == 0);
}

TEST_CASE("the mends for a Mac name commands of macOS") {
  NetworkFacts network{.interfaces = {{.name = "en0",
                                       .is_up = true,
                                       .can_multicast = true,
                                       .is_half_duplex = true,
                                       .addresses = {"10.0.0.2"}}},
                       .http_port = 8600,
                       .taken = {.http = true, .control = true, .beacon = true},
                       .is_mac = true};
  for (const Finding& one : judge_network(network)) {
    for (const char* foreign : {"ethtool", "ip link", "ss -l"}) {
      CHECK_MESSAGE(one.mend.find(foreign) == std::string::npos, one.mend);
    }
  }
  CHECK(found(judge_network(network), "interface")->mend ==
        "sudo ifconfig en0 media autoselect, or another cable");
  CHECK(found(judge_network(network), "multicast")->mend.find("Local Network") !=
        std::string::npos);
  const MemoryFacts memory{.total_bytes = 64 * kGibOfMac,
                           .available_bytes = kGibOfMac / 2,
                           .swapped_bytes = 2 * kGibOfMac,
                           .is_mac = true};
  for (const Finding& one : judge_memory(memory)) {
    CHECK_MESSAGE(one.mend.find("swapoff") == std::string::npos, one.mend);
    CHECK_MESSAGE(one.mend.find("%MEM") == std::string::npos, one.mend);
  }
}

TEST_CASE("processors for efficiency that do not compute are no fault of a Mac") {
  const ProcessorFacts facts{.machine_cores = 32,
                             .allowed_cores = 24,
                             .mac_kinds = {{"Performance", 24}, {"Efficiency", 8}}};
  CHECK(severity_of(judge_processor(facts), "cores") == Severity::kOk);
}
