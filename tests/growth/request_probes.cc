// Request bodies of every API: many messages, parts, tools, calls and results, and too many of
// limited items.
#include "growth/probe.h"
#include "server/anthropic/anthropic_request.h"
#include "server/ollama/ollama_request.h"
#include "server/openai/openai_chat.h"
#include "server/openai/openai_completions.h"
#include "server/openai/openai_embeddings.h"
#include "server/openai/responses_request.h"
#include "support/colliding_keys.h"

namespace lockstep {
namespace {

bool reads_chat(const std::string& body) {
  return parse_chat_request(body).ok();
}
bool reads_responses(const std::string& body) {
  return parse_responses_request(body).ok();
}
bool reads_messages(const std::string& body) {
  return parse_messages_request(body, MessagesRoute::kMessages).ok();
}
bool reads_ollama(const std::string& body) {
  return parse_ollama_chat(body).ok();
}
bool reads_generate(const std::string& body) {
  return parse_ollama_generate(body).ok();
}
bool reads_completion(const std::string& body) {
  return parse_completion_request(body).ok();
}
bool reads_embeddings(const std::string& body) {
  return parse_embedding_request(body).ok();
}
bool reads_ollama_embed(const std::string& body) {
  return parse_ollama_embed(body).ok();
}

#define MODEL R"({"model":"m","max_tokens":9,)"
#define ASKED MODEL R"("messages":[{"role":"user","content":"a"}],)"
#define CALL(arguments) \
  R"({"id":"c@","type":"function","function":{"name":"f@","arguments":)" arguments "}}"
#define RESULT R"({"role":"tool","tool_call_id":"c@","tool_name":"f@","content":"@"})"
#define TOOL R"({"type":"function","function":{"name":"f@","parameters":{}}})"
#define FLAT_TOOL(type) R"({"type":")" type R"(","name":"f@","parameters":{}})"

// Calls in one message, and their results in reverse order.
std::string calls_then_results(size_t count, std::string_view call, std::string_view between,
                               std::string_view result) {
  const auto backwards = [count, result](size_t i) {
    std::string one(result);
    const std::string number = std::to_string(count - 1 - i);
    for (size_t at = one.find('@'); at != one.npos; at = one.find('@', at)) {
      one.replace(at, 1, number);
    }
    return one;
  };
  return numbered(count, call) + std::string(between) + listed(count, ",", backwards);
}

Probes chat_readers() {
  Probes probes = list_probes(
      {
          {"chat: messages of one role", 1500, MODEL R"("messages":[)",
           R"({"role":"user","content":"word @"})", "]}"},
          {"chat: text parts", 1500, MODEL R"("messages":[{"role":"user","content":[)",
           R"({"type":"text","text":"a"})", "]}]}"},
          {"chat: calls and results", 400, MODEL R"("messages":[{"role":"user","content":"a"},)",
           R"({"role":"assistant","content":null,"tool_calls":[)" CALL(R"("{}")") "]}," RESULT,
           "]}"},
          {"chat: tools", 250, ASKED R"("tools":[)", TOOL, "]}"},
          {"chat: unknown fields", 2000, ASKED, R"("x@":1)", "}"},
          {"chat: stop strings", 2000, ASKED R"("stop":[)", "\"a\"", "]}"},
          {"chat: biases of tokens", 2000, ASKED R"("logit_bias":{)", R"("@":1)", "}}"},
          {"chat: biases of one token", 2000, ASKED R"("logit_bias":{)", R"("7":1)", "}}"},
          {"chat: choices to guide to", 2000, ASKED R"("guided_choice":[)", "\"a\"", "]}"},
          {"chat: breakers of repetitions", 2000, ASKED R"("dry_sequence_breakers":[)", "\"a\"",
           "]}"},
          {"chat: a schema for the answer", 800,
           ASKED R"("response_format":{"type":"json_schema","json_schema":{"schema":)"
                 R"({"type":"object","properties":{)",
           R"("p@":{"type":"string"})", "}}}}}"},
      },
      reads_chat);
  probes.push_back(text_probe(
      "chat: calls of one message, results backwards", 400,
      [](size_t n) {
        return MODEL R"("messages":[{"role":"user","content":"a"},)"
                     R"({"role":"assistant","content":"","tool_calls":[)" +
               calls_then_results(n, CALL(R"("{}")"), "]},", RESULT) + "]}";
      },
      reads_chat));
  probes.push_back(text_probe(
      "chat: tools and allowed tools", 250,
      [](size_t n) {
        return ASKED R"("tools":[)" + numbered(n, TOOL) +
               R"(],"tool_choice":{"type":"allowed_tools","allowed_tools":)"
               R"({"mode":"auto","tools":[)" +
               numbered(n, R"({"type":"function","function":{"name":"f@"}})") + "]}}}";
      },
      reads_chat));
  return probes;
}

#define ITEMS R"({"model":"m","input":[)"
#define INPUT R"({"model":"m","input":"a",)"
#define FUNCTION_CALL R"({"type":"function_call","call_id":"c@","name":"f","arguments":"{}"})"
#define CALL_OUTPUT R"({"type":"function_call_output","call_id":"c@","output":"@"})"

Probes responses_readers() {
  Probes probes = list_probes(
      {
          {"responses: items of one role", 1000, ITEMS, R"({"role":"user","content":"word @"})",
           "]}"},
          {"responses: reasoning", 800, ITEMS,
           R"({"type":"reasoning","summary":[{"type":"summary_text","text":"thought @"}]})", "]}"},
          {"responses: texts of the model", 800, ITEMS,
           R"({"type":"message","role":"assistant","content":[)"
           R"({"type":"output_text","text":"word @"}]})",
           "]}"},
          {"responses: calls and outputs", 400, ITEMS, FUNCTION_CALL "," CALL_OUTPUT, "]}"},
          {"responses: kinds of tools that are unknown", 1500, INPUT R"("tools":[)",
           FLAT_TOOL("kind@"), "]}"},
          {"responses: unknown fields", 2000, INPUT, R"("x@":1)", "}"},
          {"responses: metadata", 2000, INPUT R"("metadata":{)", R"("k@":"v")", "}}"},
      },
      reads_responses);
  probes.push_back(text_probe(
      "responses: calls, then outputs", 400,
      [](size_t n) {
        return ITEMS + calls_then_results(n, FUNCTION_CALL, ",", CALL_OUTPUT) + "]}";
      },
      reads_responses));
  probes.push_back(text_probe(
      "responses: tools and allowed tools", 250,
      [](size_t n) {
        return INPUT R"("tools":[)" + numbered(n, FLAT_TOOL("function")) +
               R"(],"tool_choice":{"type":"allowed_tools","mode":"auto","tools":[)" +
               numbered(n, R"({"type":"function","name":"f@"})") + "]}}";
      },
      reads_responses));
  return probes;
}

#define BLOCKS(role) \
  MODEL R"("messages":[{"role":"user","content":"a"},{"role":")" role R"(","content":[)"

Probes messages_readers() {
  Probes probes = list_probes(
      {
          {"messages: of one role", 800, MODEL R"("messages":[)",
           R"({"role":"user","content":"word @"})", "]}"},
          {"messages: text blocks", 800, BLOCKS("user"), R"({"type":"text","text":"word @"})",
           "]}]}"},
          {"messages: thinking blocks", 800, BLOCKS("assistant"),
           R"({"type":"thinking","thinking":"thought @","signature":""})",
           R"(,{"type":"text","text":"a"}]}]})"},
          {"messages: calls and results", 400,
           MODEL R"("messages":[{"role":"user","content":"a"},)",
           R"({"role":"assistant","content":[)"
           R"({"type":"tool_use","id":"c@","name":"f","input":{}}]},)"
           R"({"role":"user","content":[{"type":"tool_result","tool_use_id":"c@","content":"x"}]})",
           "]}"},
          {"messages: a system of many blocks", 800, ASKED R"("system":[)",
           R"({"type":"text","text":"Be brief."})", "]}"},
          {"messages: tools", 250, ASKED R"("tools":[)",
           R"({"name":"f@","input_schema":{"type":"object"}})", "]}"},
          {"messages: unknown fields", 2000, ASKED, R"("x@":1)", "}"},
          {"messages: stop strings", 2000, ASKED R"("stop_sequences":[)", "\"a\"", "]}"},
      },
      reads_messages);
  probes.push_back(text_probe(
      "messages: calls of one message, results backwards", 600,
      [](size_t n) {
        return BLOCKS("assistant") +
               calls_then_results(n, R"({"type":"tool_use","id":"c@","name":"f","input":{}})",
                                  R"(]},{"role":"user","content":[)",
                                  R"({"type":"tool_result","tool_use_id":"c@","content":"x"})") +
               "]}]}";
      },
      reads_messages));
  return probes;
}

Probes ollama_readers() {
  Probes probes = list_probes(
      {
          {"ollama chat: messages", 800, MODEL R"("messages":[)",
           R"({"role":"user","content":"word @"})", "]}"},
          {"ollama chat: tools", 250, ASKED R"("tools":[)", TOOL, "]}"},
          {"ollama chat: options", 2000, ASKED R"("options":{)", R"("x@":1)", "}}"},
      },
      reads_ollama);
  probes.push_back(text_probe(
      "ollama chat: calls, then results backwards", 400,
      [](size_t n) {
        return MODEL R"("messages":[{"role":"user","content":"a"},)"
                     R"({"role":"assistant","content":"","tool_calls":[)" +
               calls_then_results(n, CALL("{}"), "]},", RESULT) + "]}";
      },
      reads_ollama));
  probes.push_back(text_probe(
      "ollama chat: ids that collide", 600,
      [](size_t n) {
        const auto ids = murmur_collisions(n);
        const auto call = [&](size_t i) {
          return R"({"id":")" + ids[i] + R"(","function":{"name":")" + ids[i] + "\"}}";
        };
        return MODEL R"("messages":[{"role":"assistant","content":"","tool_calls":[)" +
               listed(n, ",", call) + "]}]}";
      },
      reads_ollama));
  probes.push_back(list_probe(
      {"ollama generate: a long prompt", 20'000, R"({"model":"m","prompt":")", "a ", "\"}"},
      reads_generate));
  probes.push_back(
      list_probe({"ollama embed: texts", 500, ITEMS, "\"a\"", "]}"}, reads_ollama_embed));
  return probes;
}

Probes text_readers() {
  Probes probes = list_probes({{"completions: prompts", 2000, R"({"prompt":[)", "\"a\"", "]}"},
                               {"completions: token ids", 5000, R"({"prompt":[)", "17", "]}"}},
                              reads_completion);
  for (const ListText& text :
       {ListText{"embeddings: texts", 450, ITEMS, "\"a\"", "]}"},
        ListText{"embeddings: lists of token ids", 450, ITEMS, "[1,2]", "]}"}}) {
    probes.push_back(list_probe(text, reads_embeddings));
  }
  return probes;
}

}  // namespace

Probes request_probes() {
  Probes all;
  for (const auto& part : {chat_readers(), responses_readers(), messages_readers(),
                           ollama_readers(), text_readers()}) {
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

}  // namespace lockstep
