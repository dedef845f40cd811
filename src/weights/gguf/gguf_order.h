// GgufOrder: where a GGUF file keeps the rows, columns and elements of a tensor in another order
// than Hugging Face's. Built once for a file, then immutable: any thread may use it.
// Source: llama.cpp, conversion/*.py.
//
//   llama, mistral3      query and key heads: the halves of a head alternate
//   qwen35, qwen35moe    value heads of the delta rule: those of one number within their key heads
//                        are neighbours (h * values + v is stored as v * keys + h)
//   qwen3next            the matrix ssm_ba: for each key head the rows of the rates, then of the
//                        decays
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "gguf/gguf_model.h"
#include "weights/gguf/gguf_names.h"

namespace lockstep {

class GgufOrder {
 public:
  GgufOrder() = default;
  // kCorrupt if the file's tensors do not have the sizes that its values say. No map has more
  // entries than a tensor has bytes.
  static Result<GgufOrder> of(const GgufModel& model, const GgufArchitecture& architecture);

  // (rows), or empty: row r of the matrix `name` (Hugging Face's), found as `tensor`, is stored row
  // map[r]. Lives as long as the order.
  std::span<const int32_t> rows_of(std::string_view name, const GgufTensor& tensor) const;
  // The rows that the tensor has for a matrix `name` of `rows`.
  uint64_t stored_rows(std::string_view name, const GgufTensor& tensor, uint64_t rows) const;
  // (columns / group), or empty: as StoredMatrix::column_map.
  struct Columns {
    std::span<const int32_t> map;
    int group = 0;
  };
  Columns columns_of(const GgufTensor& tensor) const;
  // The elements of a vector, in Hugging Face's order, if they are stored in another one. Lives as
  // long as the order.
  std::optional<std::span<const std::byte>> elements_of(const GgufTensor& tensor) const;
  // Whether the file interleaves the heads of a bias of queries or keys, which nothing here undoes.
  bool is_interleaved_bias(const GgufTensor& tensor) const;

 private:
  using Map = std::vector<int32_t>;
  // The heads of the delta rule.
  struct Delta {
    int64_t keys = 0;
    int64_t values = 0;  // of all key heads
    int64_t key_dim = 0;
    int64_t value_dim = 0;

    int64_t value_rows() const { return values * value_dim; }
    int64_t channels() const { return 2 * keys * key_dim + value_rows(); }
  };

  Status prepare_interleaved(const GgufModel& model, const std::string& architecture);
  Status add_interleaved(const GgufTensor& tensor);
  int64_t interleaved_heads(std::string_view tensor_name) const;
  static Result<Delta> read_delta(const GgufModel& model, const std::string& architecture);
  Status prepare_tiled(const GgufModel& model, const Delta& delta);
  Status add_tiled(const GgufTensor& tensor, const Delta& delta);
  Status copy_in_order(const GgufTensor& tensor, const Map& rows);
  Status prepare_joined_rates(const GgufModel& model, const Delta& delta);

  int64_t query_heads_ = 0;  // 0: nothing is interleaved
  int64_t key_heads_ = 0;
  // By head count and rows: only a few, since all layers are alike.
  std::map<std::pair<int64_t, uint64_t>, Map> interleaved_;
  // By the end of a tensor's name, or of Hugging Face's.
  std::map<std::string, Map, std::less<>> rows_;
  Map value_heads_;  // where the file has the columns of value heads, if in another order
  int value_dim_ = 0;
  std::map<std::string, std::vector<std::byte>, std::less<>> copies_;  // by tensor
};

}  // namespace lockstep
