#include "cli/bench/answer_stream.h"

#include <doctest/doctest.h>

namespace lockstep {
namespace {

constexpr std::string_view kCompletion =
    "data: {\"choices\":[{\"text\":\"a\",\"index\":0}]}\n\n"
    ": a comment\n\n"
    "data: {\"choices\":[{\"text\":\"\",\"index\":0,\"finish_reason\":\"length\"}]}\r\n\r\n"
    "data: {\"choices\":[{\"text\":\"b\\nc\",\"index\":0}]}\n\n"
    "data:{\"choices\":[],\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":2}}\n\n"
    "data: [DONE]\n\n";

TEST_CASE("a stream is read the same wherever it is cut") {
  for (size_t cut = 0; cut <= kCompletion.size(); ++cut) {
    AnswerStream stream;
    const auto first = stream.take(kCompletion.substr(0, cut));
    const auto second = stream.take(kCompletion.substr(cut));
    REQUIRE(first.ok());
    REQUIRE(second.ok());
    CHECK(first.value() + second.value() == 2);
    CHECK(stream.is_done());
    CHECK(stream.prompt_tokens() == 5);
    CHECK(stream.new_tokens() == 2);
    CHECK_FALSE(stream.error());
  }
}

TEST_CASE("in a chat, content, reasoning and calls count, a role does not") {
  const auto events_of = [](std::string_view delta) {
    AnswerStream stream;
    const std::string event =
        "data: {\"choices\":[{\"index\":0,\"delta\":" + std::string(delta) + "}]}\n\n";
    const auto taken = stream.take(event);
    REQUIRE(taken.ok());
    return taken.value();
  };
  CHECK(events_of(R"({"role":"assistant","content":""})") == 0);
  CHECK(events_of(R"({"role":"assistant","content":null})") == 0);
  CHECK(events_of(R"({"content":"x"})") == 1);
  CHECK(events_of(R"({"reasoning_content":"x"})") == 1);
  CHECK(events_of(R"({"tool_calls":[{"index":0}]})") == 1);
  CHECK(events_of(R"({"tool_calls":[]})") == 0);
}

TEST_CASE("an error in the middle is kept, and always has a message") {
  AnswerStream stream;
  REQUIRE(stream.take("data: {\"error\":{\"message\":\"lost\"}}\n\n").ok());
  CHECK(stream.error() == "lost");
  AnswerStream bare;
  REQUIRE(bare.take("data: {\"error\":{}}\n\n").ok());
  CHECK(bare.error() == "an error without a message");
}

TEST_CASE("other bytes are an error, not a crash") {
  for (const char* line : {"data: {", "data: 5", "data: \xff"}) {
    AnswerStream stream;
    CHECK_FALSE(stream.take(std::string(line) + "\n").ok());
  }
  AnswerStream odd;
  const auto taken = odd.take(
      "data: {\"choices\":[1,{\"delta\":2},{\"text\":3}],\"usage\":{\"prompt_tokens\":\"x\"}}\n");
  REQUIRE(taken.ok());
  CHECK(taken.value() == 0);
  CHECK(odd.prompt_tokens() == -1);
  AnswerStream endless;
  CHECK_FALSE(endless.take(std::string(AnswerStream::kLineBytesMax + 1, 'a')).ok());
}

}  // namespace
}  // namespace lockstep
