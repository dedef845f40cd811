#include "doctor/checks/gpu_checks.h"

#include <fmt/format.h>

#include "base/bytes_text.h"

namespace lockstep {
namespace {

void judge_gpu(const GpuReport& gpu, size_t number, Findings& findings) {
  const std::string name =
      fmt::format("the GPU {} ({}) with {}", gpu.name, gpu.driver, bytes_text(gpu.memory_bytes));
  if (!gpu.problem.empty()) {
    return add_note(findings, "gpu", fmt::format("{} is not used: {}", name, gpu.problem),
                    "update its driver; until then models run on the processor");
  }
  if (gpu.is_software) {
    return add_ok(findings, "gpu",
                  name + " passed its self-test, but is software and slower than the processor");
  }
  add_ok(findings, "gpu",
         fmt::format("{} passed its self-test; --device vulkan:{} uses it", name, number));
}

}  // namespace

GpuFacts collect_gpus() {
  auto gpus = report_gpus();
  if (!gpus.ok()) return {.reason = gpus.error().message, .gpus = {}};
  return {.reason = "", .gpus = std::move(gpus.value())};
}

Finding unknown_gpus(std::string_view reason) {
  return {"gpu", Severity::kNote,
          fmt::format("it is unknown which GPUs this machine can use: {}", reason),
          "update the drivers of its GPUs; until then let models run on the processor"};
}

Findings judge_gpus(const GpuFacts& facts) {
  Findings findings;
  if (!facts.reason.empty()) {
    add_ok(findings, "gpu", "models run on the processor: " + facts.reason);
  } else if (facts.gpus.empty()) {
    add_ok(findings, "gpu", "models run on the processor: Vulkan finds no GPU on this machine");
  }
  for (size_t i = 0; i < facts.gpus.size(); ++i) judge_gpu(facts.gpus[i], i, findings);
  return findings;
}

}  // namespace lockstep
