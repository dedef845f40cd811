// `lockstep quantize`: writes a model folder with quantised weights, and prints their errors.
#include <fmt/core.h>

#include <chrono>
#include <memory>
#include <string>

#include "base/log.h"
#include "base/machine/machine.h"
#include "cli/commands/commands.h"
#include "cli/flags/group_flags.h"
#include "cli/text/output.h"
#include "cli/text/quantisation_text.h"
#include "model/quantise/quantise_model.h"

namespace lockstep {
namespace {

struct QuantizeFlags {
  std::string from;
  std::string to;
  int bits = 4;
  int threads = 0;
  bool requantises = false;
  bool json = false;
};

Json quantise_json(const QuantiseReport& report) {
  JsonArray tensors;
  for (const QuantisedTensor& tensor : report.tensors) {
    tensors.push_back(JsonObject{{"name", tensor.name},
                                 {"bits", tensor.bits == 0 ? Json(nullptr) : Json(tensor.bits)},
                                 {"weights", tensor.weights},
                                 {"relative_rms_error", tensor.relative_rms},
                                 {"largest_error", tensor.largest_error}});
  }
  return JsonObject{
      {"tensors", std::move(tensors)},     {"relative_rms_error", report.relative_rms},
      {"weights", report.weights},         {"bytes_before", report.bytes_before},
      {"bytes_after", report.bytes_after}, {"bits_per_weight", report.bits_per_weight()}};
}

void print_quantise_table(const QuantiseReport& report) {
  print_line(tensor_error_header());
  for (const QuantisedTensor& tensor : report.tensors) {
    print_line(
        tensor_error_line(tensor.name, tensor.bits, tensor.relative_rms, tensor.largest_error));
  }
  print_line(fmt::format("{} weights, {} -> {}, {:.2f} bits a weight, rms error {:.3f} %",
                         report.weights, bytes_text(report.bytes_before),
                         bytes_text(report.bytes_after), report.bits_per_weight(),
                         report.relative_rms * 100));
}

// A line on a terminal, at most ten times a second.
class ProgressLine {
 public:
  void show(uint64_t done, uint64_t all, std::string_view next) {
    const Clock::time_point now = Clock::now();
    if (now < next_) return;
    next_ = now + std::chrono::milliseconds(100);
    constexpr int kWidth = 30;
    const double part = all == 0 ? 1 : static_cast<double>(done) / static_cast<double>(all);
    const auto filled = static_cast<size_t>(part * kWidth);
    show_progress(fmt::format("[{}{}] {:>3.0f} %  {}", std::string(filled, '='),
                              std::string(kWidth - filled, ' '), part * 100, next));
  }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point next_{};
};

Result<QuantiseReport> quantise(const QuantizeFlags& flags) {
  ProgressLine line;
  auto report =
      quantise_model({.from = TRY(find_model(flags.from)),
                      .to = flags.to,
                      .bits = flags.bits,
                      .requantises = flags.requantises,
                      .threads = flags.threads > 0 ? flags.threads : available_core_count(),
                      .progress = [&](uint64_t done, uint64_t all, std::string_view next) {
                        line.show(done, all, next);
                      }});
  clear_progress();
  return report;
}

int run_quantize_command(const QuantizeFlags& flags) {
  const auto report = quantise(flags);
  if (!report.ok()) return fail(report.error());
  if (flags.json) {
    print_json(quantise_json(report.value()));
  } else {
    print_quantise_table(report.value());
  }
  if (!report.value().draft_problem.empty()) {
    log_warn("the draft layer is left out: {}", report.value().draft_problem);
  }
  return 0;
}

}  // namespace

void add_quantize_command(CLI::App& app, Command& chosen) {
  auto flags = std::make_shared<QuantizeFlags>();
  CLI::App* command = app.add_subcommand(
      "quantize", "write a model folder with quantised weights (MLX affine, groups of 64)");
  command->add_option("SRC", flags->from, "a model folder or a pulled model (org/name)")
      ->required();
  command->add_option("DST", flags->to, "the folder to write, which does not exist yet")
      ->required();
  command->add_option("--bits", flags->bits, "of a weight: 2, 3, 4, 5, 6 or 8 (default 4)")
      ->check(CLI::IsMember({2, 3, 4, 5, 6, 8}));
  command->add_flag(
      "--requantise,--requantize", flags->requantises,
      "also requantise weights that are already quantised, which loses precision again");
  command->add_option("--threads", flags->threads, "(default: the machine's cores)")
      ->check(CLI::Range(1, 1024));
  command->add_flag("--json", flags->json, "one JSON value");
  command->callback(
      [flags, &chosen] { chosen = [flags] { return run_quantize_command(*flags); }; });
}

}  // namespace lockstep
