#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/log.h"
#include "engine/engine.h"
#include "engine/inbox.h"
#include "engine/pipeline.h"
#include "engine/scheduler.h"
#include "engine/stage_messages.h"
#include "engine/step.h"
#include "model/model.h"
#include "model/open_model.h"
#include "model/quantising.h"
#include "model/stages.h"

namespace lockstep {
namespace {

// What a context is if nobody asks for one: enough to chat, and not the memory of a model's
// longest.
constexpr int kContextDefault = 8192;

class ModelEngine final : public Engine {
 public:
  ModelEngine(Group world, int stages, std::unique_ptr<Device> device, Progress* progress)
      : pipeline_(std::move(world), stages), device_(std::move(device)), progress_(progress) {}

  Status load(const EngineOptions& options);

  const LoadReport& report() const override { return report_; }
  void submit(uint64_t request, GenerateRequest options) override {
    inbox_.submit(request, std::move(options));
  }
  void cancel(uint64_t request) override { inbox_.cancel(request); }
  void stop() override { inbox_.stop(); }
  Status run(EngineEvents& events) override {
    return pipeline_.is_leader() ? lead(events) : follow();
  }

 private:
  Status load_model(const EngineOptions& options, const OpenedModel& opened,
                    std::shared_ptr<const WeightSource> source, const SchedulerLimits& limits);
  void prepare_stages(const SchedulerLimits& limits);

  Status lead(EngineEvents& events);
  // True if there is a stop among what other threads asked for.
  bool take_requests(EngineEvents& events);
  // Plans a step and computes this rank's part; false if there is none to plan now.
  Result<bool> begin_step(EngineEvents& events);
  // Completes the oldest step, whose result is there.
  Status finish_step(EngineEvents& events);
  Status stop_others();

  Status follow();
  // The next step, and the hidden state if another stage has begun it.
  Result<std::span<const float>> receive();
  // One stage's part of step_. The result is empty but on the last stage's first rank.
  Result<StepResult> compute(std::span<const float> hidden);
  Status broadcast();
  void set_progress(Progress::State state) {
    if (progress_) progress_->set(state);
  }

  Pipeline pipeline_;
  std::unique_ptr<Device> device_;
  Progress* progress_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<Sampler> sampler_;  // in the last stage
  std::unique_ptr<Scheduler> scheduler_;
  Inbox inbox_;
  LoadReport report_;
  StageLimits stage_limits_;
  Step step_;
  std::vector<std::byte> message_, incoming_, outgoing_;
  std::vector<Choice> choices_;
};

Status ModelEngine::load(const EngineOptions& options) {
  const OpenedModel opened = TRY(open_model(options.model.string()));
  const ModelConfig& config = opened.config;
  if (config.has_vision && pipeline_.is_leader()) {
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
      .vocab_size = config.vocab_size,
      .stages = pipeline_.place().stages};
  std::shared_ptr<const QuantisingSource> quantising;
  if (options.bits > 0) {
    quantising = quantising_source(
        opened.source, config,
        {.bits = options.bits, .threads = options.threads, .first_core = options.first_core});
  }
  TRY(load_model(options, opened, quantising ? quantising : opened.source, limits));
  prepare_stages(limits);
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

Status ModelEngine::load_model(const EngineOptions& options, const OpenedModel& opened,
                               std::shared_ptr<const WeightSource> source,
                               const SchedulerLimits& limits) {
  const ModelConfig& config = opened.config;
  const StagePlace& place = pipeline_.place();
  const std::vector<double> shares = stage_shares(options.shares, place.stages);
  std::vector<Range> layers{{0, config.layers}};
  if (place.stages > 1) {
    layers = TRY(deal_layers(TRY(token_bytes_of(*opened.source, config)), shares));
  }
  const auto first_share = options.shares.begin() + place.world_rank_of(0);
  model_ = TRY(Model::load({.config = config,
                            .source = std::move(source),
                            .shares = {first_share, first_share + place.ranks},
                            .layers = layers[static_cast<size_t>(place.stage)],
                            .tokens_max = limits.tokens_max,
                            .pages = pages_needed(limits),
                            .page_list_entries_max = pages_needed(limits),
                            .link = options.link,
                            .latent_cut = options.latent_cut,
                            .between_layers = [this] { return pipeline_.poll(); }},
                           pipeline_.group(), *device_));
  return Ok{};
}

void ModelEngine::prepare_stages(const SchedulerLimits& limits) {
  const ModelConfig& config = model_->config();
  stage_limits_ = {
      .batch = model_->limits(), .hidden = config.hidden, .vocab_size = config.vocab_size};
  pipeline_.set_limits({.work_bytes_max = work_bytes_max(stage_limits_),
                        .result_bytes_max = result_bytes_max(stage_limits_),
                        .in_flight_max = steps_in_flight_max(limits.stages)});
  if (!pipeline_.place().is_last()) return;
  std::vector<int> begins;
  for (int rank = 0; rank < pipeline_.place().ranks; ++rank) {
    begins.push_back(model_->cut().vocabulary(rank).begin);
  }
  begins.push_back(config.vocab_size);
  sampler_ = std::make_unique<Sampler>(pipeline_.group(), std::move(begins));
}

Status ModelEngine::lead(EngineEvents& events) {
  while (true) {
    const bool has_stop = take_requests(events);
    TRY(pipeline_.poll());
    if (pipeline_.has_message()) {
      TRY(finish_step(events));
    } else if (!has_stop && TRY(begin_step(events))) {
      continue;
    } else if (scheduler_->steps_in_flight() > 0) {
      TRY(pipeline_.wait_for_result([&] { return !has_stop && inbox_.has_contents(); }));
    } else if (has_stop) {
      return stop_others();
    } else {
      set_progress(Progress::kIdle);
      inbox_.wait();
    }
  }
}

Result<bool> ModelEngine::begin_step(EngineEvents& events) {
  const StagePlace& place = pipeline_.place();
  if (scheduler_->steps_in_flight() >= steps_in_flight_max(place.stages)) return false;
  if (!scheduler_->plan(step_)) return false;
  set_progress(Progress::kComputing);
  TRY(broadcast());
  const StepResult result = TRY(compute({}));
  if (place.is_last()) TRY(scheduler_->complete(result.choices, result.hidden, events));
  return true;
}

Status ModelEngine::finish_step(EngineEvents& events) {
  pipeline_.take(incoming_);
  if (scheduler_->steps_in_flight() == 0) {
    return Error{ErrorCode::kCorrupt, "the last stage sent choices that nobody asked for"};
  }
  const StepResult result = TRY(decode_result(incoming_, stage_limits_, choices_));
  return scheduler_->complete(result.choices, result.hidden, events);
}

Status ModelEngine::stop_others() {
  step_.clear();
  step_.is_stop = true;
  TRY(broadcast());
  if (!pipeline_.can_send()) return Ok{};
  encode_work(step_, {}, outgoing_);
  TRY(pipeline_.send(outgoing_));
  return pipeline_.flush();
}

Status ModelEngine::follow() {
  while (true) {
    const std::span<const float> hidden = TRY(receive());
    if (!step_.is_stop) {
      TRY(compute(hidden));
      continue;
    }
    if (pipeline_.place().is_last()) return Ok{};
    encode_work(step_, {}, outgoing_);
    TRY(pipeline_.send(outgoing_));
    return pipeline_.flush();
  }
}

// The first stage's ranks get the step from rank 0, the others' with the work of the stage before.
Result<std::span<const float>> ModelEngine::receive() {
  if (!pipeline_.place().is_first()) {
    TRY(pipeline_.wait_for_work());
    pipeline_.take(incoming_);
    return decode_work(incoming_, stage_limits_, step_);
  }
  TRY(pipeline_.flush());  // nothing moves while the group waits
  set_progress(Progress::kIdle);
  TRY(pipeline_.group().wait_for(0));
  set_progress(Progress::kComputing);
  TRY(pipeline_.group().broadcast(0, message_, step_bytes_max(model_->limits())));
  TRY(decode_step(message_, model_->limits(), step_));
  return std::span<const float>();
}

Status ModelEngine::broadcast() {
  encode_step(step_, message_);
  return pipeline_.group().broadcast(0, message_, step_bytes_max(model_->limits()));
}

Result<StepResult> ModelEngine::compute(std::span<const float> hidden) {
  const ModelOutputs outputs = TRY(model_->forward(step_.batch, hidden));
  const StagePlace& place = pipeline_.place();
  if (!place.is_last()) {
    encode_work(step_, outputs.passed_on, outgoing_);
    TRY(pipeline_.send(outgoing_));
    return StepResult{};
  }
  const StepResult result{TRY(sampler_->choose(outputs.logits, step_.requests)), outputs.hidden};
  if (place.is_first() || place.rank != 0) return result;
  encode_result(result, outgoing_);
  TRY(pipeline_.send(outgoing_));
  return StepResult{};
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

}  // namespace

Result<std::unique_ptr<Engine>> load_engine(const EngineOptions& options, Group group) {
  LOCKSTEP_CHECK(options.kernels != nullptr);
  if (static_cast<int>(options.shares.size()) != group.size()) {
    return Error{ErrorCode::kInvalidArgument, fmt::format("{} shares were given for {} ranks",
                                                          options.shares.size(), group.size())};
  }
  if (options.stages < 1 || group.size() % options.stages != 0) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{} ranks cannot form {} stages of the same size", group.size(),
                             options.stages)};
  }
  auto device = TRY(open_device({.kind = options.device,
                                 .threads = options.threads,
                                 .first_core = options.first_core,
                                 .kernels = options.kernels,
                                 .keeps_float_input = options.exact,
                                 .progress = options.progress}));
  auto engine = std::make_unique<ModelEngine>(std::move(group), options.stages, std::move(device),
                                              options.progress);
  TRY(engine->load(options));
  return std::unique_ptr<Engine>(std::move(engine));
}

}  // namespace lockstep
