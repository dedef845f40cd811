#include "cli/talk/dialogue.h"

#include <doctest/doctest.h>

namespace lockstep {
namespace {

Dialogue two_turns() {
  Dialogue conversation;
  conversation.model = "m";
  conversation.system = "Be brief.";
  conversation.ask("one");
  conversation.answer("1", "because");
  conversation.ask("two");
  conversation.answer("2", "");
  return conversation;
}

TEST_CASE("a request has the system message, questions, answers and their reasoning") {
  CHECK(dump_json(two_turns().request_messages()) ==
        R"([{"role":"system","content":"Be brief."},{"role":"user","content":"one"},)"
        R"({"role":"assistant","content":"1","reasoning_content":"because"},)"
        R"({"role":"user","content":"two"},{"role":"assistant","content":"2"}])");
  CHECK(two_turns().plain_text() == "Be brief.\none\n1\ntwo\n2");
}

TEST_CASE("the last question is taken back with its answer") {
  Dialogue conversation = two_turns();
  CHECK(conversation.take_back() == "two");
  CHECK(conversation.messages().size() == 2);
  CHECK(conversation.take_back() == "one");
  CHECK_FALSE(conversation.take_back());
  CHECK(conversation.last_answer() == nullptr);
}

TEST_CASE("a saved conversation comes back unchanged") {
  const auto read = Dialogue::parse(two_turns().saved());
  REQUIRE(read.ok());
  CHECK(read.value().saved() == two_turns().saved());
  CHECK(read.value().system == "Be brief.");
}

TEST_CASE("other files are no conversations") {
  for (const char* text : {"", "[]", "{}", R"({"format":"other","messages":[]})",
                           R"({"format":"lockstep-conversation-1"})",
                           R"({"format":"lockstep-conversation-1","messages":[1]})"}) {
    CAPTURE(text);
    CHECK_FALSE(Dialogue::parse(text).ok());
  }
}

TEST_CASE("options are checked, and the error says what is right") {
  CHECK(parse_talk_option("temperature", "0.5").value() == Json(0.5));
  CHECK(parse_talk_option("seed", "7").value() == Json(7));
  CHECK(parse_talk_option("stop", "END").value() == Json("END"));
  CHECK(parse_talk_option("temperature", "9").error().message.find("from 0 to 2") !=
        std::string::npos);
  for (const char* bad : {"", "x", "1.5", "-1", "nan", "1x"}) {
    CAPTURE(bad);
    CHECK_FALSE(parse_talk_option("top_k", bad).ok());
  }
  CHECK(parse_talk_option("heat", "1").error().message.find("temperature") != std::string::npos);
}

TEST_CASE("a request asks for its figures, and has a schema and thinking only if given") {
  TalkSettings settings;
  Json chat = talk_request_body(two_turns(), settings, false, 512);
  CHECK(find(chat, "response_format") == nullptr);
  CHECK(find(chat, "chat_template_kwargs") == nullptr);
  CHECK(find(chat, "max_tokens") == nullptr);
  CHECK(find(*find(chat, "stream_options"), "include_usage")->as_bool());
  settings.thinking = "off";
  settings.schema = JsonObject{{"type", "object"}};
  settings.options["temperature"] = 0;
  chat = talk_request_body(two_turns(), settings, false, 512);
  CHECK(dump_json(*find(chat, "chat_template_kwargs")) ==
        R"({"enable_thinking":false,"thinking":false})");
  CHECK(find(*find(*find(chat, "response_format"), "json_schema"), "strict")->as_bool());
  CHECK(*find(chat, "temperature") == Json(0));
  settings.thinking = "high";
  chat = talk_request_body(two_turns(), settings, false, 512);
  CHECK(*find(chat, "reasoning_effort") == Json("high"));
}

TEST_CASE("a completion may fill the context unless the user says less") {
  TalkSettings settings;
  Json body = talk_request_body(two_turns(), settings, true, 512);
  CHECK(*find(body, "max_tokens") == Json(512));
  CHECK(*find(body, "prompt") == Json("Be brief.\none\n1\ntwo\n2"));
  settings.options["max_tokens"] = 5;
  body = talk_request_body(two_turns(), settings, true, 512);
  CHECK(*find(body, "max_tokens") == Json(5));
}

TEST_CASE("the first block of code is found between its own fences") {
  CHECK(first_code_block("text\n```c\nint a;\n```\n```\nb\n```") == "int a;\n");
  CHECK(first_code_block("````\n```\nin\n```\n````\n") == "```\nin\n```\n");
  CHECK(first_code_block("~~~\nx\n```\n~~~") == "x\n```\n");
  CHECK(first_code_block("```\ncut off") == "cut off\n");
  CHECK(first_code_block("```\n```") == "");
  CHECK(first_code_block("```x = `y`\n```\nc\n```") == "c\n");  // the first line is text
  CHECK(first_code_block("```c\r\nd\r\n``` \r\nafter") == "d\r\n");
  CHECK_FALSE(first_code_block("no code ``` here"));
  CHECK_FALSE(first_code_block(""));
}

}  // namespace
}  // namespace lockstep
