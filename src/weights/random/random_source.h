// A WeightSource of random weights: any model's true shape in any stored format, with nothing on
// disk and a few megabytes of memory. Values have a trained model's size, so that hidden states
// stay finite. Used by `lockstep bench --shape` and tests.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weights/weight_source.h"

namespace lockstep {

// A tensor of the source. Norms (names with "norm") are one, other vectors zero, or numbers.
struct RandomTensor {
  std::string name;
  int rows = 0;
  int columns = 0;
  bool is_vector = false;
  bool is_never_quantised = false;  // BF16 in quantised formats, like a router
  int numbers = 0;  // of a vector of integers: 0 to `numbers` - 1, at most 256; 0: it is none
};

// "bf16", "mlx4", "q4_k"..., for messages and help.
std::string random_format_names();
// kInvalidArgument for an unknown format, kExhausted without enough memory.
Result<std::shared_ptr<const WeightSource>> open_random_source(std::string_view format,
                                                               std::vector<RandomTensor> tensors);

}  // namespace lockstep
