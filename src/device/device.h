// Device: where weights, state and activations live and where operations run. The forward pass
// queues operations; they run in order; what they wrote may be looked at only after wait(), and
// only in buffers that were allocated for the host (the exchanges and the sampler read those). One
// thread uses a device. Buffers and matrices belong to the device and go with it; nothing is
// allocated after load.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/progress.h"
#include "base/result.h"
#include "device/operations.h"
#include "kernels/kernels.h"
#include "tensor/stored_matrix.h"

namespace lockstep {

enum class Access {
  kDevice,  // the host never sees it but by read()
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
  // The rectangle's columns become the rows of the packed matrix (and `steps` goes over its rows).
  bool is_transposed = false;
  std::vector<LeafStep> steps;     // columns in all: those of the packed matrix
  bool keeps_float_input = false;  // its activations are never quantised
  // A matrix whose activations this one is given too (an expert's, those of the layer's first), so
  // both must take them in one form.
  std::optional<MatrixId> input_like;
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
  // After wait(): copies what lies in a buffer of any access to the host. For what is rare (pages
  // of state that leave memory); what each pass needs lies in kHost buffers.
  virtual void read(Slice source, std::span<std::byte> bytes) = 0;
  virtual void queue(const Operation& operation) = 0;
  // Returns once everything queued has run.
  virtual Status wait() = 0;
  // A kHost buffer's floats; valid until the next write() or queue(), or until take_back().
  virtual std::span<float> host(BufferId buffer) = 0;

  // After wait(): these kHost buffers stay the host's while operations run that leave them alone,
  // and the device calls `meanwhile` now and then while it runs them, in the thread that uses it.
  // What `meanwhile` does must not use the device. At most kLentMax buffers at a time.
  static constexpr size_t kLentMax = 2;
  virtual void lend(std::span<const BufferId> buffers, std::function<void()> meanwhile) = 0;
  virtual void take_back() = 0;
  // How often wait() was called: the forward pass needs one for each exchange and no more.
  virtual uint64_t wait_count() const = 0;

  void write_ints(Slice target, std::span<const int32_t> values) {
    write(target, std::as_bytes(values));
  }
};

struct DeviceOptions {
  std::string_view kind = "cpu";  // or "delayed", the test device
  int threads = 1;
  int first_core = -1;
  const KernelTable* kernels = nullptr;
  bool keeps_float_input = false;  // activations are never quantised (--exact)
  Progress* progress = nullptr;
};

// kInvalidArgument for an unknown kind.
Result<std::unique_ptr<Device>> open_device(const DeviceOptions& options);

}  // namespace lockstep
