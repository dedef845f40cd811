#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/check.h"
#include "base/hex.h"
#include "base/log.h"
#include "device/device_kinds.h"
#include "engine/run/draft_model.h"
#include "engine/run/model_engine.h"
#include "engine/run/model_identity.h"
#include "model/load/model_summary.h"
#include "model/load/sequence_state.h"
#include "model/load/shape_model.h"
#include "model/load/stages.h"
#include "model/quantise/quantising.h"

namespace lockstep {
namespace {

// The path of a model's tokenizer; for random weights next to the config.json of their shape.
std::filesystem::path tokenizer_place(const std::filesystem::path& model) {
  const auto shape = parse_shape_model(model.string());
  if (!shape.ok()) return model;
  const std::filesystem::path place = shape.value().shape;
  return place.extension() == ".json" ? place.parent_path() : place;
}

// Empty: nothing identifies it.
std::string identity_text(const GroupSpec& spec) {
  const auto identity = answer_identity(spec);
  return identity.ok() ? to_hex(identity.value()) : "";
}

}  // namespace

Status ModelEngine::load(const EngineOptions& options) {
  // Converting reads whole matrices, whatever this rank's part of them is.
  const GroupSpec& spec = options.spec;
  measure_links_every_ = options.measure_links_every;
  const auto partial = spec.bits > 0 ? PartialFiles::kRefused : PartialFiles::kAllowed;
  OpenedModel opened = TRY(open_for_drafts(spec.model.string(), spec.draft_layer, spec.draft_model,
                                           partial, pipeline_->place().stages));
  if (spec.ngrams_on_disk) TRY(leave_ngrams_on_disk(opened.config));
  const ModelConfig& config = opened.config;
  if (!opened.draft_problem.empty() && pipeline_->is_leader()) {
    log_info("{}: the draft layer is left out: {}", spec.model.string(), opened.draft_problem);
  }
  if (config.has_vision && pipeline_->is_leader()) {
    log_info("{}: the part for images is left out; only text is supported", spec.model.string());
  }
  const int context = TRY(context_for(config, spec.context));
  limits_ = {.sequences_max = spec.sequences_max,
             .tokens_max = std::max(spec.batch_tokens_max, spec.sequences_max),
             .context = context,
             .vocab_size = config.vocab_size,
             .stages = pipeline_->place().stages,
             .states = config.delta ? states_needed(spec.sequences_max) : 0,
             .has_draft_layer = config.has_draft_layer(),
             .layer_guesses = options.layer_guesses,
             .draft_block = config.guesses_blocks() ? config.draft_block->size : 0};
  limits_.reach = config.reach();
  limits_.window_pages = window_pages_needed({.reach = limits_.reach,
                                              .sequences = limits_.sequences_max,
                                              .tokens_max = limits_.tokens_max,
                                              .pages = pages_needed(limits_)});
  const std::optional<OpenedModel> draft = TRY(open_draft_model(spec, opened));
  std::shared_ptr<const QuantisingSource> quantising;
  if (spec.bits > 0) {
    quantising = quantising_source(
        opened.source, config,
        {.bits = spec.bits, .threads = spec.threads, .first_core = options.first_core});
  }
  TRY(load_model(options, opened, quantising ? quantising : opened.source));
  if (draft) TRY(load_draft_model(options, *draft));
  make_sampler();
  if (config.has_draft_layer() || draft_model_) {
    draft_passes_.emplace(*model_, draft_model_.get(), pipeline_->group(), sampler_.get());
  }
  open_stores(options);
  grammar_maker_ =
      std::make_unique<GrammarMaker>(tokenizer_place(spec.model), [this] { inbox_.wake(); });
  begin_epoch();
  make_report(spec, config, context);
  if (quantising) report_.quantised = quantisation_report(*quantising, config);
  return Ok{};
}

void ModelEngine::make_report(const GroupSpec& spec, const ModelConfig& config, int context) {
  report_ = {.weight_bytes = model_->weights().weight_bytes,
             .read_bytes = model_->weights().read_bytes,
             .token_bytes = model_->weights().token_bytes,
             .state_bytes = model_->state_bytes(),
             .context = context,
             .vocab_size = config.vocab_size,
             .first_layer = report_.first_layer,
             .last_layer = report_.last_layer,
             .device = device_->description()};
  if (draft_model_) {
    report_.weight_bytes += draft_model_->weights().weight_bytes;
    report_.read_bytes += draft_model_->weights().read_bytes;
    report_.state_bytes += draft_model_->state_bytes();
  }
  if (pipeline_->is_leader()) report_.identity = identity_text(spec);
}

// Both models are cut alike, and their states have the same pages.
ModelOptions ModelEngine::model_options(const EngineOptions& options, const ModelConfig& config,
                                        std::shared_ptr<const WeightSource> source) const {
  const StagePlace& place = pipeline_->place();
  const auto first_share = options.spec.shares.begin() + place.world_rank_of(0);
  return {.config = config,
          .source = std::move(source),
          .shares = {first_share, first_share + place.ranks},
          .tokens_max = limits_.tokens_max,
          .pages = pages_needed(limits_),
          .kv = kv_of(options.spec.exact, options.spec.kv),
          .page_list_entries_max = pages_needed(limits_),
          .link = options.spec.link.kind,
          .latent_cut = options.latent_cut,
          .overlap = options.overlap,
          .progress = options.progress};
}

Status ModelEngine::load_model(const EngineOptions& options, const OpenedModel& opened,
                               std::shared_ptr<const WeightSource> source) {
  const ModelConfig& config = opened.config;
  const StagePlace& place = pipeline_->place();
  const std::vector<double> shares = stage_shares(options.spec.shares, place.stages);
  std::vector<Range> layers{{0, config.layers}};
  if (place.stages > 1) {
    layers = TRY(deal_layers(TRY(token_bytes_of(*opened.source, config)), shares));
  }
  const Range own = layers[static_cast<size_t>(place.stage)];
  report_.first_layer = own.begin;
  report_.last_layer = own.end - 1;
  ModelOptions model = model_options(options, config, std::move(source));
  model.layers = own;
  model.states = limits_.states;
  model.window_pages = limits_.window_pages;
  model.between_layers = [this] { return pipeline_->poll(); };
  model_ = TRY(Model::load(model, pipeline_->group(), *device_));
  return Ok{};
}

Result<std::optional<OpenedModel>> ModelEngine::open_draft_model(const GroupSpec& spec,
                                                                 const OpenedModel& model) {
  const bool has_none = spec.draft_model.empty() || model.prefers_draft_files;
  if (has_none || !pipeline_->place().is_first()) return std::optional<OpenedModel>();
  std::optional<OpenedModel> opened = TRY(open_model(spec.draft_model.string()));
  const ModelOfFiles draft{spec.draft_model, opened->config};
  TRY(check_draft_model(draft, limits_.context));
  // Other ranks may lack the tokenizers.
  if (pipeline_->is_leader()) TRY(check_draft_tokens({spec.model, model.config}, draft));
  limits_.draft_vocab_size = opened->config.vocab_size;
  return opened;
}

Status ModelEngine::load_draft_model(const EngineOptions& options, const OpenedModel& opened) {
  ModelOptions draft = model_options(options, opened.config, opened.source);
  if (pipeline_->place().stages > 1) draft.between_layers = [this] { return pipeline_->poll(); };
  draft_model_ = TRY(Model::load(draft, pipeline_->group(), *device_));
  return Ok{};
}

// A broken disk is no reason not to serve.
void ModelEngine::open_stores(const EngineOptions& options) {
  const bool has_part =  // false: the rank has no heads
      model_->page_shape(StatePart::kPage).page_bytes() + stored_state_shape(*model_).page_bytes() >
      0;
  bool has_failed = false;
  if (options.cache_disk_bytes > 0 && has_part) {
    const Status made = make_stores(options);
    has_failed = !made.ok();
    if (has_failed) {
      store_.reset();
      state_store_.reset();
      log_warn("pages of state are not kept on disk: {}", made.error().message);
    }
  }
  // With recurrent layers or window pages, pages are of no use without the states or these, of
  // which rank 0 must have a part.
  const bool needs_states = limits_.states > 0 || limits_.window_pages > 0;
  const bool can_decide = needs_states ? state_store_ != nullptr : store_ != nullptr;
  const bool has_pages =  // false: all layers have a window
      state_bytes_of_pages(model_->config(), KvKind::kF32, 1, 0) > 0;
  if (can_decide) disk_.emplace(store_.get(), state_store_.get(), has_pages);
  if (options.cache_disk_bytes > 0 && pipeline_->is_leader() && !can_decide && !has_failed) {
    log_info("state is not kept on disk: rank 0, which knows what is there, has no part of it");
  }
  mover_.emplace(*model_, PageMover::Stores{store_.get(), state_store_.get()});
}

Status ModelEngine::make_stores(const EngineOptions& options) {
  if (!pipeline_->group().is_exact()) {
    return Error{ErrorCode::kUnsupported,
                 "with sums that are rounded on the wire they depend on how the model is cut"};
  }
  GroupSpec spec = options.spec;
  spec.draft_layer = model_->config().has_draft_layer();
  const auto model = TRY(model_identity(spec));
  const auto open = [&](const PageShape& shape,
                        PageFileKind kind) -> Result<std::unique_ptr<PageStore>> {
    if (shape.page_bytes() == 0) return std::unique_ptr<PageStore>();
    return PageStore::open({.folder = options.cache_folder,
                            .bytes_max = options.cache_disk_bytes,
                            .model = model,
                            .shape = shape,
                            .kind = kind,
                            .on_saved = [this] { inbox_.wake(); }});
  };
  store_ = TRY(open(model_->page_shape(StatePart::kPage), PageFileKind::kPage));
  state_store_ = TRY(open(stored_state_shape(*model_), PageFileKind::kState));
  return Ok{};
}

void ModelEngine::make_sampler() {
  if (!pipeline_->place().is_last()) return;
  std::vector<int> begins;
  for (int rank = 0; rank < pipeline_->place().ranks; ++rank) {
    begins.push_back(model_->cut().vocabulary(rank).begin);
  }
  begins.push_back(model_->config().vocab_size);
  sampler_ = std::make_unique<Sampler>(pipeline_->group(), std::move(begins));
}

Result<std::unique_ptr<Engine>> load_engine(const EngineOptions& options, Group group) {
  const GroupSpec& spec = options.spec;
  const int stages = spec.link.stages;
  LOCKSTEP_CHECK(options.kernels != nullptr && spec.threads > 0);
  TRY(check_kv(spec.exact, spec.kv));
  if (spec.size() != group.size()) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{} shares were given for {} ranks", spec.size(), group.size())};
  }
  if (stages < 1 || group.size() % stages != 0) {
    return Error{
        ErrorCode::kInvalidArgument,
        fmt::format("{} ranks cannot form {} stages of the same size", group.size(), stages)};
  }
  auto device = TRY(open_device({.kind = TRY(device_kind_of(spec.device, group.rank())),
                                 .threads = spec.threads,
                                 .first_core = options.first_core,
                                 .kernels = options.kernels,
                                 .keeps_float_input = spec.exact,
                                 .progress = options.progress}));
  auto engine =
      std::make_unique<ModelEngine>(std::move(group), stages, std::move(device), options.progress);
  TRY(engine->load(options));
  return std::unique_ptr<Engine>(std::move(engine));
}

}  // namespace lockstep
