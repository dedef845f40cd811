#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/log.h"
#include "engine/engine.h"
#include "engine/inbox.h"
#include "engine/scheduler.h"
#include "engine/step.h"
#include "model/model.h"
#include "model/open_model.h"
#include "model/quantising.h"

namespace lockstep {
namespace {

// What a context is if nobody asks for one: enough to chat, and not the memory of a model's
// longest.
constexpr int kContextDefault = 8192;

class ModelEngine final : public Engine {
 public:
  ModelEngine(Group group, std::unique_ptr<Device> device, Progress* progress)
      : group_(std::move(group)), device_(std::move(device)), progress_(progress) {}

  Status load(const EngineOptions& options);

  const LoadReport& report() const override { return report_; }
  void submit(uint64_t request, GenerateRequest options) override {
    inbox_.submit(request, std::move(options));
  }
  void cancel(uint64_t request) override { inbox_.cancel(request); }
  void stop() override { inbox_.stop(); }
  Status run(EngineEvents& events) override { return group_.rank() == 0 ? lead(events) : follow(); }

 private:
  Status lead(EngineEvents& events);
  Status follow();
  // True if there is a stop among what other threads asked for.
  bool take_requests(EngineEvents& events);
  Status send(const Step& step);
  struct Computed {
    std::span<const Choice> choices;
    std::span<const float> hidden;
  };
  Result<Computed> compute(const Step& step);
  void set_progress(Progress::State state) {
    if (progress_) progress_->set(state);
  }

  Group group_;
  std::unique_ptr<Device> device_;
  Progress* progress_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<Sampler> sampler_;
  std::unique_ptr<Scheduler> scheduler_;
  Inbox inbox_;
  LoadReport report_;
  std::vector<std::byte> message_;
};

Status ModelEngine::load(const EngineOptions& options) {
  const OpenedModel opened = TRY(open_model(options.model.string()));
  const ModelConfig& config = opened.config;
  if (config.has_vision && group_.rank() == 0) {
    log_info("{}: the part that sees images is left out, it answers text only",
             options.model.string());
  }
  const int own_context = std::min(config.positions_max, kContextDefault);
  const int context = options.context > 0 ? options.context : own_context;
  if (context > config.positions_max) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("a context of {} was asked for, the model has {} positions", context,
                             config.positions_max)};
  }
  const SchedulerLimits limits{
      .sequences_max = options.sequences_max,
      .tokens_max = std::max(options.batch_tokens_max, options.sequences_max),
      .context = context,
      .vocab_size = config.vocab_size};
  std::shared_ptr<const WeightSource> source = opened.source;
  std::shared_ptr<const QuantisingSource> quantising;
  if (options.bits > 0) {
    quantising = quantising_source(
        std::move(source), config,
        {.bits = options.bits, .threads = options.threads, .first_core = options.first_core});
    source = quantising;
  }
  model_ = TRY(Model::load({.config = config,
                            .source = std::move(source),
                            .shares = options.shares,
                            .tokens_max = limits.tokens_max,
                            .pages = pages_needed(limits),
                            .page_list_entries_max = pages_needed(limits),
                            .link = options.link,
                            .latent_cut = options.latent_cut},
                           group_, *device_));
  std::vector<int> begins;
  begins.reserve(static_cast<size_t>(group_.size()) + 1);
  for (int rank = 0; rank < group_.size(); ++rank) {
    begins.push_back(model_->cut().vocabulary(rank).begin);
  }
  begins.push_back(config.vocab_size);
  sampler_ = std::make_unique<Sampler>(group_, std::move(begins));
  scheduler_ = std::make_unique<Scheduler>(limits);
  report_ = {.weight_bytes = model_->weights().weight_bytes,
             .read_bytes = model_->weights().read_bytes,
             .token_bytes = model_->weights().token_bytes,
             .state_bytes = model_->state_bytes(),
             .context = context,
             .vocab_size = config.vocab_size};
  if (quantising) report_.quantised = quantisation_report(*quantising, config);
  return Ok{};
}

Status ModelEngine::lead(EngineEvents& events) {
  Step step;
  while (!take_requests(events)) {
    if (!scheduler_->has_work()) {
      set_progress(Progress::kIdle);
      inbox_.wait();
      continue;
    }
    set_progress(Progress::kComputing);
    scheduler_->plan(step);
    TRY(send(step));
    const Computed computed = TRY(compute(step));
    scheduler_->complete(computed.choices, computed.hidden, events);
  }
  step.clear();
  step.is_stop = true;
  return send(step);
}

Status ModelEngine::follow() {
  Step step;
  while (true) {
    set_progress(Progress::kIdle);
    TRY(group_.wait_for(0));
    set_progress(Progress::kComputing);
    TRY(group_.broadcast(0, message_, step_bytes_max(model_->limits())));
    TRY(decode_step(message_, model_->limits(), step));
    if (step.is_stop) return Ok{};
    TRY(compute(step));
  }
}

bool ModelEngine::take_requests(EngineEvents& events) {
  Inbox::Contents contents = inbox_.take();
  for (Inbox::Submission& submission : contents.submitted) {
    const Status accepted = scheduler_->submit(submission.id, std::move(submission.request));
    if (!accepted.ok()) events.on_error(submission.id, accepted.error());
  }
  for (uint64_t id : contents.cancelled) {
    if (scheduler_->cancel(id)) {
      events.on_error(id, {ErrorCode::kCancelled, "the request was cancelled"});
    }
  }
  return contents.stop;
}

Status ModelEngine::send(const Step& step) {
  encode_step(step, message_);
  return group_.broadcast(0, message_, step_bytes_max(model_->limits()));
}

Result<ModelEngine::Computed> ModelEngine::compute(const Step& step) {
  const ModelOutputs outputs = TRY(model_->forward(step.batch));
  return Computed{TRY(sampler_->choose(outputs.logits, step.requests)), outputs.hidden};
}

}  // namespace

Result<std::unique_ptr<Engine>> load_engine(const EngineOptions& options, Group group) {
  LOCKSTEP_CHECK(options.kernels != nullptr);
  auto device = TRY(open_device({.kind = options.device,
                                 .threads = options.threads,
                                 .first_core = options.first_core,
                                 .kernels = options.kernels,
                                 .keeps_float_input = options.exact,
                                 .progress = options.progress}));
  auto engine =
      std::make_unique<ModelEngine>(std::move(group), std::move(device), options.progress);
  TRY(engine->load(options));
  return std::unique_ptr<Engine>(std::move(engine));
}

}  // namespace lockstep
