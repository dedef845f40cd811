#include "transport/verbs/verbs_devices.h"

#ifdef LOCKSTEP_HAS_VERBS

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>

#include "base/check.h"

namespace lockstep {
namespace {

// Some drivers refuse a region without all three, though nothing here writes into a peer's memory.
constexpr int kRegionAccess =
    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;

constexpr size_t kChannelBytes = VerbsDevices::kFramesPerChannel * VerbsDevices::kFrameBytesMax;

}  // namespace

VerbsLease::VerbsLease(VerbsLease&& other) noexcept
    : devices_(std::exchange(other.devices_, nullptr)), channel_(other.channel_) {}

VerbsLease::~VerbsLease() {
  if (devices_ != nullptr) devices_->give_back(channel_);
}

struct VerbsDevices::OfProcess {
  std::mutex mutex;
  std::unique_ptr<VerbsDevices> devices;

  static OfProcess& get() {
    static OfProcess only;
    return only;
  }
};

uint64_t VerbsDevices::late_frame_count_of_process() {
  OfProcess& own = OfProcess::get();
  const std::lock_guard lock(own.mutex);
  return own.devices ? own.devices->late_frame_count() : 0;
}

Result<VerbsDevices*> VerbsDevices::of_process() {
  OfProcess& own = OfProcess::get();
  const std::lock_guard lock(own.mutex);
  if (!own.devices) {
    Options options;
    const char* const type = std::getenv("LOCKSTEP_VERBS_QP");
    options.unreliable = type != nullptr && std::string_view(type) == "uc";
    own.devices = TRY(open(std::move(options)));
  }
  return own.devices.get();
}

Result<std::unique_ptr<VerbsDevices>> VerbsDevices::open(Options options) {
  const VerbsApi api = TRY(load_verbs(options.library));
  std::unique_ptr<VerbsDevices> devices(new VerbsDevices(api, std::move(options)));
  TRY(devices->open_all());
  return devices;
}

Status VerbsDevices::open_all() {
  int count = 0;
  ibv_device** const list = api_.get_device_list(&count);
  if (list == nullptr || count <= 0) {
    const int error_number = list == nullptr ? errno : 0;
    if (list != nullptr) api_.free_device_list(list);
    std::string why = "this machine has no RDMA device";
    if (error_number != 0) why += std::string(" (") + std::strerror(error_number) + ")";
    return Error{ErrorCode::kNotFound, why};
  }
  for (int i = 0; i < count; ++i) {
    Device device;
    device.name = api_.get_device_name(list[i]);
    device.limits = limits_of(*list[i]);
    if (options_.unacknowledged_bytes_max) {
      device.limits.unacknowledged_bytes_max = *options_.unacknowledged_bytes_max;
    }
    device.context = api_.open_device(list[i]);
    if (device.context == nullptr) {
      problem_ = device_error(device, "opening it failed", errno, true).message;
      continue;
    }
    if (const int failed = api_.query_device(device.context, &device.attributes); failed != 0) {
      problem_ = device_error(device, "asking for its limits failed", failed).message;
      api_.close_device(device.context);
      continue;
    }
    ++counts_.contexts;
    devices_.push_back(std::move(device));
  }
  api_.free_device_list(list);
  if (devices_.empty()) return Error{ErrorCode::kUnsupported, problem_};
  return Ok{};
}

VerbsDevices::~VerbsDevices() {
  for (Device& device : devices_) {
    // All links have ended, so every channel is here. Queue pairs are freed before what they use.
    for (VerbsChannel& channel : device.free) destroy(channel);
    for (const Region& region : device.regions) {
      api_.dereg_mr(region.memory);
      ::munmap(region.bytes, region.size);
    }
    if (device.domain != nullptr) api_.dealloc_pd(device.domain);
    api_.close_device(device.context);
  }
}

int VerbsDevices::window(size_t device, size_t frame_bytes) const {
  return window_of(devices_[device].limits, frame_bytes);
}

Result<ibv_qp_type> VerbsDevices::best_type(size_t index) {
  if (options_.unreliable) return IBV_QPT_UC;
  const std::lock_guard lock(mutex_);
  Device& device = devices_[index];
  if (device.has_type) return device.type;
  TRY(ensure_channel(device, index));
  VerbsChannel& channel = device.free.back();
  const Status reliable = create_queue_pair(device, channel, IBV_QPT_RC);
  if (!reliable.ok() && !create_queue_pair(device, channel, IBV_QPT_UC).ok()) {
    return reliable.error();
  }
  device.type = channel.type;
  device.has_type = true;
  return device.type;
}

Status VerbsDevices::reserve(size_t index, int count) {
  const std::lock_guard lock(mutex_);
  Device& device = devices_[index];
  const int missing = count - static_cast<int>(device.free.size());
  return missing > 0 ? add_region(device, index, missing) : Ok{};
}

Result<VerbsLease> VerbsDevices::take(size_t index, ibv_qp_type type) {
  const std::lock_guard lock(mutex_);
  Device& device = devices_[index];
  TRY(ensure_channel(device, index));
  const auto fits = [&](const VerbsChannel& channel) {
    return channel.queue_pair != nullptr && channel.type == type;
  };
  auto chosen = std::find_if(device.free.begin(), device.free.end(), fits);
  if (chosen == device.free.end()) {
    chosen = device.free.end() - 1;
    TRY(create_queue_pair(device, *chosen, type));
  }
  const VerbsChannel channel = *chosen;
  device.free.erase(chosen);
  return VerbsLease(*this, channel);
}

Status VerbsDevices::ensure_channel(Device& device, size_t index) {
  return device.free.empty() ? add_region(device, index, 1) : Ok{};
}

// One mapping for at least `channels` channels: some drivers refuse malloc'ed memory. Each further
// region is as large as all earlier ones together, so that few are enough.
Status VerbsDevices::add_region(Device& device, size_t index, int channels) {
  if (static_cast<int>(device.regions.size()) >= kRegionsMax) {
    return Error{ErrorCode::kExhausted, "the RDMA device " + device.name + " has no more than " +
                                            std::to_string(kRegionsMax) + " memory regions"};
  }
  if (device.domain == nullptr) {
    device.domain = api_.alloc_pd(device.context);
    if (device.domain == nullptr) {
      return device_error(device, "getting a protection domain failed", errno, true);
    }
    ++counts_.domains;
  }
  channels = std::max(channels, device.channels);
  Region region;
  region.size = static_cast<size_t>(channels) * kChannelBytes;
  region.bytes =
      ::mmap(nullptr, region.size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (region.bytes == MAP_FAILED) return device_error(device, "no memory for frames", errno);
#ifdef __linux__
  // After a fork() the child would own the pages that the device uses.
  ::madvise(region.bytes, region.size, MADV_DONTFORK);
#endif
  region.memory = api_.reg_mr(device.domain, region.bytes, region.size, kRegionAccess);
  if (region.memory == nullptr) {
    const std::string what = "registering " + std::to_string(region.size / 1024) +
                             " KiB of memory failed (is the limit of locked memory, ulimit -l, "
                             "smaller?)";
    const Error error = device_error(device, what.c_str(), errno);
    ::munmap(region.bytes, region.size);
    return error;
  }
  ++counts_.regions;
  device.regions.push_back(region);
  device.channels += channels;
  for (int i = 0; i < channels; ++i) {
    VerbsChannel channel;
    channel.device = index;
    channel.memory = static_cast<std::byte*>(region.bytes) + static_cast<size_t>(i) * kChannelBytes;
    channel.memory_key = region.memory->lkey;
    device.free.push_back(channel);
  }
  return Ok{};
}

// Afterwards the channel has a queue pair of this type, in state RESET.
Status VerbsDevices::create_queue_pair(Device& device, VerbsChannel& channel, ibv_qp_type type) {
  if (channel.queue_pair != nullptr && channel.type == type) return Ok{};
  destroy(channel);
  const int limit = device.has_type && device.type == IBV_QPT_UC
                        ? VerbsLimits::kUnreliableQueuePairsMax
                        : VerbsLimits::kQueuePairsMax;
  if (device.queue_pairs >= limit) {
    return Error{ErrorCode::kExhausted, "the RDMA device " + device.name + " has " +
                                            std::to_string(limit) + " queue pairs in use already"};
  }
  const auto at_most = [](int wanted, int device_max) {
    return device_max > 0 ? std::min(wanted, device_max) : wanted;
  };
  const int pages = static_cast<int>(kFrameBytesMax / kPageBytes);
  const int queue_max = device.attributes.max_qp_wr;
  ibv_qp_init_attr wanted{};
  wanted.qp_type = type;
  wanted.sq_sig_all = 1;
  wanted.cap.max_send_wr = static_cast<uint32_t>(at_most((kDepth + 1) * pages, queue_max));
  wanted.cap.max_recv_wr = static_cast<uint32_t>(at_most(kDepth * pages, queue_max));
  wanted.cap.max_send_sge = wanted.cap.max_recv_sge = 1;
  const int completions_max =
      at_most(static_cast<int>(kFramesPerChannel) * pages, device.attributes.max_cqe);
  channel.completions = api_.create_cq(device.context, completions_max, nullptr, nullptr, 0);
  if (channel.completions == nullptr) {
    return device_error(device, "getting a completion queue failed", errno);
  }
  wanted.send_cq = wanted.recv_cq = channel.completions;
  channel.queue_pair = api_.create_qp(device.domain, &wanted);
  if (channel.queue_pair == nullptr) {
    const Error error = device_error(device, "getting a queue pair failed", errno, true);
    destroy(channel);
    return error;
  }
  channel.type = type;
  ++device.queue_pairs;
  ++counts_.queue_pairs;
  return Ok{};
}

// A queue pair that resets can be connected again. One that does not is destroyed as it is: if
// moved to its error state first, it hangs on macOS (llama.cpp pull request 27908).
void VerbsDevices::give_back(VerbsChannel channel) {
  const std::lock_guard lock(mutex_);
  ibv_qp_attr reset{};
  reset.qp_state = IBV_QPS_RESET;
  if (api_.modify_qp(channel.queue_pair, &reset, IBV_QP_STATE) == 0) {
    drain(channel.completions);
  } else {
    destroy(channel);
  }
  devices_[channel.device].free.push_back(channel);
}

// Completions the last user did not wait for must not be taken for the next user's.
void VerbsDevices::drain(ibv_cq* completions) const {
  ibv_wc found[8];
  for (int i = 0; i < completions->cqe + 1; ++i) {
    if (completions->context->ops.poll_cq(completions, 8, found) <= 0) return;
  }
}

void VerbsDevices::destroy(VerbsChannel& channel) {
  if (channel.queue_pair != nullptr) {
    api_.destroy_qp(channel.queue_pair);
    --devices_[channel.device].queue_pairs;
  }
  if (channel.completions != nullptr) api_.destroy_cq(channel.completions);
  channel.queue_pair = nullptr;
  channel.completions = nullptr;
}

VerbsDevices::Counts VerbsDevices::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

Error VerbsDevices::device_error(const Device& device, const char* what, int error_number,
                                 bool is_worn) const {
  std::string why =
      "the RDMA device " + device.name + ": " + what + ": " + std::strerror(error_number);
  // The driver gives only so many of these until a restart (mlx issue 3207).
  if (device.limits.is_thunderbolt && is_worn) {
    why += "; Apple's driver wears out when devices are opened often: restart this machine";
  }
  return Error{ErrorCode::kUnsupported, why};
}

}  // namespace lockstep

#endif
