// A peer that writes garbage into the shared region, or is another process.
#include "transport/shm/shm_link.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/wait.h>

#include <cstring>

#include "base/threads/wait.h"

using namespace lockstep;

namespace {

constexpr size_t kRingBytes = 64 * 1024;
constexpr ShmLink::Options kLeft{.side = 0, .peer = 1, .epoch = 7, .ring_bytes = kRingBytes};
constexpr ShmLink::Options kRight{.side = 1, .peer = 0, .epoch = 7, .ring_bytes = kRingBytes};

// The right end of a link whose left end is the test, writing raw bytes.
struct RawRegion {
  UniqueFd fd = std::move(ShmLink::create_region(kRingBytes).value());
  SharedMemory memory =
      std::move(SharedMemory::map(fd.get(), ShmLink::region_bytes(kRingBytes)).value());
  ShmRegion& region = *reinterpret_cast<ShmRegion*>(memory.data());
  std::byte* ring = memory.data() + sizeof(ShmRegion);
  std::unique_ptr<Link> link = std::move(ShmLink::open(fd.get(), kRight).value());

  void write(FrameHeader header, uint64_t sent) {
    std::memcpy(ring, &header, sizeof(header));
    region.rings[0].sent = sent;
  }
  ErrorCode seen() {
    CHECK(link->peek().empty());
    CHECK(link->peek().empty());
    const Status health = link->health();
    REQUIRE(!health.ok());
    CHECK(health.error().message.find("rank 0") != std::string::npos);
    return health.error().code;
  }
};

}  // namespace

TEST_CASE("a correct frame is read") {
  RawRegion peer;
  peer.write({.epoch = 7, .length = 100, .sequence = 0}, 192);
  CHECK(peer.link->peek().size() == 100);
  CHECK(peer.link->health().ok());
}

TEST_CASE("a frame of another epoch, sequence or length breaks a shared-memory link") {
  const FrameHeader bad[] = {
      {.epoch = 6, .length = 100, .sequence = 0},
      {.epoch = 7, .length = 100, .sequence = 1},
      {.epoch = 7, .length = 0, .sequence = 0},
      {.epoch = 7, .length = kRingBytes / 4 + 1, .sequence = 0},
      {.epoch = 7, .length = 0xffff'ffff, .sequence = 0},  // skips beyond the sent bytes
      {.epoch = 7, .length = 0xffff'fffe, .sequence = 0},
      {.epoch = 7, .length = 129, .sequence = 0},  // longer than the sent bytes
  };
  for (const FrameHeader& header : bad) {
    CAPTURE(header.epoch);
    CAPTURE(header.length);
    RawRegion peer;
    peer.write(header, 192);
    CHECK(peer.seen() == ErrorCode::kCorrupt);
  }
}

TEST_CASE("a repeated frame breaks a shared-memory link") {
  RawRegion peer;
  peer.write({.epoch = 7, .length = 64, .sequence = 0}, 128);
  REQUIRE(peer.link->peek().size() == 64);
  peer.link->release();
  const FrameHeader same{.epoch = 7, .length = 64, .sequence = 0};
  std::memcpy(peer.ring + 128, &same, sizeof(same));
  peer.region.rings[0].sent = 256;
  CHECK(peer.seen() == ErrorCode::kCorrupt);
}

TEST_CASE("positions of a lying peer break a shared-memory link") {
  for (const uint64_t sent : {uint64_t{1}, uint64_t{64}, uint64_t{kRingBytes + 64}, ~uint64_t{0}}) {
    CAPTURE(sent);
    RawRegion peer;
    peer.write({.epoch = 7, .length = 100, .sequence = 0}, sent);
    CHECK(peer.seen() == ErrorCode::kCorrupt);
  }
  for (const uint64_t taken : {uint64_t{1}, ~uint64_t{0}, uint64_t{1} << 40}) {
    CAPTURE(taken);
    RawRegion peer;
    peer.region.rings[1].taken = taken;
    int posted = 0;
    while (!peer.link->acquire(1000).empty() && posted < 1000) {
      peer.link->post();
      ++posted;
    }
    CHECK(posted < 1000);
    CHECK(peer.link->health().error().code == ErrorCode::kCorrupt);
  }
}

TEST_CASE("a region of another size or content is refused") {
  const UniqueFd small = std::move(SharedMemory::create(4096).value());
  CHECK(ShmLink::open(small.get(), kLeft).error().code == ErrorCode::kCorrupt);
  const UniqueFd blank = std::move(SharedMemory::create(ShmLink::region_bytes(kRingBytes)).value());
  CHECK(ShmLink::open(blank.get(), kLeft).error().code == ErrorCode::kCorrupt);
  CHECK(!ShmLink::open(-1, kLeft).ok());
}

TEST_CASE("a region is not inherited by accident and cannot be shrunk under its users") {
  const UniqueFd fd = std::move(ShmLink::create_region(kRingBytes).value());
  CHECK((::fcntl(fd.get(), F_GETFD) & FD_CLOEXEC) != 0);
#ifdef __linux__
  CHECK(::ftruncate(fd.get(), 0) != 0);
#endif
}

TEST_CASE("two processes exchange frames through an inherited region") {
  const UniqueFd fd = std::move(ShmLink::create_region(kRingBytes).value());
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {  // echoes every frame until one has a single byte
    auto link = std::move(ShmLink::open(fd.get(), kRight).value());
    for (;;) {
      Wait wait(std::chrono::milliseconds{20'000});
      while (link->peek().empty()) {
        if (!wait.pause("frame").ok()) ::_exit(1);
      }
      const auto frame = link->peek();
      const auto back = link->acquire(frame.size());
      std::memcpy(back.data(), frame.data(), frame.size());
      const bool is_last = frame.size() == 1;
      link->post();
      link->release();
      if (is_last) break;
    }
    link.reset();
    ::_exit(0);
  }
  auto link = std::move(ShmLink::open(fd.get(), kLeft).value());
  int right_frames = 0;
  for (int i = 0; i < 500; ++i) {
    const size_t bytes = i == 499 ? 1 : 2 + static_cast<size_t>(i) * 29;
    const auto frame = link->acquire(bytes);
    REQUIRE(frame.size() == bytes);
    std::memset(frame.data(), i, bytes);
    link->post();
    Wait wait(std::chrono::milliseconds{20'000});
    while (link->peek().empty()) REQUIRE(wait.pause("frame").ok());
    right_frames += link->peek().size() == bytes && link->peek().back() == std::byte(i);
    link->release();
  }
  CHECK(right_frames == 500);
  int status = -1;
  CHECK(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  link->peek();
  CHECK(link->health().error().code == ErrorCode::kPeerLost);
}
