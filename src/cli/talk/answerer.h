// Answerer: who answers in a chat of `lockstep run`: a running node, or workers of this process.
// Used from one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/talk/dialogue.h"

namespace lockstep {

struct TalkFigures {
  int64_t prompt_tokens = -1;  // -1: not known, as for the next ones
  int64_t new_tokens = -1;
  int64_t cached_tokens = -1;  // of the prompt, that were not computed again
  double first_s = -1;         // until the first token
  double whole_s = -1;
  double tokens_s = -1;  // after the first
};

struct TalkAnswer {
  std::string content;
  std::string reasoning;
  std::string finish_reason;  // "stop", "length"; empty if it was stopped
  TalkFigures figures;
  // It ended early: kCancelled by Ctrl-C, or why; the texts are what had come.
  std::optional<Error> error;
  std::vector<int32_t> tokens;  // only of own workers
  std::vector<int64_t> pids;    // of the ranks
};

// Hears of an answer while it is made.
class TalkEvents {
 public:
  virtual ~TalkEvents() = default;
  virtual void on_reasoning(std::string_view text) = 0;
  virtual void on_content(std::string_view text) = 0;
  virtual void on_wait(std::string_view text) = 0;  // what it waits for now
  virtual void on_note(std::string_view text) = 0;  // something that has happened
};

class Answerer {
 public:
  virtual ~Answerer() = default;

  // Answers the last message. Ctrl-C ends it. An error if no answer has begun.
  virtual Result<TalkAnswer> answer(const Dialogue& conversation, const TalkSettings& settings,
                                    TalkEvents& events) = 0;
  virtual std::string model() const = 0;
  virtual int64_t context() const = 0;  // positions; 0: not known
  // Makes sure that this model can answer, and takes it from now on; empty: the user chooses.
  virtual Status choose_model(const std::string& model) = 0;
  virtual std::vector<std::string> known_models() = 0;
  // About the machines, for people.
  virtual Result<std::vector<std::string>> node_lines() = 0;
  // One sentence about where the answers come from.
  virtual std::string place() const = 0;
};

}  // namespace lockstep
