#include "chat/constraints/harmony_constraint.h"

#include <utility>

#include "chat/constraints/constraint_parts.h"

namespace lockstep {
namespace {

class HarmonyAnswer {
 public:
  HarmonyAnswer(const AnswerOptions& options, bool has_calls)
      : options_(options), has_calls_(has_calls), ends_(options.format->call_end) {
    ends_.push_back("<|start|>");
  }

  Json whole() const {
    Json next = sequence_part({marker_part("<|end|>"), start(), messages()});
    if (options_.continues_text || options_.reasoning == ReasoningState::kOpen) {
      if (is_free()) next = optional_part(std::move(next));
      return sequence_part({free_part(ends_), std::move(next)});
    }
    return messages();
  }

 private:
  // An unconstrained model may also stop anywhere.
  bool is_free() const { return options_.calls != CallChoice::kRequired && !options_.answer; }

  static Json start() { return sequence_part({marker_part("<|start|>"), text_part("assistant")}); }

  static Json channel(std::string_view name) {
    return sequence_part({marker_part("<|channel|>"), text_part(name)});
  }

  Json message(std::string_view channel_name) const {
    return sequence_part({channel(channel_name), marker_part("<|message|>"), free_part(ends_)});
  }

  // From the start of a header on: reasoning and announcements, then the answer.
  Json messages() const {
    JsonArray before;
    before.push_back(message("analysis"));
    if (is_free()) before.push_back(message("commentary"));
    Json turn = sequence_part({choice_part(before), marker_part("<|end|>"), start()});
    JsonArray last;
    if (has_calls_) last.push_back(rule_part("calls"));
    if (options_.answer) {
      last.push_back(sequence_part({channel("final"), constrain(), marker_part("<|message|>"),
                                    rule_part("answer"), end("<|return|>")}));
    } else if (options_.calls != CallChoice::kRequired) {
      last.push_back(sequence_part({channel("final"), constrain(), marker_part("<|message|>"),
                                    free_part(ends_), end("<|return|>")}));
      for (Json& unended : before) last.push_back(std::move(unended));
    }
    return sequence_part({many_part(std::move(turn), 0), choice_part(std::move(last))});
  }

  static Json constrain() {
    return optional_part(sequence_part(
        {text_part(" "), optional_part(marker_part("<|constrain|>")), text_part("json")}));
  }

  static Json end(std::string_view marker) { return optional_part(marker_part(marker)); }

  const AnswerOptions& options_;
  const bool has_calls_;
  ToolFormat::Markers ends_;  // of a message
};

}  // namespace

Json harmony_answer(const AnswerOptions& options, bool has_calls) {
  return HarmonyAnswer(options, has_calls).whole();
}

}  // namespace lockstep
