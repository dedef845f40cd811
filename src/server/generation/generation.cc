#include "server/generation/generation.h"

#include <algorithm>

#include "node/requests/request_check.h"
#include "server/request/random_id.h"

namespace lockstep {
namespace {

// Whether the choice before has the same prompt, whose pages this one then reuses.
bool shares_prompt(const GenerationPlan& plan, size_t choice) {
  return choice > 0 && plan.choices[choice].prompt == plan.choices[choice - 1].prompt;
}

// Each prompt once, see AnswerClock.
std::vector<int64_t> prompt_sizes(const GenerationPlan& plan) {
  std::vector<int64_t> sizes;
  for (size_t i = 0; i < plan.choices.size(); ++i) {
    const auto size = static_cast<int64_t>(plan.choices[i].prompt.size());
    sizes.push_back(shares_prompt(plan, i) ? 0 : size);
  }
  return sizes;
}

// Tells how the answer is doing and is no part of it: nothing is written unless somebody asks.
bool is_report(const RequestEvent& event) {
  return event.as<RequestEvent::Progress>() || event.as<RequestEvent::Paused>() ||
         event.as<RequestEvent::Resumed>();
}

}  // namespace

GenerateRequest request_of(const GenerationPlan& plan, size_t choice,
                           const std::vector<int32_t>& stop_ids) {
  GenerateRequest request;
  request.prompt = plan.choices[choice].prompt;
  request.max_tokens = plan.max_tokens;
  if (!plan.ignores_end) {
    request.stop_ids = stop_ids;
    request.stop_ids.insert(request.stop_ids.end(), plan.stop_ids.begin(), plan.stop_ids.end());
  }
  request.constraint = plan.constraint;
  request.sampling = plan.sampling;
  request.sampling.seed = plan.choices[choice].seed;
  request.logit_bias = plan.logit_bias;
  request.dry_breakers = plan.dry_breakers;
  request.min_tokens = plan.min_tokens;
  request.top_logprobs = plan.top_logprobs;
  return request;
}

void Generation::start(const std::shared_ptr<ModelService>& service, Setup setup,
                       GenerationPlan plan, std::unique_ptr<GenerationSink> sink,
                       const HttpReply& reply) {
  plan.client = reply.caller();
  plan.client_name = reply.client();
  plan.route = reply.route();
  const auto generation = std::make_shared<Generation>(service, service->status(), std::move(setup),
                                                       std::move(plan), std::move(sink));
  if (const auto& running = generation->setup_.running) {
    generation->entry_ = running->add(generation, random_id("run-"));
  }
  const auto abandon = [generation] { generation->abandon(); };
  if (const auto& on_unwanted = generation->setup_.on_unwanted) {
    on_unwanted(abandon);
  } else {
    reply.on_disconnect(abandon);
  }
  for (size_t choice = 0; choice < generation->plan_.choices.size(); ++choice) {
    if (!generation->submit(*service, choice)) return;
  }
  generation->open();
  if (const auto housekeeper = generation->setup_.housekeeper.lock()) {
    housekeeper->watch(generation);
  }
}

Generation::Generation(const std::shared_ptr<ModelService>& service, const ModelStatus& status,
                       Setup setup, GenerationPlan plan, std::unique_ptr<GenerationSink> sink)
    : service_(service),
      setup_(std::move(setup)),
      plan_(std::move(plan)),
      tokenizer_(service->tokenizer()),
      sink_(std::move(sink)),
      meter_(setup_.metrics, status.name, plan_.choices.size(), Housekeeper::Clock::now()),
      last_event_(began_),
      clock_(prompt_sizes(plan_), began_),
      machines_(machines_of(status)),
      identity_(status.identity) {
  for (size_t i = 0; i < plan_.choices.size(); ++i) {
    choices_.push_back({StreamDecoder(tokenizer_, plan_.strips_leading_space, plan_.printed_tokens),
                        StopMatcher(plan_.stop),
                        std::nullopt,
                        false,
                        {}});
  }
}

// The service may report events before generate() returns, from other threads; no lock is held
// across the call.
bool Generation::submit(ModelService& service, size_t choice) {
  GenerateRequest request = request_of(plan_, choice, service.stop_ids());
  if (plan_.makes_receipt) request_hash_ = request_hash(request, plan_.stop);
  request.client = plan_.client;
  request.draft_tokens = setup_.draft_tokens;
  request.reports_progress = true;
  const auto accepted =
      service.generate(std::move(request), [self = shared_from_this(), choice](RequestEvent event) {
        self->handle({choice, std::move(event)});
      });
  std::lock_guard lock(mutex_);
  if (!accepted.ok()) {
    if (sink_ != nullptr) fail(to_api_error(accepted.error()));
    return false;
  }
  choices_[choice].request = accepted.value();
  if (sink_ == nullptr) cancel_soon({accepted.value()});  // the client disconnected meanwhile
  return sink_ != nullptr;
}

void Generation::open() {
  std::lock_guard lock(mutex_);
  is_open_ = true;
  meter_.accepted(plan_.prompt_tokens);
  for (const ChoiceEvent& event : std::exchange(early_, {})) process(event);
  if (sink_ != nullptr) sink_->on_accept();
}

void Generation::handle(ChoiceEvent event) {
  std::lock_guard lock(mutex_);
  if (is_open_) {
    process(event);
  } else {
    early_.push_back(std::move(event));
  }
}

void Generation::process(const ChoiceEvent& event) {
  if (sink_ == nullptr || choices_[event.choice].has_ended) return;
  if (!is_report(event.event)) last_event_ = Housekeeper::Clock::now();
  std::visit([&](const auto& what) { process(event.choice, what); }, event.event.what);
}

// Each prompt counts once: further choices reuse what the first one computed.
void Generation::process(size_t choice, const RequestEvent::Started& started) {
  clock_.started(choice, started.cached_tokens, last_event_);
  meter_.started(choice);
  if (shares_prompt(plan_, choice)) return;
  cached_tokens_ += started.cached_tokens;
  meter_.cached(started.cached_tokens);
  const auto prompt_tokens = static_cast<int64_t>(plan_.choices[choice].prompt.size());
  meter_.computed(std::max<int64_t>(0, prompt_tokens - started.cached_tokens));
}

void Generation::process(size_t choice, const RequestEvent::Logprobs& logprobs) {
  choices_[choice].logprobs.add(logprobs.logprobs, *tokenizer_);
}

void Generation::process(size_t choice, const RequestEvent::Token& token) {
  begin();
  meter_.token(choice, last_event_);
  clock_.token(last_event_);
  ++completion_tokens_;
  if (plan_.makes_receipt) answer_ids_.push_back(token.token);
  Choice& state = choices_[choice];
  pass_on(choice, state.decoder.push(token.token));
  sink_->on_token(choice);
  if (const auto problem = sink_->problem()) return fail(*problem);
  if (!state.matcher.is_stopped()) return;
  cancel_soon({*state.request});
  end_ = AnswerEnd::kString;
  end_choice(choice, "stop");
}

void Generation::process(size_t choice, const RequestEvent::Ended& ended) {
  const Result<FinishReason>& end = ended.outcome;
  Choice& state = choices_[choice];
  if (!end.ok()) {
    state.has_ended = true;
    return fail(end_error(choice, end.error()));
  }
  begin();
  pass_on(choice, state.decoder.finish());
  emit(choice, state.matcher.finish());
  if (!state.matcher.is_stopped() && plan_.top_logprobs >= 0) {
    sink_->on_logprobs(choice, state.logprobs.take_rest());
  }
  if (end.value() == FinishReason::kStop) end_ = AnswerEnd::kToken;
  const bool is_stop = end.value() == FinishReason::kStop || state.matcher.is_stopped();
  end_choice(choice, is_stop ? "stop" : "length");
}

// A request may be retried if it only waited for room, but not if it is too long.
ApiError Generation::end_error(size_t choice, const Error& error) const {
  ApiError told = to_api_error(error);
  const auto service = service_.lock();
  if (error.code != ErrorCode::kExhausted || service == nullptr) return told;
  if (judge_refusal(*service, plan_.choices[choice].prompt.size(), error) == Refusal::kFinal) {
    told.status = 400;
    told.code = "context_length_exceeded";
  }
  return told;
}

GenerationUsage Generation::usage() const {
  return {.prompt_tokens = plan_.prompt_tokens,
          .cached_tokens = cached_tokens_,
          .completion_tokens = completion_tokens_};
}

void Generation::begin() {
  if (std::exchange(has_begun_, true)) return;
  sink_->on_start(usage());
  for (size_t i = 0; i < plan_.choices.size(); ++i) {
    if (!plan_.choices[i].echo.empty()) sink_->on_text(i, plan_.choices[i].echo);
  }
}

void Generation::pass_on(size_t choice, const std::string& text) {
  choices_[choice].logprobs.decoded(text);
  emit(choice, choices_[choice].matcher.push(text));
}

void Generation::emit(size_t choice, std::string text) {
  if (text.empty()) return;
  if (plan_.top_logprobs >= 0) {
    sink_->on_logprobs(choice, choices_[choice].logprobs.passed_on(text));
  }
  sink_->on_text(choice, std::move(text));
}

void Generation::end_choice(size_t choice, std::string_view reason) {
  choices_[choice].has_ended = true;
  meter_.choice_ended(choice);
  const std::string& stop = choices_[choice].matcher.met();
  if (!stop.empty()) sink_->on_stop_string(choice, stop);
  sink_->on_choice_end(choice, reason);
  const auto has_ended = [](const Choice& other) { return other.has_ended; };
  if (!std::all_of(choices_.begin(), choices_.end(), has_ended)) return;
  meter_.end(RequestOutcome::kEnded, last_event_);
  sink_->on_end(facts());
  sink_.reset();
}

void Generation::fail(const ApiError& error) {
  meter_.end(RequestOutcome::kFailed, Housekeeper::Clock::now());
  sink_->on_error(error);
  sink_.reset();
  cancel_soon(running());
}

void Generation::abandon() {
  std::vector<uint64_t> requests;
  {
    std::lock_guard lock(mutex_);
    if (sink_ == nullptr) return;
    meter_.end(RequestOutcome::kCancelled, Housekeeper::Clock::now());
    sink_.reset();
    requests = running();
  }
  const auto service = service_.lock();
  if (service == nullptr) return;
  for (uint64_t request : requests) service->cancel(request);
}

void Generation::on_tick(Housekeeper::Clock::time_point now) {
  std::lock_guard lock(mutex_);
  if (sink_ == nullptr || now - last_event_ < setup_.silence_max) return;
  last_event_ = now;
  sink_->on_silence();
}

std::vector<uint64_t> Generation::running() const {
  std::vector<uint64_t> requests;
  for (const Choice& choice : choices_) {
    if (choice.request && !choice.has_ended) requests.push_back(*choice.request);
  }
  return requests;
}

// Not immediately: this may run inside an event, and the service may hold a lock while it reports.
void Generation::cancel_soon(std::vector<uint64_t> requests) {
  const auto housekeeper = setup_.housekeeper.lock();
  if (requests.empty() || housekeeper == nullptr) return;
  housekeeper->run_soon([weak = service_, requests = std::move(requests)] {
    const auto service = weak.lock();
    if (service == nullptr) return;
    for (uint64_t request : requests) service->cancel(request);
  });
}

}  // namespace lockstep
