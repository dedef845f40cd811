#include "doctor/checks/machine_text.h"

#include <fmt/core.h>
#include <sys/utsname.h>

#include <cstdlib>
#include <sstream>
#include <string_view>
#include <vector>

#include "base/bytes_text.h"
#include "base/machine/available_memory.h"
#include "base/machine/mac_system.h"
#include "base/machine/machine.h"
#include "base/machine/program_output.h"
#include "base/version.h"
#include "doctor/checks/memory_checks.h"
#include "transport/verbs/verbs_report.h"

namespace lockstep {
namespace {

// The text after the first "key<separator>" at the start of a line; empty if there is none.
std::string value_of(const std::string& text, std::string_view key, char separator) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const size_t at = line.find(separator);
    if (!line.starts_with(key) || at == std::string::npos) continue;
    const size_t start = line.find_first_not_of(" \t\"", at + 1);
    if (start == std::string::npos) return "";
    return line.substr(start, line.find_last_not_of(" \t\"") + 1 - start);
  }
  return "";
}

std::string mac_name() {
  const auto answer = run_program({.program = "sw_vers", .arguments = {"-productVersion"}});
  if (!answer.ok() || answer.value().status != 0) return "macOS";
  return "macOS " + answer.value().output.substr(0, answer.value().output.find('\n'));
}

std::string system_text(const SystemFiles& files) {
  utsname system{};
  if (::uname(&system) != 0) return "unknown";
  std::string name = value_of(files.text("/etc/os-release").value_or(""), "PRETTY_NAME", '=');
  if (kIsMac) {
    name = fmt::format("{}, {}", mac_name(), mac_sysctl_text("hw.model").value_or("unknown model"));
  }
  return fmt::format("{} {} {}, {}", system.sysname, system.release, system.machine, name);
}

std::string processor_text(const SystemFiles& files) {
  const std::string info = files.text("/proc/cpuinfo").value_or("");
  std::string name = value_of(info, "model name", ':');
  if (name.empty()) name = value_of(info, "CPU part", ':');
  if (const auto chip = mac_sysctl_text("machdep.cpu.brand_string")) name = *chip;
  return name.empty() ? "unknown" : name;
}

std::string build_text() {
#ifdef __clang__
  const std::string compiler = fmt::format("clang {}", __clang_version__);
#else
  const std::string compiler = fmt::format("g++ {}", __VERSION__);
#endif
#ifdef __OPTIMIZE__
  const char* const optimised = "optimised";
#else
  const char* const optimised = "not optimised";
#endif
#ifdef NDEBUG
  const char* const asserts = "without asserts";
#else
  const char* const asserts = "with asserts";
#endif
  return fmt::format("{}, {}, {}", compiler, optimised, asserts);
}

// The variables that change lockstep's behaviour; not those with tokens.
std::string variables_text() {
  std::string text;
  for (const char* name :
       {"LOCKSTEP_HOME", "LOCKSTEP_ISA", "LOCKSTEP_MODELS", "LOCKSTEP_VERBS_QP",
        "LOCKSTEP_VERBS_LIBRARY", "HF_HOME", "HF_HUB_CACHE", "HF_ENDPOINT", "HF_HUB_OFFLINE"}) {
    if (const char* value = std::getenv(name)) text += fmt::format("{}={}\n", name, value);
  }
  return text;
}

}  // namespace

std::string machine_text(const SystemFiles& files) {
  const MemoryFacts memory = collect_memory(files);
  const VerbsReport verbs = report_verbs();
  std::string text = fmt::format("lockstep:   {}\n", kVersion);
  text += fmt::format("build:      {}\n", build_text());
  text += fmt::format("system:     {}\n", system_text(files));
  text += fmt::format("processor:  {}\n", processor_text(files));
  text += fmt::format("cores:      {} of {}\n", available_core_count(), machine_core_count());
  text += fmt::format("memory:     {} free of {}\n", bytes_text(memory.available_bytes.value_or(0)),
                      bytes_text(memory.total_bytes.value_or(0)));
  text +=
      fmt::format("RDMA:       {}\n",
                  verbs.has_library ? fmt::format("{} ports", verbs.ports.size()) : verbs.problem);
  return text + variables_text();
}

}  // namespace lockstep
