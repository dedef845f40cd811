// Answers and plans much larger than their request are limited, with a sentence.
#include <vector>

#include "server/generation/api_context.h"
#include "server/generation/embedding_job.h"
#include "server/served.h"

namespace lockstep {
TEST_CASE("the copies of a prompt and of its echo share a limit") {
  PlanSize size;
  CHECK(size.add(4, kPlanTokensMax / 8, kPlanEchoBytesMax / 8).ok());
  CHECK(size.add(4, kPlanTokensMax / 8, kPlanEchoBytesMax / 8).ok());
  PlanSize more = size;
  const auto tokens = more.add(1, 1, 0);
  REQUIRE(!tokens.ok());
  CHECK(tokens.error().status == 400);
  CHECK(tokens.error().param == "n");
  more = size;
  const auto echo = more.add(1, 0, 1);
  REQUIRE(!echo.ok());
  CHECK(echo.error().param == "echo");
}

TEST_CASE("many choices of a long prompt are refused") {
  Served server;
  server.model->set_context(100'000);
  const std::string prompt(50'000, 'p');
  for (const char* path : {"/v1/completions", "/v1/chat/completions"}) {
    CAPTURE(path);
    const bool is_chat = path[4] == 'c' && path[5] == 'h';
    const std::string input = is_chat
                                  ? R"("messages":[{"role":"user","content":")" + prompt + "\"}]"
                                  : R"("prompt":")" + prompt + "\"";
    const Answer refused = server.post(path, "{" + input + R"(,"max_tokens":1,"n":128})");
    CHECK(refused.status == 400);
    CHECK(message_of(refused).find("fewer choices") != std::string::npos);
  }
  CHECK(server.model->request_count() == 0);
}

TEST_CASE("many long vectors are refused once the first one shows their length") {
  Served server;
  server.model->embeds([](const std::vector<int32_t>&) { return std::vector<float>(8192, 1.0F); });
  std::string inputs;
  for (int i = 0; i < 1025; ++i) inputs += i == 0 ? "\"a\"" : ",\"a\"";
  const Answer refused = server.post("/v1/embeddings", R"({"input":[)" + inputs + "]}");
  CHECK(refused.status == 400);
  CHECK(message_of(refused).find("send fewer at once") != std::string::npos);
  CHECK(server.post("/v1/embeddings", R"({"input":["a","b"]})").status == 200);
}

TEST_CASE("the logprobs of a non-streamed answer have a limit, beyond which it fails") {
  Served server;
  RawClient client(server.port());
  client.send(Served::post_text(
      "/v1/chat/completions",
      R"({"messages":[{"role":"user","content":"a"}],"logprobs":true,"top_logprobs":20})"));
  const FakeModel::Running running = server.model->request(0);
  const std::vector<TokenLogprob> likely(21, TokenLogprob{.token = 'x', .logprob = -1});
  for (size_t i = 0; i <= (1 << 20) / likely.size(); ++i) {
    running.logprobs(likely);
    running.token('x');
  }
  const Answer refused = Served::parse(client.read_to_end());
  CHECK(refused.status == 400);
  CHECK(message_of(refused).find("logprobs") != std::string::npos);
  CHECK(server.model->waits_for_cancel(running.id));
}

}  // namespace lockstep
