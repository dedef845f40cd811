#include "model/quantise/quantise_plan.h"

#include <utility>

#include "base/check.h"
#include "model/load/stored_forms.h"
#include "model/load/weight_table.h"
#include "model/load/weights.h"
#include "model/quantise/quantising.h"
#include "tensor/stored_check.h"
#include "weights/safetensors/tensor_names.h"

namespace lockstep {
namespace {

constexpr std::string_view kWeightSuffix = ".weight";

class Planner {
 public:
  Planner(const ModelConfig& config, const QuantisingSource& source, std::string_view prefix)
      : config_(config), source_(source), prefix_(prefix) {}

  Result<QuantisePlan> plan() {
    for (const Weight& weight : weight_table(config_)) add(weight);
    for (PlannedModule& module : plan_.modules) TRY(add_tensors(module));
    return std::move(plan_);
  }

 private:
  void add(const Weight& weight) {
    if (weight.role == Role::kKvUp && has_split_heads(source_, weight))
      return add_latent_parts(weight);
    const std::string name = module_name(config_, prefix_ + weight.name, weight.expert);
    if (weight.expert > 0) {
      for (size_t i = plan_.modules.size(); i-- > 0;) {
        if (plan_.modules[i].name != name) continue;
        plan_.modules[i].parts.push_back(weight.name);
        return;
      }
      LOCKSTEP_CHECK(false);  // the table names experts in ascending order
    }
    plan_.modules.push_back({.name = name,
                             .is_vector = weight.is_vector,
                             .bits = weight.is_vector ? 0 : bits_of(weight.name, weight.columns),
                             .rows = weight.rows,
                             .columns = weight.columns,
                             .parts = {weight.name},
                             .is_stack = weight.expert >= 0});
  }

  int bits_of(std::string_view name, int columns) const { return source_.bits_of(name, columns); }

  void add_latent_parts(const Weight& weight) {
    const LatentConfig& latent = config_.latent;
    const auto add_part = [&](std::string_view part, int rows, int columns) {
      const std::string asked = head_part_name(weight, part);
      plan_.modules.push_back(
          {.name = module_name(config_, prefix_ + asked, -1),
           .bits = bits_of(asked, columns),
           .rows = rows,
           .columns = columns,
           .parts = std::vector<std::string>(static_cast<size_t>(config_.heads), asked),
           .is_stack = true});
    };
    add_part("embed_q", latent.kv_rank, latent.nope);
    add_part("unembed_out", latent.value, latent.kv_rank);
  }

  Status add_tensors(PlannedModule& module) {
    std::vector<int64_t> shape;
    if (module.is_vector && !module.is_stack) shape = source_.shape_of(module.parts[0]);
    const bool has_shape = !shape.empty();
    if (module.is_stack) shape.push_back(static_cast<int64_t>(module.parts.size()));
    if (!has_shape) shape.push_back(module.rows);
    module.first_tensor = plan_.tensors.size();
    const auto add_tensor = [&](std::string name, DType dtype, int columns) {
      PlannedTensor& tensor =
          plan_.tensors.emplace_back(PlannedTensor{std::move(name), dtype, shape});
      if (!module.is_vector) tensor.shape.push_back(columns);
    };
    if (module.bits > 0) {
      const int groups = module.columns / kQuantisedGroup;
      add_tensor(module.name + ".weight", DType::kU32, module.columns * module.bits / 32);
      add_tensor(module.name + ".scales", DType::kBF16, groups);
      add_tensor(module.name + ".biases", DType::kBF16, groups);
      return Ok{};
    }
    const bool has_suffix =
        module.parts[0].ends_with(kWeightSuffix) && !is_bare_matrix(module.name);
    add_tensor(module.name + (has_suffix ? std::string(kWeightSuffix) : ""), TRY(kept_type(module)),
               module.columns);
    return Ok{};
  }

  Result<DType> kept_type(const PlannedModule& module) const {
    const std::string& name = module.parts[0];
    const int index = module.stack_index(0);
    if (module.is_vector) return TRY(source_.vector(name, index, module.rows)).dtype;
    const StoredMatrix stored = TRY(source_.matrix({.name = name,
                                                    .stack_index = index,
                                                    .rows = module.rows,
                                                    .columns = module.columns,
                                                    .row_end = 1}));
    const auto type = plain_element_type(stored);
    LOCKSTEP_CHECK(type);
    return *type;
  }

  const ModelConfig& config_;
  const QuantisingSource& source_;
  std::string prefix_;
  QuantisePlan plan_;
};

}  // namespace

Result<QuantisePlan> plan_quantised(const ModelConfig& config, const QuantisingSource& source,
                                    std::string_view prefix) {
  return Planner(config, source, prefix).plan();
}

}  // namespace lockstep
