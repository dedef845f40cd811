// How a VulkanDevice runs its queue: plan, recording and turns of the host.
#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "device/vulkan/vulkan_device.h"

namespace lockstep::gpu {
namespace {

// Dispatches of a part, which must finish within Gpu::kAnswerLimit.
constexpr size_t kDispatchesMax = 64;
// How often the host is called while buffers are lent.
constexpr std::chrono::microseconds kHostTurn{20};

void append(const std::vector<MatrixId>& matrices, std::vector<MatrixId>& all) {
  all.insert(all.end(), matrices.begin(), matrices.end());
}

void append_matrices(const Operation& operation, std::vector<MatrixId>& all) {
  if (const auto* embed = std::get_if<Embed>(&operation); embed && embed->parts) {
    append(*embed->parts, all);
  }
  if (const auto* heads = std::get_if<HeadMatmul>(&operation)) append(*heads->matrices, all);
  if (const auto* up = std::get_if<ExpertsUp>(&operation)) {
    append(up->matrices->gate, all);
    append(up->matrices->up, all);
  }
  if (const auto* down = std::get_if<ExpertsDown>(&operation)) append(down->matrices->down, all);
}

}  // namespace

void VulkanDevice::queue(const Operation& operation) {
  if (status_.ok()) queued_.push_back(operation);
}

Status VulkanDevice::run(const Turns& turn) {
  if (status_.ok()) status_ = make_scratch();
  if (status_.ok() && !queued_.empty()) status_ = play(turn);
  queued_.clear();
  ++wait_count_;
  return std::exchange(status_, Status(Ok{}));
}

// All parts are submitted ahead; those after a turn begin when the host releases them. After an
// error the rest runs too: it changes nothing that a repeated pass does not compute again.
Status VulkanDevice::play(const Turns& turn) {
  const Recording& recording = *TRY(this->recording());
  Status status = gpu_->submit(recording.parts);
  for (size_t i = 0; i < recording.parts.size() && status.ok(); ++i) {
    status = finish_part();
    if (!status.ok() || !recording.turns[i]) continue;
    LOCKSTEP_CHECK(turn != nullptr);
    ++wait_count_;
    status = turn(*recording.turns[i]);
    if (status.ok()) status = gpu_->release();
  }
  if (status.ok()) return Ok{};
  static_cast<void>(gpu_->release_all());  // a GPU that is lost says so already
  static_cast<void>(gpu_->finish());
  return status;
}

// A GPU at work is progress; Gpu::kAnswerLimit bounds it.
Status VulkanDevice::finish_part() {
  return gpu_->finish_part(meanwhile_ ? std::chrono::nanoseconds(kHostTurn) : Gpu::kLook, [this] {
    if (progress_ != nullptr) progress_->tick();
    if (meanwhile_) meanwhile_();
  });
}

Result<VulkanDevice::Recording*> VulkanDevice::recording() {
  queued_matrices_.clear();
  for (const Operation& operation : queued_) append_matrices(operation, queued_matrices_);
  ++runs_;
  for (Recording& known : recordings_) {
    if (known.used == 0 || known.operations != queued_ || known.matrices != queued_matrices_) {
      continue;
    }
    known.used = runs_;
    return &known;
  }
  Recording& oldest =
      *std::min_element(recordings_.begin(), recordings_.end(),
                        [](const Recording& a, const Recording& b) { return a.used < b.used; });
  oldest.used = 0;
  TRY(record(oldest));
  oldest.operations = queued_;
  oldest.matrices = queued_matrices_;
  oldest.used = runs_;
  return &oldest;
}

Status VulkanDevice::record(Recording& recording) {
  ++recorded_count_;
  planner_.clear();
  for (const Operation& operation : queued_) planner_.add(operation);
  const std::span<const Dispatch> all = planner_.finish();
  if (!status_.ok()) return std::exchange(status_, Status(Ok{}));  // of a table
  TRY(prepare(all, recording));
  recording.parts.clear();
  recording.turns.clear();
  size_t begin = 0;
  const auto add = [&](size_t end, std::optional<int> turn) -> Status {
    TRY(add_parts(all.subspan(begin, end - begin),
                  recording.params.address() + begin * kParamBytesMax, turn, recording));
    begin = end;
    return Ok{};
  };
  for (const Planner::Turn& turn : planner_.turns()) TRY(add(turn.dispatch, turn.number));
  return add(all.size(), std::nullopt);
}

// Makes pipelines and puts the parameters where the GPU finds them.
Status VulkanDevice::prepare(std::span<const Dispatch> dispatches, Recording& recording) {
  // Operations without work have no dispatches.
  const size_t bytes = std::max<size_t>(dispatches.size(), 1) * kParamBytesMax;
  if (recording.params.bytes < bytes) {
    recording.params = TRY(take(host_slabs_, std::max(bytes, 2 * recording.params.bytes)));
  }
  std::byte* to = recording.params.mapped();
  for (const Dispatch& dispatch : dispatches) {
    TRY(gpu_->make_pipeline(dispatch.variant));
    if (progress_ != nullptr) progress_->tick();  // the first time, compiling takes a while
    std::memcpy(to, dispatch.params.data(), dispatch.param_bytes);
    to += kParamBytesMax;
  }
  return Ok{};
}

Status VulkanDevice::add_parts(std::span<const Dispatch> dispatches, Address params,
                               std::optional<int> turn, Recording& recording) {
  size_t begin = 0;
  do {
    const size_t count = std::min(kDispatchesMax, dispatches.size() - begin);
    const size_t number = recording.parts.size();
    if (number == recording.commands.size()) {
      recording.commands.push_back(TRY(gpu_->new_commands()));
    }
    VkCommandBuffer commands = recording.commands[number];
    TRY(gpu_->record(commands, dispatches.subspan(begin, count), params + begin * kParamBytesMax));
    const bool awaits_host = number > 0 && recording.turns.back().has_value();
    recording.parts.push_back({commands, awaits_host});
    recording.turns.push_back(std::nullopt);
    begin += count;
  } while (begin < dispatches.size());
  recording.turns.back() = turn;
  return Ok{};
}

}  // namespace lockstep::gpu
