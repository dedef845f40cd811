#include <doctest/doctest.h>

#include <cmath>
#include <cstring>

#include "server/openai/openai_embeddings.h"
#include "server/refusal.h"
#include "server/served.h"
#include "tokenizer/text/base64.h"

namespace lockstep {
namespace {

// {number of ids, the first id, 2}: not of length 1.
std::vector<float> embed(const std::vector<int32_t>& prompt) {
  return {static_cast<float>(prompt.size()), static_cast<float>(prompt[0]), 2.0f};
}

std::vector<float> floats_of(const Json& array) {
  std::vector<float> values;
  for (const Json& value : array.as_array()) {
    values.push_back(static_cast<float>(value.to_number<double>()));
  }
  return values;
}

void check_unit(const std::vector<float>& got, const std::vector<float>& expected) {
  double squares = 0;
  for (const float value : expected) squares += double{value} * double{value};
  REQUIRE(got.size() == expected.size());
  for (size_t i = 0; i < got.size(); ++i) {
    CHECK(double{got[i]} == doctest::Approx(expected[i] / std::sqrt(squares)).epsilon(1e-6));
  }
}

std::string embeddings_verdict(std::string_view body) {
  return refusal_of(parse_embedding_request(body));
}

}  // namespace

TEST_CASE("an embedding has OpenAI's shape and length 1, and the model gets its own tokens") {
  Served server;
  server.model->embeds(embed);
  const Answer answer =
      server.post("/v1/embeddings", R"({"model":"tiny-model","input":"abc","user":"u","zoo":1})");
  CHECK(answer.status == 200);
  CHECK(answer.has_header("x-lockstep-ignored-fields: zoo\r\n"));
  const Json json = answer.json();
  CHECK(at(json, "object") == "list");
  CHECK(at(json, "model") == "org/Tiny-Model");
  CHECK(at(json, "data").get_array().size() == 1);
  CHECK(at(json, "data", 0, "object") == "embedding");
  CHECK(at(json, "data", 0, "index") == 0);
  check_unit(floats_of(at(json, "data", 0, "embedding")), {5, 256, 2});
  CHECK(at(json, "usage", "prompt_tokens") == 5);
  CHECK(at(json, "usage", "total_tokens") == 5);
  const GenerateRequest request = server.model->request(0).request;
  CHECK(request.prompt == std::vector<int32_t>{256, 'a', 'b', 'c', 257});
  CHECK(request.max_tokens == 0);
  CHECK(request.pooling == Pooling::kLast);
}

TEST_CASE("texts and ids of every form give embeddings in their order, ids unchanged") {
  Served server;
  server.model->embeds(embed);
  const Json texts = server.post("/embeddings", R"({"input":["a","bcd"]})").json();
  check_unit(floats_of(at(texts, "data", 0, "embedding")), {3, 256, 2});
  check_unit(floats_of(at(texts, "data", 1, "embedding")), {5, 256, 2});
  CHECK(at(texts, "data", 1, "index") == 1);
  CHECK(at(texts, "usage", "prompt_tokens") == 8);
  const Json one = server.post("/v1/embeddings", R"({"input":[7,8,9]})").json();
  check_unit(floats_of(at(one, "data", 0, "embedding")), {3, 7, 2});
  const Json lists = server.post("/v1/embeddings", R"({"input":[[1],[2,3]]})").json();
  check_unit(floats_of(at(lists, "data", 0, "embedding")), {1, 1, 2});
  check_unit(floats_of(at(lists, "data", 1, "embedding")), {2, 2, 2});
}

TEST_CASE("base64 is the bytes of the same numbers") {
  Served server;
  server.model->embeds(embed);
  const Json plain = server.post("/v1/embeddings", R"({"input":"abc"})").json();
  const Json coded =
      server.post("/v1/embeddings", R"({"input":"abc","encoding_format":"base64"})").json();
  const auto bytes = decode_base64(text_at(at(coded, "data", 0, "embedding")));
  REQUIRE(bytes.has_value());
  std::vector<float> values(bytes->size() / sizeof(float));
  std::memcpy(values.data(), bytes->data(), bytes->size());
  CHECK(values == floats_of(at(plain, "data", 0, "embedding")));
}

TEST_CASE("fewer dimensions are the first ones, normalised again; more are refused") {
  Served server;
  server.model->embeds(embed);
  const Json json = server.post("/v1/embeddings", R"({"input":"abc","dimensions":2})").json();
  check_unit(floats_of(at(json, "data", 0, "embedding")), {5, 256});
  const Answer refused = server.post("/v1/embeddings", R"({"input":"abc","dimensions":4})");
  CHECK(refused.status == 400);
  CHECK(at(refused.json(), "error", "param") == "dimensions");
  CHECK(at(refused.json(), "error", "message") ==
        "\"dimensions\" is 4, the model's embeddings have 3");
}

TEST_CASE("many texts reach the model a few at a time, and all of them") {
  Served server;
  std::string body = R"({"input":["t0")";
  for (int i = 1; i < 100; ++i) body += ",\"t" + std::to_string(i) + "\"";
  body += "]}";
  RawClient client(server.port());
  client.send(Served::post_text("/v1/embeddings", body));
  for (size_t i = 0; i < 100; ++i) {
    const FakeModel::Running running = server.model->request(i);
    CHECK(server.model->request_count() <= i + 8);
    running.row(std::vector<float>{static_cast<float>(i), 1});
    running.end(FinishReason::kLength);
  }
  const Answer answer = Served::parse(client.read_to_end());
  CHECK(answer.status == 200);
  const Json json = answer.json();
  for (size_t i = 0; i < 100; ++i) {
    check_unit(floats_of(at(json, "data", i, "embedding")), {static_cast<float>(i), 1});
  }
}

TEST_CASE("one text's failure fails the request and cancels the others") {
  Served server;
  RawClient client(server.port());
  client.send(Served::post_text("/v1/embeddings", R"({"input":["a","b","c"]})"));
  const FakeModel::Running last = server.model->request(2);
  server.model->request(1).end(Error{ErrorCode::kPeerLost, "rank 1 died"});
  const Answer answer = Served::parse(client.read_to_end());
  CHECK(answer.status == 503);
  CHECK(at(answer.json(), "error", "message") == "rank 1 died");
  CHECK(server.model->waits_for_cancel(server.model->request(0).id));
  CHECK(server.model->waits_for_cancel(last.id));
  for (const size_t index : {size_t{0}, size_t{2}}) {  // late events are ignored
    const FakeModel::Running late = server.model->request(index);
    late.row(std::vector<float>{1});
    late.end(FinishReason::kLength);
  }
}

TEST_CASE("a client that disconnects cancels its embeddings") {
  Served server;
  FakeModel::Running running;
  {
    RawClient client(server.port());
    client.send(Served::post_text("/v1/embeddings", R"({"input":"a"})"));
    running = server.model->request(0);
  }
  CHECK(server.model->waits_for_cancel(running.id));
  running.end(Error{ErrorCode::kCancelled, "the request was cancelled"});
}

TEST_CASE("a model's refusal or invalid result is an error with its status") {
  Served server;
  server.model->embeds([](const std::vector<int32_t>&) { return std::vector<float>{NAN}; });
  CHECK(server.post("/v1/embeddings", R"({"input":"a"})").status == 500);
  server.model->embeds([](const std::vector<int32_t>&) { return std::vector<float>(); });
  CHECK(server.post("/v1/embeddings", R"({"input":"a"})").status == 500);
  server.model->embeds([](const std::vector<int32_t>&) { return std::vector<float>{0, 0}; });
  const Json zeros = server.post("/v1/embeddings", R"({"input":"a"})").json();
  CHECK(floats_of(at(zeros, "data", 0, "embedding")) == std::vector<float>{0, 0});
  server.model->refuses({ErrorCode::kExhausted, "the queue is full"});
  CHECK(server.post("/v1/embeddings", R"({"input":["a","b"]})").status == 429);
}

TEST_CASE("invalid embedding requests are refused by the field's name") {
  CHECK(embeddings_verdict(R"({"input":"a"})") == "ok");
  for (const char* input :
       {"5", "[]", "[[]]", "{}", "[1,\"a\"]", "[-1]", "[1.5]", "true", "null"}) {
    CAPTURE(input);
    CHECK(embeddings_verdict(std::string(R"({"input":)") + input + "}") == "input invalid_value");
  }
  CHECK(embeddings_verdict("{}") == "input invalid_value");
  CHECK(embeddings_verdict(R"({"input":"a","encoding_format":"hex"})") ==
        "encoding_format invalid_value");
  CHECK(embeddings_verdict(R"({"input":"a","dimensions":0})") == "dimensions invalid_value");
  CHECK(embeddings_verdict(R"({"input":"a","dimensions":"3"})") == "dimensions invalid_value");
  std::string many = R"({"input":["a")";
  for (size_t i = 0; i < kEmbeddingInputsMax; ++i) many += ",\"a\"";
  CHECK(embeddings_verdict(many + "]}") == "input invalid_value");

  Served server;
  const auto code = [&](const std::string& body) {
    const Answer answer = server.post("/v1/embeddings", body);
    CHECK(answer.status == 400);
    return text_at(at(answer.json(), "error", "code"));
  };
  CHECK(code(R"({"input":["a",""]})") == "invalid_value");
  CHECK(code(R"({"input":[258]})") == "invalid_value");
  CHECK(code(R"({"input":")" + std::string(999, 'x') + "\"}") == "context_length_exceeded");
  CHECK(server.model->request_count() == 0);
  CHECK(server.post("/v1/embeddings", R"({"model":"other","input":"a"})").status == 404);
  CHECK(server.get("/v1/embeddings").status == 405);
}

}  // namespace lockstep
