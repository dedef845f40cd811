#include "node/worker/worker_flags.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <string_view>

namespace lockstep {
namespace {

constexpr std::string_view kControlFd = "--control-fd";
constexpr std::string_view kModel = "--model";
constexpr std::string_view kDraftModel = "--draft-model";
constexpr std::string_view kHosts = "--hosts";
constexpr std::string_view kDataPaths = "--data-paths";
constexpr std::string_view kMachineRanks = "--machine-ranks";
constexpr std::string_view kCacheFolder = "--cache-folder";
constexpr std::string_view kCacheBytes = "--cache-bytes";
constexpr std::string_view kDevice = "--device";
constexpr std::string_view kForbidCoreDumps = "--forbid-core-dumps";
constexpr int kFlagNumberMax = 1 << 20;
constexpr const char* kLoopbackFlag = "127.0.0.1";

bool is_wildcard(std::string_view host) {
  return host == "::" || host == "0.0.0.0";
}

template <class Number>
Result<Number> parse_number(std::string_view flag, std::string_view text, Number least,
                            Number most) {
  Number number{};
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_whole = parsed.ec == std::errc() && parsed.ptr == text.data() + text.size();
  if (!is_whole || number < least || number > most) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{} {}: a number from {} to {} is needed", flag, text, least, most)};
  }
  return number;
}

std::vector<std::string> split_hosts(std::string_view text) {
  std::vector<std::string> hosts;
  while (true) {
    const size_t comma = text.find(',');
    hosts.emplace_back(text.substr(0, comma));
    if (comma == std::string_view::npos) return hosts;
    text.remove_prefix(comma + 1);
  }
}

Status take_flag(WorkerFlags& flags, std::string_view flag, std::string_view value) {
  if (flag == kControlFd) {
    flags.control_fd = TRY(parse_number(flag, value, 0, kFlagNumberMax));
  } else if (flag == kModel) {
    flags.files.model = value;
  } else if (flag == kDraftModel) {
    flags.files.draft_model = value;
  } else if (flag == kHosts) {
    flags.hosts = split_hosts(value);
  } else if (flag == kDataPaths) {
    flags.paths = TRY(decode_data_paths(value));
  } else if (flag == kMachineRanks) {
    flags.machine_ranks = TRY(parse_number(flag, value, 1, kFlagNumberMax));
  } else if (flag == kCacheFolder) {
    flags.cache.folder = value;
  } else if (flag == kCacheBytes) {
    flags.cache.bytes = TRY(parse_number<uint64_t>(flag, value, 0, kDiskCacheBytesMax));
  } else if (flag == kDevice) {
    flags.device = value;
  } else if (flag == kForbidCoreDumps) {
    flags.forbids_core_dumps = TRY(parse_number(flag, value, 0, 1)) == 1;
  } else {
    return Error{ErrorCode::kInvalidArgument, fmt::format("a worker has no flag {}", flag)};
  }
  return Ok{};
}

}  // namespace

WorkerFlags flags_of_rank(int rank, const LocalPaths& files, const MachineHosts& machine) {
  WorkerFlags flags{.files = files, .hosts = machine.hosts, .paths = machine.paths};
  flags.machine_ranks = std::max(1, static_cast<int>(machine.ranks.size()));
  for (const int other : machine.ranks) {
    std::string& host = flags.hosts[static_cast<size_t>(other)];
    if (other != rank && is_wildcard(host)) host = kLoopbackFlag;
  }
  return flags;
}

std::vector<std::string> worker_arguments(const WorkerFlags& flags) {
  std::vector<std::string> arguments{std::string(kControlFd), std::to_string(flags.control_fd)};
  const auto add = [&arguments](std::string_view flag, std::string value) {
    arguments.emplace_back(flag);
    arguments.push_back(std::move(value));
  };
  if (!flags.files.model.empty()) add(kModel, flags.files.model);
  if (!flags.files.draft_model.empty()) add(kDraftModel, flags.files.draft_model);
  if (!flags.hosts.empty()) add(kHosts, fmt::format("{}", fmt::join(flags.hosts, ",")));
  if (!flags.paths.empty()) add(kDataPaths, encode_data_paths(flags.paths));
  if (flags.machine_ranks != 1) add(kMachineRanks, std::to_string(flags.machine_ranks));
  if (flags.cache.bytes > 0) {
    add(kCacheFolder, flags.cache.folder);
    add(kCacheBytes, std::to_string(flags.cache.bytes));
  }
  if (!flags.device.empty()) add(kDevice, flags.device);
  if (flags.forbids_core_dumps) add(kForbidCoreDumps, "1");
  return arguments;
}

Result<WorkerFlags> parse_worker_arguments(std::span<char* const> arguments) {
  WorkerFlags flags;
  for (size_t i = 0; i < arguments.size(); i += 2) {
    if (i + 1 == arguments.size()) {
      return Error{ErrorCode::kInvalidArgument, fmt::format("{} needs a value", arguments[i])};
    }
    TRY(take_flag(flags, arguments[i], arguments[i + 1]));
  }
  if (flags.control_fd < 0) {
    return Error{ErrorCode::kInvalidArgument, "`lockstep worker` is started by `lockstep serve`"};
  }
  return flags;
}

}  // namespace lockstep
