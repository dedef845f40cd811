// Pages of state that are copied from one model's memory to another's, with different ranks.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include "kernels/isa.h"
#include "model/forward/model.h"
#include "model/load/open_model.h"
#include "transport/form/local_links.h"

using namespace lockstep;

namespace {

constexpr int kTokens = 64;

struct Case {
  std::string model;
  std::vector<double> shares{1};
  std::string device = "cpu";
  LatentCut latent_cut = LatentCut::kAuto;
  KvKind kv = kKvDefault;
};

// A rank's part of the page, and the bits with which the model continues after it.
struct Part {
  PageShape shape;
  std::vector<std::byte> bytes;
  std::vector<float> logits;
};

Batch batch_of(int begin, int count, int32_t page, int32_t next) {
  Batch batch;
  for (int position = begin; position < begin + count; ++position) {
    batch.tokens.push_back(3 + position * 5 % 90);
    batch.positions.push_back(position);
    batch.list_offsets.push_back(0);
  }
  batch.page_lists = {page, next};
  batch.outputs = {count - 1};
  return batch;
}

std::span<const std::byte> block_of(const Part& part, int layer, int head) {
  const PageShape& shape = part.shape;
  const int index = (layer - shape.layer_begin) * shape.heads() + head - shape.head_begin;
  return std::span(part.bytes)
      .subspan(static_cast<size_t>(index) * shape.block_bytes, shape.block_bytes);
}

// The same blocks, from any of `ranks` that has them.
std::vector<std::byte> gathered(const PageShape& wanted, const std::vector<Part>& ranks) {
  std::vector<std::byte> bytes;
  for (int layer = wanted.layer_begin; layer < wanted.layer_end; ++layer) {
    for (int head = wanted.head_begin; head < wanted.head_end; ++head) {
      const auto has = [&](const Part& part) {
        return part.shape.head_begin <= head && head < part.shape.head_end;
      };
      const auto found = std::find_if(ranks.begin(), ranks.end(), has);
      REQUIRE(found != ranks.end());
      const auto block = block_of(*found, layer, head);
      bytes.insert(bytes.end(), block.begin(), block.end());
    }
  }
  return bytes;
}

// Computes the page, or copies it from `from` if given, and continues with three tokens.
Result<Part> run_rank(const Case& of, Group group, const std::vector<Part>& from) {
  const auto opened = TRY(open_model(std::string(LOCKSTEP_SOURCE_DIR) + of.model));
  auto device = TRY(open_device({.kind = of.device, .kernels = available_kernels().back()}));
  const auto model = TRY(Model::load({.config = opened.config,
                                      .source = opened.source,
                                      .shares = of.shares,
                                      .tokens_max = kTokens,
                                      .pages = 4,
                                      .kv = of.kv,
                                      .page_list_entries_max = 2,
                                      .latent_cut = of.latent_cut},
                                     group, *device));
  const int32_t page = from.empty() ? 1 : 3;
  if (from.empty()) {
    TRY(model->forward(batch_of(0, kTokens, page, 0)));
  } else {
    model->write_page(page, gathered(model->page_shape(), from));
  }
  const ModelOutputs outputs = TRY(model->forward(batch_of(kTokens, 3, page, 2)));
  Part part{.shape = model->page_shape(), .bytes = {}, .logits = {}};
  part.logits.assign(outputs.logits.begin(), outputs.logits.end());
  part.bytes.resize(part.shape.page_bytes());
  TRY(model->read_page(page, part.bytes));
  return part;
}

std::vector<Part> run(const Case& of, const std::vector<Part>& from = {}) {
  const int size = static_cast<int>(of.shares.size());
  auto links = open_local_links({.kind = LinkKind::kShm}, size);
  REQUIRE(links.ok());
  std::vector<Part> parts(of.shares.size());
  std::vector<std::string> errors(of.shares.size());
  std::vector<std::thread> threads;
  for (size_t rank = 0; rank < parts.size(); ++rank) {
    threads.emplace_back([&, rank] {
      Group group({.rank = static_cast<int>(rank),
                   .links = std::move(links.value()[rank]),
                   .kernels = available_kernels().back()});
      auto part = run_rank(of, std::move(group), from);
      if (part.ok()) parts[rank] = std::move(part.value());
      if (!part.ok()) errors[rank] = part.error().message;
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& error : errors) REQUIRE_MESSAGE(error.empty(), error);
  return parts;
}

std::vector<float> logits_of(const std::vector<Part>& parts) {
  std::vector<float> all;
  for (const Part& part : parts) all.insert(all.end(), part.logits.begin(), part.logits.end());
  return all;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return std::ranges::equal(std::as_bytes(std::span(a)), std::as_bytes(std::span(b)));
}

// Computes a page on one rank and on several, and continues from copies both ways.
void check_copies(const std::string& model, KvKind kv) {
  const Case whole{.model = model, .kv = kv};
  const std::vector<Part> alone = run(whole);
  std::vector<Case> cases{{model, {3, 1}},
                          {model, {1, 1, 1, 1}},
                          {model, {1, 2}, "delayed"},
                          {model, {1, 1, 1}, "cpu", LatentCut::kAlways}};
  for (Case& of : cases) {
    of.kv = kv;
    CAPTURE(of.shares.size());
    CAPTURE(of.device);
    const std::vector<Part> computed = run(of);
    REQUIRE(same_bits(logits_of(computed), logits_of(alone)));
    CHECK(gathered(alone[0].shape, computed) == alone[0].bytes);
    const std::vector<Part> loaded = run(of, alone);
    CHECK(same_bits(logits_of(loaded), logits_of(alone)));
    CHECK(gathered(alone[0].shape, loaded) == alone[0].bytes);
    CHECK(same_bits(logits_of(run(whole, computed)), logits_of(alone)));
  }
}

}  // namespace

TEST_CASE("a page copied from one model's ranks can be used by another, whatever its ranks") {
  const std::string golden = "/tests/data/golden/";
  for (const std::string& model :
       {std::string("/models/stories260K"), golden + "gptoss-mxfp4", golden + "deepseekv3-bf16",
        golden + "kimik2-q8-g32", golden + "gemma4-dense-bf16", golden + "gemma4-e-bf16",
        golden + "deepseekv32-bf16", golden + "glmdsa-shared-bf16"}) {
    CAPTURE(model);
    for (KvKind kv : {KvKind::kF32, KvKind::kBF16, KvKind::kF16, KvKind::kQ8}) {
      CAPTURE(kv_kind_name(kv));
      check_copies(model, kv);
    }
  }
}
