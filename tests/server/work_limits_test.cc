// The cost of reading a request: every parser ends once the thread's work is cancelled, and
// everything that could multiply in memory is limited.
#include <atomic>
#include <chrono>
#include <memory>
#include <new>
#include <string>

#include "base/threads/work.h"
#include "server/anthropic/anthropic_request.h"
#include "server/ollama/ollama_messages.h"
#include "server/ollama/ollama_request.h"
#include "server/openai/openai_chat.h"
#include "server/openai/openai_completions.h"
#include "server/openai/openai_embeddings.h"
#include "server/openai/responses_request.h"
#include "server/request/housekeeper.h"
#include "server/request/request_fields.h"
#include "server/served_template.h"

namespace lockstep {
namespace {

constexpr std::chrono::seconds kTokenizerPatience{10};

// A tokenizer that continues until its work is cancelled.
class EndlessTokenizer : public ByteTokenizer {
 public:
  std::vector<int32_t> encode(std::string_view, EncodeOptions) const override {
    has_begun = true;
    has_begun.notify_all();
    const auto patience_ends = std::chrono::steady_clock::now() + kTokenizerPatience;
    while (!Work::is_over() && std::chrono::steady_clock::now() < patience_ends) {
    }
    was_cancelled = !Work::check().ok() && Work::check().error().code == ErrorCode::kCancelled;
    has_ended = true;
    has_ended.notify_all();
    return {};
  }

  mutable std::atomic<bool> has_begun{false};
  mutable std::atomic<bool> has_ended{false};
  mutable std::atomic<bool> was_cancelled{false};
};

template <class Parsed>
int status_of(const ApiResult<Parsed>& parsed) {
  return parsed.ok() ? 200 : parsed.error().status;
}

std::string repeated(std::string_view item, size_t count) {
  std::string text;
  for (size_t i = 0; i < count; ++i) text += (i > 0 ? "," : "") + std::string(item);
  return text;
}

}  // namespace

TEST_CASE("every parser of requests ends once the work is cancelled, with a sentence") {
  Work work(std::chrono::milliseconds(0));
  const Work::Scope scope(work);
  while (!Work::is_over()) {
  }
  const std::string messages =
      R"("messages":[{"role":"user","content":[{"type":"text","text":"a"}]}])";
  CHECK(status_of(parse_chat_request("{" + messages + "}")) == 413);
  CHECK(status_of(parse_completion_request(R"({"prompt":["a","b"]})")) == 413);
  CHECK(status_of(parse_responses_request(R"({"input":[{"role":"user","content":"a"}]})")) == 413);
  CHECK(status_of(parse_messages_request("{\"max_tokens\":1," + messages + "}",
                                         MessagesRoute::kMessages)) == 413);
  CHECK(status_of(parse_ollama_chat("{\"model\":\"m\"," + messages + "}")) == 413);
  CHECK(status_of(parse_embedding_request(R"({"input":["a","b"]})")) == 413);
  CHECK(status_of(check_work()) == 413);
  CHECK(check_work().error().message.find("make it smaller") != std::string::npos);
}

TEST_CASE("reading a request ends when its client disconnects") {
  const auto tokenizer = std::make_shared<EndlessTokenizer>();
  Served served;
  served.model->folder().tokenizer = tokenizer;
  {
    RawClient client(served.port());
    client.send(Served::post_text("/v1/completions", R"({"prompt":"a"})"));
    tokenizer->has_begun.wait(false);
  }
  tokenizer->has_ended.wait(false);
  CHECK(tokenizer->was_cancelled);
}

TEST_CASE("a body may be large, but may not have so many values that it grows when parsed") {
  CHECK(parsed_bytes(R"("a\"{,:[")") == 0);
  CHECK(parsed_bytes(R"({"a":"[,:{\\","b":[1,2]})") == parsed_bytes(R"({"a":"","b":[1,2]})"));
  CHECK(parsed_bytes("\"" + std::string(1 << 20, ',') + "\"") == 0);
  CHECK(parsed_bytes("\"\\") == 0);
  CHECK(status_of(parse_body("{\"a\":[" + repeated("[]", 100'000) + "]}")) == 200);
  const auto many = parse_body("{\"a\":[" + repeated("[]", 1'500'000) + "]}");
  REQUIRE(status_of(many) == 413);
  CHECK(many.error().message.find("64 MiB is the maximum") != std::string::npos);
}

TEST_CASE("a request may have far more tools than a model can distinguish") {
  ServedTemplate served("{% for m in messages %}{{ m.content }}{% endfor %}");
  const std::string tool = R"({"type":"function","function":{"name":"f"}})";
  const auto post = [&](const std::string& path, const std::string& body) {
    return served.server.post(path, body);
  };
  const auto tools = [](const std::string& one, size_t count) {
    return ",\"tools\":[" + repeated(one, count) + "]";
  };
  served.server.model->says("Yes.");
  CHECK(post("/v1/chat/completions", ServedTemplate::body(tools(tool, 8))).status == 200);
  const Answer refused = post("/v1/chat/completions", ServedTemplate::body(tools(tool, 1025)));
  CHECK(refused.status == 400);
  CHECK(text_at(at(refused.json(), "error", "message")) ==
        "\"tools\" may have at most 1024 tools, not 1025");
  CHECK(post("/v1/responses", R"({"input":"a")" + tools(R"({"type":"x"})", 1025) + "}").status ==
        400);
  CHECK(post("/v1/messages", R"({"max_tokens":1,"messages":[{"role":"user","content":"a"}])" +
                                 tools(R"({"name":"f","input_schema":{}})", 1025) + "}")
            .status == 400);
  const std::string named = R"({"type":"function","function":{"name":"f"}})";
  CHECK(post("/v1/chat/completions",
             ServedTemplate::body(tools(tool, 2) +
                                  R"(,"tool_choice":{"type":"allowed_tools","allowed_tools":)" +
                                  R"({"tools":[)" + repeated(named, 1025) + "]}}"))
            .status == 400);
}

TEST_CASE("kinds of tools that are ignored are named in a header of bounded length") {
  Served served;
  served.model->says("Yes.");
  std::string kinds;
  for (int i = 0; i < 900; ++i) {
    kinds += (i > 0 ? "," : "") + std::string(R"({"type":"kind)") + std::to_string(i) + "\"}";
  }
  const Answer answer = served.post("/v1/responses", R"({"input":"a","tools":[)" + kinds + "]}");
  REQUIRE(answer.status == 200);
  CHECK(answer.has_header("x-lockstep-ignored-fields: tools.kind0, tools.kind1,"));
  CHECK(answer.head.size() < 3'000);
}

TEST_CASE("ollama: each of very many calls is matched with its own result") {
  JsonArray messages;
  constexpr int kCalls = 5'000;
  JsonArray calls;
  for (int i = 0; i < kCalls; ++i) {
    const std::string name = "f" + std::to_string(i % 7);
    calls.push_back(
        JsonObject{{"id", "c" + std::to_string(i)}, {"function", JsonObject{{"name", name}}}});
  }
  messages.push_back(JsonObject{{"role", "assistant"}, {"tool_calls", std::move(calls)}});
  const auto result = [&](const char* key, const std::string& value) {
    messages.push_back(JsonObject{{"role", "tool"}, {"content", "r"}, {key, value}});
  };
  result("tool_call_id", "c0");
  result("tool_name", "f0");       // the first open one is c7
  result("tool_name", "f1");       // c1
  result("tool_name", "unknown");  // the first of all open ones: c2
  for (int i = kCalls - 1; i > 7; --i) result("tool_call_id", "c" + std::to_string(i));
  result("tool_name", "f0");  // none with that name is left: c3
  const Json all = Json(std::move(messages));
  const auto made = openai_messages(&all);
  REQUIRE(made.ok());
  const auto id = [&](size_t i) { return text_at(at(made.value(), i, "tool_call_id")); };
  CHECK(id(2) == "c7");
  CHECK(id(3) == "c1");
  CHECK(id(4) == "c2");
  CHECK(id(made.value().get_array().size() - 1) == "c3");
}

TEST_CASE("an exception in the housekeeper's work ends only that work") {
  std::atomic<bool> is_done{false};
  Housekeeper housekeeper(std::chrono::hours(1));
  housekeeper.run_soon([] { throw std::bad_alloc(); });
  housekeeper.run_soon([&] {
    is_done = true;
    is_done.notify_all();
  });
  is_done.wait(false);
  CHECK(is_done);
}

}  // namespace lockstep
