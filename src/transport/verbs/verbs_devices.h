// VerbsDevices: the RDMA devices of this machine, each opened once and kept open while groups come
// and go, because some drivers wear out: contexts, protection domains, memory regions and queue
// pairs are created for the first group that needs them and reused by later ones. Used only to set
// up and end links; any thread may call.
#pragma once

#include "transport/verbs/verbs_limits.h"
#include "transport/verbs/verbs_report.h"

#ifdef LOCKSTEP_HAS_VERBS

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace lockstep {

// An IPv6 address, or an IPv4 one mapped into it: as a socket is bound to it and a GID holds it.
using IpBytes = std::array<uint8_t, 16>;

// The port of an address.
struct VerbsPort {
  size_t device = 0;
  std::string device_name{};
  uint8_t port = 1;
  int gid_index = 0;
  IpBytes gid{};
  uint32_t lid = 0;
  ibv_mtu mtu = IBV_MTU_1024;
};

// A queue pair, its completion queue and its part of the device's memory.
struct VerbsChannel {
  size_t device = 0;
  std::byte* memory = nullptr;
  uint32_t memory_key = 0;
  ibv_cq* completions = nullptr;
  ibv_qp* queue_pair = nullptr;
  ibv_qp_type type = IBV_QPT_RC;
};

class VerbsDevices;

// The use of a channel; ending it resets the queue pair for the next user.
class VerbsLease {
 public:
  VerbsLease(VerbsDevices& devices, VerbsChannel channel) : devices_(&devices), channel_(channel) {}
  VerbsLease(VerbsLease&& other) noexcept;
  VerbsLease& operator=(VerbsLease&&) = delete;
  ~VerbsLease();

  const VerbsChannel& channel() const { return channel_; }
  VerbsDevices& devices() const { return *devices_; }

 private:
  VerbsDevices* devices_;
  VerbsChannel channel_;
};

class VerbsDevices {
 public:
  static constexpr size_t kFrameBytesMax = size_t{64} * 1024;
  static constexpr size_t kPageBytes = 4096;          // unit of the queues of some devices
  static constexpr int kDepth = VerbsLimits::kDepth;  // frames per direction
  static constexpr size_t kFramesPerChannel = 2 * kDepth + 1;
  static constexpr int kRegionsMax = 16;  // per device; some allow only 100 in all

  struct Options {
    std::string library = verbs_library_name();
    bool unreliable = false;  // use type UC for queue pairs even if RC is possible
    // For tests, in place of the device's own.
    std::optional<uint64_t> unacknowledged_bytes_max;
  };
  // Objects created since the start.
  struct Counts {
    int contexts = 0;
    int domains = 0;
    int regions = 0;
    int queue_pairs = 0;
  };

  // The devices of this process, which stay open until it ends. An error says why there are none; a
  // later call tries again. LOCKSTEP_VERBS_QP=uc makes all queue pairs unreliable.
  static Result<VerbsDevices*> of_process();
  // For these devices; 0 while they have not been opened.
  static uint64_t late_frame_count_of_process();
  static Result<std::unique_ptr<VerbsDevices>> open(Options options);
  ~VerbsDevices();
  VerbsDevices(const VerbsDevices&) = delete;
  VerbsDevices& operator=(const VerbsDevices&) = delete;

  const VerbsApi& api() const { return api_; }
  // The active port that has this address. An error says why no port is suitable.
  Result<VerbsPort> find(const IpBytes& address);
  // The addresses of all active ports, device by device.
  std::vector<IpBytes> addresses();
  // All ports; and why a device could not be opened, empty if all were.
  std::vector<VerbsPortReport> ports();
  const std::string& problem() const { return problem_; }
  // Frames of this size that a queue pair may have unacknowledged.
  int window(size_t device, size_t frame_bytes) const;
  // RC if the device supports it, else UC.
  Result<ibv_qp_type> best_type(size_t device);
  // Ensures memory for `count` free channels, in one region if there are none yet.
  Status reserve(size_t device, int count);
  Result<VerbsLease> take(size_t device, ibv_qp_type type);

  Counts counts() const;
  // Frames of ended connections that arrived late and were dropped.
  uint64_t late_frame_count() const { return late_frames_.load(std::memory_order_relaxed); }
  void count_late_frame() { late_frames_.fetch_add(1, std::memory_order_relaxed); }

 private:
  friend class VerbsLease;
  struct OfProcess;
  struct Region {
    void* bytes = nullptr;
    size_t size = 0;
    ibv_mr* memory = nullptr;
  };
  struct Device {
    std::string name;
    ibv_context* context = nullptr;
    ibv_device_attr attributes{};
    VerbsLimits limits;
    ibv_pd* domain = nullptr;
    bool has_type = false;  // `type` has been tried
    ibv_qp_type type = IBV_QPT_RC;
    int queue_pairs = 0;
    int channels = 0;
    std::vector<Region> regions;
    std::vector<VerbsChannel> free;
  };

  VerbsDevices(const VerbsApi& api, Options options) : api_(api), options_(std::move(options)) {}
  Status open_all();
  int find_gid(const Device& device, uint8_t port, const ibv_port_attr& attributes,
               const IpBytes& address) const;
  Status add_region(Device& device, size_t index, int channels);
  Status create_queue_pair(Device& device, VerbsChannel& channel, ibv_qp_type type);
  Status ensure_channel(Device& device, size_t index);
  void drain(ibv_cq* completions) const;
  void give_back(VerbsChannel channel);
  void destroy(VerbsChannel& channel);
  std::vector<std::string> address_texts(const Device& device, uint8_t port, int gid_count) const;
  // `is_worn`: it can also fail because the driver is worn out.
  Error device_error(const Device& device, const char* what, int error_number,
                     bool is_worn = false) const;

  const VerbsApi api_;
  const Options options_;
  mutable std::mutex mutex_;
  std::vector<Device> devices_;
  std::string problem_;
  Counts counts_;
  std::atomic<uint64_t> late_frames_{0};  // a statistic, orders nothing
};

}  // namespace lockstep

#endif
