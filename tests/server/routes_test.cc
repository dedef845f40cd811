#include <doctest/doctest.h>

#include "server/served.h"

namespace lockstep {

TEST_CASE("models are listed and found by exact name, ignoring case, or last component") {
  Served server;
  for (const char* path : {"/v1/models", "/models", "/v1/models/", "/models?"}) {
    const Json json = server.get(path).json();
    CHECK(at(json, "object") == "list");
    CHECK(at(json, "data", 0, "id") == "org/Tiny-Model");
    CHECK(at(json, "data", 0, "object") == "model");
    CHECK(at(json, "data", 0, "created").is_int64());
    CHECK(at(json, "data", 0, "owned_by") == "lockstep");
  }
  for (const char* name : {"org/Tiny-Model", "ORG/tiny-model", "tiny-model", "org%2FTiny-Model"}) {
    const Answer answer = server.get("/v1/models/" + std::string(name));
    CHECK(answer.status == 200);
    CHECK(at(answer.json(), "id") == "org/Tiny-Model");
  }
  const Answer unknown = server.get("/v1/models/other");
  CHECK(unknown.status == 404);
  CHECK(at(unknown.json(), "error", "code") == "model_not_found");
  CHECK(at(unknown.json(), "error", "message") ==
        "the model \"other\" is not loaded; loaded: \"org/Tiny-Model\"");
  CHECK(server.post("/v1/completions", R"({"model":"x","prompt":"p"})").status == 404);
}

TEST_CASE("unknown routes and methods are errors in OpenAI's shape") {
  Served server;
  const Answer missing = server.get("/v2/models");
  CHECK(missing.status == 404);
  CHECK(at(missing.json(), "error", "type") == "invalid_request_error");
  CHECK(at(missing.json(), "error", "code") == "route_not_found");
  CHECK(at(missing.json(), "error", "param").is_null());
  const std::string message(at(missing.json(), "error", "message").get_string());
  CHECK(message.find("there is no route GET /v2/models; the routes are /, ") == 0);
  for (const char* served : {" /v1/embeddings,", " /tokenize,", " /api/tags,", " /cluster/load,"}) {
    CHECK(message.find(served) != std::string::npos);
  }
  CHECK(message.find("/api/push") == std::string::npos);
  CHECK(server.get("/v1/health").status == 404);
  CHECK(server.get("/v1").status == 404);
  const Answer method = server.get("/v1/chat/completions");
  CHECK(method.status == 405);
  CHECK(method.has_header("Allow: POST\r\n"));
  const Answer post = server.post("/v1/models", "{}");
  CHECK(post.status == 405);
  CHECK(post.has_header("Allow: GET, HEAD\r\n"));
  const Answer large = server.post("/v1/completions", std::string(100'001, ' '));
  CHECK(large.status == 413);
  CHECK(at(large.json(), "error", "type") == "invalid_request_error");
  CHECK(at(server.exchange("GET /%zz HTTP/1.1\r\nHost: a\r\n\r\n").json(), "error", "message")
            .is_string());
  CHECK(server.post("/v1/completions", "{\"prompt\":").status == 400);
  CHECK(server.model->request_count() == 0);
}

TEST_CASE("health follows the state of the model") {
  Served server;
  const Answer good = server.get("/health");
  CHECK(good.status == 200);
  CHECK(good.body == R"({"status":"ok"})");
  server.model->set_state(ModelStatus::State::kLoading, "");
  const Answer loading = server.get("/health");
  CHECK(loading.status == 503);
  CHECK(loading.body ==
        R"({"status":"loading","reason":"the model \"org/Tiny-Model\" is loading"})");
  server.model->set_state(ModelStatus::State::kFailed, "rank 0 died three times");
  CHECK(server.get("/health").body == R"({"status":"failed","reason":"rank 0 died three times"})");
}

TEST_CASE("health tells strangers only that no model is ready, neither names nor paths") {
  Served server([](ServerOptions& options) { options.access.takes_control = false; });
  server.model->set_state(ModelStatus::State::kFailed, "/models/secret.gguf is damaged");
  for (const char* host : {"node.example", "10.0.0.5"}) {
    const Answer answer = server.exchange(
        fmt::format("GET /health HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", host));
    CHECK(answer.status == 503);
    CHECK(answer.body == R"({"status":"failed","reason":"no model is ready"})");
  }
}

TEST_CASE("the status is complete") {
  Served server;
  const Json status = server.get("/cluster/status").json();
  CHECK(at(status, "version") == "0.1.0");
  CHECK(at(status, "models", 0, "state") == "ready");
  CHECK(at(status, "models", 0, "link") == "shm");
  CHECK(at(status, "models", 0, "stages") == 1);
  CHECK(at(status, "models", 0, "context") == 1000);
  CHECK(dump_json(at(status, "models", 0, "ranks", 1)) ==
        R"({"rank":1,"pid":42,"weight_bytes":400,"read_bytes":410,)"
        R"("token_bytes":300,"state_bytes":50,"device":"vulkan: a GPU","node":")" +
            text_at(at(status, "nodes", 0, "id")) + R"("})");
  const Json& link = at(status, "models", 0, "links", 0);
  CHECK(at(link, "a") == 0);
  CHECK(at(link, "b") == 1);
  CHECK(at(link, "p50_us") == 2.5);
  CHECK(at(link, "p99_us") == 8.0);
  CHECK(at(link, "gbit_s") == 40.0);
  CHECK(at(link, "path") == "tcp");
  CHECK(at(link, "rails") == 2);
  CHECK(at(link, "tcp_rails") == 0);
  CHECK(at(link, "encrypted") == false);
  CHECK(at(link, "reason") == "no \"library\"");
  CHECK(at(link, "a_host") == "10.9.0.1");
  CHECK(at(link, "b_host") == "10.9.0.2");
  CHECK(at(link, "device") == "rdma_en5");
  CHECK(at(link, "network_note") == "join the two");
  CHECK(at(status, "models", 0, "late_calls") == 2);
  CHECK(at(status, "models", 0, "late_frames") == 5);
}

TEST_CASE("a port in use is an error that names it") {
  Served server;
  ServerOptions options;
  options.port = server.port();
  auto second = Server::start(options, ModelServices{server.model});
  REQUIRE(!second.ok());
  CHECK(second.error().message.find(std::to_string(server.port())) != std::string::npos);
}

}  // namespace lockstep
