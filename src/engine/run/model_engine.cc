#include "engine/run/model_engine.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/check.h"
#include "engine/schedule/step.h"

namespace lockstep {
namespace {

Error nothing_guesses() {
  return {ErrorCode::kCorrupt, "rank 0 wants guesses, and nothing here makes any"};
}

}  // namespace

void ModelEngine::begin_epoch() {
  const ModelConfig& config = model_->config();
  stage_limits_ = {.batch = model_->limits(),
                   .hidden = config.hidden,
                   .passed = config.passed(),
                   .vocab_size = config.vocab_size};
  pipeline_->set_limits({.work_bytes_max = work_bytes_max(stage_limits_),
                         .result_bytes_max = result_bytes_max(stage_limits_),
                         .in_flight_max = steps_in_flight_max(limits_.stages)});
  // Pages of another epoch are forgotten: a rank may have been lost while saving one.
  for (PageStore* store : {store_.get(), state_store_.get()}) {
    if (store) store->begin_epoch();
  }
  failed_saves_ = 0;
  save_again_ = {};
  counted_exchanges_ = pipeline_->group().exchange_count();
  scheduler_ = std::make_unique<Scheduler>(limits_, disk_ ? &*disk_ : nullptr);
  budget_ = std::make_unique<StepBudget>(limits_.sequences_max);
  round_trips_ = std::make_unique<StepBudget>(limits_.sequences_max);
  sent_.clear();
  sent_.reserve(static_cast<size_t>(steps_in_flight_max(limits_.stages)));
  link_turns_.emplace(pipeline_->group(), measure_links_every_, std::chrono::steady_clock::now());
  if (sampler_) sampler_->slots().clear();
  grammars_ = std::make_unique<GrammarCache>(*grammar_maker_);
  if (pipeline_->is_leader()) {
    choice_leader_ = std::make_unique<ChoiceLeader>(*grammars_, config.vocab_size);
  }
  step_.reserve(model_->limits());
  message_.reserve(plain_step_bytes_max(model_->limits()) + (disk_ ? page_orders_bytes_max() : 0));
}

Status ModelEngine::rejoin(Group world) {
  const StagePlace& place = pipeline_->place();
  LOCKSTEP_CHECK(world.rank() == place.world_rank() && world.size() == place.stages * place.ranks);
  TRY(device_->wait());  // for operations queued by an interrupted step
  join(std::move(world));
  begin_epoch();
  inbox_.clear();
  return Ok{};
}

Status ModelEngine::lead(const EventSink& sink) {
  const EventSink events = [&](RequestEvent event) {
    if (event.as<RequestEvent::Ended>()) choice_leader_->forget(event.id);
    sink(std::move(event));
  };
  while (true) {
    const bool has_stop = TRY(take_requests(events));
    TRY(pipeline_->poll());
    TRY(measure_in_turn());
    if (pipeline_->has_message()) {
      TRY(finish_step(events));
    } else if (!has_stop && TRY(begin_step(events))) {
      continue;
    } else if (scheduler_->steps_in_flight() > 0) {
      TRY(pipeline_->wait_for_result([&] { return !has_stop && inbox_.has_contents(); }));
    } else if (has_stop) {
      TRY(save_rest(events));
      return stop_others();
    } else if (!TRY(begin_save(events))) {
      idle();
    }
  }
}

Result<bool> ModelEngine::begin_step(const EventSink& events) {
  const StagePlace& place = pipeline_->place();
  if (scheduler_->steps_in_flight() >= steps_in_flight_max(place.stages)) return false;
  const StepBudget* guesses = place.is_last() ? budget_.get() : round_trips_.get();
  if (!scheduler_->plan(step_, {.prompts = budget_.get(), .guesses = guesses})) return false;
  scheduler_->report_begun(events);
  choice_leader_->attach_slots(step_);
  // Moving pages takes time too.
  TRY(carry_out(step_.pages.empty() ? scheduler_->shape() : StepShape{}, events));
  return true;
}

Status ModelEngine::carry_out(StepShape shape, const EventSink& events) {
  set_progress(Progress::kComputing);
  const auto begin = std::chrono::steady_clock::now();
  TRY(broadcast());
  const StepResult result = TRY(compute({}));
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  budget_->observe(shape, took.count());
  if (pipeline_->place().is_last()) return complete(result, events);
  if (!result.drafted.tokens.empty()) scheduler_->take_guesses(result.drafted.tokens);
  const bool waits = std::any_of(sent_.begin(), sent_.end(),
                                 [](const SentStep& one) { return one.shape.prompt_tokens > 0; });
  sent_.push_back({shape, begin, waits});
  return Ok{};
}

Status ModelEngine::finish_step(const EventSink& events) {
  pipeline_->take(incoming_);
  if (scheduler_->steps_in_flight() == 0) {
    return Error{ErrorCode::kCorrupt, "the last stage sent choices that were not requested"};
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - sent_.front().begin;
  if (!sent_.front().waits) round_trips_->observe(sent_.front().shape, took.count());
  sent_.erase(sent_.begin());
  return complete(TRY(decode_result(incoming_, stage_limits_, choices_)), events);
}

Status ModelEngine::stop_others() {
  step_.clear();
  step_.is_stop = true;
  TRY(broadcast());
  return stop_here();
}

Status ModelEngine::stop_here() {
  TRY(pass_on_as_it_is());
  TRY(pipeline_->flush());
  flush_at_stop();
  return Ok{};
}

Status ModelEngine::pass_on_as_it_is() {
  if (pipeline_->place().is_last()) return Ok{};
  encode_work(step_, {}, outgoing_);
  return pipeline_->send(outgoing_);
}

Status ModelEngine::measure_in_turn() {
  const auto now = std::chrono::steady_clock::now();
  const std::optional<RankPair> pair = link_turns_->take(now);
  if (!pair) return Ok{};
  const LinkMeters::Pause pause(pipeline_->group().meters());
  step_.clear();
  step_.measured = pair;
  TRY(broadcast());
  return measure();
}

// The next stages begin before this one measures.
Status ModelEngine::measure() {
  const LinkMeters::Pause pause(pipeline_->group().meters());
  TRY(pass_on_as_it_is());
  return pipeline_->group().measure_again(*step_.measured);
}

Status ModelEngine::follow() {
  while (true) {
    const StageWork work = TRY(receive());
    if (step_.is_stop) return stop_here();
    if (step_.measured) {
      TRY(measure());
    } else {
      TRY(compute(work));
    }
  }
}

// The first stage's ranks get the step from rank 0, the others with the previous stage's work.
Result<StageWork> ModelEngine::receive() {
  if (!pipeline_->place().is_first()) {
    TRY(pipeline_->wait_for_work());
    pipeline_->take(incoming_);
    return decode_work(incoming_, stage_limits_, step_);
  }
  TRY(pipeline_->flush());  // messages do not move while the group waits
  set_progress(Progress::kIdle);
  TRY(pipeline_->group().wait_for(0));
  set_progress(Progress::kComputing);
  TRY(pipeline_->group().broadcast(0, message_, step_bytes_max(model_->limits())));
  TRY(decode_step(message_, model_->limits(), step_));
  return StageWork{};
}

Status ModelEngine::broadcast() {
  encode_step(step_, message_);
  return pipeline_->group().broadcast(0, message_, step_bytes_max(model_->limits()));
}

Result<StepResult> ModelEngine::compute(const StageWork& work) {
  StepResult result;
  if (!step_.pages.empty()) result.pages = TRY(move_pages(work.pages));
  if (!step_.drafts.empty()) {
    result.drafted = TRY(make_drafts());
    step_.drafts.clear();  // later stages have nothing to do with them
  }
  const bool has_tokens = step_.batch.token_count() > 0;
  ModelOutputs outputs{};
  if (has_tokens) outputs = TRY(model_->forward(step_.batch, work.hidden));
  const StagePlace& place = pipeline_->place();
  if (!place.is_last()) {
    encode_work(step_, {outputs.passed_on, result.pages.value_or(PageOutcome{})}, outgoing_);
    TRY(pipeline_->send(outgoing_));
    return result;
  }
  if (!step_.orders.empty()) TRY(apply_orders(step_.orders));
  if (has_tokens) result.choices = TRY(sampler_->choose(outputs.logits, step_.requests));
  result.hidden = outputs.hidden;
  if (!step_.next_guesses.empty()) TRY(guess_next(result));
  if (place.is_first() || place.rank != 0) return result;
  encode_result(result, outgoing_);
  TRY(pipeline_->send(outgoing_));
  return StepResult{};
}

Result<DraftOutcome> ModelEngine::make_drafts() {
  if (!draft_passes_) return nothing_guesses();
  return draft_passes_->run(step_);
}

Status ModelEngine::guess_next(StepResult& result) {
  if (!draft_passes_ || model_->config().guesses_blocks()) return nothing_guesses();
  hidden_.assign(result.hidden.begin(), result.hidden.end());
  result.hidden = hidden_;
  result.drafted.next_guesses = TRY(draft_passes_->guess_next(step_, result.choices));
  return Ok{};
}

void ModelEngine::count_drafts() {
  const DraftCounts counts = scheduler_->take_draft_counts();
  draft_steps_ += counts.steps;
  draft_guesses_ += counts.guesses;
  draft_right_ += counts.right;
  const uint64_t exchanges = pipeline_->group().exchange_count();
  exchanges_ += exchanges - counted_exchanges_;
  counted_exchanges_ = exchanges;
}

Status ModelEngine::apply_orders(ChoiceOrders& orders) {
  for (const int32_t slot : orders.released) sampler_->slots().release(slot);
  for (GrammarOrder& order : orders.grammars) {
    if (pipeline_->is_leader()) break;  // the rank that assigns the numbers has the grammars
    if (order.constraint.empty()) {
      grammars_->forget(order.grammar);
    } else {
      grammars_->set(order.grammar, std::move(order.constraint), std::move(order.end_tokens));
    }
  }
  for (SlotOrder& order : orders.slots) {
    std::unique_ptr<TokenRules> rules;
    if (order.grammar >= 0) rules = TRY(grammars_->rules(order.grammar));
    sampler_->slots().set(order.slot, std::move(order.setup), std::move(rules));
  }
  return Ok{};
}

Result<bool> ModelEngine::take_requests(const EventSink& events) {
  Inbox::Contents contents = inbox_.take();
  if (contents.leave) return Error{ErrorCode::kCancelled, "the epoch is over"};
  for (Inbox::Submission& submission : contents.submitted) {
    Result<GenerateRequest> request = submission.make();
    if (!request.ok()) {
      events({submission.id, RequestEvent::Ended{request.error()}});
      continue;
    }
    auto ready = choice_leader_->submit(submission.id, std::move(request.value()));
    if (ready) schedule(std::move(*ready), events);
  }
  if (choice_leader_->is_waiting()) {
    for (auto& ready : choice_leader_->take_ready()) schedule(std::move(ready), events);
  }
  for (uint64_t id : contents.cancelled) {
    if (choice_leader_->cancel(id) || scheduler_->cancel(id)) {
      events({id, RequestEvent::Ended{Error{ErrorCode::kCancelled, "the request was cancelled"}}});
    }
  }
  return contents.stop;
}

void ModelEngine::schedule(ChoiceLeader::ReadyRequest ready, const EventSink& events) {
  Status status = std::move(ready.status);
  if (status.ok()) status = scheduler_->submit(ready.id, std::move(ready.request));
  if (!status.ok()) events({ready.id, RequestEvent::Ended{status.error()}});
}

}  // namespace lockstep
