// Broadcast, gathers and the idle wait.
#include <doctest/doctest.h>

#include <atomic>
#include <memory>

#include "collective/ranks.h"

using namespace lockstep;

namespace {

std::vector<std::byte> bytes_of(int rank, size_t count) {
  std::vector<std::byte> bytes(count);
  for (size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(rank * 31 + i * 7 + i / 251);
  return bytes;
}

// Counts how often its reader sleeps.
class SleepCounter final : public Link {
 public:
  SleepCounter(std::unique_ptr<Link> inner, std::atomic<int>& sleeps)
      : inner_(std::move(inner)), sleeps_(sleeps) {}

  size_t frame_bytes_max() const override { return inner_->frame_bytes_max(); }
  std::span<std::byte> acquire(size_t bytes) override { return inner_->acquire(bytes); }
  void post() override { inner_->post(); }
  bool flush() override { return inner_->flush(); }
  std::span<const std::byte> peek() override { return inner_->peek(); }
  void release() override { inner_->release(); }
  void wait_readable(std::chrono::microseconds at_most) override {
    ++sleeps_;
    inner_->wait_readable(at_most);
  }
  Status health() const override { return inner_->health(); }

 private:
  std::unique_ptr<Link> inner_;
  std::atomic<int>& sleeps_;
};

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

TEST_CASE("gathers collect parts of any lengths") {
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

TEST_CASE("an idle rank waits longer than any deadline, reports progress and wakes up") {
  for (const auto& kind : kAllLinks) {
    CAPTURE(kind.name);
    LocalLinks links = kind.open(2);
    Progress progress;
    std::atomic<bool> has_woken{false};
    std::atomic<int> sleeps{0};
    links[1][0] = std::make_unique<SleepCounter>(std::move(links[1][0]), sleeps);
    std::thread follower([&] {
      Group group({.rank = 1,
                   .links = std::move(links[1]),
                   .timeout = std::chrono::milliseconds{1},
                   .progress = &progress});
      has_woken = group.wait_for(0).ok();
    });
    Group group({.rank = 0, .links = std::move(links[0])});
    // The follower polls for longer than its time-out before it sleeps.
    CHECK(comes_true([&] { return sleeps > 1 && progress.ticks > 0; }));
    CHECK(progress.state == Progress::kIdle);
    CHECK(!has_woken);
    std::vector<std::byte> data(10);
    CHECK(group.broadcast(0, data, 10).ok());
    follower.join();
    CHECK(has_woken);
    CHECK(progress.state == Progress::kComputing);
  }
}
