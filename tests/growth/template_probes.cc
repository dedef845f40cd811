// Jinja's lexer and parser over long templates, and long conversations through published models'
// templates.
#include <fmt/format.h>

#include <map>
#include <memory>

#include "chat/chat_format.h"
#include "chat/constraints/plain_schema.h"
#include "chat/jinja_syntax/jinja_lexer.h"
#include "chat/tool_instructions.h"
#include "chat/tools/tool_set.h"
#include "growth/probe.h"

namespace lockstep {
namespace {

bool lexes(const std::string& text) {
  return jinja::lex_template(text).ok();
}
bool parses_template(const std::string& text) {
  return ChatTemplate::parse(text).ok();
}

constexpr std::string_view kTools =
    R"([{"type":"function","function":{"name":"now","description":"The time.","parameters":)"
    R"({"type":"object","properties":{"zone":{"type":"string"}},"required":["zone"]}}}])";

std::string turns(size_t count) {
  return numbered(count, R"({"role":"user","content":"Question @"},)"
                         R"({"role":"assistant","content":"Answer @"})");
}

std::string calls(size_t count) {
  return R"({"role":"user","content":"When?"},)" + listed(count, ",", [](size_t i) {
           const std::string id = fmt::format("abcde{:04}", i);  // nine, as some require
           return R"({"role":"assistant","content":"","tool_calls":[{"id":")" + id +
                  R"(","type":"function","function":{"name":"now","arguments":{"zone":"a"}}}]},)" +
                  R"({"role":"tool","tool_call_id":")" + id + R"(","name":"now","content":"1"})";
         });
}

std::string one_long(size_t count) {
  return R"({"role":"user","content":")" + repeated("word <|im_end|> ", count) + "\"}";
}

// A conversation through a template, with everything the server does with it.
Probe rendering(const std::string& file, std::string shape, size_t items,
                std::string (*messages)(size_t)) {
  return {fmt::format("template {}: {}", file.substr(0, file.rfind('.')), shape), items,
          [file, messages](size_t n) -> Reading {
            static std::map<std::string, std::shared_ptr<const ChatFormat>> parsed;
            auto& format = parsed[file];
            if (!format) {
              const std::string source = source_file("tests/data/templates/" + file);
              format = ChatFormat::parse({source, "", {}}).value();
            }
            const auto talk =
                std::make_shared<const Json>(parse_json("[" + messages(n) + "]").value());
            const auto tools = std::make_shared<const Json>(parse_json(kTools).value());
            return [format = format, talk, tools] {
              ChatInput input;
              input.messages = talk.get();
              input.tools = tools.get();
              return format->write(input).ok();
            };
          }};
}

std::string schema_of(size_t properties) {
  return R"({"type":"object","properties":{)" +
         listed(properties, ",",
                [](size_t i) {
                  return fmt::format(R"("p{}":{{"type":["string","null"],"title":"t"}})", i);
                }) +
         "}}";
}

std::string tool(const std::string& name, const std::string& parameters) {
  return R"({"type":"function","function":{"name":")" + name + R"(","parameters":)" + parameters +
         "}}";
}

Probe tool_set(std::string shape, size_t items, std::function<std::string(size_t)> tools) {
  return text_probe("tools: " + std::move(shape), items, std::move(tools),
                    [](const std::string& text) {
                      const Json list = parse_json("[" + text + "]").value();
                      return !ToolSet(list).empty();
                    });
}

// A schema whose references are circular.
std::string circular(size_t count) {
  return tool(
      "f", R"({"type":"object","properties":{"p":{"$ref":"#/$defs/a"}},"$defs":{"a":{"anyOf":[)" +
               repeated(R"({"$ref":"#/$defs/a"},)", count) + R"({"type":"string"}]}}})");
}

Probes sources() {
  return {
      text_probe(
          "jinja lexer: texts and blocks", 2000,
          [](size_t n) { return repeated("text {{ a }} {# b #}\n", n); }, lexes),
      text_probe(
          "jinja lexer: braces that open nothing", 20'000,
          [](size_t n) { return repeated("{ ", n); }, lexes),
      text_probe(
          "jinja lexer: comments that do not end", 10'000,
          [](size_t n) { return repeated("{#", n); }, lexes),
      text_probe(
          "jinja lexer: strings that do not end", 10'000,
          [](size_t n) { return "{{ " + repeated("'a\\'", n); }, lexes),
      text_probe(
          "jinja lexer: blanks to strip", 20'000,
          [](size_t n) { return repeated(" \n", n) + "{%- set a = 1 -%}" + repeated(" \n", n); },
          lexes),
      text_probe(
          "jinja parser: statements", 1500,
          [](size_t n) { return repeated("{% if a %}{{ b }}{% endif %}", n); }, parses_template),
      text_probe(
          "jinja parser: alternatives", 1500,
          [](size_t n) { return "{% if a %}" + repeated("{% elif b %}", n) + "{% endif %}"; },
          parses_template),
      text_probe(
          "jinja parser: a long sum", 3000,
          [](size_t n) { return "{{ 1" + repeated(" + 1", n) + " }}"; }, parses_template),
      text_probe(
          "jinja parser: a long list", 3000,
          [](size_t n) { return "{{ [" + repeated("1,", n) + "1] }}"; }, parses_template),
      text_probe(
          "jinja parser: open brackets", 10'000, [](size_t n) { return "{{ " + repeated("(", n); },
          parses_template),
      text_probe(
          "jinja parser: filters", 3000,
          [](size_t n) { return "{{ a" + repeated("|trim", n) + " }}"; }, parses_template),
  };
}

Probes tools() {
  return {
      tool_set("many of them", 500,
               [](size_t n) {
                 return listed(n, ",", [](size_t i) { return tool(fmt::format("f{}", i), "{}"); });
               }),
      tool_set("of one name", 500,
               [](size_t n) {
                 return listed(n, ",",
                               [](size_t) { return tool("f", R"({"properties":{"a":{}}})"); });
               }),
      tool_set("with many properties", 1000, [](size_t n) { return tool("f", schema_of(n)); }),
      tool_set("whose references are circles", 6, circular),
      tool_set("with a union of many", 1000,
               [](size_t n) {
                 return tool("f", R"({"properties":{"p":{"anyOf":[)" +
                                      repeated(R"({"type":"string"},)", n) +
                                      R"({"type":"null"}]}}})");
               }),
      text_probe("plain schema: many properties", 1000, schema_of,
                 [](const std::string& text) {
                   return plain_schema(parse_json(text).value()).is_object();
                 }),
      text_probe(
          "tools as text: many of them", 400,
          [](size_t n) {
            return listed(n, ",", [](size_t i) { return tool(fmt::format("f{}", i), "{}"); });
          },
          [](const std::string& text) {
            const Json messages = parse_json(R"([{"role":"user","content":"a"}])").value();
            const Json tools = parse_json("[" + text + "]").value();
            return with_tools_as_text(messages, tools).is_array();
          }),
  };
}

}  // namespace

Probes template_probes() {
  Probes probes = sources();
  for (Probe& probe : tools()) probes.push_back(std::move(probe));
  for (const char* file :
       {"Qwen-Qwen3-0.6B.jinja", "Qwen3-Coder.jinja", "GLM-4.6.jinja", "mistral-common-v13.jinja",
        "deepseek-ai-DeepSeek-V3.1.jinja", "openai-gpt-oss-120b.jinja",
        "ibm-granite-granite-3.3-2B-Instruct.jinja", "microsoft-Phi-3.5-mini-instruct.jinja",
        "HuggingFaceTB-SmolLM3-3B.jinja"}) {
    probes.push_back(rendering(file, "turns", 60, turns));
    probes.push_back(rendering(file, "calls", 40, calls));
    probes.push_back(rendering(file, "one long message", 2000, one_long));
  }
  return probes;
}

}  // namespace lockstep
