#include "grammar/automaton/automaton.h"

#include <algorithm>
#include <bit>

#include "base/check.h"
#include "grammar/dfa/limits.h"

namespace lockstep {
namespace {

using PositionKind = CompiledGrammar::Kind;
using Position = CompiledGrammar::Position;

// Work that costs about as much as following one reading.
constexpr size_t kEntriesOfReading = 8;
constexpr size_t kEdgesOfReading = 32;

uint64_t hash_of(std::span<const uint32_t> values, uint64_t seed) {
  for (const uint32_t value : values) seed = mixed_hash(seed, value);
  return seed;
}

}  // namespace

GrammarAutomaton::GrammarAutomaton(std::shared_ptr<const CompiledGrammar> grammar)
    : grammar_(std::move(grammar)) {
  clear();
  start_ = closed_state({{grammar_->start, intern_set(std::span(&kRootEntry, 1))}});
}

void GrammarAutomaton::clear() {
  entries_ = {{CompiledGrammar::kEndPosition, 0, 0}};
  sets_.clear();
  set_entries_.clear();
  kernels_.clear();
  states_.clear();
  state_sets_.clear();
  rows_.clear();
  entry_table_.clear();
  set_table_.clear();
  kernel_table_.clear();
  state_table_.clear();
  std::vector<Thread> none;
  const StateId dead = intern_state(none, false);
  LOCKSTEP_CHECK(dead == kDead);
}

std::span<const uint32_t> GrammarAutomaton::entries_of(uint32_t set) const {
  return std::span(set_entries_).subspan(sets_[set].first, sets_[set].count);
}

GrammarAutomaton::StateId GrammarAutomaton::find_step(StateId state, uint8_t byte) {
  const Kernel& kernel = *kernels_[states_[state].kernel];
  const uint8_t byte_class = kernel.classes[byte];
  std::vector<Thread>& seeds = seeds_;
  seeds.clear();
  for (const Move move : kernel.moves_of(byte_class)) {
    seeds.push_back({move.target, state_sets_[states_[state].sets + move.thread]});
  }
  const StateId next = closed_state(seeds);
  rows_[states_[state].row + byte_class] = next;
  return next;
}

GrammarAutomaton::StateId GrammarAutomaton::step_token(StateId state, int32_t token) {
  const Kernel& kernel = *kernels_[states_[state].kernel];
  std::vector<Thread> seeds;
  for (const uint32_t thread : kernel.token_threads) {
    const Position& position = grammar_->positions[kernel.positions[thread]];
    if (static_cast<int32_t>(position.first) != token) continue;
    seeds.push_back({position.next, state_sets_[states_[state].sets + thread]});
  }
  return closed_state(seeds);
}

std::vector<int32_t> GrammarAutomaton::tokens(StateId state) const {
  const Kernel& kernel = *kernels_[states_[state].kernel];
  std::vector<int32_t> tokens;
  for (const uint32_t thread : kernel.token_threads) {
    tokens.push_back(static_cast<int32_t>(grammar_->positions[kernel.positions[thread]].first));
  }
  return tokens;
}

// Follows all steps without a byte, until only positions that need a byte or token are left.
GrammarAutomaton::StateId GrammarAutomaton::closed_state(const std::vector<Thread>& seeds) {
  if (seeds.empty()) return kDead;
  pending_.clear();
  reached_.clear();
  if (seen_threads_.size() >= kFewThreads) seen_.clear();
  seen_threads_.clear();
  reaches_end_ = false;
  for (const Thread seed : seeds) push(seed.position, seed.set);
  while (!pending_.empty()) {
    if (seen_threads_.size() > kStepThreadsMax) {
      is_overloaded_ = true;
      return kDead;
    }
    const Thread thread = pending_.back();
    pending_.pop_back();
    expand(thread);
  }
  work_ += seen_threads_.size();
  return intern_state(reached_, reaches_end_);
}

// A few threads, the usual case, are compared one by one; more use a table.
void GrammarAutomaton::push(uint32_t position, uint32_t set) {
  const Thread thread{position, set};
  if (seen_threads_.size() < kFewThreads) {
    if (std::find(seen_threads_.begin(), seen_threads_.end(), thread) != seen_threads_.end()) {
      return;
    }
    seen_threads_.push_back(thread);
    pending_.push_back(thread);
    if (seen_threads_.size() < kFewThreads) return;
    for (uint32_t i = 0; i < kFewThreads; ++i) add_seen(seen_threads_[i], i);
    return;
  }
  const auto count = static_cast<uint32_t>(seen_threads_.size());
  if (add_seen(thread, count) != count) return;
  seen_threads_.push_back(thread);
  pending_.push_back(thread);
}

// The number of an equal thread, else `index`.
uint32_t GrammarAutomaton::add_seen(Thread thread, uint32_t index) {
  return seen_.intern(
      mixed_hash(mixed_hash(1, thread.position), thread.set),
      [&](uint32_t other) { return seen_threads_[other] == thread; }, [&] { return index; });
}

void GrammarAutomaton::expand(Thread thread) {
  const Position& position = grammar_->positions[thread.position];
  switch (position.kind) {
    case PositionKind::kBytes:
    case PositionKind::kToken:
      reached_.push_back(thread);
      return;
    case PositionKind::kSplit:
      for (uint32_t i = 0; i < position.count; ++i) {
        push(grammar_->targets[position.first + i], thread.set);
      }
      return;
    case PositionKind::kCall: {
      if (sets_[thread.set].depth >= kStackDepthMax) return;
      const uint32_t entry = intern_entry({position.next, kCalled, thread.set});
      push(position.first, intern_set(std::span(&entry, 1)));
      return;
    }
    case PositionKind::kRepeat:
      enter_round(thread, 0);
      return;
    case PositionKind::kEnd:
      leave_rule(thread.set);
      return;
  }
}

// At a repetition with `count` finished rounds.
void GrammarAutomaton::enter_round(Thread thread, uint32_t count) {
  const Position& position = grammar_->positions[thread.position];
  const bool has_end = position.max != UINT32_MAX;
  if (!has_end) count = std::min(count, position.min);  // further rounds change nothing
  if (count >= position.min) push(position.next, thread.set);
  if (has_end && count >= position.max) return;
  if (sets_[thread.set].depth >= kStackDepthMax) return;
  const uint32_t entry = intern_entry({thread.position, count, thread.set});
  push(position.first, intern_set(std::span(&entry, 1)));
}

void GrammarAutomaton::leave_rule(uint32_t set) {
  // Uses indices and copies: the calls below may grow the arrays.
  const EntrySet entries = sets_[set];
  for (uint32_t i = 0; i < entries.count; ++i) {
    const uint32_t index = set_entries_[entries.first + i];
    if (index == kRootEntry) {
      reaches_end_ = true;
      continue;
    }
    const Entry entry = entries_[index];
    if (entry.count != kCalled) {
      enter_round({entry.position, entry.below}, entry.count + 1);
    } else {
      push(entry.position, entry.below);
    }
  }
}

uint32_t GrammarAutomaton::intern_entry(Entry entry) {
  const uint64_t hash =
      mixed_hash(mixed_hash(mixed_hash(2, entry.position), entry.count), entry.below);
  return entry_table_.intern(
      hash,
      [&](uint32_t index) {
        const Entry& other = entries_[index];
        return other.position == entry.position && other.count == entry.count &&
               other.below == entry.below;
      },
      [&] {
        entries_.push_back(entry);
        return static_cast<uint32_t>(entries_.size() - 1);
      });
}

// `entries` are sorted.
uint32_t GrammarAutomaton::intern_set(std::span<const uint32_t> entries) {
  return set_table_.intern(
      hash_of(entries, 3),
      [&](uint32_t index) {
        const auto other = entries_of(index);
        return std::equal(other.begin(), other.end(), entries.begin(), entries.end());
      },
      [&] {
        uint32_t depth = 0;
        for (const uint32_t entry : entries) {
          if (entry != kRootEntry) depth = std::max(depth, sets_[entries_[entry].below].depth + 1);
        }
        sets_.push_back({static_cast<uint32_t>(set_entries_.size()),
                         static_cast<uint32_t>(entries.size()), depth});
        set_entries_.insert(set_entries_.end(), entries.begin(), entries.end());
        return static_cast<uint32_t>(sets_.size() - 1);
      });
}

// The union of the stacks of these threads, which are at one position.
uint32_t GrammarAutomaton::united(std::span<const Thread> threads) {
  if (threads.size() == 1) return threads[0].set;
  std::vector<uint32_t> entries;
  for (const Thread thread : threads) {
    const auto of_thread = entries_of(thread.set);
    entries.insert(entries.end(), of_thread.begin(), of_thread.end());
  }
  work_ += entries.size() / kEntriesOfReading;
  std::sort(entries.begin(), entries.end());
  entries.erase(std::unique(entries.begin(), entries.end()), entries.end());
  return intern_set(entries);
}

GrammarAutomaton::StateId GrammarAutomaton::intern_state(std::vector<Thread>& threads,
                                                         bool is_accepting) {
  std::sort(threads.begin(), threads.end(),
            [](Thread a, Thread b) { return a.position < b.position; });
  size_t kept = 0;
  for (size_t i = 0; i < threads.size();) {
    size_t next = i + 1;
    while (next < threads.size() && threads[next].position == threads[i].position) ++next;
    threads[kept++] = {threads[i].position, united(std::span(threads).subspan(i, next - i))};
    i = next;
  }
  threads.resize(kept);
  uint64_t hash = is_accepting ? 5 : 4;
  for (const Thread thread : threads) {
    hash = mixed_hash(mixed_hash(hash, thread.position), thread.set);
  }
  return state_table_.intern(
      hash,
      [&](uint32_t index) {
        const State& other = states_[index];
        const auto& positions = kernels_[other.kernel]->positions;
        if (other.is_accepting != is_accepting || positions.size() != threads.size()) return false;
        for (size_t i = 0; i < threads.size(); ++i) {
          if (positions[i] != threads[i].position ||
              state_sets_[other.sets + i] != threads[i].set) {
            return false;
          }
        }
        return true;
      },
      [&] {
        reached_positions_.clear();
        State state{.sets = static_cast<uint32_t>(state_sets_.size()),
                    .row = static_cast<uint32_t>(rows_.size()),
                    .is_accepting = is_accepting,
                    .plain_characters = plain_characters_of(threads)};
        for (const Thread thread : threads) {
          reached_positions_.push_back(thread.position);
          state_sets_.push_back(thread.set);
        }
        state.kernel = intern_kernel(reached_positions_);
        const Kernel& kernel = *kernels_[state.kernel];
        state.classes = &kernel.classes;
        rows_.resize(rows_.size() + kernel.classes_moves.size(), kUnknown);
        if (kernel.moves_of(0).empty()) rows_[state.row] = kDead;
        states_.push_back(state);
        return static_cast<uint32_t>(states_.size() - 1);
      });
}

uint32_t GrammarAutomaton::plain_characters_of(const std::vector<Thread>& threads) const {
  uint32_t most = 0;
  for (const Thread thread : threads) {
    if (!grammar_->positions[thread.position].is_json_character) continue;
    for (const uint32_t index : entries_of(thread.set)) {
      const Position& position = grammar_->positions[entries_[index].position];
      if (index == kRootEntry || entries_[index].count == kCalled) continue;
      const bool has_end = position.max != UINT32_MAX;
      most = std::max(most, has_end ? position.max - entries_[index].count : UINT32_MAX);
    }
  }
  return most;
}

uint32_t GrammarAutomaton::intern_kernel(const std::vector<uint32_t>& positions) {
  return kernel_table_.intern(
      hash_of(positions, 6),
      [&](uint32_t index) { return kernels_[index]->positions == positions; },
      [&] {
        kernels_.push_back(make_kernel(positions));
        return static_cast<uint32_t>(kernels_.size() - 1);
      });
}

// Bytes over which the same threads move to the same targets form a class. Moves change only at the
// borders of edges.
std::unique_ptr<GrammarAutomaton::Kernel> GrammarAutomaton::make_kernel(
    const std::vector<uint32_t>& positions) {
  auto made = std::make_unique<Kernel>();
  Kernel& kernel = *made;
  kernel.positions = positions;
  thread_edges_.clear();
  std::array<uint64_t, 5> borders{1};  // bit b: an edge begins at byte b or has ended before it
  const auto add_border = [&](uint32_t byte) { borders[byte / 64] |= uint64_t{1} << (byte % 64); };
  for (uint32_t thread = 0; thread < positions.size(); ++thread) {
    const Position& position = grammar_->positions[positions[thread]];
    if (position.kind == PositionKind::kToken) {
      kernel.token_threads.push_back(thread);
      continue;
    }
    for (uint32_t i = 0; i < position.count; ++i) {
      const CompiledGrammar::Edge& edge = grammar_->edges[position.first + i];
      thread_edges_.push_back({edge.first, edge.last, {thread, edge.target}});
      add_border(edge.first);
      add_border(edge.last + 1U);
    }
  }
  kernel.moves.reserve(thread_edges_.size());
  kernel.classes_moves.push_back({0, 0});
  add_border(256);
  uint32_t first = 0;
  for (uint32_t word = 0; word < borders.size(); ++word) {
    for (uint64_t left = borders[word]; left != 0; left &= left - 1) {
      const uint32_t next = word * 64 + static_cast<uint32_t>(std::countr_zero(left));
      if (next == 0) continue;
      work_ += thread_edges_.size() / kEdgesOfReading;
      const uint8_t index = class_over(kernel, first);
      std::fill(kernel.classes.begin() + first, kernel.classes.begin() + next, index);
      first = next;
    }
  }
  return made;
}

// The class of a byte's moves, adding a new one if needed.
uint8_t GrammarAutomaton::class_over(Kernel& kernel, uint32_t byte) const {
  const size_t begin = kernel.moves.size();
  for (const ThreadEdge& edge : thread_edges_) {
    if (edge.first <= byte && byte <= edge.last) kernel.moves.push_back(edge.move);
  }
  const auto moves = std::span<const Move>(kernel.moves).subspan(begin);
  auto& ranges = kernel.classes_moves;
  for (size_t index = 0; index < ranges.size(); ++index) {
    if (!std::ranges::equal(kernel.moves_of(index), moves)) continue;
    kernel.moves.resize(begin);
    return static_cast<uint8_t>(index);
  }
  const Range range{begin, kernel.moves.size()};
  // 256 classes plus the dead one do not fit into a byte, but then no byte is dead.
  if (ranges.size() == 256) {
    ranges[0] = range;
    return 0;
  }
  ranges.push_back(range);
  return static_cast<uint8_t>(ranges.size() - 1);
}

bool GrammarAutomaton::needs_collection() const {
  return states_.size() > kAutomatonStatesMax || entries_.size() > kAutomatonStackMax ||
         set_entries_.size() > kAutomatonStackMax;
}

void GrammarAutomaton::release(std::vector<StateId>* states) {
  held_.erase(std::remove(held_.begin(), held_.end(), states), held_.end());
}

// The source of a collection.
struct GrammarAutomaton::Old {
  std::vector<Entry> entries;
  std::vector<EntrySet> sets;
  std::vector<uint32_t> set_entries;
  std::vector<std::unique_ptr<Kernel>> kernels;
  std::vector<State> states;
  std::vector<uint32_t> state_sets;
};

void GrammarAutomaton::collect(std::span<StateId> holders) {
  Old old{std::move(entries_), std::move(sets_),   std::move(set_entries_),
          std::move(kernels_), std::move(states_), std::move(state_sets_)};
  clear();
  ++collection_count_;
  std::vector<uint32_t> set_of(old.sets.size(), UINT32_MAX);
  std::vector<StateId> state_of(old.states.size(), kUnknown);
  for (StateId& state : holders) state = copied(old, state, set_of, state_of);
  for (std::vector<StateId>* list : held_) {
    for (StateId& state : *list) state = copied(old, state, set_of, state_of);
  }
  start_ = copied(old, start_, set_of, state_of);
}

GrammarAutomaton::StateId GrammarAutomaton::copied(const Old& old, StateId state,
                                                   std::vector<uint32_t>& set_of,
                                                   std::vector<StateId>& state_of) {
  if (state_of[state] != kUnknown) return state_of[state];
  const State& from = old.states[state];
  const auto& positions = old.kernels[from.kernel]->positions;
  // Copies a set after all sets below it; uses an explicit stack, because they may be deep.
  std::vector<uint32_t> path;
  std::vector<Thread> threads;
  for (size_t i = 0; i < positions.size(); ++i) {
    path.push_back(old.state_sets[from.sets + i]);
    while (!path.empty()) {
      const uint32_t set = path.back();
      const auto entries =
          std::span(old.set_entries).subspan(old.sets[set].first, old.sets[set].count);
      bool is_ready = true;
      for (const uint32_t entry : entries) {
        if (entry == kRootEntry || set_of[old.entries[entry].below] != UINT32_MAX) continue;
        path.push_back(old.entries[entry].below);
        is_ready = false;
      }
      if (!is_ready) continue;
      path.pop_back();
      if (set_of[set] != UINT32_MAX) continue;
      std::vector<uint32_t> renewed;
      for (const uint32_t entry : entries) {
        const Entry& copy = old.entries[entry];
        renewed.push_back(entry == kRootEntry
                              ? kRootEntry
                              : intern_entry({copy.position, copy.count, set_of[copy.below]}));
      }
      std::sort(renewed.begin(), renewed.end());
      set_of[set] = intern_set(renewed);
    }
    threads.push_back({positions[i], set_of[old.state_sets[from.sets + i]]});
  }
  return state_of[state] = intern_state(threads, from.is_accepting);
}

}  // namespace lockstep
