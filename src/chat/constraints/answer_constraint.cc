#include "chat/constraints/answer_constraint.h"

#include <algorithm>

#include "chat/constraints/call_parts.h"
#include "chat/constraints/constraint_parts.h"
#include "chat/constraints/harmony_constraint.h"

namespace lockstep {
namespace {

// An answer in a format with markers: reasoning, text, sections of calls (tool_format.h).
class MarkedAnswer {
 public:
  MarkedAnswer(const AnswerOptions& options, bool has_calls)
      : options_(options), format_(*options.format), has_calls_(has_calls) {
    for (const ToolFormat::Markers* some : {&format_.section_begin, &format_.call_begin}) {
      openers_.insert(openers_.end(), some->begin(), some->end());
    }
  }

  Json whole() const {
    const bool may_reason = !format_.reasoning_begin.empty() && !options_.continues_text;
    if (!may_reason || options_.reasoning == ReasoningState::kClosed) return reply("");
    if (options_.reasoning == ReasoningState::kOpen) return reasoned();
    Json block =
        sequence_part({rule_part("gap"), marker_part(format_.reasoning_begin), reasoned()});
    return choice_part({std::move(block), reply(escaped(format_.reasoning_begin))});
  }

 private:
  // The answer from inside the reasoning on.
  Json reasoned() const {
    const bool ends_at_calls = format_.calls_end_reasoning && has_calls_;
    ToolFormat::Markers ends{format_.reasoning_end};
    if (ends_at_calls) ends.insert(ends.end(), openers_.begin(), openers_.end());
    JsonArray tails;
    tails.push_back(sequence_part({marker_part(format_.reasoning_end), reply("")}));
    if (ends_at_calls) tails.push_back(from_calls());
    Json tail = choice_part(std::move(tails));
    // An unconstrained model may also stop anywhere.
    const bool may_stop = options_.calls != CallChoice::kRequired && !options_.answer;
    return sequence_part(
        {free_part(ends), may_stop ? optional_part(std::move(tail)) : std::move(tail)});
  }

  // The answer after the reasoning, if any; its text does not begin with the pattern `not_begin`.
  Json reply(const std::string& not_begin) const {
    JsonArray forms;
    if (has_calls_ && options_.calls == CallChoice::kRequired) return only_calls();
    if (has_calls_ && options_.answer) forms.push_back(only_calls());
    if (options_.answer) {
      forms.push_back(sequence_part({regex_part("\\n{0,2}"), rule_part("answer")}));
      return choice_part(std::move(forms));
    }
    const bool has_bare = has_calls_ && !format_.bare_begin.empty() && !options_.continues_text;
    if (has_bare) forms.push_back(only_calls());
    const bool has_prefix = has_calls_ && format_.prefix_begins_call && !options_.continues_text;
    if (has_prefix) forms.push_back(unmarked_call());
    forms.push_back(text_and_calls(text_unlike(not_begin, has_bare)));
    return choice_part(std::move(forms));
  }

  Json only_calls() const { return sequence_part({rule_part("gap"), rule_part("calls")}); }

  // A call without its beginning, and what may follow it.
  Json unmarked_call() const {
    JsonArray ends;
    for (const std::string_view end : format_.call_end) ends.push_back(marker_part(end));
    JsonArray rest{rule_part("gap"), choice_part(std::move(ends)), free_part(openers_)};
    if (options_.is_parallel) rest.push_back(optional_part(from_calls()));
    return sequence_part(
        {rule_part("gap"), rule_part("call"), optional_part(sequence_part(std::move(rest)))});
  }

  Json text_and_calls(const std::string& unlike) const {
    Json text = free_part(openers_, unlike);
    if (!has_calls_ || openers_.empty()) return text;
    return sequence_part({std::move(text), optional_part(from_calls())});
  }

  Json from_calls() const {
    if (options_.calls == CallChoice::kRequired || options_.answer) return rule_part("calls");
    Json round = sequence_part({rule_part("announced calls"), free_part(openers_)});
    return options_.is_parallel ? many_part(std::move(round), 1) : round;
  }

  // A pattern that the answer's text must not begin with, because it would be parsed as something
  // else.
  std::string text_unlike(const std::string& not_begin, bool has_bare) const {
    std::vector<std::string> begins;
    if (!not_begin.empty()) begins.push_back(not_begin);
    if (has_bare) {
      begins.emplace_back("\\{");
      const bool has_lists = format_.bare_begin.find('[') != std::string_view::npos;
      const std::string list = "\\[[" + escaped(format_.section_filler) + " \\t\\r\\n]*\\{";
      if (has_lists) begins.push_back(list);
      for (const std::string_view fence : format_.mistakes.fences) {
        begins.push_back(std::string(fence) + "[ \\t\\r\\n]*(?:\\{|" + list + ")");
      }
    }
    if (has_calls_ && format_.prefix_begins_call) begins.push_back(named_call());
    if (begins.empty()) return "";
    return fmt::format("^[ \\t\\r\\n]*(?:{})", fmt::join(begins, "|"));
  }

  // A text that would be read as the beginning of a call without another marker.
  std::string named_call() const {
    std::vector<std::string> names = options_.known_tools()->names();
    for (std::string& name : names) name = escaped(name);
    return fmt::format("{}[ \\t\\r\\n]*(?:{})[ \\t\\r\\n]*[{}{}]", format_.name_prefix,
                       fmt::join(names, "|"), escaped(format_.name_stops),
                       escaped(format_.mistakes.name_stops));
  }

  // Escapes for a regex, also inside brackets.
  static std::string escaped(std::string_view text) {
    std::string pattern;
    for (const char letter : text) {
      if (std::string_view("^$\\.*+?()[]{}|/").find(letter) != std::string_view::npos) {
        pattern += '\\';
      }
      pattern += letter;
    }
    return pattern;
  }

  const AnswerOptions& options_;
  const ToolFormat& format_;
  const bool has_calls_;
  ToolFormat::Markers openers_;
};

}  // namespace

std::shared_ptr<const ToolSet> AnswerOptions::known_tools() const {
  return tool_types ? tool_types : std::make_shared<const ToolSet>(*tools);
}

Result<std::string> answer_constraint(const AnswerOptions& options) {
  const bool has_tools =
      options.tools != nullptr && options.tools->is_array() && !options.tools->get_array().empty();
  const bool has_calls =
      options.format != nullptr && has_tools && options.calls != CallChoice::kNone;
  JsonObject rules{{"gap", regex_part("[ \\n]{0,2}")}};
  if (options.answer) rules["answer"] = *options.answer;
  if (has_calls) TRY(add_call_rules(options, rules));
  Json root;
  if (options.format == nullptr) {
    root = options.answer ? rule_part("answer") : free_part({});
  } else if (options.format->is_harmony) {
    root = harmony_answer(options, has_calls);
  } else {
    root = MarkedAnswer(options, has_calls).whole();
  }
  return dump_json(JsonObject{{"rules", std::move(rules)}, {"root", std::move(root)}});
}

}  // namespace lockstep
