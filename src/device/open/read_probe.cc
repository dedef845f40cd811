#include "device/open/read_probe.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>

#include "base/threads/thread_team.h"
#include "device/memory.h"

namespace lockstep {
namespace {

constexpr size_t kMib = size_t{1} << 20;
constexpr size_t kStreams = 4;  // one core reads faster from several places
constexpr int kPieces = 64;

// The sum keeps the compiler from removing the reads.
uint64_t read_piece(const uint64_t* words, size_t count) {
  const size_t stream = count / kStreams;
  uint64_t sums[kStreams][8] = {};
  for (size_t i = 0; i + 8 <= stream; i += 8) {
    for (size_t s = 0; s < kStreams; ++s) {
      for (size_t lane = 0; lane < 8; ++lane) sums[s][lane] += words[s * stream + i + lane];
    }
  }
  uint64_t sum = 0;
  for (auto& lanes : sums) {
    for (uint64_t lane : lanes) sum += lane;
  }
  return sum;
}

}  // namespace

Result<double> probe_read_gb_s(int threads, int rounds, size_t bytes) {
  if (bytes < kReadProbeBytesMin) {
    return Error{ErrorCode::kInvalidArgument, "too few bytes to measure the read speed"};
  }
  bytes = bytes / kMib * kMib;
  const DeviceMemory memory = TRY(DeviceMemory::allocate(bytes));
  ThreadTeam team({.threads = threads});
  const size_t piece_bytes = bytes / kPieces;
  team.for_each_chunk(kPieces, 1, [&](int begin, int end) {
    std::memset(memory.data() + static_cast<size_t>(begin) * piece_bytes, 1,
                static_cast<size_t>(end - begin) * piece_bytes);
  });
  std::atomic<uint64_t> sum{0};
  double best = 0;
  for (int round = 0; round < rounds; ++round) {
    const auto started = std::chrono::steady_clock::now();
    team.for_each_chunk(kPieces, 1, [&](int begin, int end) {
      for (int piece = begin; piece < end; ++piece) {
        const std::byte* at = memory.data() + static_cast<size_t>(piece) * piece_bytes;
        sum += read_piece(reinterpret_cast<const uint64_t*>(at), piece_bytes / 8);
      }
    });
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - started;
    best = std::max(best, static_cast<double>(bytes) / seconds.count() / 1e9);
  }
  if (sum == 0) return Error{ErrorCode::kInternal, "the read probe read nothing"};
  return best;
}

}  // namespace lockstep
