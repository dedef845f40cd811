// QuantisationReport: the error of each tensor quantised while loading (`--bits`). Made by
// QuantisingSource on each rank; the node adds up the ranks' reports for the command line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/text_hash.h"
#include "weights/quantised/quantise.h"

namespace lockstep {

struct TensorError {
  std::string name;  // as in `lockstep quantize`: without ".weight", a stack of experts as one
  int bits = 0;
  uint64_t weights = 0;  // of the converted parts; weights on several ranks count several times
  QuantisationError error;
};

class QuantisationReport {
 public:
  // Adds up parts of one tensor.
  void add(const TensorError& part);
  void add(const QuantisationReport& other);

  bool empty() const { return tensors_.empty(); }
  const std::vector<TensorError>& tensors() const { return tensors_; }  // in order of arrival
  // By descending relative error.
  std::vector<TensorError> worst_first() const;
  QuantisationError total() const;

 private:
  std::vector<TensorError> tensors_;
  std::unordered_map<std::string, size_t, TextHash> places_;
};

}  // namespace lockstep
