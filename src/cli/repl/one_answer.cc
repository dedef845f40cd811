#include "cli/repl/one_answer.h"

#include <fmt/core.h>

#include <cstdio>

#include "cli/text/output.h"

namespace lockstep {
namespace {

// Without a block of code the whole answer, which a pipe can use as well.
void print_code(const TalkAnswer& answer, const AnswerViewOptions& view) {
  const auto block = first_code_block(answer.content);
  if (!block) fmt::print(stderr, "The answer has no block of code; this is all of it.\n");
  const std::string& text = block ? *block : answer.content;
  const std::string shown = view.out.is_terminal ? harmless_text(text) : text;
  fmt::print(stdout, "{}{}", shown, shown.ends_with('\n') ? "" : "\n");
  std::fflush(stdout);
}

// The value of --json.
Json answer_json(const TalkAnswer& answer, const std::string& node) {
  const TalkFigures& figures = answer.figures;
  JsonObject object{{"text", answer.content}};
  // A node does not tell the ids of its tokens.
  if (node.empty()) object["tokens"] = JsonArray(answer.tokens.begin(), answer.tokens.end());
  object["prompt_tokens"] = figures.prompt_tokens;
  object["completion_tokens"] = figures.new_tokens;
  object["finish_reason"] = answer.finish_reason;
  if (!answer.reasoning.empty()) object["reasoning"] = answer.reasoning;
  if (figures.first_s >= 0) {
    object["first_token_s"] = figures.first_s;
    object["total_s"] = figures.whole_s;
  }
  if (figures.cached_tokens >= 0) object["cached_tokens"] = figures.cached_tokens;
  object["pids"] = JsonArray(answer.pids.begin(), answer.pids.end());
  if (!node.empty()) object["node"] = node;
  return object;
}

}  // namespace

Status answer_once(Answerer& answerer, Dialogue& conversation, const OneAnswerOptions& options) {
  conversation.model = answerer.model();
  AnswerViewOptions view_options = options.view;
  view_options.is_silent = options.is_json || options.is_code;
  AnswerView view(view_options);
  auto made = answerer.answer(conversation, options.settings, view);
  view.finish(made.ok());
  const TalkAnswer answer = TRY(std::move(made));
  if (answer.error) return *answer.error;
  conversation.answer(answer.content, answer.reasoning);
  if (options.is_json) {
    print_json(answer_json(answer, options.node));
  } else if (options.is_code) {
    print_code(answer, options.view);
  }
  return Ok{};
}

}  // namespace lockstep
