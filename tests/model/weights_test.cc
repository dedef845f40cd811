#include "model/load/weights.h"

#include <doctest/doctest.h>

#include <limits>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kernels/isa.h"
#include "model/load/open_model.h"

using namespace lockstep;

namespace {

// Records which part of each matrix is requested.
class RecordingSource final : public WeightSource {
 public:
  explicit RecordingSource(const WeightSource& source) : source_(source) {}

  Result<StoredMatrix> matrix(const MatrixRequest& request) const override {
    parts_[std::string(request.name)] = {{request.row_begin, request.row_end},
                                         {request.column_begin, request.column_end}};
    return source_.matrix(request);
  }
  Result<StoredVector> vector(std::string_view name, int stack_index, int size) const override {
    return source_.vector(name, stack_index, size);
  }
  std::vector<int64_t> shape_of(std::string_view name) const override {
    return source_.shape_of(name);
  }
  bool has(std::string_view name, int stack_index) const override {
    return source_.has(name, stack_index);
  }
  uint64_t file_bytes() const override { return source_.file_bytes(); }

  const WeightPart& part(const std::string& name) const { return parts_.at(name); }

 private:
  const WeightSource& source_;
  mutable std::map<std::string, WeightPart> parts_;
};

// The tables of experts of another source, as floats of which one is given.
class FloatTables final : public WeightSource {
 public:
  FloatTables(const WeightSource& source, float third) : source_(source), third_(third) {}

  Result<StoredMatrix> matrix(const MatrixRequest& request) const override {
    return source_.matrix(request);
  }
  Result<StoredVector> vector(std::string_view name, int stack_index, int size) const override {
    if (!name.ends_with(".tid2eid")) return source_.vector(name, stack_index, size);
    table_.assign(static_cast<size_t>(size), 1.0f);
    table_[2] = third_;
    return StoredVector{DType::kF32, std::as_bytes(std::span(table_))};
  }
  std::vector<int64_t> shape_of(std::string_view name) const override {
    return source_.shape_of(name);
  }
  bool has(std::string_view name, int stack_index) const override {
    return source_.has(name, stack_index);
  }
  uint64_t file_bytes() const override { return source_.file_bytes(); }

 private:
  const WeightSource& source_;
  float third_;
  mutable std::vector<float> table_;
};

// Loads a rank's weights and checks the requested parts; returns the number of matrices of which
// the rank has no part.
int check_requests(const OpenedModel& model, const Cut& cut, int rank) {
  const RecordingSource source(*model.source);
  auto device = open_device({.kernels = available_kernels().back()});
  REQUIRE(device.ok());
  const auto weights = load_weights({source,
                                     model.config,
                                     {.cut = cut, .rank = rank, .layers = {0, model.config.layers}},
                                     *device.value()});
  REQUIRE_MESSAGE(weights.ok(), weights.error().message);
  int empty_count = 0;
  for (const Weight& weight : weight_table(model.config)) {
    if (weight.is_vector) continue;
    CAPTURE(weight.name);
    WeightPart expected = part_of(weight, cut, rank);
    if (expected.elements() == 0) {
      expected = {{0, 1}, {0, 1}};
      ++empty_count;
    }
    const WeightPart& asked = source.part(weight.name);
    CHECK(asked.rows.begin == expected.rows.begin);
    CHECK(asked.rows.end == expected.rows.end);
    CHECK(asked.columns.begin == expected.columns.begin);
    CHECK(asked.columns.end == expected.columns.end);
  }
  return empty_count;
}

}  // namespace

TEST_CASE("the experts that a table gives are whole numbers of experts") {
  const auto model =
      open_model(std::string(LOCKSTEP_SOURCE_DIR) + "/tests/data/golden/deepseekv4-bf16");
  REQUIRE_MESSAGE(model.ok(), model.error().message);
  const ModelConfig& config = model.value().config;
  const auto cut = Cut::make(config, std::vector<double>{1});
  REQUIRE(cut.ok());
  const auto error_with = [&](float expert) {
    const FloatTables source(*model.value().source, expert);
    auto device = open_device({.kernels = available_kernels().back()});
    REQUIRE(device.ok());
    const WeightShare share{.cut = cut.value(), .rank = 0, .layers = {0, config.layers}};
    const auto weights = load_weights({source, config, share, *device.value()});
    return weights.ok() ? "" : weights.error().message;
  };
  CHECK(error_with(7) == "");
  for (const float wrong : {std::numeric_limits<float>::quiet_NaN(), 3.5f, 8.0f, -1.0f}) {
    CAPTURE(wrong);
    CHECK(error_with(wrong) ==
          "the tensor model.layers.0.ffn.gate.tid2eid gives token 0 an expert that is not one of "
          "the 8");
  }
}

TEST_CASE("a rank asks for its part of each matrix, and for one element where it has none") {
  const auto model = open_model("shape:" LOCKSTEP_SOURCE_DIR "/tests/data/golden/llama3-bf16");
  REQUIRE_MESSAGE(model.ok(), model.error().message);
  // One rank gets no leaf of any matrix: its parts end at 0, or begin at the end.
  for (const int empty_rank : {0, 1}) {
    std::vector<double> shares{1000, 1000};
    shares[static_cast<size_t>(empty_rank)] = 1;
    const auto cut = Cut::make(model.value().config, shares);
    REQUIRE(cut.ok());
    for (const int rank : {0, 1}) {
      const int empty_count = check_requests(model.value(), cut.value(), rank);
      CHECK((empty_count > 0) == (rank == empty_rank));
    }
  }
}
