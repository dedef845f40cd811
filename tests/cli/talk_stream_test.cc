#include "cli/talk/talk_stream.h"

#include <doctest/doctest.h>

#include "cli/stream/event_reader.h"
#include "cli/talk/talk_text.h"

namespace lockstep {
namespace {

using std::chrono::milliseconds;

struct HeardEvents : TalkEvents {
  void on_reasoning(std::string_view text) override { reasoning += text; }
  void on_content(std::string_view text) override { content += text; }
  void on_wait(std::string_view) override {}
  void on_note(std::string_view) override {}
  std::string reasoning, content;
};

TEST_CASE("events are split wherever the bytes are cut") {
  const std::string stream =
      ": a comment\n\nevent: change\ndata: {\"a\":1}\r\n\r\ndata: x\ndata: y\nid: 3\n\ndata: cut";
  for (size_t piece = 1; piece < stream.size(); ++piece) {
    EventReader reader;
    std::vector<ServerEvent> events;
    for (size_t at = 0; at < stream.size(); at += piece) {
      auto taken = reader.take(stream.substr(at, piece));
      for (ServerEvent& event : taken.value()) events.push_back(std::move(event));
    }
    REQUIRE(events.size() == 2);
    CHECK(events[0].name == "change");
    CHECK(events[0].data == "{\"a\":1}");
    CHECK(events[1].name == "message");
    CHECK(events[1].data == "x\ny");
  }
}

TEST_CASE("an endless event is refused") {
  EventReader reader;
  CHECK(reader.take("data: " + std::string(EventReader::kEventBytesMax, 'x')).error().code ==
        ErrorCode::kCorrupt);
}

TEST_CASE("a streamed chat gives its texts and figures") {
  const TalkStream::Clock::time_point began;
  TalkStream talk(began);
  HeardEvents heard;
  const auto take = [&](int ms, const char* data) {
    return talk.take({"message", data}, began + milliseconds(ms), heard).ok();
  };
  CHECK(take(400, R"({"choices":[{"delta":{"reasoning_content":"hm"}}]})"));
  CHECK(take(500, R"({"choices":[{"delta":{"content":"Hel"}}]})"));
  CHECK(take(900, R"({"choices":[{"delta":{"content":"lo"},"finish_reason":"stop"}]})"));
  CHECK(take(901, R"({"choices":[],"usage":{"prompt_tokens":46,"completion_tokens":3,
                      "prompt_tokens_details":{"cached_tokens":12}}})"));
  CHECK_FALSE(talk.is_done());
  CHECK(take(902, "[DONE]"));
  CHECK(talk.is_done());
  CHECK(heard.content == "Hello");
  CHECK(heard.reasoning == "hm");
  const TalkAnswer answer = talk.answer();
  CHECK(answer.finish_reason == "stop");
  CHECK(figures_line(answer.figures) == "3 tokens, 4.0 tok/s, first 0.40 s, 12 reused + 34 new");
}

TEST_CASE("an answer that is stopped has no usage, but its prompt's tokens and its own pieces") {
  const TalkStream::Clock::time_point began;
  TalkStream talk(began);
  HeardEvents heard;
  const auto take = [&](const char* data) {
    return talk.take({"message", data}, began, heard).ok();
  };
  CHECK(take(R"({"choices":[],"prompt_progress":{"total":46,"processed":40,"cache":12}})"));
  CHECK(take(R"({"choices":[{"delta":{"content":"Hel"}}]})"));
  const TalkFigures figures = talk.answer().figures;
  CHECK(figures.prompt_tokens == 46);
  CHECK(figures.cached_tokens == 12);
  CHECK(figures.new_tokens == 1);
}

TEST_CASE("the node's own figures are taken where it gives them") {
  const TalkStream::Clock::time_point began;
  TalkStream talk(began);
  HeardEvents heard;
  CHECK(talk.take({"message", R"({"choices":[{"text":"a"}]})"}, began + milliseconds(100), heard)
            .ok());
  CHECK(talk.take({"message", R"({"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2},
                   "timings":{"predicted_per_second":23.1},"lockstep":{"first_token_ms":310}})"},
                  began + milliseconds(200), heard)
            .ok());
  CHECK(talk.answer().figures.tokens_s == doctest::Approx(23.1));
  CHECK(talk.answer().figures.first_s == doctest::Approx(0.31));
}

TEST_CASE("an error in the stream ends the answer, and other bytes are refused") {
  const TalkStream::Clock::time_point began;
  TalkStream talk(began);
  HeardEvents heard;
  CHECK(talk.take({"message", R"({"error":{"message":"it was cancelled"}})"}, began, heard).ok());
  CHECK(talk.answer().error->message == "it was cancelled");
  CHECK_FALSE(talk.take({"message", "no JSON"}, began, heard).ok());
  CHECK_FALSE(talk.take({"message", "[1]"}, began, heard).ok());
}

TEST_CASE("counts of tokens are short") {
  CHECK(token_count_text(0) == "0");
  CHECK(token_count_text(999) == "999");
  CHECK(token_count_text(1000) == "1k");
  CHECK(token_count_text(1234) == "1.2k");
  CHECK(token_count_text(131072) == "131k");
  CHECK(grouped_text(12) == "12");
  CHECK(grouped_text(1234567) == "1,234,567");
  CHECK(talk_prompt("qwen3-0.6b", 1234, 8192) == "qwen3-0.6b 1.2k/8.2k > ");
  CHECK(talk_prompt("m", 0, 0) == "m > ");
}

TEST_CASE("unknown figures are left out") {
  CHECK(figures_line({}).empty());
  TalkFigures figures;
  figures.new_tokens = 1;
  CHECK(figures_line(figures) == "1 token");
  figures.prompt_tokens = 9300;
  CHECK(figures_line(figures) == "1 token, prompt 9,300");
}

TEST_CASE("a wait says what it is for") {
  const Json ready = parse_json(R"({"models":[{"name":"m","state":"ready"}]})").value();
  const auto text = [&](const char* requests, const Json& status) {
    return waiting_text(parse_json(requests).value(), status, "m", 4);
  };
  CHECK(text(R"({"requests":[{"own":true,"model":"m","phase":"waiting","place":3}]})", ready) ==
        "3rd in the queue");
  CHECK(text(R"({"requests":[{"own":true,"model":"m","phase":"prompt","prompt_tokens":9300,
                "prompt_done":2048,"age_s":2}]})",
             ready) == "reading 2,048 of 9,300 tokens, 0:08 left");
  CHECK(text(R"({"requests":[{"own":true,"model":"m","phase":"paused"}]})", ready) ==
        "m is formed again; the answer goes on then (0:04)");
  CHECK(text(R"({"requests":[{"own":false,"model":"m","phase":"waiting","place":3}]})", ready) ==
        "waiting, 0:04");
  const Json loading = parse_json(R"({"models":[{"name":"m","state":"loading","phase":"loading",
      "loading":{"read_bytes":1000000,"whole_bytes":4000000,"bytes_s":0}}]})")
                           .value();
  CHECK(text("{}", loading) == "1.00 MB of 4.00 MB, 0.00 KB/s");
}

}  // namespace
}  // namespace lockstep
