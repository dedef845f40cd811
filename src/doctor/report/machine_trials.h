// Trials of a machine on which lockstep may never have run: the kernels' fixed answers, the RDMA
// devices, the links over loopback, a small benchmark, and what the system's own tools say. Each
// trial is a process of its own with a deadline, so a crash or a hang of one costs only its result.
// For `lockstep bug-report --first-mac`; takes up to some minutes. Any thread.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "doctor/report/bug_report.h"

namespace lockstep {

struct MachineTrial {
  std::string name;                    // "probe-tcp": the file is "probe-tcp.json"
  std::string what;                    // one line for people
  std::vector<std::string> arguments;  // of lockstep; it prints one JSON value on stdout
  std::chrono::seconds timeout{60};
};

// Those of --first-mac, in their order.
std::vector<MachineTrial> machine_trials();

struct TrialsWish {
  std::string program;  // the path of lockstep
  std::vector<MachineTrial> trials;
  std::function<void(const std::string& what)> announce;  // called before each trial
};

// Adds a file for each trial that printed JSON, and "trials.txt", which has a line for each trial
// and says how it failed if it did. Returns how many failed.
int add_trials(const TrialsWish& wish, BugReport& report);

// Adds "tools.txt": what this system's own tools say about its version, its processor, its
// Thunderbolt ports and its RDMA devices (macOS; elsewhere those of them that exist).
void add_tools(BugReport& report);

}  // namespace lockstep
