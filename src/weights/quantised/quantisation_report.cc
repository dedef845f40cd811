#include "weights/quantised/quantisation_report.h"

#include <algorithm>

namespace lockstep {

void QuantisationReport::add(const TensorError& part) {
  const auto [place, is_new] = places_.try_emplace(part.name, tensors_.size());
  if (is_new) {
    tensors_.push_back(part);
    return;
  }
  TensorError& tensor = tensors_[place->second];
  tensor.weights += part.weights;
  tensor.error.add(part.error);
}

void QuantisationReport::add(const QuantisationReport& other) {
  for (const TensorError& tensor : other.tensors_) add(tensor);
}

std::vector<TensorError> QuantisationReport::worst_first() const {
  std::vector<TensorError> sorted = tensors_;
  std::stable_sort(sorted.begin(), sorted.end(), [](const TensorError& a, const TensorError& b) {
    return a.error.relative_rms() > b.error.relative_rms();
  });
  return sorted;
}

QuantisationError QuantisationReport::total() const {
  QuantisationError total;
  for (const TensorError& tensor : tensors_) total.add(tensor.error);
  return total;
}

}  // namespace lockstep
