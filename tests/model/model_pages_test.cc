// Pages of state, window pages, and states of recurrent layers, that are copied from one model's
// memory to another's, with different ranks.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <string>
#include <thread>
#include <vector>

#include "kernels/isa.h"
#include "model/forward/model.h"
#include "model/load/open_model.h"
#include "model/load/sequence_state.h"
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
  int window_pages = 3;
};

struct Blocks {
  PageShape shape;
  std::vector<std::byte> bytes;
};

// A rank's part of the page, of its window page and of the state after it, and the bits with which
// the model continues.
struct Part {
  Blocks page, window, state;
  std::vector<float> logits;
};

constexpr int kStates = 3;

// Window pages have other numbers than their pages.
int32_t window_of(int32_t page) {
  constexpr std::array<int32_t, 4> kWindows{1, 2, 1, 0};
  return kWindows[static_cast<size_t>(page)];
}

// `states`: the one that the first token continues, and the one that the last token leaves.
Batch batch_of(int begin, int count, int32_t page, int32_t next, std::array<int32_t, 2> states) {
  Batch batch;
  for (int position = begin; position < begin + count; ++position) {
    batch.tokens.push_back(3 + position * 5 % 90);
    batch.positions.push_back(position);
    batch.list_offsets.push_back(0);
    batch.window_offsets.push_back(0);
    batch.states_from.push_back(position == begin ? states[0] : states[1]);
    batch.states_to.push_back(states[1]);
  }
  batch.page_lists = {page, next};
  batch.window_lists = {window_of(page), window_of(next)};
  batch.outputs = {count - 1};
  return batch;
}

std::span<const std::byte> block_of(const Blocks& part, int layer, int head) {
  const PageShape& shape = part.shape;
  const int index = (layer - shape.layer_begin) * shape.heads() + head - shape.head_begin;
  return std::span(part.bytes)
      .subspan(static_cast<size_t>(index) * shape.block_bytes, shape.block_bytes);
}

// The same blocks, from any of `ranks` that has them.
std::vector<std::byte> gathered(const PageShape& wanted, const std::vector<Part>& ranks,
                                Blocks Part::*kind) {
  std::vector<std::byte> bytes;
  for (int layer = wanted.layer_begin; layer < wanted.layer_end; ++layer) {
    for (int head = wanted.head_begin; head < wanted.head_end; ++head) {
      const auto has = [&](const Part& part) {
        const PageShape& shape = (part.*kind).shape;
        return shape.head_begin <= head && head < shape.head_end && shape.layer_begin <= layer &&
               layer < shape.layer_end;
      };
      const auto found = std::find_if(ranks.begin(), ranks.end(), has);
      REQUIRE(found != ranks.end());
      const auto block = block_of((*found).*kind, layer, head);
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
                                      .window_pages = of.window_pages,
                                      .states = kStates,
                                      .kv = of.kv,
                                      .page_list_entries_max = 2,
                                      .latent_cut = of.latent_cut},
                                     group, *device));
  const bool has_states = model->config().delta.has_value();
  const bool has_windows = model->limits().window_pages > 0;
  const auto forward = [&](Batch batch) {
    if (!has_states) batch.states_from = batch.states_to = {};
    if (!has_windows) batch.window_lists = batch.window_offsets = {};
    return model->forward(batch);
  };
  const int32_t page = from.empty() ? 1 : 3, state = from.empty() ? 0 : 2;
  if (from.empty()) {
    TRY(forward(batch_of(0, kTokens, page, 0, {-1, state})));
  } else {
    model->write_page(StatePart::kPage, page,
                      gathered(model->page_shape(StatePart::kPage), from, &Part::page));
    if (has_windows) {
      model->write_page(StatePart::kWindow, window_of(page),
                        gathered(model->page_shape(StatePart::kWindow), from, &Part::window));
    }
    if (has_states) {
      model->write_state(state, gathered(model->recurrent_shape(), from, &Part::state));
    }
  }
  const ModelOutputs outputs = TRY(forward(batch_of(kTokens, 3, page, 2, {state, 1})));
  Part part{.page = {model->page_shape(StatePart::kPage), {}},
            .window = {model->page_shape(StatePart::kWindow), {}},
            .state = {model->recurrent_shape(), {}}};
  part.logits.assign(outputs.logits.begin(), outputs.logits.end());
  part.page.bytes.resize(part.page.shape.page_bytes());
  TRY(model->read_page(StatePart::kPage, page, part.page.bytes));
  part.window.bytes.resize(part.window.shape.page_bytes());
  if (has_windows) TRY(model->read_page(StatePart::kWindow, window_of(page), part.window.bytes));
  part.state.bytes.resize(part.state.shape.page_bytes());
  if (has_states) TRY(model->read_state(state, part.state.bytes));
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

void check_same_blocks(const std::vector<Part>& ranks, const Part& alone) {
  for (Blocks Part::*kind : {&Part::page, &Part::window, &Part::state}) {
    CHECK(gathered((alone.*kind).shape, ranks, kind) == (alone.*kind).bytes);
  }
}

// Computes a page on one rank and on several, and continues from copies both ways.
void check_copies(const std::string& model, KvKind kv) {
  const Case whole{.model = model, .kv = kv};
  const std::vector<Part> alone = run(whole);
  const std::vector<Part> joined = run({.model = model, .kv = kv, .window_pages = 0});
  CHECK(same_bits(logits_of(joined), logits_of(alone)));
  CHECK(joined[0].window.bytes.empty());
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
    check_same_blocks(computed, alone[0]);
    const std::vector<Part> loaded = run(of, alone);
    CHECK(same_bits(logits_of(loaded), logits_of(alone)));
    check_same_blocks(loaded, alone[0]);
    CHECK(same_bits(logits_of(run(whole, computed)), logits_of(alone)));
  }
}

}  // namespace

TEST_CASE("a page copied from one model's ranks can be used by another, whatever its ranks") {
  const std::string golden = "/tests/data/golden/";
  for (const std::string& model :
       {std::string("/models/stories260K"), golden + "gptoss-mxfp4", golden + "deepseekv3-bf16",
        golden + "kimik2-q8-g32", golden + "gemma4-dense-bf16", golden + "gemma4-e-bf16",
        golden + "deepseekv32-bf16", golden + "glmdsa-shared-bf16", golden + "qwen3next-bf16",
        golden + "qwen35-q4-g64", golden + "kimilinear-bf16", golden + "glm5next-bf16",
        golden + "deepseekv4-bf16", golden + "qwen4exp-bf16"}) {
    CAPTURE(model);
    for (KvKind kv : {KvKind::kF32, KvKind::kBF16, KvKind::kF16, KvKind::kQ8}) {
      CAPTURE(kv_kind_name(kv));
      check_copies(model, kv);
    }
  }
}

namespace {

// The logits after each page of a long text. With `windows` the pages of the text use so many
// window pages in turn.
Result<std::vector<float>> logits_of_text(const std::string& name, int windows) {
  constexpr int kPages = 12;
  const auto opened = TRY(open_model(std::string(LOCKSTEP_SOURCE_DIR) + name));
  auto device = TRY(open_device({.kind = "cpu", .kernels = available_kernels().back()}));
  auto links = TRY(open_local_links({.kind = LinkKind::kShm}, 1));
  Group group({.rank = 0, .links = std::move(links[0]), .kernels = available_kernels().back()});
  const auto model = TRY(Model::load({.config = opened.config,
                                      .source = opened.source,
                                      .shares = {1},
                                      .tokens_max = kTokens,
                                      .pages = kPages,
                                      .window_pages = windows,
                                      .page_list_entries_max = kPages},
                                     group, *device));
  std::vector<float> logits;
  for (int page = 0; page < kPages; ++page) {
    Batch batch;
    const int begin = page * kTokens, first = first_window_page(begin, model->limits().reach);
    for (int position = begin; position < begin + kTokens; ++position) {
      batch.tokens.push_back(3 + position * 5 % 90);
      batch.positions.push_back(position);
      batch.list_offsets.push_back(0);
      if (windows > 0) batch.window_offsets.push_back(-first);
    }
    for (int32_t each = 0; each <= page; ++each) {
      batch.page_lists.push_back(kPages - 1 - each);
      if (windows > 0 && each >= first) batch.window_lists.push_back(each % windows);
    }
    batch.outputs = {kTokens - 1};
    const ModelOutputs outputs = TRY(model->forward(batch));
    logits.insert(logits.end(), outputs.logits.begin(), outputs.logits.end());
  }
  return logits;
}

}  // namespace

TEST_CASE("a long text that uses few window pages in turn has the bits of one with all") {
  for (const char* name :
       {"gptoss-mxfp4", "gemma4-dense-bf16", "gemma4-e-bf16", "deepseekv4-bf16"}) {
    CAPTURE(name);
    const std::string model = std::string("/tests/data/golden/") + name;
    const auto opened = open_model(std::string(LOCKSTEP_SOURCE_DIR) + model);
    REQUIRE(opened.ok());
    const auto all = logits_of_text(model, 0);
    const auto few = logits_of_text(model, window_span(opened.value().config.reach()));
    const auto one = logits_of_text(model, 1);
    REQUIRE(all.ok());
    REQUIRE(few.ok());
    REQUIRE(one.ok());
    CHECK(same_bits(few.value(), all.value()));
    CHECK_FALSE(same_bits(one.value(), all.value()));  // pages are overwritten within reach
  }
}

TEST_CASE("layers with windows have their blocks in window pages, entries stay in pages") {
  const std::string golden = "/tests/data/golden/";
  struct Layers {
    std::string model;
    int pages, windows;
  };
  for (const Layers& of :
       {Layers{golden + "gptoss-mxfp4", 1, 1}, Layers{golden + "deepseekv4-bf16", 3, 5}}) {
    CAPTURE(of.model);
    const Part alone = run({.model = of.model})[0];
    CHECK(alone.page.shape.layers() == of.pages);
    CHECK(alone.window.shape.layers() == of.windows);
  }
}

TEST_CASE("a page has no blocks of recurrent layers, and a state has blocks of these alone") {
  const Case of{.model = "/tests/data/golden/kimilinear-bf16"};  // three of four layers
  const Part alone = run(of)[0];
  CHECK(alone.page.shape.layers() == 1);
  CHECK(alone.state.shape.layers() == 3);
  CHECK(alone.state.shape.heads() == 4);
  // Three past inputs of a head's query, key and value of 16 each, and its matrix.
  CHECK(alone.state.shape.block_bytes == (3 * 3 * 16 + 16 * 16) * sizeof(float));
}
