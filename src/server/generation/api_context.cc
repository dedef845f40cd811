#include "server/generation/api_context.h"

#include <fmt/core.h>

#include <algorithm>
#include <ctime>

#include "base/machine/machine.h"

namespace lockstep {
namespace {

// A model that another node has just loaded: its configuration and tokenizer come to this one. A
// waiting request holds a worker's thread.
constexpr std::chrono::milliseconds kFilesPatience{10'000};

}  // namespace

ApiContext::ApiContext(std::shared_ptr<ModelDirectory> models, ClusterControl* cluster,
                       ApiSettings settings, std::unique_ptr<AccessControl> access)
    : models_(std::move(models)),
      cluster_(cluster),
      settings_(std::move(settings)),
      created_(static_cast<int64_t>(std::time(nullptr))),
      access_(std::move(access)),
      events_(std::make_shared<EventHub>(settings_.silence_max)),
      streams_(std::make_shared<KeptStreams>(settings_.streams)),
      housekeeper_(std::make_shared<Housekeeper>(
          std::max(settings_.silence_max / 4, std::chrono::milliseconds(1)))),
      demo_(settings_.kill_worker ? std::make_unique<DemoPlug>(settings_.kill_worker) : nullptr),
      workers_(RequestWorkers::thread_count(available_core_count())),
      cluster_workers_(cluster ? std::make_unique<RequestWorkers>(RequestWorkers::kThreadsMin)
                               : nullptr) {
  housekeeper_->watch(events_);
  housekeeper_->watch(streams_);
}

RequestWorkers::Clock::duration ApiContext::oldest_busy() const {
  const auto now = RequestWorkers::Clock::now();
  const auto oldest = workers_.oldest_busy(now);
  return cluster_workers_ == nullptr ? oldest
                                     : std::max(oldest, cluster_workers_->oldest_busy(now));
}

ApiResult<std::shared_ptr<ModelService>> ApiContext::find_model(std::string_view name) const {
  auto found = models_->find(name);
  if (found.ok()) return std::move(found.value());
  ApiError error = to_api_error(found.error());
  if (found.error().code == ErrorCode::kNotFound) {
    error.param = "model";
    error.code = "model_not_found";
  } else if (found.error().code == ErrorCode::kInvalidArgument) {
    error.param = "model";
    error.code = "missing_required_parameter";
  }
  return error;
}

ApiResult<std::shared_ptr<ModelService>> ApiContext::find_ready_model(std::string_view name) const {
  models_->await_files(name, kFilesPatience);
  const std::shared_ptr<ModelService> model = TRY(find_model(name));
  const ModelStatus status = model->status();
  // During a restart the service holds a request for a while, and fails it when that takes too
  // long.
  if (status.state == ModelStatus::State::kFailed || status.state == ModelStatus::State::kStopped) {
    return ApiError{
        503,
        fmt::format("the model \"{}\" is {}{}{}", status.name, model_state_name(status.state),
                    status.last_error.empty() ? "" : ": ", status.last_error),
        "", "model_not_ready"};
  }
  if (model->tokenizer() == nullptr) {
    return ApiError{
        400,
        fmt::format("the model \"{}\" has no tokenizer, so it cannot answer in text", status.name),
        "model", "model_has_no_tokenizer"};
  }
  return model;
}

void ApiContext::generate(const std::shared_ptr<ModelService>& model, GenerationPlan plan,
                          const OpenAiFormat& format, ChoiceWriters choices,
                          const GenerationOptions& options, const AnswerTarget& target) {
  OpenAiAnswer answer{.model = model->status().name,
                      .fingerprint = "lockstep-" + settings_.version,
                      .choices = std::move(choices),
                      .is_streamed = options.is_streamed,
                      .extras = options.extras,
                      .ignored = options.ignored,
                      .warnings = options.warnings};
  auto events = target.kept ? target.kept->writer() : make_event_stream(target.reply);
  generate(model, std::move(plan), options,
           make_openai_answer(format, std::move(answer), target.reply, std::move(events)), target);
}

void ApiContext::generate(const std::shared_ptr<ModelService>& model, GenerationPlan plan,
                          const GenerationOptions& options, std::unique_ptr<GenerationSink> sink,
                          const AnswerTarget& target) {
  PlanSize size;
  for (const auto& choice : plan.choices) {
    const auto fits = size.add(1, choice.prompt.size(), choice.echo.size());
    if (!fits.ok()) return sink->on_error(fits.error());
  }
  if (options.extras.receipt) {
    if (plan.choices.size() != 1) {
      return sink->on_error(bad_field("stream_options.include_receipt",
                                      "a receipt is of one answer: ask with one prompt and \"n\": "
                                      "1, or without \"include_receipt\""));
    }
    const ModelStatus status = model->status();
    if (status.identity.empty()) return sink->on_error(no_identity(status));
  }
  plan = complete_plan(std::move(plan), options, *model);
  Generation::Setup setup{housekeeper_, settings_.silence_max, metrics_, settings_.draft_tokens,
                          running_requests_};
  if (target.kept != nullptr) {
    // Weak: the stream's events must not live as long as the generation.
    setup.on_unwanted = [weak = std::weak_ptr(target.kept)](std::function<void()> abandon) {
      if (const auto kept = weak.lock()) kept->on_cancel(std::move(abandon));
    };
  }
  Generation::start(model, std::move(setup), std::move(plan), std::move(sink), target.reply);
}

ApiError ApiContext::no_identity(const ModelStatus& status) {
  return {
      409,
      fmt::format("answers of \"{}\" have no receipts now: it is not loaded yet, its files have "
                  "nothing that identifies them, or its ranks round sums on their way (--wire)",
                  status.name),
      "", "no_identity"};
}

GenerationPlan complete_plan(GenerationPlan plan, const GenerationOptions& options,
                             const ModelService& model) {
  plan.sampling = sampling_of(options, model.sampling_defaults());
  plan.stop = options.stop;
  plan.logit_bias = options.logit_bias;
  plan.dry_breakers = dry_breaker_tokens(options, *model.tokenizer());
  plan.min_tokens = options.min_tokens;
  plan.ignores_end = options.ignores_end;
  plan.top_logprobs = options.top_logprobs;
  plan.makes_receipt = options.extras.receipt;
  return plan;
}

const char* model_state_name(ModelStatus::State state) {
  switch (state) {
    case ModelStatus::State::kLoading:
      return "loading";
    case ModelStatus::State::kReady:
      return "ready";
    case ModelStatus::State::kRestarting:
      return "restarting";
    case ModelStatus::State::kFailed:
      return "failed";
    case ModelStatus::State::kStopped:
      return "stopped";
  }
  return "unknown";
}

ApiResult<Ok> PlanSize::add(size_t choices, size_t prompt_tokens, size_t prompt_echo_bytes) {
  tokens += choices * prompt_tokens;
  echo_bytes += choices * prompt_echo_bytes;
  if (tokens > kPlanTokensMax) {
    return bad_field("n", fmt::format("the prompts times \"n\" have {} tokens, and may have at "
                                      "most {}: ask for fewer choices at once",
                                      tokens, kPlanTokensMax));
  }
  if (echo_bytes <= kPlanEchoBytesMax) return Ok{};
  return bad_field("echo", fmt::format("the echoes of the prompts times \"n\" have {} bytes, and "
                                       "may have at most {}: ask for fewer choices at once",
                                       echo_bytes, kPlanEchoBytesMax));
}

ApiResult<Ok> check_prompt(const std::vector<int32_t>& prompt, const ModelStatus& status,
                           std::string_view param) {
  TRY(check_work());
  if (prompt.empty()) return bad_field(std::string(param), "the prompt has no tokens");
  const size_t context = static_cast<size_t>(std::max(status.context, 0));
  if (context == 0 || prompt.size() < context) return Ok{};
  return ApiError{400,
                  fmt::format("the prompt has {} tokens, but the context of \"{}\" has {} and must "
                              "also hold the answer",
                              prompt.size(), status.name, context),
                  std::string(param), "context_length_exceeded"};
}

}  // namespace lockstep
