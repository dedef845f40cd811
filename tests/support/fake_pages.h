// FakePages: computes a scheduler's steps like a model, over pages that have one number per
// position. A position's number is made from its token and the numbers in all earlier pages, as
// they are found there, so that a page with wrong contents changes the text. Steps are computed in
// order, as on every rank. With recurrent layers each state has a number too, made from that of the
// state before and the token. Window pages have a number of each position's token, of which all
// that are within reach count; a step writes those of all its tokens before it reads any. The draft
// layer's entry of a position is made from its number and the
// next token; before a guess all entries are compared with what they must be. FakeDisk keeps the
// numbers of pages like each rank's store.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/schedule/scheduler.h"
#include "kernels/kernels.h"
#include "support/event_reader.h"

namespace lockstep {

constexpr int32_t kPoison = 13;  // a token after which all logits are NaN
// From this seed on texts repeat themselves, except for one token in sixteen.
constexpr uint64_t kRepeatingSeed = 100;

inline constexpr SchedulerLimits kFakeLimits{.sequences_max = 4,
                                             .waiting_max = 1000,
                                             .tokens_max = 512,
                                             .context = 1024,
                                             .vocab_size = 1000};

// Texts with different beginnings have different tokens at every position.
inline std::vector<int32_t> fake_text(int size, int32_t begin) {
  std::vector<int32_t> tokens;
  for (int i = 0; i < size; ++i) tokens.push_back(100 + (begin + i * 7) % 800);
  return tokens;
}

class FakeDisk final : public PageDisk {
 public:
  bool contains(const PageKey& key) const override { return lacks_part || pages.contains(key); }
  bool is_saved(const PageKey& key) const override { return !lacks_part && pages.contains(key); }
  bool has_room() const override { return room > 0; }
  void forget(const PageKey& key) override {
    pages.erase(key);
    forgotten.insert(key);
  }
  size_t page_bytes() const override { return bytes_of_page; }
  bool contains_state(const PageKey& key) const override {
    return states.contains(key) || windows.contains(key);
  }
  bool has_room_for_state() const override { return room > 0; }
  size_t state_bytes() const override { return bytes_of_state; }
  void forget_state(const PageKey& key) override {
    states.erase(key);
    windows.erase(key);
    forgotten_states.insert(key);
  }

  std::map<PageKey, std::vector<uint64_t>> pages;
  // The draft layer's entries of each page, and its tokens.
  std::map<PageKey, std::pair<std::vector<uint64_t>, std::vector<int32_t>>> drafts;
  std::map<PageKey, uint64_t> states;
  std::map<PageKey, std::vector<uint64_t>> windows;
  std::set<PageKey> broken, broken_states;  // cannot be loaded
  std::set<PageKey> forgotten, forgotten_states;
  int room = 1 << 20;              // pages that can still be saved
  bool is_full_elsewhere = false;  // another rank has no room
  bool lacks_elsewhere = false;    // another rank has no store
  bool lacks_part = false;         // rank 0 has no part of pages: `pages` are other ranks'
  PageKey tried{};                 // the last one saved while another rank had no room
  size_t bytes_of_page = 1, bytes_of_state = 1;
  int saved = 0;
  int loaded = 0;
  int saved_states = 0;
  int loaded_states = 0;
};

class FakePages {
 public:
  explicit FakePages(const SchedulerLimits& limits)
      : vocab_size_(limits.vocab_size),
        numbers_(static_cast<size_t>(pages_needed(limits)) * kPagePositions, 0),
        states_(static_cast<size_t>(limits.states), 0),
        windows_(static_cast<size_t>(limits.window_pages) * kPagePositions, 0),
        reach_(limits.reach),
        entries_(numbers_.size(), 0),
        tokens_(numbers_.size(), -1),
        block_(limits.draft_block),
        has_draft_model_(limits.has_draft_model()),
        tokens_max_(limits.tokens_max) {}

  // Executes the step's page orders as the ranks would.
  PageOutcome move(const PageOrders& orders, FakeDisk& disk) {
    if (orders.empty()) return {};
    if (disk.lacks_elsewhere) return {PageOutcome::kNoStore, PageOutcome::kNoStore};
    return {.saved = save(orders, disk), .loaded = load(orders, disk)};
  }

  std::vector<SampledToken> compute(const Step& step) {
    const Batch& batch = step.batch;
    std::vector<uint64_t> states;
    write_windows(batch);
    for (size_t i = 0; i < batch.tokens.size(); ++i) {
      const auto list = static_cast<size_t>(batch.list_offsets[i]);
      states.push_back(compute(batch.tokens[i], batch.positions[i], &batch.page_lists[list],
                               continue_state(batch, i), read_windows(batch, i)));
    }
    tokens_computed += batch.token_count();
    last_numbers_ = states;
    last_positions_ = batch.positions;
    std::vector<SampledToken> choices;
    for (size_t i = 0; i < step.requests.size(); ++i) {
      const uint64_t state = states[static_cast<size_t>(batch.outputs[i])];
      SampledToken& choice = choices.emplace_back();
      choice.is_number = state != kBroken;
      if (!choice.is_number || !step.requests[i].wants_token) continue;
      choice.token = token_of(state, step.requests[i]);
    }
    return choices;
  }

  // Makes the step's guesses, which are right where texts repeat themselves.
  void draft(Step& step) {
    const Batch& pass = step.drafts.pass.batch;
    for (size_t i = 0; i < pass.tokens.size(); ++i) {
      if (has_draft_model_) {
        draft_by_model(pass, i);
        continue;
      }
      const auto row = static_cast<size_t>(step.drafts.pass.hidden_rows[i]);
      CHECK(last_positions_.at(row) == pass.positions[i]);
      entry(pass, i, pass.positions[i]) = entry_of(last_numbers_[row], pass.tokens[i]);
    }
    for (size_t i = 0; i < step.drafts.guesses.size(); ++i) {
      const auto last = static_cast<size_t>(pass.outputs[i]);
      if (has_draft_model_) {
        check_chain(pass, last);
      } else {
        check_entries(pass, last);
        write_block(pass, last);
      }
      const DraftOrders::Guesses& own = step.drafts.guesses[i];
      for (int k = 0; k < own.count; ++k) {
        const auto at = static_cast<size_t>(own.at + k);
        // The place of a guess: after the token that the pass had last, or led to.
        const int next = pass.positions[last] + (has_draft_model_ ? 1 : 2);
        CHECK(step.batch.positions[at] == next + k);
        step.batch.tokens[at] = 100 + step.batch.positions[at] % 20;
        if (!has_draft_model_ || k + 1 == own.count) continue;
        Batch fed = pass;  // the guess goes on
        fed.tokens[last] = step.batch.tokens[at];
        fed.positions[last] = next + k;
        draft_by_model(fed, last);
      }
    }
    for (size_t i = 0; i < step.requests.size(); ++i) {
      const auto output = static_cast<size_t>(step.batch.outputs[i]);
      step.requests[i].previous_token = step.batch.tokens[output];
    }
    tokens_drafted += pass.token_count();
  }

  // The same at the end of a step, for the next ones, as far as its tokens were right.
  std::vector<int32_t> guess_next(const Step& step, const std::vector<SampledToken>& choices) {
    const Batch& batch = step.batch;
    std::vector<int32_t> guesses;
    for (const NextGuesses& own : step.next_guesses) {
      int32_t right = -1;  // the last row whose token was
      for (int32_t row = own.first_row; row < own.first_row + own.rows; ++row) {
        const bool is_last = row + 1 == own.first_row + own.rows;
        const int32_t known =
            is_last ? own.token_after : batch.tokens[static_cast<size_t>(row) + 1];
        int32_t next = known;
        const auto output = std::find(batch.outputs.begin(), batch.outputs.end(), row);
        if (output != batch.outputs.end()) {
          const auto at = static_cast<size_t>(output - batch.outputs.begin());
          if (step.requests[at].wants_token) next = choices[at].token;
        }
        if (next < 0) break;
        const auto of = static_cast<size_t>(row);
        entry(batch, of, batch.positions[of]) = entry_of(last_numbers_[of], next);
        ++tokens_drafted;
        right = row;
        if (next != known) break;
      }
      const size_t end = guesses.size() + static_cast<size_t>(own.count);
      if (own.count > 0 && right >= 0)
        guess_after(batch, static_cast<size_t>(right), own.count, guesses);
      guesses.resize(end, -1);
    }
    return guesses;
  }

  int64_t tokens_computed = 0;
  int64_t tokens_drafted = 0;
  bool checks_entries = true;          // false: pages come from requests that had ended
  std::map<uint64_t, uint64_t> seeds;  // by request; 0 for the others

 private:
  static constexpr uint64_t kBroken = ~uint64_t{0};

  int32_t save(const PageOrders& orders, FakeDisk& disk) {
    int32_t saved = 0;
    for (const PageOrder& order : orders.saves) {
      if (disk.room == 0) return saved;
      const bool is_there = disk.pages.contains(order.key);
      if (!disk.lacks_part) CHECK(is_there == (order.key == disk.tried));
      disk.tried = disk.is_full_elsewhere ? order.key : PageKey{};
      const uint64_t* from = &at(order.page, 0);
      disk.pages[order.key].assign(from, from + kPagePositions);
      const auto first = static_cast<std::ptrdiff_t>(order.page) * kPagePositions;
      disk.drafts[order.key] = {
          {entries_.begin() + first, entries_.begin() + first + kPagePositions},
          {tokens_.begin() + first, tokens_.begin() + first + kPagePositions}};
      --disk.room;
      disk.saved += is_there && disk.lacks_part ? 0 : 1;
      saved += disk.is_full_elsewhere ? 0 : 1;
    }
    for (const StateOrder& order : orders.state_saves) {
      if (disk.room == 0) return saved;
      CHECK(disk.contains_state(order.key) == (order.key == disk.tried));
      disk.tried = disk.is_full_elsewhere ? order.key : PageKey{};
      if (windows_.empty()) {
        disk.states[order.key] = states_.at(static_cast<size_t>(order.state));
      } else {
        const auto first = windows_.begin() + order.state * kPagePositions;
        disk.windows[order.key].assign(first, first + kPagePositions);
      }
      --disk.room;
      ++disk.saved_states;
      saved += disk.is_full_elsewhere ? 0 : 1;
    }
    return saved;
  }
  int32_t load(const PageOrders& orders, FakeDisk& disk) {
    int32_t loaded = 0;
    for (const PageOrder& order : orders.loads) {
      const bool is_there = disk.pages.contains(order.key);
      if (disk.broken.contains(order.key) || (disk.lacks_part && !is_there)) return loaded;
      REQUIRE(is_there);
      const auto& numbers = disk.pages[order.key];
      std::copy(numbers.begin(), numbers.end(), &at(order.page, 0));
      const auto first = static_cast<std::ptrdiff_t>(order.page) * kPagePositions;
      const auto& [entries, tokens] = disk.drafts[order.key];
      std::copy(entries.begin(), entries.end(), entries_.begin() + first);
      std::copy(tokens.begin(), tokens.end(), tokens_.begin() + first);
      ++disk.loaded;
      ++loaded;
    }
    for (const StateOrder& order : orders.state_loads) {
      if (disk.broken_states.contains(order.key)) return loaded;
      REQUIRE(disk.contains_state(order.key));
      if (windows_.empty()) {
        states_.at(static_cast<size_t>(order.state)) = disk.states[order.key];
      } else {
        std::ranges::copy(disk.windows[order.key], windows_.begin() + order.state * kPagePositions);
      }
      ++disk.loaded_states;
      ++loaded;
    }
    return loaded;
  }

  static uint64_t mix(uint64_t a, uint64_t b) {
    a = (a ^ b) * 0xff51afd7ed558ccd;
    return (a ^ (a >> 32)) & 0x7fffffffffffffff;
  }
  uint64_t& at(int32_t page, int slot) {
    return numbers_[static_cast<size_t>(page) * kPagePositions + static_cast<size_t>(slot)];
  }
  size_t place(const Batch& batch, size_t token, int position) const {
    const int list = batch.list_offsets[token] + position / kPagePositions;
    return static_cast<size_t>(batch.page_lists[static_cast<size_t>(list)]) * kPagePositions +
           static_cast<size_t>(position % kPagePositions);
  }
  uint64_t& entry(const Batch& batch, size_t token, int position) {
    return entries_[place(batch, token, position)];
  }
  static uint64_t entry_of(uint64_t number, int32_t next) {
    return mix(number, static_cast<uint64_t>(next) + 7);
  }
  // Those at the end of a page may be of another text that has the page too.
  void check_entries(const Batch& pass, size_t last) {
    for (int position = 0; position < pass.positions[last] && checks_entries; ++position) {
      if (position % kPagePositions == kPagePositions - 1) continue;
      const size_t at = place(pass, last, position);
      CHECK(entries_[at] == entry_of(numbers_[at], tokens_[at + 1]));
    }
  }
  // Each guess but the last one is fed to the layer, whose entry of it is made again.
  void guess_after(const Batch& batch, size_t row, int count, std::vector<int32_t>& guesses) {
    check_entries(batch, row);
    const int position = batch.positions[row];
    const auto pages = pages_of_list(batch, batch.list_offsets[row]);
    REQUIRE(pages >= static_cast<size_t>(pages_for(position + count)));
    for (int k = 0; k < count; ++k) {
      guesses.push_back(100 + (position + 2 + k) % 20);
      if (k > 0) entry(batch, row, position + k) = kBroken;
    }
  }
  // A draft model's state of a position depends on the tokens up to it.
  void draft_by_model(const Batch& pass, size_t row) {
    const int position = pass.positions[row];
    const uint64_t before = position == 0 ? 1 : entry(pass, row, position - 1);
    entry(pass, row, position) = mix(before, static_cast<uint64_t>(pass.tokens[row]));
  }
  // All before the last one have been computed by the model.
  void check_chain(const Batch& pass, size_t last) {
    uint64_t chain = 1;
    for (int position = 0; position < pass.positions[last]; ++position) {
      chain = mix(chain, static_cast<uint64_t>(tokens_[place(pass, last, position)]));
      CHECK(entry(pass, last, position) == chain);
    }
  }
  // Takes the places of the entries after row `last`, which are made again.
  void write_block(const Batch& pass, size_t last) {
    CHECK(static_cast<int>(pass.outputs.size()) * (block_ + 1) <= tokens_max_);
    const auto pages = pages_of_list(pass, pass.list_offsets[last]);
    REQUIRE(pages >= static_cast<size_t>(pages_for(pass.positions[last] + 1 + block_)));
    for (int i = 1; i <= block_; ++i) entry(pass, last, pass.positions[last] + i) = kBroken;
  }
  static size_t pages_of_list(const Batch& batch, int32_t begin) {
    size_t end = batch.page_lists.size();
    for (const int32_t other : batch.list_offsets) {
      if (other > begin) end = std::min(end, static_cast<size_t>(other));
    }
    return end - static_cast<size_t>(begin);
  }
  // 0 without recurrent layers.
  uint64_t continue_state(const Batch& batch, size_t token) {
    REQUIRE(batch.states_to.size() == (states_.empty() ? 0 : batch.tokens.size()));
    if (states_.empty()) return 0;
    const int32_t from = batch.states_from[token];
    REQUIRE((from < 0) == (batch.positions[token] == 0));
    const uint64_t before = from < 0 ? 1 : states_.at(static_cast<size_t>(from));
    uint64_t& to = states_.at(static_cast<size_t>(batch.states_to[token]));
    return to = mix(before, static_cast<uint64_t>(batch.tokens[token]));
  }
  uint64_t& window_at(const Batch& batch, size_t token, int position) {
    const int list = batch.window_offsets[token] + position / kPagePositions;
    const int32_t window = batch.window_lists.at(static_cast<size_t>(list));
    return windows_.at(static_cast<size_t>(window * kPagePositions + position % kPagePositions));
  }
  void write_windows(const Batch& batch) {
    REQUIRE(batch.window_offsets.size() == (windows_.empty() ? 0 : batch.tokens.size()));
    for (size_t i = 0; i < batch.window_offsets.size(); ++i) {
      const int position = batch.positions[i];
      window_at(batch, i, position) =
          mix(static_cast<uint64_t>(batch.tokens[i]) + 3, static_cast<uint64_t>(position));
    }
  }
  // 0 without window pages.
  uint64_t read_windows(const Batch& batch, size_t token) {
    if (windows_.empty()) return 0;
    uint64_t all = 1;
    const int last = batch.positions[token];
    for (int position = std::max(0, last + 1 - reach_); position <= last; ++position) {
      all = mix(all, window_at(batch, token, position));
    }
    return all;
  }
  uint64_t compute(int32_t token, int position, const int32_t* pages, uint64_t recurrent,
                   uint64_t windows) {
    const int page = position / kPagePositions, slot = position % kPagePositions;
    uint64_t state = mix(static_cast<uint64_t>(token) + 1, static_cast<uint64_t>(position));
    if (recurrent != 0) state = mix(state, recurrent);
    if (windows != 0) state = mix(state, windows);
    bool is_broken = token == kPoison;
    const auto look_at = [&](uint64_t number) {
      is_broken |= number == kBroken;
      state = mix(state, number);
    };
    for (int before = 0; before < page; ++before) {
      look_at(at(pages[before], slot));
      look_at(at(pages[before], kPagePositions - 1));
    }
    if (slot > 0) look_at(at(pages[page], slot - 1));
    tokens_[static_cast<size_t>(&at(pages[page], slot) - numbers_.data())] = token;
    return at(pages[page], slot) = is_broken ? kBroken : state;
  }
  // Drawn from few tokens, so that texts repeat; never the poison token.
  int32_t token_of(uint64_t state, const ChoiceRequest& request) const {
    const auto found = seeds.find(request.sequence);
    const uint64_t seed = found == seeds.end() ? 0 : found->second;
    if (seed >= kRepeatingSeed && state % 16 != 0) return 100 + request.position % 20;
    const auto token = static_cast<int32_t>(mix(state, seed) % static_cast<uint64_t>(vocab_size_));
    return token == kPoison ? kPoison + 1 : token;
  }

  int vocab_size_;
  std::vector<uint64_t> numbers_;  // (pages, kPagePositions)
  std::vector<uint64_t> states_;   // of recurrent layers
  std::vector<uint64_t> windows_;  // (window pages, kPagePositions)
  int reach_ = 0;
  std::vector<uint64_t> entries_;  // of the draft layer; like numbers_
  std::vector<int32_t> tokens_;    // like numbers_
  int block_ = 0;                  // of the draft layer
  bool has_draft_model_ = false;
  int tokens_max_ = 0;
  std::vector<uint64_t> last_numbers_;  // of the last batch
  std::vector<int32_t> last_positions_;
};

struct FakeAnswer {
  std::vector<int32_t> tokens;
  int cached_tokens = -1;
  std::string end;  // empty: not ended
};

class FakeAnswers final : public EventReader {
 public:
  void on_start(uint64_t request, int cached_tokens) override {
    CHECK(answers[request].cached_tokens == -1);
    CHECK(answers[request].tokens.empty());
    answers[request].cached_tokens = cached_tokens;
  }
  void on_token(uint64_t request, int32_t token) override {
    CHECK(answers[request].cached_tokens >= 0);
    answers[request].tokens.push_back(token);
  }
  void on_end(uint64_t request, FinishReason reason) override {
    end(request, reason == FinishReason::kStop ? "stop" : "length");
  }
  void on_error(uint64_t request, const Error& error) override { end(request, error.message); }

  std::map<uint64_t, FakeAnswer> answers;
  int ended = 0;

 private:
  void end(uint64_t request, std::string how) {
    CHECK(answers[request].end.empty());
    answers[request].end = std::move(how);
    ++ended;
  }
};

// A scheduler and a fake that computes its steps; the oldest step is completed on request.
class FakeEngine {
 public:
  explicit FakeEngine(const SchedulerLimits& limits, FakeDisk* disk = nullptr)
      : scheduler(limits, disk),
        pages(limits),
        steps_max_(steps_in_flight_max(limits.stages)),
        is_pipeline_(limits.stages > 1),
        disk_(disk) {}

  // False if there is nothing to plan.
  bool plan(const StepBudget* budget = nullptr) {
    if (scheduler.steps_in_flight() >= steps_max_) return false;
    if (!scheduler.plan(step, {.prompts = budget, .guesses = budget})) return false;
    compute();
    return true;
  }
  // As in an engine that has nothing else to do.
  bool plan_save() {
    if (!scheduler.plan_save(step)) return false;
    CHECK(step.batch.tokens.empty());
    compute();
    return true;
  }
  void complete() {
    REQUIRE(scheduler
                .complete(choices_.front(), hidden_.front(), events, outcomes_.front(),
                          {.tokens = tokens_.front(), .next_guesses = next_.front()})
                .ok());
    next_.pop_front();
    tokens_.pop_front();
    choices_.pop_front();
    hidden_.pop_front();
    outcomes_.pop_front();
  }
  // Saves all unsaved pages, as long as there is room; returns how many.
  int save() {
    int saves = 0;
    while (plan_save()) {
      complete();
      ++saves;
    }
    return saves;
  }
  // Runs until nothing is left to do; returns the number of steps.
  int run() {
    int steps = 0;
    for (; steps < 100'000; ++steps) {
      while (plan()) {
      }
      if (choices_.empty()) return steps;
      complete();
    }
    FAIL("it does not end");
    return steps;
  }
  FakeAnswer answer(uint64_t id) { return events.answers[id]; }
  void submit(uint64_t id, const GenerateRequest& request) {
    pages.seeds[id] = request.sampling.seed;
    REQUIRE(scheduler.submit(id, request).ok());
  }
  // Runs one request alone.
  FakeAnswer ask(uint64_t id, const GenerateRequest& request) {
    submit(id, request);
    run();
    return answer(id);
  }

  Scheduler scheduler;
  FakePages pages;
  FakeAnswers events;
  Step step;  // the last planned one

 private:
  void compute() {
    outcomes_.push_back(disk_ ? pages.move(step.pages, *disk_) : PageOutcome{});
    if (!disk_) CHECK(step.pages.empty());
    const bool drafts = !step.drafts.empty();
    if (drafts) pages.draft(step);
    if (drafts && is_pipeline_) scheduler.take_guesses(step.batch.tokens);
    // In a pipeline they do not come back with the choices.
    tokens_.push_back(is_pipeline_ ? std::vector<int32_t>() : step.batch.tokens);
    choices_.push_back(pages.compute(step));
    next_.push_back(pages.guess_next(step, choices_.back()));
    hidden_.emplace_back(step.batch.hidden_outputs.size(), 1.0f);
  }

  int steps_max_;
  bool is_pipeline_;
  FakeDisk* disk_;
  std::deque<std::vector<SampledToken>> choices_;
  std::deque<std::vector<int32_t>> tokens_;  // of the steps, with guesses
  std::deque<std::vector<int32_t>> next_;    // guesses for later steps
  std::deque<std::vector<float>> hidden_;
  std::deque<PageOutcome> outcomes_;
};

// The answer to a request that runs alone, on one stage and without guessed tokens.
inline FakeAnswer alone(GenerateRequest request, SchedulerLimits limits = kFakeLimits) {
  limits.stages = 1;
  request.draft_tokens = 0;
  return FakeEngine(limits).ask(1, request);
}

}  // namespace lockstep
