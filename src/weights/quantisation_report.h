// QuantisationReport: what quantising while loading (`--bits`) did to each tensor. Made by
// QuantisingSource on each rank; the node adds up the ranks' for the command line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "weights/quantise.h"

namespace lockstep {

struct TensorError {
  std::string name;  // as in `lockstep quantize`: without ".weight", a stack of experts as one
  int bits = 0;
  uint64_t weights = 0;  // of the parts that were converted; what several ranks hold counts often
  QuantisationError error;
};

class QuantisationReport {
 public:
  // Adds up parts of one tensor.
  void add(const TensorError& part);
  void add(const QuantisationReport& other);

  bool empty() const { return tensors_.empty(); }
  const std::vector<TensorError>& tensors() const { return tensors_; }  // as they came
  // From the largest relative error on.
  std::vector<TensorError> worst_first() const;
  QuantisationError total() const;

 private:
  std::vector<TensorError> tensors_;
  std::unordered_map<std::string, size_t> places_;
};

}  // namespace lockstep
