// Broadcast, gathers and the idle wait.
#include <doctest/doctest.h>

#include <atomic>

#include "collective/ranks.h"

using namespace lockstep;

namespace {

std::vector<std::byte> bytes_of(int rank, size_t count) {
  std::vector<std::byte> bytes(count);
  for (size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(rank * 31 + i * 7 + i / 251);
  return bytes;
}

constexpr size_t kSizes[] = {0, 1, 7, 64, 65'527, 65'528, 65'529, 65'536, 131'080, 9'000'001};

}  // namespace

TEST_CASE("a broadcast of any length reaches all ranks from any root") {
  for (const auto& kind : kAllLinks) {
    CAPTURE(kind.name);
    std::atomic<int> right{0};
    run_ranks(kind.open(3), {.timeout = kTestTimeout}, [&](Group& group) {
      for (const size_t size : kSizes) {
        for (int root = 0; root < 3; ++root) {
          auto data = group.rank() == root ? bytes_of(root, size) : bytes_of(9, 33);
          if (!group.wait_for(root).ok()) return;
          if (!group.broadcast(root, data, 10'000'000).ok()) return;
          right += data == bytes_of(root, size);
        }
      }
    });
    CHECK(right == 3 * 3 * std::ssize(kSizes));
  }
}

TEST_CASE("a broadcast beyond the receiver's limit is refused before anything is allocated") {
  ErrorCode seen = ErrorCode::kInternal;
  run_ranks(kAllLinks[1].open(2), {.timeout = kTestTimeout}, [&](Group& group) {
    std::vector<std::byte> data(group.rank() == 0 ? 1000 : 0);
    const Status status = group.broadcast(0, data, group.rank() == 0 ? 1000 : 999);
    if (group.rank() == 1) seen = status.error().code;
  });
  CHECK(seen == ErrorCode::kCorrupt);
}

TEST_CASE("gathers bring parts of any lengths together") {
  for (const auto& kind : kAllLinks) {
    CAPTURE(kind.name);
    for (const size_t size : kSizes) {
      CAPTURE(size);
      const size_t sizes[] = {size, 100, size / 3};
      std::atomic<int> all{0}, root_only{0};
      run_ranks(kind.open(3), {.timeout = kTestTimeout}, [&](Group& group) {
        std::vector<std::vector<std::byte>> parts;
        for (int rank = 0; rank < 3; ++rank) {
          parts.push_back(rank == group.rank() ? bytes_of(rank, sizes[rank])
                                               : std::vector<std::byte>(sizes[rank]));
        }
        const auto is_right = [&] {
          return parts[0] == bytes_of(0, sizes[0]) && parts[1] == bytes_of(1, sizes[1]) &&
                 parts[2] == bytes_of(2, sizes[2]);
        };
        const std::vector<std::span<std::byte>> spans(parts.begin(), parts.end());
        root_only += group.gather(1, spans).ok() && is_right() == (group.rank() == 1 || size == 0);
        all += group.all_gather(spans).ok() && is_right();
      });
      CHECK(all == 3);
      if (size > 0) CHECK(root_only == 3);
    }
  }
}

TEST_CASE("a group of one rank exchanges with itself") {
  run_ranks(kAllLinks[0].open(1), {}, [](Group& group) {
    auto data = bytes_of(0, 100);
    CHECK(group.wait_for(0).ok());
    CHECK(group.broadcast(0, data, 100).ok());
    const std::span<std::byte> parts[] = {data};
    CHECK(group.all_gather(parts).ok());
    CHECK(group.gather(0, parts).ok());
    CHECK(data == bytes_of(0, 100));
  });
}

TEST_CASE("an idle rank waits longer than any deadline, says that it is idle and wakes up") {
  for (const auto& kind : kAllLinks) {
    CAPTURE(kind.name);
    LocalLinks links = kind.open(2);
    Progress progress;
    std::atomic<bool> has_woken{false};
    std::thread follower([&] {
      Group group({.rank = 1,
                   .links = std::move(links[1]),
                   .timeout = std::chrono::milliseconds{1},
                   .progress = &progress});
      has_woken = group.wait_for(0).ok();
    });
    Group group({.rank = 0, .links = std::move(links[0])});
    // Long enough for the follower to be in its sleep, which is what is tested; nothing depends on
    // it.
    const auto start = std::chrono::steady_clock::now();
    while (std::chrono::steady_clock::now() - start < std::chrono::milliseconds{30} ||
           progress.ticks == 0) {
      std::this_thread::yield();
    }
    CHECK(progress.state == Progress::kIdle);
    CHECK(!has_woken);
    std::vector<std::byte> data(10);
    CHECK(group.broadcast(0, data, 10).ok());
    follower.join();
    CHECK(has_woken);
    CHECK(progress.state == Progress::kComputing);
  }
}
