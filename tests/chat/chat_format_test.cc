#include "chat/chat_format.h"

#include <doctest/doctest.h>

#include "support/temporary_folder.h"

namespace lockstep {
namespace {

struct Folder : TemporaryFolder {
  Result<TemplateSource> read() const { return read_template_source(path().string()); }
  TemplateSource source() const {
    auto source = read();
    REQUIRE(source.ok());
    return source.value();
  }
};

std::string written(const ChatFormat& format, const Json& messages, const Json* tools) {
  ChatInput input;
  input.messages = &messages;
  input.tools = tools;
  auto pieces = format.write(input);
  return pieces.ok() ? prompt_text(pieces.value()) : pieces.error().message;
}

std::string continued(std::string_view source, const std::string& text) {
  const auto format = ChatFormat::parse({std::string(source), "", {}});
  const Json messages = JsonArray{JsonObject{{"role", "assistant"}, {"content", text}}};
  ChatInput input;
  input.messages = &messages;
  input.continue_final_message = true;
  auto pieces = format.value()->write(input);
  return pieces.ok() ? prompt_text(pieces.value()) : pieces.error().message;
}

}  // namespace

TEST_CASE(
    "a template is found in the files that models are published with, the newest form first") {
  const Folder folder;
  CHECK(folder.source().text.empty());
  folder.write("chat_template.json", R"({"chat_template": "processor"})");
  CHECK(folder.source().text == "processor");
  folder.write("tokenizer_config.json", R"({"chat_template": "config"})");
  CHECK(folder.source().text == "config");
  CHECK(folder.source().tool_text.empty());
  folder.write("tokenizer_config.json",
               R"({"chat_template": [{"name": "rag", "template": "r"},)"
               R"({"name": "tool_use", "template": "t"}, {"name": "default", "template": "d"}]})");
  CHECK(folder.source().text == "d");
  CHECK(folder.source().tool_text == "t");
  folder.write("chat_template.jinja", "file");
  CHECK(folder.source().text == "file");
  CHECK(folder.source().tool_text.empty());
  folder.write("additional_chat_templates/tool_use.jinja", "file for tools");
  CHECK(folder.source().tool_text == "file for tools");
}

TEST_CASE("special tokens come from the tokenizer's config, then from the older map") {
  const Folder folder;
  folder.write("special_tokens_map.json",
               R"({"bos_token": {"content": "<b>"}, "eos_token": "<x>"})");
  folder.write("tokenizer_config.json", R"({"eos_token": "<e>", "bos_token": null})");
  const TemplateSource source = folder.source();
  CHECK(source.tokens.at("bos_token") == "<b>");
  CHECK(source.tokens.at("eos_token") == "<e>");
}

TEST_CASE("a file that is not JSON is an error that names the file") {
  const Folder folder;
  folder.write("tokenizer_config.json", "{");
  folder.write("chat_template.jinja", "x");
  const auto source = folder.read();
  REQUIRE_FALSE(source.ok());
  CHECK(source.error().message.find("tokenizer_config.json: ") != std::string::npos);
}

TEST_CASE("a conversation with tools uses the template for tools; each has its own needs") {
  const auto format = ChatFormat::parse(
      {"plain {{ messages[0].content }}",
       "tools {{ tools | length }} {% for m in messages %}{% for p in m.content %}"
       "{{ p.text }}{% endfor %}{% endfor %}",
       {}});
  const Json messages = JsonArray{JsonObject{{"role", "user"}, {"content", "hi"}}};
  const Json tools = JsonArray{JsonObject{{"type", "function"}}};
  CHECK(written(*format.value(), messages, nullptr) == "plain hi");
  CHECK(written(*format.value(), messages, &tools) == "tools 1 hi");
  CHECK(format.value()->mentions("length"));
  CHECK_FALSE(format.value()->mentions("reasoning_effort"));
}

TEST_CASE("a continued message ends with its text, whatever the template appends") {
  CHECK(continued("{% for m in messages %}[{{ m.content }}]end{% endfor %}", "the end") ==
        "[the end");
  CHECK(continued("{% for m in messages %}[{{ m.content }}]{% endfor %}", " a b \n") == "[ a b \n");
  CHECK(continued("{% for m in messages %}[{{ m.content | trim }}]{% endfor %}", " a b \n") ==
        "[a b");
  CHECK(continued("{% for m in messages %}[{{ m.content | upper }}]{% endfor %}", "a")
            .find("cannot be continued") != std::string::npos);
  CHECK(continued("{% for m in messages %}[{{ m.content }}]{% endfor %}", " ").find("no text") !=
        std::string::npos);
}

TEST_CASE("a format says how its model writes calls, and whether a prompt opens the reasoning") {
  const auto hermes = ChatFormat::parse({"<tool_call> \"name\" <think>", "", {}}).value();
  CHECK(hermes->tool_format(false)->name == "hermes");
  const auto plain = ChatFormat::parse({"{{ messages }}", "", {}}).value();
  CHECK(plain->tool_format(false) == nullptr);
  CHECK(plain->tool_format(true)->name == "generic");
  const auto thinks = ChatFormat::parse({"<think>", "", {}}).value();
  CHECK(thinks->tool_format(false)->name == "generic");
  const auto with_tools = ChatFormat::parse({"x", "<tool_call> \"name\"", {}}).value();
  CHECK(with_tools->tool_format(true)->name == "hermes");

  CHECK(thinks->opens_reasoning({{"hi", true}, {"<end><think>\n", false}}));
  CHECK_FALSE(thinks->opens_reasoning({{"<think>", true}}));  // typed by the user
  CHECK_FALSE(thinks->opens_reasoning({{"<think></think>", false}}));
  CHECK_FALSE(thinks->opens_reasoning({}));
  CHECK_FALSE(plain->opens_reasoning({{"<think>", false}}));

  const auto gemma = ChatFormat::parse({"<|tool_call> <tool_call|>", "", {}}).value();
  CHECK(gemma->closes_reasoning({{"<|turn>model\n<|channel>thought\n<channel|>", false}}));
  CHECK(gemma->opens_reasoning({{"<tool_response|><|channel>thought\n", false}}));
  CHECK_FALSE(gemma->opens_reasoning({{"<|turn>model\n", false}}));
}

}  // namespace lockstep
