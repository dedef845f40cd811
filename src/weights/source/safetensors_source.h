// SafetensorsSource: the weights of a Hugging Face folder, from any quantiser: finds the tensors of
// a request and leaves their interpretation to quantised_matrix.h. Made by open_weight_source().
// Immutable: any thread may use it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "json/json.h"
#include "weights/quantised/quantisation_config.h"
#include "weights/safetensors/checkpoint.h"
#include "weights/safetensors/module_tensors.h"
#include "weights/safetensors/tensor_names.h"
#include "weights/weight_source.h"

namespace lockstep {

class SafetensorsSource final : public WeightSource {
 public:
  // A folder without config.json counts as one without quantisation information.
  static Result<std::shared_ptr<const WeightSource>> open(
      const std::filesystem::path& folder, PartialFiles partial = PartialFiles::kRefused);
  // `config` is the content of a config.json.
  static Result<std::shared_ptr<const WeightSource>> over(
      std::shared_ptr<const Checkpoint> checkpoint, const Json& config);
  static Result<std::shared_ptr<const WeightSource>> over(
      std::shared_ptr<const Checkpoint> checkpoint, const Json& config, TensorNames names);

  Result<StoredMatrix> matrix(const MatrixRequest& request) const override;
  Result<StoredVector> vector(std::string_view name, int stack_index, int size) const override;
  std::vector<int64_t> shape_of(std::string_view name) const override;
  bool has(std::string_view name, int stack_index) const override;
  uint64_t file_bytes() const override { return checkpoint_->file_bytes(); }
  std::span<const MappedFile* const> files() const override { return files_; }

 private:
  // The biases of gpt-oss' fused gate and up projections, split: all gates of a stack, then all its
  // ups.
  struct SplitBiases {
    DType dtype = DType::kF32;
    int64_t count = 0;  // of experts
    int64_t size = 0;   // of one expert's gate
    std::vector<std::byte> bytes;
  };

  SafetensorsSource(std::shared_ptr<const Checkpoint> checkpoint, QuantisationConfig config,
                    TensorNames names);
  Status split_fused_experts();
  Status split_biases(const TensorView& fused);

  std::optional<ModuleTensors> find_module(std::string_view stem, int stack_index,
                                           std::span<const std::string_view> suffixes,
                                           size_t rank) const;
  const TensorView* find_bare(std::string_view stem) const;
  std::optional<JoinedStem> find_joined(std::string_view stem, std::string_view suffix) const;
  Result<StoredVector> joined_vector(const JoinedStem& joined, std::string_view suffix,
                                     int size) const;
  std::optional<FusedExpertStem> find_fused(std::string_view stem, int stack_index,
                                            std::string_view suffix) const;
  Result<StoredMatrix> fused_matrix(const FusedExpertStem& fused,
                                    const MatrixRequest& request) const;
  Result<StoredMatrix> transposed_matrix(const FusedExpertStem& fused,
                                         const MatrixRequest& request) const;
  Result<StoredMatrix> stacked_part(TensorView expert, const FusedExpertStem& fused,
                                    const MatrixRequest& request) const;
  Result<StoredVector> fused_bias(const FusedExpertStem& fused, int stack_index, int size) const;
  std::span<const int32_t> row_map(FusedExpertStem::Rows rows, int row_count) const;

  std::shared_ptr<const Checkpoint> checkpoint_;
  QuantisationConfig config_;
  TensorNames names_;
  std::vector<const MappedFile*> files_;
  std::vector<int32_t> even_rows_;  // 0, 2, 4, ...: as many as the largest fused stack needs
  std::vector<int32_t> odd_rows_;
  std::map<std::string, SplitBiases, std::less<>> split_biases_;  // by the fused tensor's name
};

}  // namespace lockstep
