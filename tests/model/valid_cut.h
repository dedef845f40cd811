// Starting points for tests of cuts: the config of a published shape, and a valid cut.
#pragma once

#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

#include "model/load/cut.h"
#include "model/load/shape_model.h"

namespace lockstep {

inline ModelConfig config_of_shape(const std::string& shape) {
  auto config = read_shape_config(shape);
  REQUIRE(config.ok());
  return std::move(config.value());
}

inline Cut cut_of(const ModelConfig& config, const std::vector<double>& shares,
                  const CutOptions& options = {}) {
  auto cut = Cut::make(config, shares, options);
  REQUIRE(cut.ok());
  return std::move(cut.value());
}

}  // namespace lockstep
