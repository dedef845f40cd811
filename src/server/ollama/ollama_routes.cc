#include "server/ollama/ollama_routes.h"

#include <fmt/core.h>

#include <limits>
#include <string>
#include <utility>

#include "server/chat/chat_answer.h"
#include "server/chat/chat_plan.h"
#include "server/chat/chat_prompt.h"
#include "server/generation/api_context.h"
#include "server/generation/fim_prompt.h"
#include "server/ollama/ollama_answer.h"
#include "server/ollama/ollama_models.h"
#include "server/ollama/ollama_options.h"
#include "server/ollama/ollama_request.h"

namespace lockstep {
namespace {

using ModelPointer = std::shared_ptr<ModelService>;

// The name may end with the tag that Ollama appends.
ApiResult<ModelPointer> ready_model(const ApiContext& context, const std::string& name) {
  if (name.empty()) {
    return missing_field("model");
  }
  return context.find_ready_model(ollama_model_name(context, name));
}

// Continues a text verbatim, or up to a suffix.
ApiResult<ChatPlan> plan_text(const OllamaRequest& request, const ModelService& model) {
  const auto tokenizer = model.tokenizer();
  const ModelStatus status = model.status();
  ChatPlan made;
  GenerationPlan::Choice choice{.prompt = {}, .seed = request.chat.options.seed, .echo = ""};
  if (request.suffix) {
    FimPrompt prompt = TRY(fim_prompt(*tokenizer, *request.text, *request.suffix));
    choice.prompt = std::move(prompt.ids);
    made.generation.stop_ids = std::move(prompt.stop_ids);
  } else {
    // A text written by a template has its special tokens spelled out.
    choice.prompt = tokenizer->encode(
        *request.text, {.add_bos = tokenizer->bos_id().has_value(), .parse_special = true});
  }
  TRY(check_prompt(choice.prompt, status, "prompt"));
  const int prompt_tokens = static_cast<int>(choice.prompt.size());
  const int context = status.context > 0 ? status.context : std::numeric_limits<int32_t>::max();
  made.generation.max_tokens = request.chat.options.max_tokens.value_or(context - prompt_tokens);
  made.generation.prompt_tokens = prompt_tokens;
  made.generation.choices.push_back(std::move(choice));
  made.parsers.emplace_back();
  return made;
}

ApiResult<ChatPlan> plan_conversation(const ApiContext& context, const OllamaRequest& request,
                                      const ModelService& model) {
  for (const std::string& hint : unknown_hints(request.chat, model)) {
    if (hint != "thinking") continue;
    return bad_field("think", fmt::format("\"{}\" does not support thinking", model.status().name));
  }
  ChatPrompt prompt = TRY(make_chat_prompt(request.chat, model, *context.sampled_calls()));
  return plan_chat(request.chat, model, std::move(prompt));
}

// Ollama's defaults differ from OpenAI's.
GenerationOptions with_defaults(GenerationOptions options, const SamplingDefaults& of_model) {
  const SamplingDefaults defaults = ollama_sampling_defaults(of_model);
  if (!options.temperature) options.temperature = defaults.temperature;
  if (!options.top_p) options.top_p = defaults.top_p;
  if (!options.top_k) options.top_k = defaults.top_k;
  return options;
}

void refuse(const HttpReply& reply, const ApiError& error) {
  reply.send(error_response(error, ErrorStyle::kOllama));
}

ApiError no_unload() {
  return {501,
          "this model stays loaded: `lockstep unload NAME` unloads it; only for a model loaded "
          "with `lockstep load NAME --idle-unload S` may clients set how long it stays",
          "keep_alive", "not_implemented"};
}

// Only loads or unloads the model.
void answer_empty(ApiContext& context, const OllamaRequest& request, const OllamaForm& form,
                  const HttpReply& reply) {
  const bool is_to_go = request.keep_alive && request.keep_alive->count() == 0;
  if (request.keep_alive) context.keep(form.model, *request.keep_alive);
  reply.send(ollama_loaded(form, is_to_go ? "unload" : "load"));
}

void serve_generation(ApiContext& context, const ApiResult<OllamaRequest>& parsed, bool is_chat,
                      const HttpReply& reply) {
  if (!parsed.ok()) return refuse(reply, parsed.error());
  const OllamaRequest& request = parsed.value();
  const auto model = ready_model(context, request.chat.options.model);
  if (!model.ok()) return refuse(reply, model.error());
  OllamaForm form{.model = model.value()->status().name,
                  .is_chat = is_chat,
                  .is_streamed = request.chat.options.is_streamed,
                  .headers = {}};
  auto ignored = request.chat.options.ignored;
  if (request.keep_alive && !can_keep(context, form.model, *request.keep_alive)) {
    if (request.is_empty && request.keep_alive->count() == 0) return refuse(reply, no_unload());
    ignored.emplace_back("keep_alive");
  }
  form.headers = ignored_fields_header(ignored);
  if (request.is_empty) return answer_empty(context, request, form, reply);
  auto plan = request.text ? plan_text(request, *model.value())
                           : plan_conversation(context, request, *model.value());
  if (!plan.ok()) return refuse(reply, plan.error());
  for (auto& header : warnings_header(plan.value().warnings)) form.headers.push_back(header);
  const auto headers = form.headers;
  const bool is_streamed = form.is_streamed;
  auto sink = make_chat_answer({.writer = make_ollama_writer(std::move(form)),
                                .parser = std::move(plan.value().parsers.front()),
                                .sampled = context.sampled_calls(),
                                .is_streamed = is_streamed,
                                .stream_type = kNdjsonContentType,
                                .whole_type = kOllamaJsonContentType,
                                .headers = headers},
                               reply);
  context.generate(model.value(), std::move(plan.value().generation),
                   with_defaults(request.chat.options, model.value()->sampling_defaults()),
                   std::move(sink), {reply, nullptr});
  // Not earlier: the time starts when no request of this model runs any more.
  if (request.keep_alive) context.keep(model.value()->status().name, *request.keep_alive);
}

}  // namespace

void serve_ollama_chat(ApiContext& context, const HttpRequest& request, const HttpReply& reply) {
  serve_generation(context, parse_ollama_chat(request.body), true, reply);
}

void serve_ollama_generate(ApiContext& context, const HttpRequest& request,
                           const HttpReply& reply) {
  serve_generation(context, parse_ollama_generate(request.body), false, reply);
}

void refuse_ollama(ApiContext&, const HttpRequest& request, const HttpReply& reply) {
  refuse(reply, {501,
                 fmt::format("lockstep has no {}: `lockstep pull` and `load` bring models here, "
                             "`unload` and `remove` take them away",
                             request.path),
                 "", "not_implemented"});
}

}  // namespace lockstep
