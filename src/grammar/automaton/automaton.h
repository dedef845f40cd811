// GrammarAutomaton: tracks the possible positions of a text in a grammar, byte by byte. All
// readings of a text are followed at once; each is a position and the stacks it may return to.
// Results are cached: a state (all readings) has a number, and its step over a byte is a table
// lookup from the second time on. So holding, forking or rolling back a state costs four bytes.
//
// Stacks are shared: a stack entry (a position to return to, a count of a repetition) points to a
// set of entries below it, and equal sets have one number. So even a highly ambiguous grammar has
// few entries.
//
// One thread. Used by Matcher; other code should use that.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "grammar/automaton/compiled_grammar.h"
#include "grammar/dfa/intern_table.h"

namespace lockstep {

class GrammarAutomaton {
 public:
  using StateId = uint32_t;
  static constexpr StateId kDead = 0;  // no reading left

  explicit GrammarAutomaton(std::shared_ptr<const CompiledGrammar> grammar);
  GrammarAutomaton(const GrammarAutomaton&) = delete;
  GrammarAutomaton& operator=(const GrammarAutomaton&) = delete;

  StateId start() { return start_; }
  StateId step(StateId state, uint8_t byte) {
    const State& from = states_[state];
    const StateId known = rows_[from.row + (*from.classes)[byte]];
    return known != kUnknown ? known : find_step(state, byte);
  }
  StateId step_token(StateId state, int32_t token);
  bool is_accepting(StateId state) const { return states_[state].is_accepting; }
  // The special tokens that may follow.
  std::vector<int32_t> tokens(StateId state) const;
  // How many arbitrary characters of a JSON string may follow here; 0 outside a string.
  uint32_t plain_characters(StateId state) const { return states_[state].plain_characters; }

  // The grammar has exceeded kStepThreadsMax readings: the automaton now misses some.
  bool is_overloaded() const { return is_overloaded_; }
  void overload() { is_overloaded_ = true; }
  // Readings followed so far, without cached ones.
  uint64_t work() const { return work_; }

  // The caches grow until this is true; then collect() drops all states except those in `holders`
  // and in the held lists, which get new numbers.
  bool needs_collection() const;
  void collect(std::span<StateId> holders);
  uint64_t collection_count() const { return collection_count_; }
  void hold(std::vector<StateId>* states) { held_.push_back(states); }
  void release(std::vector<StateId>* states);
  size_t state_count() const { return states_.size(); }

 private:
  static constexpr StateId kUnknown = UINT32_MAX;
  static constexpr uint32_t kRootEntry = 0;  // below every stack
  static constexpr uint32_t kFewThreads = 24;
  using Classes = std::array<uint8_t, 256>;

  // A stack entry above any entry of the set `below`: where a rule returns to (`count` is kCalled),
  // or a repetition with `count` finished rounds.
  static constexpr uint32_t kCalled = UINT32_MAX;
  struct Entry {
    uint32_t position;
    uint32_t count;
    uint32_t below;
  };
  struct EntrySet {
    uint32_t first;  // in set_entries_
    uint32_t count;
    uint32_t depth;
  };
  struct Thread {
    uint32_t position;
    uint32_t set;
    bool operator==(const Thread&) const = default;
  };
  struct Move {
    uint32_t thread;  // of the state, by index
    uint32_t target;
    bool operator==(const Move&) const = default;
  };
  struct Range {
    size_t begin;
    size_t end;
  };
  // Shared by all states at the same positions, regardless of their stacks.
  struct Kernel {
    std::vector<uint32_t> positions;
    Classes classes{};                 // byte -> class; class 0 has no moves
    std::vector<Range> classes_moves;  // of each class, in `moves`
    std::vector<Move> moves;
    std::span<const Move> moves_of(size_t index) const {
      const Range range = classes_moves[index];
      return std::span(moves).subspan(range.begin, range.end - range.begin);
    }
    std::vector<uint32_t> token_threads;
  };
  struct State {
    uint32_t kernel = 0;
    uint32_t sets = 0;  // in state_sets_, one per position of the kernel
    uint32_t row = 0;   // in rows_, one per class
    bool is_accepting = false;
    uint32_t plain_characters = 0;
    const Classes* classes = nullptr;
  };

  StateId find_step(StateId state, uint8_t byte);
  StateId closed_state(const std::vector<Thread>& seeds);
  void expand(Thread thread);
  void enter_round(Thread thread, uint32_t count);
  void leave_rule(uint32_t set);
  void push(uint32_t position, uint32_t set);
  uint32_t add_seen(Thread thread, uint32_t index);
  StateId intern_state(std::vector<Thread>& threads, bool is_accepting);
  uint32_t intern_kernel(const std::vector<uint32_t>& positions);
  std::unique_ptr<Kernel> make_kernel(const std::vector<uint32_t>& positions);
  uint8_t class_over(Kernel& kernel, uint32_t byte) const;
  uint32_t intern_entry(Entry entry);
  uint32_t intern_set(std::span<const uint32_t> entries);
  uint32_t united(std::span<const Thread> threads);
  uint32_t plain_characters_of(const std::vector<Thread>& threads) const;
  std::span<const uint32_t> entries_of(uint32_t set) const;
  void clear();
  struct Old;
  StateId copied(const Old& old, StateId state, std::vector<uint32_t>& set_of,
                 std::vector<StateId>& state_of);

  std::shared_ptr<const CompiledGrammar> grammar_;
  std::vector<Entry> entries_;
  std::vector<EntrySet> sets_;
  std::vector<uint32_t> set_entries_;
  std::vector<std::unique_ptr<Kernel>> kernels_;
  std::vector<State> states_;
  std::vector<uint32_t> state_sets_;
  std::vector<StateId> rows_;
  InternTable entry_table_;
  InternTable set_table_;
  InternTable kernel_table_;
  InternTable state_table_;
  StateId start_ = kDead;
  bool is_overloaded_ = false;
  uint64_t collection_count_ = 0;
  uint64_t work_ = 0;
  std::vector<std::vector<StateId>*> held_;

  // Scratch of make_kernel().
  struct ThreadEdge {
    uint32_t first;
    uint32_t last;
    Move move;
  };
  std::vector<ThreadEdge> thread_edges_;

  // Scratch of closed_state().
  std::vector<Thread> seeds_;
  std::vector<Thread> pending_;
  std::vector<Thread> reached_;
  std::vector<uint32_t> reached_positions_;
  InternTable seen_;
  std::vector<Thread> seen_threads_;
  bool reaches_end_ = false;
};

}  // namespace lockstep
