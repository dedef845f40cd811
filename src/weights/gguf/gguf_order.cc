#include "weights/gguf/gguf_order.h"

#include <fmt/core.h>

#include <cstring>

namespace lockstep {
namespace {

constexpr std::string_view kQueryEnding = ".attn_q.weight", kKeyEnding = ".attn_k.weight";
constexpr std::string_view kInputEnding = ".attn_qkv.weight", kGateEnding = ".attn_gate.weight";
constexpr std::string_view kOutEnding = ".ssm_out.weight";
constexpr std::string_view kJoinedEnding = ".ssm_ba.weight";
constexpr std::string_view kRateName = ".linear_attn.in_proj_b.weight";
constexpr std::string_view kDecayName = ".linear_attn.in_proj_a.weight";
// Rows of one, and vectors, of the value heads.
constexpr std::string_view kHeadRows[] = {".ssm_alpha.weight", ".ssm_beta.weight"};
constexpr std::string_view kHeadVectors[] = {".ssm_a", ".ssm_dt.bias"};
constexpr std::string_view kConvolutionEnding = ".ssm_conv1d.weight";
// Published models have at most 64 heads of 128.
constexpr int64_t kDeltaSizeMax = 4096;

Error corrupt(std::string message) {
  return {ErrorCode::kCorrupt, std::move(message)};
}

// Row `half * size / 2 + i` of a head of `size` rows is stored as row `2 * i + half`.
std::vector<int32_t> interleaved_rows(int32_t rows, int32_t heads) {
  std::vector<int32_t> map(static_cast<size_t>(rows));
  const int32_t size = rows / heads, half_size = size / 2;
  for (int32_t row = 0; row < rows; ++row) {
    const int32_t in_head = row % size;
    map[static_cast<size_t>(row)] = row - in_head + 2 * (in_head % half_size) + in_head / half_size;
  }
  return map;
}

// The stored number of each value head.
std::vector<int32_t> tiled_heads(int64_t keys, int64_t values) {
  const int64_t of_key = values / keys;
  std::vector<int32_t> map;
  for (int64_t head = 0; head < values; ++head) {
    map.push_back(static_cast<int32_t>(head % of_key * keys + head / of_key));
  }
  return map;
}

// `before` rows in their own order, then heads of `size` rows.
std::vector<int32_t> rows_of_heads(const std::vector<int32_t>& heads, int64_t size,
                                   int64_t before) {
  std::vector<int32_t> map;
  for (int64_t row = 0; row < before; ++row) map.push_back(static_cast<int32_t>(row));
  for (const int32_t head : heads) {
    for (int64_t row = 0; row < size; ++row) {
      map.push_back(static_cast<int32_t>(before + head * size + row));
    }
  }
  return map;
}

// Where ssm_ba has the rows of the rates, or of the decays.
std::vector<int32_t> joined_rows(int64_t keys, int64_t values, bool are_decays) {
  const int64_t of_key = values / keys;
  std::vector<int32_t> map;
  for (int64_t head = 0; head < values; ++head) {
    const int64_t key = head / of_key, own = head % of_key;
    map.push_back(static_cast<int32_t>((2 * key + (are_decays ? 1 : 0)) * of_key + own));
  }
  return map;
}

bool ends_with_any(std::string_view name, std::span<const std::string_view> endings) {
  for (const std::string_view ending : endings) {
    if (name.ends_with(ending)) return true;
  }
  return false;
}

// The end of a layer's tensor: "blk.12.ssm_a" is ".ssm_a".
std::string_view ending_of(std::string_view name) {
  const size_t at = name.find('.', name.starts_with("blk.") ? 4 : 0);
  return at == std::string_view::npos ? std::string_view() : name.substr(at);
}

// Rates or decays, of which each has half of the rows of ssm_ba.
std::string_view rate_or_decay(std::string_view name) {
  return name.ends_with(kRateName) ? kRateName : kDecayName;
}
bool is_part_of_joined(std::string_view name, const GgufTensor& tensor) {
  return tensor.name.ends_with(kJoinedEnding) && name.ends_with(rate_or_decay(name));
}

uint64_t rows_in(const GgufTensor& tensor) {
  return tensor.dimensions.size() < 2 ? 1 : tensor.dimensions[1];
}

Status check_rows(const GgufTensor& tensor, uint64_t rows, int64_t wanted) {
  if (rows == static_cast<uint64_t>(wanted)) return Ok{};
  return corrupt(fmt::format("tensor {} has {} rows, but the file's values say {}", tensor.name,
                             rows, wanted));
}

}  // namespace

Result<GgufOrder> GgufOrder::of(const GgufModel& model, const GgufArchitecture& architecture) {
  GgufOrder order;
  const std::string name(architecture.name);
  if (architecture.interleaves_heads) TRY(order.prepare_interleaved(model, name));
  if (architecture.delta_order == DeltaOrder::kNone) return order;
  const Delta delta = TRY(read_delta(model, name));
  if (architecture.delta_order == DeltaOrder::kJoinedRates) {
    TRY(order.prepare_joined_rates(model, delta));
  } else if (delta.keys != delta.values) {
    TRY(order.prepare_tiled(model, delta));
  }
  return order;
}

Status GgufOrder::prepare_interleaved(const GgufModel& model, const std::string& architecture) {
  const std::string prefix = architecture + ".attention.head_count";
  query_heads_ = TRY(model.metadata().integer(prefix)).value_or(0);
  key_heads_ = TRY(model.metadata().integer(prefix + "_kv")).value_or(query_heads_);
  if (query_heads_ < 1 || key_heads_ < 1) {
    return corrupt("the GGUF value " + prefix + " must be positive");
  }
  for (const GgufFile& part : model.parts()) {
    for (const GgufTensor& tensor : part.tensors()) TRY(add_interleaved(tensor));
  }
  return Ok{};
}

// 0 if the rows are stored in their normal order.
int64_t GgufOrder::interleaved_heads(std::string_view tensor_name) const {
  if (tensor_name.ends_with(kQueryEnding)) return query_heads_;
  return tensor_name.ends_with(kKeyEnding) ? key_heads_ : 0;
}

Status GgufOrder::add_interleaved(const GgufTensor& tensor) {
  const int64_t heads = interleaved_heads(tensor.name);
  // A row has at least one byte, so the map is no larger than the file.
  if (heads == 0 || tensor.dimensions.size() < 2 || tensor.bytes.empty()) return Ok{};
  const uint64_t rows = tensor.dimensions[1];
  if (rows > INT32_MAX || heads > INT32_MAX / 2 || rows % static_cast<uint64_t>(2 * heads) != 0) {
    return corrupt(fmt::format("tensor {} has {} rows, which {} heads cannot share", tensor.name,
                               rows, heads));
  }
  const auto [entry, is_new] = interleaved_.try_emplace({heads, rows});
  if (is_new) {
    entry->second = interleaved_rows(static_cast<int32_t>(rows), static_cast<int32_t>(heads));
  }
  return Ok{};
}

Result<GgufOrder::Delta> GgufOrder::read_delta(const GgufModel& model,
                                               const std::string& architecture) {
  const auto read = [&](const char* name) -> Result<int64_t> {
    const std::string key = architecture + ".ssm." + name;
    const int64_t value = TRY(model.metadata().integer(key)).value_or(0);
    if (value >= 1 && value <= kDeltaSizeMax * kDeltaSizeMax) return value;
    return corrupt(fmt::format("the GGUF value {} is {}, from 1 to {} are possible", key, value,
                               kDeltaSizeMax * kDeltaSizeMax));
  };
  Delta delta;
  delta.keys = TRY(read("group_count"));
  delta.values = TRY(read("time_step_rank"));
  delta.key_dim = TRY(read("state_size"));
  const int64_t inner = TRY(read("inner_size"));
  delta.value_dim = inner / delta.values;
  const bool fits = delta.values % delta.keys == 0 && inner % delta.values == 0 &&
                    delta.values <= kDeltaSizeMax && delta.key_dim <= kDeltaSizeMax &&
                    delta.value_dim <= kDeltaSizeMax;
  if (fits) return delta;
  return corrupt(
      fmt::format("{} key heads of {} and {} value heads, {} columns together, do not "
                  "fit",
                  delta.keys, delta.key_dim, delta.values, inner));
}

Status GgufOrder::prepare_tiled(const GgufModel& model, const Delta& delta) {
  value_heads_ = tiled_heads(delta.keys, delta.values);
  value_dim_ = static_cast<int>(delta.value_dim);
  for (const GgufFile& part : model.parts()) {
    for (const GgufTensor& tensor : part.tensors()) {
      if (!tensor.bytes.empty()) TRY(add_tiled(tensor, delta));
    }
  }
  return Ok{};
}

// Maps are made once the tensor is known to be as large.
Status GgufOrder::add_tiled(const GgufTensor& tensor, const Delta& delta) {
  const std::string_view ending = ending_of(tensor.name);
  const int64_t before = delta.channels() - delta.value_rows();
  const auto add_rows = [&](int64_t size, int64_t first) -> Status {
    TRY(check_rows(tensor, rows_in(tensor), first + delta.values * size));
    const auto [entry, is_new] = rows_.try_emplace(std::string(ending));
    if (is_new) entry->second = rows_of_heads(value_heads_, size, first);
    return Ok{};
  };
  if (ending == kInputEnding) return add_rows(delta.value_dim, before);
  if (ending == kGateEnding) return add_rows(delta.value_dim, 0);
  if (ends_with_any(ending, kHeadRows)) return add_rows(1, 0);
  if (ending == kConvolutionEnding) {
    TRY(check_rows(tensor, rows_in(tensor), delta.channels()));
    return copy_in_order(tensor, rows_of_heads(value_heads_, delta.value_dim, before));
  }
  if (!ends_with_any(ending, kHeadVectors)) return Ok{};
  TRY(check_rows(tensor, tensor.dimensions.empty() ? 0 : tensor.dimensions[0], delta.values));
  return copy_in_order(tensor, value_heads_);
}

// Only a few small tensors.
Status GgufOrder::copy_in_order(const GgufTensor& tensor, const Map& rows) {
  if (tensor.bytes.size() % rows.size() != 0) {
    return corrupt(fmt::format("tensor {} has {} bytes, which {} rows cannot share", tensor.name,
                               tensor.bytes.size(), rows.size()));
  }
  const size_t row_bytes = tensor.bytes.size() / rows.size();
  std::vector<std::byte> copy(tensor.bytes.size());
  for (size_t row = 0; row < rows.size(); ++row) {
    std::memcpy(copy.data() + row * row_bytes,
                tensor.bytes.data() + static_cast<size_t>(rows[row]) * row_bytes, row_bytes);
  }
  copies_.try_emplace(std::string(tensor.name), std::move(copy));
  return Ok{};
}

Status GgufOrder::prepare_joined_rates(const GgufModel& model, const Delta& delta) {
  for (const GgufFile& part : model.parts()) {
    for (const GgufTensor& tensor : part.tensors()) {
      if (ending_of(tensor.name) != kJoinedEnding || tensor.bytes.empty()) continue;
      TRY(check_rows(tensor, rows_in(tensor), 2 * delta.values));
    }
  }
  rows_.try_emplace(std::string(kRateName), joined_rows(delta.keys, delta.values, false));
  rows_.try_emplace(std::string(kDecayName), joined_rows(delta.keys, delta.values, true));
  return Ok{};
}

std::span<const int32_t> GgufOrder::rows_of(std::string_view name, const GgufTensor& tensor) const {
  if (query_heads_ > 0) {
    const auto found = interleaved_.find({interleaved_heads(tensor.name), rows_in(tensor)});
    return found == interleaved_.end() ? std::span<const int32_t>() : found->second;
  }
  const auto found =
      rows_.find(is_part_of_joined(name, tensor) ? rate_or_decay(name) : ending_of(tensor.name));
  return found == rows_.end() ? std::span<const int32_t>() : found->second;
}

uint64_t GgufOrder::stored_rows(std::string_view name, const GgufTensor& tensor,
                                uint64_t rows) const {
  return is_part_of_joined(name, tensor) ? 2 * rows : rows;
}

GgufOrder::Columns GgufOrder::columns_of(const GgufTensor& tensor) const {
  if (value_heads_.empty() || !tensor.name.ends_with(kOutEnding)) return {};
  return {value_heads_, value_dim_};
}

std::optional<std::span<const std::byte>> GgufOrder::elements_of(const GgufTensor& tensor) const {
  const auto found = copies_.find(tensor.name);
  if (found == copies_.end()) return std::nullopt;
  return found->second;
}

bool GgufOrder::is_interleaved_bias(const GgufTensor& tensor) const {
  return query_heads_ > 0 &&
         (tensor.name.ends_with(".attn_q.bias") || tensor.name.ends_with(".attn_k.bias"));
}

}  // namespace lockstep
