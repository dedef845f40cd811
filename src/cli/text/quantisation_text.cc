#include "cli/text/quantisation_text.h"

#include <fmt/core.h>

#include <algorithm>

#include "cli/text/output.h"

namespace lockstep {
namespace {

constexpr size_t kWorstMax = 3;  // named by the summary

}  // namespace

std::string tensor_error_header() {
  return fmt::format("{:<56} {:>4} {:>12} {:>12}", "tensor", "bits", "rms error", "largest");
}

std::string tensor_error_line(std::string_view name, int bits, double relative_rms,
                              double largest) {
  if (bits == 0) return fmt::format("{:<56} {:>4}", name, "kept");
  return fmt::format("{:<56} {:>4} {:>10.3f} % {:>12.3g}", name, bits, relative_rms * 100, largest);
}

std::vector<std::string> quantisation_lines(const QuantisationReport& report, bool lists_tensors) {
  std::vector<std::string> lines;
  if (report.empty()) return lines;
  const std::vector<TensorError> tensors = report.worst_first();
  if (lists_tensors) {
    lines.push_back(tensor_error_header());
    for (const TensorError& tensor : tensors) {
      lines.push_back(tensor_error_line(tensor.name, tensor.bits, tensor.error.relative_rms(),
                                        tensor.error.largest));
    }
  }
  std::string worst;
  for (size_t i = 0; i < std::min(tensors.size(), kWorstMax); ++i) {
    worst += fmt::format("{}{} {:.3f} %", i == 0 ? "" : ", ", tensors[i].name,
                         tensors[i].error.relative_rms() * 100);
  }
  lines.push_back(fmt::format(
      "{} quantised, rms error {:.3f} % (the worst: {}){}", counted(tensors.size(), "tensor"),
      report.total().relative_rms() * 100, worst, lists_tensors ? "" : "; --verbose lists all"));
  return lines;
}

}  // namespace lockstep
