#include "cli/bench/explain_device.h"

#include <fmt/core.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "cli/text/output.h"
#include "model/forward/gpu_plan.h"
#include "model/load/open_model.h"

namespace lockstep {
namespace {

bool are_alike(const gpu::DispatchCounts& a, const gpu::DispatchCounts& b) {
  return a.kernels == b.kernels && a.barriers == b.barriers && a.bytes == b.bytes;
}

JsonArray kernel_names(const gpu::DispatchCounts& counts) {
  JsonArray names;
  for (const gpu::Kernel kernel : counts.kernels) names.push_back(gpu::kernel_name(kernel).data());
  return names;
}

JsonObject layer_json(const gpu::DispatchCounts& counts, size_t first, size_t count) {
  return {{"first", first},
          {"count", count},
          {"dispatches", counts.dispatches},
          {"barriers", counts.barriers},
          {"bytes", counts.bytes},
          {"kernels", kernel_names(counts)}};
}

// Layers that are alike are one entry, wherever they are.
JsonArray layers_json(const std::vector<gpu::DispatchCounts>& layers) {
  struct Kind {
    size_t first;
    size_t count;
  };
  std::vector<Kind> kinds;
  for (size_t i = 0; i < layers.size(); ++i) {
    const auto known = std::find_if(kinds.begin(), kinds.end(), [&](const Kind& kind) {
      return are_alike(layers[kind.first], layers[i]);
    });
    if (known == kinds.end()) {
      kinds.push_back({i, 1});
    } else {
      ++known->count;
    }
  }
  JsonArray json;
  for (const Kind& kind : kinds) {
    json.push_back(layer_json(layers[kind.first], kind.first, kind.count));
  }
  return json;
}

double megabytes(const JsonObject& object, std::string_view key) {
  return object.at(key).to_number<double>() / 1e6;
}

}  // namespace

Result<Json> explain_device(const ExplainFlags& flags) {
  std::string model = flags.model;
  if (!flags.shape.shape.empty()) model = TRY(shape_text(flags.shape));
  const OpenedModel opened = TRY(open_model(model));
  const GpuTokenPlan plan = TRY(plan_token_on_gpu(opened.config, opened.source, flags.position));
  const gpu::DispatchCounts all = plan.sum();
  return Json(JsonObject{{"model", flags.shape.shape.empty() ? flags.model : flags.shape.shape},
                         {"position", flags.position},
                         {"layers", layers_json(plan.layers)},
                         {"dispatches", all.dispatches},
                         {"barriers", all.barriers},
                         {"bytes", all.bytes},
                         {"needed_bytes", plan.needed_bytes}});
}

void print_explanation(const Json& explanation) {
  const JsonObject& all = explanation.as_object();
  print_line(fmt::format("{}: a token at position {} on one GPU",
                         all.at("model").as_string().c_str(), all.at("position").to_number<int>()));
  print_line(
      fmt::format("{:<11} {:>10} {:>9} {:>10}  kernels", "layers", "dispatches", "barriers", "MB"));
  for (const Json& each : all.at("layers").as_array()) {
    const JsonObject& layer = each.as_object();
    const auto first = layer.at("first").to_number<size_t>();
    const auto count = layer.at("count").to_number<size_t>();
    std::string kernels;
    for (const Json& name : layer.at("kernels").as_array()) {
      kernels += fmt::format("{}{}", kernels.empty() ? "" : ", ", name.as_string().c_str());
    }
    print_line(fmt::format(
        "{:<11} {:>10} {:>9} {:>10.1f}  {}",
        count == 1 ? fmt::format("layer {}", first) : fmt::format("{} like {}", count, first),
        layer.at("dispatches").to_number<int>(), layer.at("barriers").to_number<int>(),
        megabytes(layer, "bytes"), kernels));
  }
  const double bytes = megabytes(all, "bytes"), needed = megabytes(all, "needed_bytes");
  print_line(fmt::format("{:<11} {:>10} {:>9} {:>10.1f}  {:.3f} of what must be read", "a token",
                         all.at("dispatches").to_number<int>(), all.at("barriers").to_number<int>(),
                         bytes, bytes / needed));
}

}  // namespace lockstep
