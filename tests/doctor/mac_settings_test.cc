// Outputs of the tools of macOS, in the forms of recorded outputs (doctor/mac/mac_settings.h names
// the sources).
#include "doctor/mac/mac_settings.h"

#include <doctest/doctest.h>

using namespace lockstep;

TEST_CASE("pmset -g: sleep, energy saving, and the start after a power failure") {
  const PowerSettings laptop = parse_power_settings(
      "System-wide power settings:\n"
      "Currently in use:\n"
      " standby              1\n"
      " hibernatefile        /var/vm/sleepimage\n"
      " displaysleep         28\n"
      " sleep                1 (sleep prevented by sharingd)\n"
      " lowpowermode         1\n"
      " disksleep            10\n");
  CHECK(laptop.sleep_minutes == 1);
  CHECK(laptop.is_low_power);
  CHECK_FALSE(laptop.is_sleep_disabled);
  CHECK_FALSE(laptop.restarts_after_power_failure.has_value());

  const PowerSettings studio = parse_power_settings(
      "System-wide power settings:\n SleepDisabled\t\t1\nCurrently in use:\n"
      " autorestart          0\n powermode            0\n sleep                0\n");
  CHECK(studio.sleep_minutes == 0);
  CHECK(studio.is_sleep_disabled);
  CHECK_FALSE(studio.is_low_power);
  CHECK(studio.restarts_after_power_failure == false);
  CHECK_FALSE(parse_power_settings("").sleep_minutes.has_value());
  CHECK_FALSE(parse_power_settings(" sleep\n sleep never\n").sleep_minutes.has_value());
}

TEST_CASE("pmset -g therm: a percentage on Intel, nothing on Apple silicon") {
  CHECK(parse_speed_limit_percent("2026-01-01 10:00:00 +0000 CPU Power notify\n"
                                  "\tCPU_Scheduler_Limit \t= 100\n"
                                  "\tCPU_Available_CPUs \t= 8\n"
                                  "\tCPU_Speed_Limit \t= 85\n") == 85);
  CHECK(parse_speed_limit_percent(" - CPU_Speed_Limit               = 60") == 60);
  CHECK_FALSE(parse_speed_limit_percent("Note: No thermal warning level has been recorded\n"
                                        "Note: No performance warning level has been recorded\n")
                  .has_value());
  CHECK_FALSE(parse_speed_limit_percent("CPU_Speed_Limit = 900").has_value());
}

TEST_CASE("socketfilterfw: off, on, and all incoming connections blocked") {
  const char* const kOn = "Firewall is enabled. (State = 1)\n";
  CHECK(parse_mac_firewall("Firewall is disabled. (State = 0)\n", "") == MacFirewall::kOff);
  CHECK(parse_mac_firewall(kOn, "") == MacFirewall::kOn);
  CHECK(parse_mac_firewall(kOn, "Firewall has block all state set to disabled.\n") ==
        MacFirewall::kOn);
  CHECK(parse_mac_firewall(kOn, "Firewall has block all state set to enabled.\n") ==
        MacFirewall::kBlocksAll);
  CHECK(parse_mac_firewall(
            "Firewall is blocking all non-essential incoming connections. (State = 2)", "") ==
        MacFirewall::kBlocksAll);
  for (const char* none : {"", "Firewall is enabled.", "(State = x)", "(State = 7)"}) {
    CHECK(parse_mac_firewall(none, "") == MacFirewall::kUnknown);
  }
}

TEST_CASE("rdma_ctl status: one word, and nothing else is an answer") {
  CHECK(parse_rdma_switch("enabled\n") == RdmaSwitch::kEnabled);
  CHECK(parse_rdma_switch("disabled\n") == RdmaSwitch::kDisabled);
  CHECK(parse_rdma_switch("") == RdmaSwitch::kNoTool);
  CHECK(parse_rdma_switch("not enabled") == RdmaSwitch::kUnknown);
}

TEST_CASE("launchctl limit maxfiles: a soft and a hard limit") {
  const auto usual = parse_file_limits("\tmaxfiles    256            unlimited      \n");
  REQUIRE(usual.has_value());
  CHECK(usual->soft == 256);
  CHECK_FALSE(usual->hard.has_value());
  CHECK(parse_file_limits("maxfiles 256 10240")->hard == 10'240);
  for (const char* none : {"", "maxfiles", "maxfiles 256 many", "maxfiles x unlimited"}) {
    CHECK_FALSE(parse_file_limits(none).has_value());
  }
}

TEST_CASE("launchctl print: the service's own lines, not those of its blocks") {
  const LaunchdService running = parse_launchd_service(
      "gui/501/lockstep = {\n"
      "\tactive count = 1\n"
      "\tpath = /Library/LaunchAgents/lockstep.plist\n"
      "\ttype = LaunchAgent\n"
      "\tstate = running\n\n"
      "\tprogram = /usr/local/bin/lockstep\n"
      "\targuments = {\n\t\t/usr/local/bin/lockstep\n\t\tserve\n\t}\n\n"
      "\tstdout path = /tmp/lockstep.log\n"
      "\tstderr path = /tmp/lockstep.log\n"
      "\tenvironment = {\n\t\tXPC_SERVICE_NAME => lockstep\n\t}\n\n"
      "\truns = 3\n"
      "\tpid = 4242\n"
      "\tlast exit code = (never exited)\n"
      "\tspawn type = interactive (4)\n"
      "\tendpoints = {\n\t\tstate = waiting\n\t\tpid = 1\n\t}\n"
      "}\n");
  CHECK(running.is_loaded);
  CHECK(running.state == "running");
  CHECK(running.path == "/Library/LaunchAgents/lockstep.plist");
  CHECK(running.stderr_path == "/tmp/lockstep.log");
  CHECK(running.pid == 4242);
  CHECK(running.runs == 3);
  CHECK_FALSE(running.last_exit_code.has_value());

  const LaunchdService failed = parse_launchd_service(
      "system/lockstep = {\n\tstate = not running\n\truns = 9\n\tlast exit code = 78: "
      "EX_CONFIG\n}");
  CHECK(failed.state == "not running");
  CHECK(failed.last_exit_code == 78);
  CHECK_FALSE(parse_launchd_service("").is_loaded);
  CHECK_FALSE(parse_launchd_service("}\n}\nstate = running\n").is_loaded);
}

TEST_CASE("networksetup -listallhardwareports: each port with its interface") {
  const HardwarePorts ports = parse_hardware_ports(
      "\nHardware Port: Ethernet\nDevice: en0\nEthernet Address: 8c:85:90:90:6d:26\n\n"
      "Hardware Port: Thunderbolt 1\nDevice: en2\nEthernet Address: 82:f1:30:25:50:01\n\n"
      "Hardware Port: Wi-Fi\nDevice: en1\nEthernet Address: N/A\n\n"
      "VLAN Configurations\n===================\n");
  CHECK(ports == HardwarePorts{{"Ethernet", "en0"}, {"Thunderbolt 1", "en2"}, {"Wi-Fi", "en1"}});
  CHECK(
      parse_hardware_ports("Device: en0\nHardware Port: X\nHardware Port:\nDevice: en1\n").empty());
  std::string many;
  for (size_t i = 0; i < 2 * kHardwarePortsMax; ++i) {
    many += "Hardware Port: " + std::to_string(i) + "\nDevice: en\n";
  }
  CHECK(parse_hardware_ports(many).size() == kHardwarePortsMax);
}

TEST_CASE("an RDMA device belongs to the interface in its name") {
  CHECK(interface_of_rdma_device("rdma_en2") == "en2");
  CHECK(interface_of_rdma_device("mlx5_0").empty());
}
