// The losses of quantising, in words and tables: for `--bits` and `lockstep quantize`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "weights/quantised/quantisation_report.h"

namespace lockstep {

std::string tensor_error_header();
// `bits` 0: the tensor is not quantised.
std::string tensor_error_line(std::string_view name, int bits, double relative_rms, double largest);

// One line, or with `lists_tensors` a table before it, largest error first. Empty if nothing was
// quantised.
std::vector<std::string> quantisation_lines(const QuantisationReport& report, bool lists_tensors);

}  // namespace lockstep
