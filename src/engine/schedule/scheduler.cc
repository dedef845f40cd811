#include "engine/schedule/scheduler.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "kernels/kernels.h"

namespace lockstep {
namespace {

// Adds up rows of sum.size() values.
void add_rows(std::span<const float> rows, std::vector<double>& sum) {
  for (size_t i = 0; i < rows.size(); ++i) sum[i % sum.size()] += double{rows[i]};
}

// Not kCorrupt: nothing is wrong with the request.
Error broken_model(std::string_view what, int position) {
  return {
      ErrorCode::kInternal,
      fmt::format("the {} after {} token{} are not numbers (NaN or infinite): the checkpoint or "
                  "its quantisation is broken, download it again or use another",
                  what, position + 1, position == 0 ? "" : "s")};
}

// Not kExhausted either: a retry would not help.
Error lost_grammar(int position) {
  return {ErrorCode::kUnsupported,
          fmt::format("after token {} the request's grammar is too ambiguous, or no token of the "
                      "model's vocabulary can continue it; make it simpler",
                      position + 1)};
}

}  // namespace

int pages_needed(const SchedulerLimits& limits) {
  return limits.sequences_max * pages_for(limits.context);
}

int prompt_tokens_max(const SchedulerLimits& limits) {
  if (limits.stages == 1) return limits.tokens_max;
  return std::min(limits.tokens_max,
                  std::max(kPagePositions, limits.tokens_max / (2 * limits.stages)));
}

int prompt_chunk(int prompt_size, const SchedulerLimits& limits) {
  const int most = prompt_tokens_max(limits);
  if (limits.stages == 1) return most;
  const int chunks = 2 * limits.stages;
  return std::clamp((prompt_size + chunks - 1) / chunks, std::min(kPagePositions, most), most);
}

int steps_in_flight_max(int stages) {
  return stages == 1 ? 1 : stages + 1;
}

Scheduler::Scheduler(const SchedulerLimits& limits, PageDisk* disk)
    : limits_(limits),
      pages_(pages_needed(limits), disk,
             {.states = limits.states,
              .sequences = limits.sequences_max,
              .window_pages = limits.window_pages,
              .reach = limits.reach}) {
  if (limits.has_draft_model()) drafted_in_page_.resize(static_cast<size_t>(pages_needed(limits)));
  running_.reserve(static_cast<size_t>(limits.sequences_max));
  ready_.reserve(static_cast<size_t>(limits.sequences_max));
  const int steps = steps_in_flight_max(limits.stages) + 1;  // one is being planned or completed
  in_flight_.reserve(static_cast<size_t>(steps));
  spare_.resize(static_cast<size_t>(steps));
  for (PlannedStep& step : spare_)
    step.sequences.reserve(static_cast<size_t>(limits.sequences_max));
}

Status Scheduler::submit(uint64_t id, GenerateRequest request) {
  if (request.prompt.empty()) {
    return Error{ErrorCode::kInvalidArgument, "the prompt has no tokens"};
  }
  for (int32_t token : request.prompt) {
    if (token < 0 || token >= limits_.vocab_size) {
      return Error{
          ErrorCode::kInvalidArgument,
          fmt::format("token {} is not in the vocabulary of {} tokens", token, limits_.vocab_size)};
    }
  }
  if (request.draft_logits) TRY(check_draft_logits(request));
  if (request.prompt.size() > static_cast<size_t>(limits_.context)) {
    return Error{ErrorCode::kExhausted,
                 fmt::format("the prompt has {} tokens, the context holds {}",
                             request.prompt.size(), limits_.context)};
  }
  if (request.pooling != Pooling::kNone && request.max_tokens != 0) {
    return Error{ErrorCode::kInvalidArgument, "an embedding is not followed by tokens"};
  }
  if (waiting_.size() >= static_cast<size_t>(limits_.waiting_max)) {
    return Error{ErrorCode::kExhausted,
                 fmt::format("{} requests are already waiting, try again later", waiting_.size())};
  }
  if (request.client != 0) {
    const size_t waiting = waiting_.size_of(request.client);
    if (waiting >= static_cast<size_t>(limits_.client_waiting_max)) {
      return Error{
          ErrorCode::kExhausted,
          fmt::format("{} requests of this client are already waiting, try again later", waiting)};
    }
  }
  auto sequence = std::make_unique<Sequence>();
  sequence->id = id;
  // Its full length, so that its steps allocate nothing.
  const int64_t wanted = static_cast<int64_t>(request.prompt.size()) + request.max_tokens;
  const int most = static_cast<int>(std::min<int64_t>(wanted, int64_t{limits_.context} + 1));
  sequence->tokens.reserve(static_cast<size_t>(most));
  sequence->tokens = request.prompt;
  sequence->pages.reserve(std::min(most + limits_.draft_block, limits_.context + 1));
  sequence->pages.hash(sequence->tokens);
  sequence->pages.prompt = static_cast<int>(sequence->tokens.size());
  if (pages_.has_disk()) sequence->pages.make_keys(sequence->tokens);
  sequence->request = std::move(request);
  const uint64_t client = sequence->request.client;
  const int32_t priority = sequence->request.priority;
  waiting_.push(std::move(sequence), client, priority);
  return Ok{};
}

bool Scheduler::cancel(uint64_t id) {
  const auto has_id = [id](const auto& sequence) {
    return sequence->id == id && !sequence->is_cancelled;
  };
  if (waiting_.erase_if(has_id)) return true;
  const auto running = std::find_if(running_.begin(), running_.end(), has_id);
  if (running == running_.end()) return false;
  if ((*running)->steps_in_flight > 0) {
    (*running)->is_cancelled = true;
  } else {
    remove(**running);
  }
  return true;
}

bool Scheduler::plan(Step& step, const StepBudgets& budgets) {
  step.clear();
  budgets_ = budgets;
  admit();
  take_over_pages();
  PlannedStep planned = take_spare();
  // First: a long prompt must not delay it.
  const int decoding = plan_decoding(step, planned);
  shape_ = {.decoding = static_cast<int>(planned.sequences.size())};
  shape_.guesses = step.batch.token_count() - shape_.decoding;
  shape_.by_layer = std::any_of(planned.sequences.begin(), planned.sequences.end(),
                                [](const Planned& each) { return each.by_layer; });
  int prompt_tokens = prompt_tokens_max(limits_);
  if (budgets_.prompts && decoding > 0) {
    const int beside = budgets_.prompts->prompt_tokens(std::max(1, shape_.decoding));
    prompt_tokens = std::min(prompt_tokens, beside);
  }
  plan_loads(decoding > 0, step, planned);
  plan_prompts(prompt_tokens, step, planned);
  shape_.prompt_tokens = step.batch.token_count() - shape_.decoding - shape_.guesses;
  const bool has_planned = !planned.sequences.empty();
  if (has_planned) {
    if (limits_.guesses_at_end()) {
      plan_next_guesses(step, planned);
    } else if (limits_.has_draft_layer) {
      plan_draft_pass(step, planned);
    }
    if (limits_.has_draft_model()) plan_model_pass(step, planned);
    pass_windows(planned);
    shape_.drafted = step.drafts.pass.batch.token_count();
    shape_.guesses_at_end = std::any_of(step.next_guesses.begin(), step.next_guesses.end(),
                                        [](const NextGuesses& each) { return each.count > 0; });
    ++steps_planned_;
    in_flight_.push_back(std::move(planned));
  } else {
    spare_.push_back(std::move(planned));
  }
  return has_planned;
}

void Scheduler::report_begun(const EventSink& events) {
  if (in_flight_.empty()) return;
  for (const Planned& planned : in_flight_.back().sequences) {
    Sequence& sequence = *planned.sequence;
    if (std::exchange(sequence.is_begun, true) || !sequence.request.reports_progress) continue;
    events({sequence.id, RequestEvent::Progress{sequence.completed, sequence.cached}});
  }
}

Scheduler::PlannedStep Scheduler::take_spare() {
  PlannedStep planned;
  if (spare_.empty()) return planned;
  planned = std::move(spare_.back());
  spare_.pop_back();
  return planned;
}

void Scheduler::admit() {
  while (!waiting_.empty() && static_cast<int>(running_.size()) < limits_.sequences_max) {
    running_.push_back(waiting_.pop());
  }
}

// The last token of a prompt is always computed: the choice of the next one needs its logits.
void Scheduler::take_over_pages() {
  for (const auto& sequence : running_) {
    const bool may_take_over = sequence->may_take_over() && !sequence->is_loading;
    if (sequence->unfed() <= 1 || !may_take_over) continue;
    const int positions =
        pages_.take_over(sequence->pages, sequence->tokens, sequence->prompt_size() - 1);
    if (positions <= sequence->fed) continue;
    sequence->cached += positions - sequence->fed;
    sequence->fed = sequence->completed = positions;
  }
}

// The sequences that have waited longest, at most one stage's share.
int Scheduler::plan_decoding(Step& step, PlannedStep& planned) {
  ready_.clear();
  int decoding = 0;
  for (const auto& sequence : running_) {
    decoding += sequence->decodes() ? 1 : 0;
    const bool is_ready = sequence->unfed() == 1 && sequence->may_be_fed();
    if (is_ready) ready_.push_back(sequence.get());
  }
  std::sort(ready_.begin(), ready_.end(), [](const Sequence* a, const Sequence* b) {
    return std::pair(a->last_step, a->id) < std::pair(b->last_step, b->id);
  });
  const int share = (std::max(1, decoding) + limits_.stages - 1) / limits_.stages;
  const auto count = static_cast<size_t>(std::min(share, limits_.tokens_max));
  if (ready_.size() > count) ready_.resize(count);
  const bool may_draft =
      decoding <= kDraftingSequencesMax && decoding == static_cast<int>(running_.size());
  for (size_t i = 0; i < ready_.size(); ++i) {
    Sequence& sequence = *ready_[i];
    const int others = static_cast<int>(ready_.size() - i);
    const int room = limits_.tokens_max - step.batch.token_count() - others;
    guess(sequence, room, may_draft, decoding);
    add(sequence, 1 + sequence.drafts.count, step, planned);
  }
  return decoding;
}

// Prompts with the fewest remaining tokens come first, so that long ones do not delay short ones;
// but the longest-running one gets at least half of the room, so that it finishes.
void Scheduler::plan_prompts(int tokens_max, Step& step, PlannedStep& planned) {
  const int end = std::min(limits_.tokens_max, step.batch.token_count() + tokens_max);
  const auto room = [&] { return end - step.batch.token_count(); };
  if (room() <= 0) return;
  find_prompts();
  if (ready_.empty()) return;
  Sequence& longest = *ready_.front();
  const int kept = chunk_of(longest, std::max(1, room() / 2));
  std::sort(ready_.begin() + 1, ready_.end(), [](const Sequence* a, const Sequence* b) {
    return std::pair(a->unfed(), a->id) < std::pair(b->unfed(), b->id);
  });
  size_t next = 1;
  for (; next < ready_.size() && ready_[next]->unfed() < longest.unfed(); ++next) {
    if (room() <= kept) break;
    Sequence& shorter = *ready_[next];
    if (!waits(shorter, &longest)) add(shorter, chunk_of(shorter, room() - kept), step, planned);
  }
  add(longest, chunk_of(longest, room()), step, planned);
  for (; next < ready_.size() && room() > 0; ++next) {
    Sequence& other = *ready_[next];
    if (!waits(other, nullptr)) add(other, chunk_of(other, room()), step, planned);
  }
}

void Scheduler::find_prompts() {
  ready_.clear();
  for (const auto& sequence : running_) {
    if (sequence->unfed() <= 1 || !sequence->may_be_fed()) continue;
    if (!ready_.empty() || !waits(*sequence, nullptr)) ready_.push_back(sequence.get());
  }
}

int Scheduler::chunk_of(const Sequence& sequence, int room) const {
  const int chunk = sequence.request.chunk > 0 ? sequence.request.chunk
                                               : prompt_chunk(sequence.prompt_size(), limits_);
  return std::min({sequence.unfed(), chunk, room});
}

// Waits only for pages of known tokens that the other computes without waiting itself: it is in the
// middle of one, or further. Hashes are enough here: a collision only causes a useless wait.
bool Scheduler::waits(const Sequence& sequence, const Sequence* next) const {
  const int end = sequence.fed + kPagePositions;
  const auto page = static_cast<size_t>(sequence.fed / kPagePositions);
  const bool may_wait = sequence.fed % kPagePositions == 0 && end < sequence.prompt_size() &&
                        sequence.may_take_over() && sequence.pages.enters_tree;
  if (!may_wait) return false;
  return std::any_of(running_.begin(), running_.end(), [&](const auto& other) {
    const bool begins_page = other.get() == next && other->fed == sequence.fed;
    const bool computes = begins_page || (other->fed > sequence.fed && other->completed < end);
    return computes && other.get() != &sequence && !other->is_cancelled &&
           other->pages.enters_tree && other->pages.hashes.size() > page &&
           other->pages.hashes[page] == sequence.pages.hashes[page];
  });
}

// Room for positions [0, length). The draft model has computed nothing of new pages.
void Scheduler::grow(Sequence& sequence, int length, bool are_loaded, Step& step) {
  const size_t before = sequence.pages.state.pages().size();
  pages_.grow(sequence.pages, length, are_loaded, step.pages);
  if (!limits_.has_draft_model()) return;
  for (const int32_t page : sequence.pages.state.pages().subspan(before)) {
    drafted_in_page_[static_cast<size_t>(page)] = 0;
  }
}

// Steps are computed in the order of planning: what only this one needs may be given to others in
// the next.
void Scheduler::pass_windows(const PlannedStep& planned) {
  for (const Planned& each : planned.sequences) {
    if (!each.is_load()) pages_.pass_windows(each.sequence->pages, each.end - each.drafts);
  }
}

int32_t Scheduler::add_page_list(const Sequence& sequence, Batch& batch) {
  const auto list = static_cast<int32_t>(batch.page_lists.size());
  const auto pages = sequence.pages.state.pages();
  batch.page_lists.insert(batch.page_lists.end(), pages.begin(), pages.end());
  return list;
}

void Scheduler::add(Sequence& sequence, int count, Step& step, PlannedStep& planned) {
  const int end = sequence.fed + count;
  const int wanted = wanted_guesses(sequence, end);
  grow(sequence, positions_needed(sequence, end, wanted), false, step);
  Batch& batch = step.batch;
  const int known = static_cast<int>(sequence.tokens.size()), first_row = batch.token_count();
  const int begin = sequence.fed;
  pages_.plan_states(sequence.pages, {.begin = begin, .end = end, .known = known}, batch,
                     step.pages);
  const int32_t list = add_page_list(sequence, batch);
  const int32_t windows = pages_.list_windows(sequence.pages, batch);
  int outputs = 0, hidden_outputs = 0;
  for (int position = sequence.fed; position < end; ++position) {
    const bool is_last = position + 1 >= known;
    const auto index = static_cast<size_t>(position < known ? position : position - known);
    const int32_t token = position < known ? sequence.tokens[index] : sequence.drafts.tokens[index];
    const bool wants_token = is_last && sequence.request.max_tokens > 0;
    const bool wants_logits = sequence.request.prompt_logits && position < sequence.prompt_size();
    if (wants_token || wants_logits) {
      batch.outputs.push_back(batch.token_count());
      step.requests.push_back({.position = position + 1,
                               .previous_token = token,
                               .wants_token = wants_token,
                               .wants_logits = wants_logits,
                               .sequence = sequence.id});
      ++outputs;
    }
    const Pooling pooling = sequence.request.pooling;
    if (pooling == Pooling::kMean || (pooling == Pooling::kLast && is_last)) {
      batch.hidden_outputs.push_back(batch.token_count());
      ++hidden_outputs;
    }
    batch.tokens.push_back(token);
    batch.positions.push_back(position);
    batch.list_offsets.push_back(list);
    if (windows != PageCache::kNoWindows) batch.window_offsets.push_back(windows);
  }
  const int guesses = std::max(0, end - known);
  planned.sequences.push_back({.sequence = &sequence,
                               .begin = begin,
                               .first_row = first_row,
                               .end = end,
                               .outputs = outputs,
                               .hidden_outputs = hidden_outputs,
                               .drafts = guesses,
                               .by_layer = guesses > 0 && sequence.guesses_by_layer,
                               .wanted_guesses = wanted,
                               .loads = 0});
  sequence.fed = end;
  sequence.last_step = steps_planned_;
  ++sequence.steps_in_flight;
}

Status Scheduler::complete(std::span<const SampledToken> choices, std::span<const float> hidden,
                           const EventSink& events, PageOutcome moved, DraftOutcome drafted) {
  LOCKSTEP_CHECK(!in_flight_.empty());
  size_t outputs = 0, rows = 0, guesses = 0;
  for (const Planned& planned : in_flight_.front().sequences) {
    guesses += static_cast<size_t>(planned.wanted_guesses);
    outputs += static_cast<size_t>(planned.outputs);
    rows += static_cast<size_t>(planned.hidden_outputs);
  }
  const size_t width = rows > 0 ? hidden.size() / rows : 0;
  if (choices.size() != outputs || hidden.size() != rows * width || (rows > 0 && width == 0) ||
      drafted.next_guesses.size() != guesses) {
    return Error{ErrorCode::kCorrupt, "a step returned other choices than were requested"};
  }
  PlannedStep step = std::move(in_flight_.front());
  in_flight_.erase(in_flight_.begin());
  complete_orders(step, moved);
  if (limits_.stages == 1) take_drafted(step, drafted, events);
  for (const Planned& planned : step.sequences) {
    if (planned.is_load()) continue;
    Sequence& sequence = *planned.sequence;
    const auto own_choices = choices.first(static_cast<size_t>(planned.outputs));
    const auto own_hidden = hidden.first(static_cast<size_t>(planned.hidden_outputs) * width);
    choices = choices.subspan(own_choices.size());
    hidden = hidden.subspan(own_hidden.size());
    const auto own_guesses =
        drafted.next_guesses.first(static_cast<size_t>(planned.wanted_guesses));
    drafted.next_guesses = drafted.next_guesses.subspan(own_guesses.size());
    --sequence.steps_in_flight;
    sequence.completed = planned.end - planned.drafts;
    const bool has_ended = take_outputs(planned, own_choices, own_hidden, width, events);
    pages_.enter(sequence.pages, sequence.tokens, sequence.completed);
    if (has_ended) {
      remove(sequence);
    } else if (limits_.guesses_at_end()) {
      keep_next_guesses(sequence, own_guesses);
    } else if (limits_.has_draft_layer) {
      undrafted_.push_back({&sequence, planned.begin, sequence.completed, planned.first_row});
    }
  }
  step.sequences.clear();
  step.draft_rows.clear();
  step.save.reset();
  step.state_save.reset();
  spare_.push_back(std::move(step));
  return Ok{};
}

bool Scheduler::take_outputs(const Planned& planned, std::span<const SampledToken> choices,
                             std::span<const float> hidden, size_t width, const EventSink& events) {
  Sequence& sequence = *planned.sequence;
  if (sequence.is_cancelled) return sequence.steps_in_flight == 0;
  if (planned.end >= sequence.prompt_size() && !std::exchange(sequence.is_started, true)) {
    events({sequence.id, RequestEvent::Started{sequence.cached}});
  } else if (planned.end < sequence.prompt_size() && sequence.request.reports_progress) {
    events({sequence.id, RequestEvent::Progress{planned.end, sequence.cached}});
  }
  bool has_ended = false;
  int right = 0;                                 // guesses
  int position = planned.end - planned.outputs;  // outputs are a sequence's last tokens of a step
  for (const SampledToken& choice : choices) {
    if (choice.is_number && !choice.is_lost) {
      has_ended = take_choice(sequence, choice, events);
    } else {
      if (choice.is_lost) {
        fail(sequence, lost_grammar(position), events);
      } else {
        pages_.forget(sequence.pages);
        fail(sequence, broken_model("logits", position), events);
      }
      return sequence.steps_in_flight == 0;
    }
    ++position;
    if (right == planned.drafts) continue;
    if (has_ended || choice.token != sequence.drafts.tokens[static_cast<size_t>(right)]) break;
    ++right;
  }
  if (planned.drafts > 0) end_drafts(sequence, planned, right);
  if (!hidden.empty()) {
    sequence.pooled.resize(width);
    add_rows(hidden, sequence.pooled);
  }
  const bool is_fed = sequence.unfed() == 0 && sequence.steps_in_flight == 0;
  if (sequence.request.max_tokens != 0 || !is_fed) return has_ended;
  end_prompt(sequence, events);
  return true;
}

void Scheduler::end_drafts(Sequence& sequence, const Planned& planned, int right) {
  sequence.fed = sequence.completed = planned.end - planned.drafts + right;
  pages_.end_guesses(sequence.pages, right);
  if (planned.by_layer) {
    draft_counts_.add({.steps = 1,
                       .guesses = static_cast<uint64_t>(planned.drafts),
                       .right = static_cast<uint64_t>(right)});
    sequence.layer_accuracy.learn(planned.drafts, right);
    // The last guess was not fed to the model.
    const int seen = planned.end - planned.drafts + std::min(right, planned.drafts - 1);
    if (limits_.has_draft_model()) set_drafted(sequence, seen);
  } else {
    sequence.drafts.learn(right);
  }
}

// Later steps of its prompt may be in flight.
void Scheduler::fail(Sequence& sequence, const Error& error, const EventSink& events) {
  events({sequence.id, RequestEvent::Ended{error}});
  sequence.is_cancelled = true;
}

void Scheduler::end_prompt(Sequence& sequence, const EventSink& events) {
  const auto is_finite = [](double sum) { return std::isfinite(sum); };
  if (!std::all_of(sequence.pooled.begin(), sequence.pooled.end(), is_finite)) {
    pages_.forget(sequence.pages);
    return fail(sequence, broken_model("values of the embedding", sequence.fed - 1), events);
  }
  if (sequence.request.pooling != Pooling::kNone) report_embedding(sequence, events);
  events({sequence.id, RequestEvent::Ended{FinishReason::kLength}});
}

void Scheduler::report_embedding(const Sequence& sequence, const EventSink& events) {
  const bool is_mean = sequence.request.pooling == Pooling::kMean;
  const double count = is_mean ? sequence.prompt_size() : 1;
  std::vector<float> embedding;
  for (const double sum : sequence.pooled) embedding.push_back(static_cast<float>(sum / count));
  events({sequence.id, RequestEvent::Row{std::move(embedding)}});
}

bool Scheduler::take_choice(Sequence& sequence, const SampledToken& choice,
                            const EventSink& events) {
  if (!choice.logits.empty()) {
    events({sequence.id,
            RequestEvent::Row{std::vector<float>(choice.logits.begin(), choice.logits.end())}});
  }
  if (choice.has_ended) {
    events({sequence.id, RequestEvent::Ended{FinishReason::kStop}});
    return true;
  }
  if (choice.token < 0) return false;
  const auto& stops = sequence.request.stop_ids;
  if (std::find(stops.begin(), stops.end(), choice.token) != stops.end()) {
    events({sequence.id, RequestEvent::Ended{FinishReason::kStop}});
    return true;
  }
  sequence.tokens.push_back(choice.token);
  sequence.pages.hash(sequence.tokens);
  if (!choice.logprobs.empty()) {
    events({sequence.id, RequestEvent::Logprobs{std::vector<TokenLogprob>(choice.logprobs.begin(),
                                                                          choice.logprobs.end())}});
  }
  events({sequence.id, RequestEvent::Token{choice.token}});
  const int size = static_cast<int>(sequence.tokens.size());
  if (sequence.left() > 0 && size <= limits_.context) return false;
  events({sequence.id, RequestEvent::Ended{FinishReason::kLength}});
  return true;
}

void Scheduler::remove(const Sequence& sequence) {
  const auto found = std::find_if(running_.begin(), running_.end(),
                                  [&](const auto& s) { return s.get() == &sequence; });
  pages_.release((*found)->pages);
  std::erase_if(undrafted_, [&](const Undrafted& each) { return each.sequence == &sequence; });
  running_.erase(found);
}

Scheduler::PageCounts Scheduler::page_counts() const {
  return {.all = pages_.pages(),
          .free = pages_.free_pages(),
          .cached = pages_.cached_pages(),
          .unsaved = pages_.unsaved_pages(),
          .snapshots = pages_.snapshots(),
          .free_states = pages_.free_states(),
          .unused_windows = pages_.unused_windows()};
}

}  // namespace lockstep
