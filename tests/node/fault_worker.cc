// The worker of the fault matrix: the program's own engine over links that misbehave once when told
// to by a signal (fault_signals.h). Frames are forged where they leave the process: in the shared
// ring, in the data passed to the kernel for a socket, and in the request posted to an RDMA device.
// A rank that waits for long sleeps, so that several groups can share the processors.
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "node/fault_signals.h"
#include "node/worker/worker.h"
#include "transport/frame.h"
#include "transport/shm/shm_link.h"
#include "transport/tcp/handshake.h"
#include "transport/verbs/verbs_link.h"

namespace lockstep {
namespace {

constexpr int64_t kSleepAfterUs = 3'000;

std::atomic<int> armed{0};  // kArmCorrupt, kArmOldEpoch or 0
std::atomic<bool> is_slow{false};
std::atomic<bool> speaks_other_version{false};
// Frames go over RDMA: data sent on a socket is not a frame.
std::atomic<bool> has_rdma{false};
// When this rank last sent or received a frame.
std::atomic<int64_t> moved_at{0};

int64_t now_us() {
  using namespace std::chrono;
  return duration_cast<microseconds>(steady_clock::now().time_since_epoch()).count();
}

void on_signal(int number) {
  switch (number - SIGRTMIN) {
    case kArmCorrupt:
    case kArmOldEpoch:
      return armed.store(number - SIGRTMIN);
    case kBeSlow:
    case kBeQuick:
      return is_slow.store(number - SIGRTMIN == kBeSlow);
    case kSpeakOtherVersion:
    case kSpeakOwnVersion:
      return speaks_other_version.store(number - SIGRTMIN == kSpeakOtherVersion);
  }
}

void install_handlers() {
  for (int fault = kArmCorrupt; fault <= kSpeakOwnVersion; ++fault) {
    struct sigaction action {};
    action.sa_handler = on_signal;
    action.sa_flags = SA_RESTART;
    ::sigaction(SIGRTMIN + fault, &action, nullptr);
  }
}

FrameHeader forged(FrameHeader header, int fault) {
  if (fault == kArmOldEpoch) {
    --header.epoch;
  } else {
    header.sequence ^= 1u << 20;
  }
  return header;
}

// Forwards frames, delayed or with one of them forged. After a forged frame in a ring the link is
// silent, since anything a broken peer might send next would be invented.
class FaultLink final : public Link {
 public:
  explicit FaultLink(std::unique_ptr<Link> inner)
      : inner_(std::move(inner)), is_shared_(dynamic_cast<ShmLink*>(inner_.get()) != nullptr) {}

  size_t frame_bytes_max() const override { return inner_->frame_bytes_max(); }
  std::span<std::byte> acquire(size_t bytes) override {
    if (is_silent_) return {};
    acquired_ = inner_->acquire(bytes);
    if (is_shared_ && !acquired_.empty() && first_slot_ == nullptr) {
      first_slot_ = acquired_.data() - kFrameHeaderBytes;
    }
    return acquired_;
  }
  void post() override {
    if (is_slow) dawdle();
    if (const int fault = is_shared_ ? armed.exchange(0) : 0; fault != 0) return forge(fault);
    inner_->post();
    moved_at = now_us();
    if (is_shared_) {
      std::memcpy(&last_, acquired_.data() - kFrameHeaderBytes, sizeof(last_));
      is_known_ = true;
    }
  }
  bool flush() override { return inner_->flush(); }
  std::span<const std::byte> peek() override { return inner_->peek(); }
  void release() override {
    inner_->release();
    moved_at = now_us();
  }
  void wait_readable(std::chrono::microseconds at_most) override { inner_->wait_readable(at_most); }
  Status health() const override { return inner_->health(); }

 private:
  static void dawdle() {
    const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(kSlowFrameUs);
    while (std::chrono::steady_clock::now() < end) std::this_thread::yield();
  }

  // Writes the header and publishes the frame as ShmLink::post() would.
  void forge(int fault) {
    FrameHeader header = last_;
    header.sequence = is_known_ ? last_.sequence + 1 : 0;
    if (!is_known_) header.epoch = 1u << 30;
    header.length = static_cast<uint32_t>(acquired_.size());
    header = forged(header, fault);
    std::byte* const slot = acquired_.data() - kFrameHeaderBytes;
    std::memcpy(slot, &header, sizeof(header));
    ShmRegion::Ring& ring = own_ring();
    const auto ring_bytes = ShmLink::Options{}.ring_bytes;
    const auto offset = static_cast<uint64_t>(slot - first_slot_);
    uint64_t position = ring.sent.load();
    if (position % ring_bytes != offset) position += ring_bytes - position % ring_bytes + offset;
    ring.sent.store(position + frame_slot_bytes(acquired_.size()));
    is_silent_ = true;
  }

  // A new link's first frame lies at the start of its ring; ring 0 follows the region's head.
  ShmRegion::Ring& own_ring() const {
    auto* region = reinterpret_cast<ShmRegion*>(first_slot_ - sizeof(ShmRegion));
    const bool is_first = region->magic == ShmRegion::kMagic;
    if (is_first) return region->rings[0];
    region = reinterpret_cast<ShmRegion*>(first_slot_ - sizeof(ShmRegion) -
                                          ShmLink::Options{}.ring_bytes);
    if (region->magic != ShmRegion::kMagic) std::abort();
    return region->rings[1];
  }

  std::unique_ptr<Link> inner_;
  const bool is_shared_;
  std::span<std::byte> acquired_;
  std::byte* first_slot_ = nullptr;
  FrameHeader last_;
  bool is_known_ = false;  // last_ is a header that was sent
  bool is_silent_ = false;
};

#ifdef LOCKSTEP_HAS_VERBS

decltype(ibv_context_ops::post_send) device_post_send = nullptr;

// Replaces the device's function. The frame's memory is rewritten for the next frame.
int forge_and_post(ibv_qp* queue_pair, ibv_send_wr* request, ibv_send_wr** bad) {
  if (const int fault = armed.exchange(0); fault != 0) {
    auto* const bytes = reinterpret_cast<std::byte*>(request->sg_list->addr);
    FrameHeader header;
    std::memcpy(&header, bytes, sizeof(header));
    header = forged(header, fault);
    std::memcpy(bytes, &header, sizeof(header));
  }
  return device_post_send(queue_pair, request, bad);
}

// From now on every device of this process posts through forge_and_post().
void watch_devices() {
  if (has_rdma.exchange(true)) return;
  VerbsDevices& devices = *VerbsDevices::of_process().value();
  for (const IpBytes& address : devices.addresses()) {
    const VerbsPort port = devices.find(address).value();
    const Result<VerbsLease> lease = devices.take(port.device, IBV_QPT_RC);
    auto& post_send = lease.value().channel().queue_pair->context->ops.post_send;
    if (post_send == forge_and_post) continue;
    device_post_send = post_send;  // one driver: the same function for all
    post_send = forge_and_post;
  }
}

bool is_over_rdma(Link* link) {
  return dynamic_cast<VerbsLink*>(link) != nullptr;
}

#else

void watch_devices() {}
bool is_over_rdma(Link*) {
  return false;
}

#endif

bool is_frame(const std::byte* bytes, size_t size) {
  FrameHeader header;
  if (size < kFrameHeaderBytes) return false;
  std::memcpy(&header, bytes, sizeof(header));
  return header.length > 0 && header.length <= kFrameBytesMax &&
         frame_slot_bytes(header.length) <= size;
}

bool is_hello(const std::byte* bytes, size_t size) {
  const uint64_t magic = Hello::kMagic;
  return size >= sizeof(Hello) && std::memcmp(bytes, &magic, sizeof(magic)) == 0;
}

bool is_internet_socket(int fd) {
  int domain = 0;
  socklen_t length = sizeof(domain);
  return ::getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &length) == 0 && domain != AF_UNIX;
}

}  // namespace

// The bytes that send() below really sends.
std::vector<std::byte> forge_stream(const std::byte* bytes, size_t size) {
  std::vector<std::byte> copy(bytes, bytes + size);
  if (is_hello(bytes, size)) {
    if (speaks_other_version) copy[sizeof(uint64_t)] ^= std::byte{0x40};
  } else if (!has_rdma && is_frame(bytes, size)) {
    if (const int fault = armed.exchange(0); fault != 0) {
      FrameHeader header;
      std::memcpy(&header, bytes, sizeof(header));
      header = forged(header, fault);
      std::memcpy(copy.data(), &header, sizeof(header));
    }
  }
  return copy;
}

}  // namespace lockstep

// Replaces the C library's.
extern "C" ssize_t send(int fd, const void* bytes, size_t size, int flags) {
  using namespace lockstep;
  std::vector<std::byte> copy;
  if ((armed.load() != 0 || speaks_other_version) && is_internet_socket(fd)) {
    copy = forge_stream(static_cast<const std::byte*>(bytes), size);
    bytes = copy.data();
  }
  return ::syscall(SYS_sendto, fd, bytes, size, flags, nullptr, 0);
}

// Replaces the C library's, which a waiting rank calls.
extern "C" int sched_yield() {
  using namespace lockstep;
  if (now_us() - moved_at > kSleepAfterUs) {
    return ::poll(nullptr, 0, 1);
  }
  return static_cast<int>(::syscall(SYS_sched_yield));
}

int main(int argc, char** argv) {
  lockstep::install_handlers();
  for (int i = 1; i + 1 < argc; ++i) {
    if (std::string_view(argv[i]) == "--control-fd") {
      const auto flags =
          lockstep::parse_worker_arguments({argv + i, static_cast<size_t>(argc - i)});
      if (!flags.ok()) return 2;
      return lockstep::worker_main(
          flags.value(), lockstep::load_engine,
          [](std::unique_ptr<lockstep::Link> link) -> std::unique_ptr<lockstep::Link> {
            if (lockstep::is_over_rdma(link.get())) lockstep::watch_devices();
            return std::make_unique<lockstep::FaultLink>(std::move(link));
          });
    }
  }
  return 2;
}
