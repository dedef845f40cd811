// MemorySource: the WeightSource of a safetensors file in memory, for tests.
#pragma once

#include <doctest/doctest.h>

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "json/json.h"
#include "support/memory_safetensors.h"
#include "weights/source/safetensors_source.h"

namespace lockstep {

class MemorySource {
 public:
  explicit MemorySource(const MemorySafetensors& writer, std::string_view config = "{}")
      : file_(std::make_unique<std::string>(writer.file())) {
    auto checkpoint = Checkpoint::view(std::as_bytes(std::span(*file_)));
    REQUIRE_MESSAGE(checkpoint.ok(), checkpoint.error().message);
    auto json = parse_json(config);
    REQUIRE(json.ok());
    auto source = SafetensorsSource::over(checkpoint.value(), json.value());
    REQUIRE_MESSAGE(source.ok(), source.error().message);
    source_ = std::move(source.value());
  }

  const WeightSource* operator->() const { return source_.get(); }

  StoredMatrix matrix(std::string_view name, int rows, int columns, int stack_index = -1) const {
    const auto matrix = source_->matrix({name, stack_index, rows, columns});
    REQUIRE_MESSAGE(matrix.ok(), matrix.error().message);
    return matrix.value();
  }
  Error matrix_error(std::string_view name, int rows, int columns, int stack_index = -1) const {
    const auto matrix = source_->matrix({name, stack_index, rows, columns});
    REQUIRE_FALSE(matrix.ok());
    return matrix.error();
  }

 private:
  std::unique_ptr<std::string> file_;  // views stay valid when this object moves
  std::shared_ptr<const WeightSource> source_;
};

}  // namespace lockstep
