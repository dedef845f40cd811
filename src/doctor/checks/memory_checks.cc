#include "doctor/checks/memory_checks.h"

#include <fmt/core.h>

#include <algorithm>
#include <sstream>

#include "base/bytes_text.h"
#include "base/machine/available_memory.h"
#include "base/machine/mac_system.h"
#include "base/machine/meminfo.h"

namespace lockstep {
namespace {

// The smallest useful model has half a billion weights.
constexpr uint64_t kUsableBytesMin = uint64_t{1} << 30;
constexpr uint64_t kSwappedBytesMax = uint64_t{1} << 30;
constexpr double kScarceShare = 0.1;

std::optional<uint64_t> meminfo(const SystemFiles& files, std::string_view key) {
  return meminfo_bytes(files.text("/proc/meminfo").value_or(""), key);
}

// "always [madvise] never": the one in brackets.
std::string chosen_word(const std::string& text) {
  const size_t open = text.find('['), close = text.find(']');
  return open < close && close != std::string::npos ? text.substr(open + 1, close - open - 1) : "";
}

std::optional<uint64_t> container_limit(const SystemFiles& files) {
  auto limit = files.number("/sys/fs/cgroup/memory.max");  // "max" is no number
  if (!limit) limit = files.number("/sys/fs/cgroup/memory/memory.limit_in_bytes");
  return limit && *limit > 0 ? std::optional(static_cast<uint64_t>(*limit)) : std::nullopt;
}

void judge_available(const MemoryFacts& facts, Findings& findings) {
  if (!facts.available_bytes) {
    return add_note(findings, "memory", "the system does not report how much memory is free");
  }
  const std::string free = bytes_text(*facts.available_bytes);
  const char* const mend = facts.is_mac
                               ? "close other programs; the largest are shown by `top -o mem`"
                               : "close other programs; the largest are shown by `top -o %MEM`";
  if (*facts.available_bytes < kUsableBytesMin) {
    return add_problem(findings, "memory",
                       fmt::format("only {} of memory are free, too few for a model", free), mend);
  }
  const auto total = facts.total_bytes.value_or(0);
  if (static_cast<double>(*facts.available_bytes) < kScarceShare * static_cast<double>(total)) {
    return add_note(findings, "memory",
                    fmt::format("only {} of {} of memory are free", free, bytes_text(total)), mend);
  }
  add_ok(findings, "memory",
         total > 0 ? fmt::format("{} of {} of memory are free", free, bytes_text(total))
                   : fmt::format("{} of memory are free", free));
}

}  // namespace

MemoryFacts collect_memory(const SystemFiles& files) {
  MemoryFacts facts;
  facts.available_bytes = available_memory_bytes();
  facts.total_bytes = meminfo(files, "MemTotal");
  facts.limit_bytes = container_limit(files);
  const auto swap = meminfo(files, "SwapTotal"), unused = meminfo(files, "SwapFree");
  if (swap && unused) facts.swapped_bytes = *swap - std::min(*swap, *unused);
  facts.huge_pages =
      chosen_word(files.text("/sys/kernel/mm/transparent_hugepage/enabled").value_or(""));
  facts.is_mac = kIsMac;
  if constexpr (kIsMac) {
    facts.total_bytes = mac_sysctl_number("hw.memsize");
    facts.swapped_bytes = mac_swapped_bytes();
  }
  return facts;
}

Findings judge_memory(const MemoryFacts& facts) {
  Findings findings;
  judge_available(facts, findings);
  if (facts.limit_bytes && facts.total_bytes && *facts.limit_bytes < *facts.total_bytes) {
    add_note(
        findings, "memory_limit",
        fmt::format("a container's or a service's limit leaves {} of this machine's {}",
                    bytes_text(*facts.limit_bytes), bytes_text(*facts.total_bytes)),
        "raise MemoryMax= of the service or --memory of the container if this is not intended");
  }
  if (facts.swapped_bytes.value_or(0) > kSwappedBytesMax) {
    add_note(findings, "swap",
             fmt::format("{} of memory are swapped out; a rank that waits for the disk holds up "
                         "all others",
                         bytes_text(*facts.swapped_bytes)),
             facts.is_mac ? "close other programs; macOS then reads back what it needs"
                          : "close other programs, then sudo swapoff -a && sudo swapon -a");
  }
  if (facts.huge_pages == "never") {
    add_note(findings, "huge_pages", "huge pages are off, which costs speed for every model",
             "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled");
  } else if (!facts.huge_pages.empty()) {
    add_ok(findings, "huge_pages", fmt::format("huge pages are on ({})", facts.huge_pages));
  }
  return findings;
}

}  // namespace lockstep
