// Operations that one kernel does together. A pattern is matched against the beginning of the
// operations that wait; whatever does not fit is planned one by one.
#include <array>

#include "base/check.h"
#include "device/gpu/emit.h"
#include "device/gpu/plan.h"

namespace lockstep::gpu {
namespace {

// Takes operations of the wanted types from the front.
class Reader {
 public:
  explicit Reader(std::span<const Operation> operations) : operations_(operations) {}

  template <class Wanted>
  const Wanted* take() {
    if (taken_ == operations_.size()) return nullptr;
    const auto* found = std::get_if<Wanted>(&operations_[taken_]);
    if (found != nullptr) ++taken_;
    return found;
  }
  size_t taken() const { return taken_; }

 private:
  std::span<const Operation> operations_;
  size_t taken_ = 0;
};

// The operations of queries, keys and values between their products and attention.
struct Heads {
  std::array<const AddBias*, 3> biases{};  // all or none
  const RmsNorm* query_norm = nullptr;
  const Rope* query = nullptr;
  const RmsNorm* key_norm = nullptr;
  const Rope* key = nullptr;
  const ScaleRows* scale = nullptr;
  const StoreKv* store = nullptr;
  size_t count = 0;  // 0: they are others
};

bool norms_heads(const RmsNorm* norm, const Rope& rope) {
  if (norm == nullptr) return true;
  return norm->x == rope.x && norm->y == rope.x && norm->columns == rope.head_dim &&
         norm->stride == rope.head_dim && norm->tokens == rope.tokens * rope.heads &&
         norm->weights == 1;
}

bool adds_to(const AddBias& bias, Slice x, int tokens, int columns) {
  return bias.x == x && bias.tokens == tokens && bias.columns == columns;
}

bool are_alike(const Heads& heads) {
  const Rope &query = *heads.query, &key = *heads.key;
  const StoreKv& store = *heads.store;
  const LayerPages& pages = store.pages;
  const bool have_one_table = query.table == key.table && query.half == key.half &&
                              query.half > 0 && query.head_dim == key.head_dim;
  const bool stores_key = store.keys == key.x && key.heads == pages.kv_heads &&
                          key.head_dim == pages.head_dim &&
                          store.keys_stride == pages.kv_heads * pages.head_dim &&
                          store.values_stride == pages.kv_heads * pages.value_dim;
  const bool has_tokens =
      query.tokens > 0 && query.tokens == key.tokens && query.tokens == store.tokens;
  const bool fits = static_cast<uint32_t>(key.head_dim) <= kHeadDimMax && key.heads > 0;
  if (!have_one_table || !stores_key || !has_tokens || !fits) return false;
  if (!norms_heads(heads.query_norm, query) || !norms_heads(heads.key_norm, key)) return false;
  const int tokens = query.tokens, query_columns = query.heads * query.head_dim;
  if (const ScaleRows* scale = heads.scale) {
    const bool scales_query =
        scale->x == query.x && scale->tokens == tokens && scale->columns == query_columns;
    if (!scales_query) return false;
  }
  const auto& biases = heads.biases;
  if (biases[0] == nullptr) return true;
  return adds_to(*biases[0], query.x, tokens, query_columns) &&
         adds_to(*biases[1], key.x, tokens, store.keys_stride) &&
         adds_to(*biases[2], store.values, tokens, store.values_stride);
}

Heads read_heads(std::span<const Operation> operations) {
  Reader reader(operations);
  Heads heads;
  for (size_t i = 0; i < heads.biases.size(); ++i) {
    heads.biases[i] = reader.take<AddBias>();
    if (heads.biases[i] == nullptr && i > 0 && heads.biases[0] != nullptr) return {};
    if (heads.biases[i] == nullptr) break;
  }
  heads.query_norm = reader.take<RmsNorm>();
  heads.query = reader.take<Rope>();
  if (heads.query == nullptr) return {};
  heads.key_norm = reader.take<RmsNorm>();
  heads.key = reader.take<Rope>();
  if (heads.key == nullptr) return {};
  heads.scale = reader.take<ScaleRows>();
  heads.store = reader.take<StoreKv>();
  if (heads.store == nullptr || !are_alike(heads)) return {};
  heads.count = reader.taken();
  return heads;
}

}  // namespace

size_t Planner::plan_heads(std::span<const Operation> operations) {
  const Heads heads = read_heads(operations);
  if (heads.count == 0) return 0;
  const Rope &query = *heads.query, &key = *heads.key;
  const StoreKv& store = *heads.store;
  const auto tokens = static_cast<size_t>(query.tokens);
  const auto head_dim = static_cast<size_t>(key.head_dim);
  const auto query_heads = static_cast<size_t>(query.heads);
  const auto kv_heads = static_cast<size_t>(key.heads);
  const auto bias_of = [&](size_t i) {
    const AddBias* bias = heads.biases[i];
    if (bias == nullptr) return MemoryRange{};
    return memory_.place(bias->bias, static_cast<size_t>(bias->columns));
  };
  const auto weight_of = [&](const RmsNorm* norm) {
    return norm == nullptr ? MemoryRange{} : memory_.place(norm->weight, head_dim);
  };
  const MemoryRange queries = memory_.place(query.x, tokens * query_heads * head_dim);
  const MemoryRange keys = memory_.place(key.x, tokens * kv_heads * head_dim);
  const MemoryRange values =
      rows_at(store.values, 0, tokens, static_cast<size_t>(store.values_stride));
  const MemoryRange table =
      memory_.place(query.table, tokens * 2 * static_cast<size_t>(query.half));
  const MemoryRange page = memory_.place(store.page, tokens);
  const MemoryRange slot = memory_.place(store.slot, tokens);
  const MemoryRange factors =
      heads.scale == nullptr ? MemoryRange{} : memory_.place(heads.scale->factors, tokens);
  emit({Kernel::kHeads, {static_cast<uint32_t>(store.pages.kind)}}, query_heads + kv_heads, tokens,
       HeadsParams{.pages = pages_info(store.pages),
                   .query = queries.begin,
                   .key = keys.begin,
                   .value = values.begin,
                   .query_bias = bias_of(0).begin,
                   .key_bias = bias_of(1).begin,
                   .value_bias = bias_of(2).begin,
                   .query_norm = weight_of(heads.query_norm).begin,
                   .key_norm = weight_of(heads.key_norm).begin,
                   .factors = factors.begin,
                   .table = table.begin,
                   .page = page.begin,
                   .slot = slot.begin,
                   .heads = static_cast<uint32_t>(query.heads),
                   .head_dim = static_cast<uint32_t>(head_dim),
                   .half_dims = static_cast<uint32_t>(query.half),
                   .query_epsilon = heads.query_norm == nullptr ? 0 : heads.query_norm->epsilon,
                   .key_epsilon = heads.key_norm == nullptr ? 0 : heads.key_norm->epsilon},
       {queries, keys, values, table, page, slot, factors},
       {queries, keys, values, state_of(store.pages)});
  return heads.count;
}

// The rotation of the queries, then norm, rotation and store of the latent, which is the one head
// of keys and values.
std::optional<Planner::LatentWork> Planner::read_latent(
    std::span<const Operation> operations) const {
  Reader reader(operations);
  const auto* query = reader.take<RotatePairs>();
  const auto* norm = query == nullptr ? nullptr : reader.take<RmsNorm>();
  const auto* end = norm == nullptr ? nullptr : reader.take<RotatePairs>();
  const auto* store = end == nullptr ? nullptr : reader.take<StoreKv>();
  if (store == nullptr || query->tokens == 0 || query->heads == 0) return std::nullopt;
  const LayerPages& pages = store->pages;
  const bool is_latent =
      norm->x == norm->y && norm->x == end->x && end->x == end->y && store->keys == norm->x &&
      store->values == norm->x && pages.kv_heads == 1 && norm->stride == pages.head_dim &&
      norm->weights == 1 && end->heads == 1 && end->x_stride == pages.head_dim &&
      end->y_stride == pages.head_dim && end->x_offset == norm->columns &&
      end->y_offset == norm->columns && norm->columns + end->dims == pages.head_dim &&
      store->keys_stride == pages.head_dim && store->values_stride == pages.head_dim &&
      query->table == end->table && query->dims == end->dims && query->dims > 0;
  const bool has_tokens = norm->tokens == query->tokens && end->tokens == query->tokens &&
                          store->tokens == query->tokens;
  const bool fits = static_cast<uint32_t>(pages.head_dim) <= kHeadDimMax;
  if (!is_latent || !has_tokens || !fits) return std::nullopt;
  const auto tokens = static_cast<size_t>(query->tokens);
  const size_t rows = tokens * static_cast<size_t>(query->heads);
  const auto half = static_cast<size_t>(query->dims / 2);
  const MemoryRange x = memory_.place(query->x, rows * static_cast<size_t>(query->x_stride));
  const MemoryRange y = memory_.place(query->y, rows * static_cast<size_t>(query->y_stride));
  const MemoryRange latent = memory_.place(norm->x, tokens * static_cast<size_t>(pages.head_dim));
  const MemoryRange weight = memory_.place(norm->weight, static_cast<size_t>(norm->columns));
  const MemoryRange table = memory_.place(query->table, tokens * 2 * half);
  const MemoryRange page = memory_.place(store->page, tokens);
  const MemoryRange slot = memory_.place(store->slot, tokens);
  const LatentParams params{.pages = pages_info(pages),
                            .query = x.begin,
                            .absorbed = y.begin,
                            .latent = latent.begin,
                            .weight = weight.begin,
                            .table = table.begin,
                            .page = page.begin,
                            .slot = slot.begin,
                            .heads = static_cast<uint32_t>(query->heads),
                            .x_stride = static_cast<uint32_t>(query->x_stride),
                            .x_offset = static_cast<uint32_t>(query->x_offset),
                            .y_stride = static_cast<uint32_t>(query->y_stride),
                            .y_offset = static_cast<uint32_t>(query->y_offset),
                            .half_dims = static_cast<uint32_t>(half),
                            .columns = static_cast<uint32_t>(norm->columns),
                            .epsilon = norm->epsilon};
  return LatentWork{.params = params,
                    .kind = static_cast<uint32_t>(pages.kind),
                    .tokens = tokens,
                    .queries = x,
                    .absorbed = y,
                    .latent = latent,
                    .others = {weight, table, page, slot},
                    .state = state_of(pages),
                    .taken = reader.taken()};
}

size_t Planner::plan_latent(std::span<const Operation> operations) {
  const std::optional<LatentWork> work = read_latent(operations);
  if (!work) return 0;
  const auto& [weight, table, page, slot] = work->others;
  emit({Kernel::kLatent, {work->kind}}, size_t{work->params.heads} + 1, work->tokens, work->params,
       {work->queries, work->absorbed, work->latent, weight, table, page, slot},
       {work->absorbed, work->latent, work->state});
  return work->taken;
}

// The product that absorbs the queries, and the same.
size_t Planner::plan_absorb(std::span<const Operation> operations) {
  Reader reader(operations);
  const auto* product = reader.take<HeadMatmul>();
  if (product == nullptr || product->matrices->empty()) return 0;
  const std::optional<LatentWork> work = read_latent(operations.subspan(1));
  if (!work || static_cast<size_t>(product->tokens) != work->tokens) return 0;
  const PlanMatrix& first = memory_.matrix(product->matrices->front());
  const size_t words = product->matrices->size() * first.prepared_words();
  // The rotated ends go next to the results, and nothing that the product reads changes.
  const bool is_one =
      product->matrices->size() == work->params.heads &&
      round_of(work->tokens, words) == work->tokens &&
      memory_.place(product->output, 1).begin == work->absorbed.begin &&
      static_cast<uint32_t>(product->output_stride) == work->params.y_stride &&
      static_cast<uint32_t>(first.rows) <= work->params.y_offset && first.subtrees == 1 &&
      memory_.place(product->input, 1).begin == work->queries.begin &&
      !work->queries.overlaps(work->absorbed) && !work->queries.overlaps(work->latent);
  if (!is_one) return 0;
  plan_head_products(*product, &*work);
  return 1 + work->taken;
}

// `variant`: of the product. The rest takes further workgroups of the same dispatch.
void Planner::emit_absorb(const KernelVariant& variant, const MatmulParams& product,
                          const LatentWork& work, size_t weight_bytes, const MemoryRange& input,
                          const MemoryRange& output) {
  const size_t y = groups_of_items(variant, product);
  const size_t others = groups_of((size_t{work.params.heads} + 1) * work.tokens, y);
  KernelVariant absorb{Kernel::kAbsorb, variant.constants};
  absorb.constants[5] = work.kind;
  const auto& [weight, table, page, slot] = work.others;
  emit(absorb, product.products[0].tile_end + others, y,
       AbsorbParams{.matmul = product, .latent = work.params},
       {input, work.queries, work.latent, weight, table, page, slot},
       {output, work.latent, work.state});
  dispatches_.back().bytes += weight_bytes;
}

// Add, AddBias and RmsNorm of one sum: after an exchange whose product has a bias.
size_t Planner::plan_biased_norm(std::span<const Operation> operations) {
  Reader reader(operations);
  const Add* add = reader.take<Add>();
  const AddBias* bias = add == nullptr ? nullptr : reader.take<AddBias>();
  const RmsNorm* norm = bias == nullptr ? nullptr : reader.take<RmsNorm>();
  if (norm == nullptr || norm->tokens == 0) return 0;
  const auto tokens = static_cast<size_t>(norm->tokens);
  const auto columns = static_cast<size_t>(norm->columns);
  const bool is_one_sum = add->sum == bias->x && add->sum == norm->x &&
                          add->count == tokens * columns && bias->columns == norm->columns &&
                          bias->tokens == norm->tokens && norm->weights == 1 &&
                          stride_or(norm->stride, columns) == columns;
  if (!is_one_sum) return 0;
  after_ = operations.subspan(reader.taken());
  plan_sum_norm({.x = add->x,
                 .sum = add->sum,
                 .weight = norm->weight,
                 .tokens = norm->tokens,
                 .columns = norm->columns,
                 .epsilon = norm->epsilon,
                 .y = norm->y},
                memory_.place(bias->bias, columns));
  return reader.taken();
}

// AddBias and Route of the same scores.
size_t Planner::plan_biased_route(std::span<const Operation> operations) {
  Reader reader(operations);
  const AddBias* bias = reader.take<AddBias>();
  const Route* route = bias == nullptr ? nullptr : reader.take<Route>();
  const bool are_scores = route != nullptr && bias->x == route->scores &&
                          bias->tokens == route->tokens && bias->columns == route->experts;
  if (!are_scores || route->tokens == 0) return 0;
  plan_route(*route, memory_.place(bias->bias, static_cast<size_t>(bias->columns)));
  return reader.taken();
}

}  // namespace lockstep::gpu
