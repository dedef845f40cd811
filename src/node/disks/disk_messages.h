// Questions of nodes to each other about their disks: one question and one answer on a stream of
// its own, as JSON. Nothing of another node is trusted: names are checked, sizes have limits. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "node/disks/disk_report.h"

namespace lockstep {

inline constexpr const char* kDiskChannel = "disk";

struct DiskAsk {
  enum class Kind : uint8_t { kList, kRemove };
  Kind kind = Kind::kList;
  std::string model{};  // kRemove
};
std::string encode_disk_ask(const DiskAsk& ask);
Result<DiskAsk> decode_disk_ask(std::string_view frame);

struct DiskAnswer {
  DiskReport disk;             // of kList
  uint64_t removed_bytes = 0;  // of kRemove
};
std::string encode_disk_answer(const DiskAsk& ask, const Result<DiskAnswer>& answer);
// The other node's error is the result's; kCorrupt for what is not an answer.
Result<DiskAnswer> decode_disk_answer(const DiskAsk& ask, std::string_view frame);

}  // namespace lockstep
