// Device: holds weights, state and activations and runs operations. The forward pass queues
// operations; they run in order; their results may be read only after wait(), and only in buffers
// allocated for the host (used by the exchanges and the sampler). One thread uses a device. The
// device owns its buffers and matrices; nothing is allocated after load.
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
  kHost,    // the host may read and write it between wait() and the next queued operation, or while
            // it is lent
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
  // After wait(): copies from a buffer of any access to the host. For rare transfers (pages of
  // state that leave memory); data needed in each pass is in kHost buffers.
  virtual void read(Slice source, std::span<std::byte> bytes) = 0;
  virtual void queue(const Operation& operation) = 0;
  // Returns once everything queued has run.
  virtual Status wait() = 0;
  // A kHost buffer's floats; valid until the next write() or queue(), or until take_back().
  virtual std::span<float> host(BufferId buffer) = 0;

  // After wait(): the host keeps these kHost buffers while operations that do not use them run, and
  // the device then calls `meanwhile` now and then, in the thread that uses it. `meanwhile` must
  // not use the device. At most kLentMax buffers at a time.
  static constexpr size_t kLentMax = 2;
  virtual void lend(std::span<const BufferId> buffers, std::function<void()> meanwhile) = 0;
  virtual void take_back() = 0;
  // The number of wait() calls: the forward pass needs exactly one per exchange.
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
