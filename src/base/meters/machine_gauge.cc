#include "base/meters/machine_gauge.h"

#include <condition_variable>
#include <string>
#include <thread>
#include <utility>

#ifdef __APPLE__
#include <mach/mach.h>
#endif

#include "base/files/free_space.h"
#include "base/log.h"
#include "base/machine/available_memory.h"
#include "base/machine/mac_system.h"
#include "base/machine/machine.h"
#include "base/machine/meminfo.h"
#include "base/machine/system_file.h"
#include "base/threads/guarded.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

std::optional<CpuTimes> read_cpu_times() {
#ifdef __APPLE__
  // <mach/host_info.h>: ticks of all processors.
  host_cpu_load_info_data_t load;
  mach_msg_type_number_t count = HOST_CPU_LOAD_INFO_COUNT;
  if (host_statistics(mach_host_self(), HOST_CPU_LOAD_INFO, reinterpret_cast<host_info_t>(&load),
                      &count) != KERN_SUCCESS) {
    return std::nullopt;
  }
  CpuTimes times;
  for (int state = 0; state < CPU_STATE_MAX; ++state) {
    times.all += load.cpu_ticks[state];
    if (state != CPU_STATE_IDLE) times.busy += load.cpu_ticks[state];
  }
  return times;
#else
  return parse_cpu_times(text_in("/proc/stat"));
#endif
}

std::optional<uint64_t> read_memory_bytes() {
#ifdef __APPLE__
  return mac_sysctl_number("hw.memsize");
#else
  return meminfo_bytes(text_in("/proc/meminfo"), "MemTotal");
#endif
}

std::optional<int64_t> signed_bytes(std::optional<uint64_t> bytes) {
  if (!bytes || *bytes > static_cast<uint64_t>(INT64_MAX)) return std::nullopt;
  return static_cast<int64_t>(*bytes);
}

}  // namespace

struct MachineGauge::Disk {
  explicit Disk(fs::path path) : folder(std::move(path)) {}

  const fs::path folder;
  std::mutex mutex;  // guards what follows
  std::condition_variable changed;
  bool is_closed = false;
  std::optional<int64_t> free_bytes;
  Clock::time_point told_at;
};

MachineGauge::MachineGauge(fs::path disk, Clock::time_point now)
    : temperatures_(temperature_files("/sys")),
      started_(now),
      disk_(disk.empty() ? nullptr : std::make_shared<Disk>(std::move(disk))),
      times_(read_cpu_times()) {
  if (disk_ == nullptr) return;
  // Detached, since it cannot be joined while a disk hangs.
  const Status begun = guarded([this] { std::thread([disk = disk_] { watch(disk); }).detach(); });
  if (!begun.ok()) log_warn("the free space of the disk is not shown: {}", begun.error().message);
}

MachineGauge::~MachineGauge() {
  if (disk_ == nullptr) return;
  const std::lock_guard lock(disk_->mutex);
  disk_->is_closed = true;
  disk_->changed.notify_all();
}

void MachineGauge::watch(const std::shared_ptr<Disk>& disk) {
  std::unique_lock lock(disk->mutex);
  while (!disk->is_closed) {
    lock.unlock();
    const auto bytes = guarded([&]() -> Result<std::optional<int64_t>> {
      return signed_bytes(free_bytes_at(disk->folder));
    });
    lock.lock();
    disk->free_bytes = bytes.ok() ? bytes.value() : std::nullopt;
    disk->told_at = Clock::now();
    disk->changed.wait_for(lock, kDiskInterval, [&] { return disk->is_closed; });
  }
}

MachineMeters MachineGauge::meters(Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  if (!looked_at_ || now - *looked_at_ >= kInterval) look(now);
  return meters_;
}

void MachineGauge::look(Clock::time_point now) {
  const auto times = read_cpu_times();
  const bool is_first = !looked_at_ && now - started_ < kInterval;
  looked_at_ = now;
  meters_ = {};
  if (times && times_ && !is_first) meters_.cpu_percent = busy_percent(*times_, *times);
  if (!is_first) times_ = times;
  meters_.memory_bytes = signed_bytes(read_memory_bytes());
  const auto available = signed_bytes(available_memory_bytes());
  if (meters_.memory_bytes && available && *available <= *meters_.memory_bytes) {
    meters_.memory_used_bytes = *meters_.memory_bytes - *available;
  }
  meters_.process_bytes = signed_bytes(family_bytes("/proc/self"));
  meters_.temperature_c = highest_celsius(temperatures_);
  meters_.uptime_s = (now - started_) / std::chrono::seconds(1);
  meters_.cores = available_core_count();
  if (disk_ == nullptr) return;
  const std::lock_guard disk_lock(disk_->mutex);
  const bool is_recent = now - disk_->told_at < kDiskSilenceMax;
  if (is_recent) meters_.disk_free_bytes = disk_->free_bytes;
}

}  // namespace lockstep
