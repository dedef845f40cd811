// Device: holds weights, state and activations and runs operations. The forward pass queues all of
// its operations and runs them; they run in order. The host may read their results when it has a
// turn or the run has ended, and only in buffers allocated for it (used by the exchanges and the
// sampler). One thread uses a device. The device owns its buffers and matrices; nothing is
// allocated after load.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/progress.h"
#include "base/result.h"
#include "device/device_kinds.h"
#include "device/operations.h"
#include "kernels/kernels.h"
#include "tensor/stored_matrix.h"

namespace lockstep {

enum class Access {
  kDevice,  // the host sees it only through read()
  kHost,    // the host may read and write it in its turns, after run() until the next queued
            // operation, and while it is lent
};

// A rectangle of a stored matrix, to be laid out for the device's kernels.
struct MatrixSource {
  StoredMatrix stored;
  int row_begin = 0;
  int rows = 0;
  int column_begin = 0;
  int columns = 0;
  // The rectangle's columns become the rows of the packed matrix (`steps` then covers its rows).
  bool is_transposed = false;
  std::vector<LeafStep> steps;     // their columns in all: those of the packed matrix
  bool keeps_float_input = false;  // its activations are never quantised
  // A matrix that is given the same activations (for an expert, the layer's first expert), so both
  // must take them in one form.
  std::optional<MatrixId> input_like;
  // The rows of input that one token has for all matrices of its kind: for an expert's, the number
  // of experts that it chooses.
  int inputs_per_token = 1;
};

class Device {
 public:
  virtual ~Device() = default;

  // While loading. kExhausted when the device has no memory left. Contents of a new buffer are
  // undefined. A matrix that cannot be laid out is kCorrupt or kUnsupported.
  virtual Result<BufferId> allocate(size_t bytes, Access access) = 0;
  virtual Result<MatrixId> pack(const MatrixSource& source) = 0;

  // Copies host bytes into a buffer, in order with the queued operations; `bytes` may change after
  // the call.
  virtual void write(Slice target, std::span<const std::byte> bytes) = 0;
  // After run(): copies from a buffer of any access to the host. For rare transfers (pages of
  // state that leave memory); data needed in each pass is in kHost buffers.
  virtual void read(Slice source, std::span<std::byte> bytes) = 0;
  virtual void queue(const Operation& operation) = 0;
  // Runs everything queued and returns once it has run. When the operations before a HostTurn have
  // run, and before those after it do, calls `turn` in this thread with the HostTurn's number. That
  // may use host(), lend() and take_back(), and no more of the device. Its error ends the run: what
  // is left of the queue is dropped, and the contents of buffers are undefined.
  using Turns = std::function<Status(int number)>;
  virtual Status run(const Turns& turn) = 0;
  // Runs a queue without turns.
  Status wait() { return run(nullptr); }
  // A kHost buffer's floats; valid until the turn ends, or until the next write() or queue(); of a
  // lent buffer until take_back().
  virtual std::span<float> host(BufferId buffer) = 0;

  // In a turn or after run(): the host keeps these kHost buffers while operations that do not use
  // them run, and the device then calls `meanwhile` now and then, in the thread that uses it.
  // `meanwhile` must not use the device. At most kLentMax buffers at a time.
  static constexpr size_t kLentMax = 2;
  virtual void lend(std::span<const BufferId> buffers, std::function<void()> meanwhile) = 0;
  virtual void take_back() = 0;
  // How often operations were waited for: turns and ends of runs. The forward pass needs exactly
  // one per exchange.
  virtual uint64_t wait_count() const = 0;
  // For people: "cpu (avx512, 8 threads)", "vulkan: AMD Radeon RX 7900 XTX (radv)".
  virtual std::string description() const = 0;

  void write_ints(Slice target, std::span<const int32_t> values) {
    write(target, std::as_bytes(values));
  }
};

struct DeviceOptions {
  std::string_view kind = kDeviceDefault;
  int threads = 1;
  int first_core = -1;
  const KernelTable* kernels = nullptr;
  bool keeps_float_input = false;  // activations are never quantised (--exact)
  Progress* progress = nullptr;
};

// kInvalidArgument for an unknown kind. "auto" opens the processor where no GPU can be used, and
// logs which device it is.
Result<std::unique_ptr<Device>> open_device(const DeviceOptions& options);

}  // namespace lockstep
