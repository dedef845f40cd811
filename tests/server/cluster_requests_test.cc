// GET /cluster/requests and DELETE /cluster/requests/ID.
#include <doctest/doctest.h>

#include "access/api_keys.h"
#include "server/fake_cluster.h"
#include "server/served.h"
#include "support/comes_true.h"
#include "support/temporary_folder.h"
#include "support/text.h"

namespace lockstep {
namespace {

std::string post_with(std::string_view headers, std::string_view body) {
  std::string text = Served::post_text("/v1/completions", body);
  return text.insert(text.find("\r\n") + 2, headers);
}

std::string delete_text(std::string_view id, std::string_view headers = "") {
  return "DELETE /cluster/requests/" + std::string(id) +
         " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" + std::string(headers) + "\r\n";
}

Json listed(Served& server, std::string_view headers = "") {
  return at(server
                .exchange("GET /cluster/requests HTTP/1.1\r\nHost: localhost\r\nConnection: "
                          "close\r\n" +
                          std::string(headers) + "\r\n")
                .json(),
            "requests");
}

}  // namespace

TEST_CASE("requests in progress are listed with phase, place and tokens until they end") {
  Served server;
  CHECK(listed(server).get_array().empty());
  RawClient first(server.port()), second(server.port());
  first.send(Served::post_text("/v1/completions", R"({"prompt":"hello","stream":true})"));
  const FakeModel::Running one = server.model->request(0);
  second.send(Served::post_text("/v1/completions", R"({"prompt":"p","stream":true})"));
  const FakeModel::Running two = server.model->request(1);
  REQUIRE(comes_true([&] { return listed(server).get_array().size() == 2; }));
  Json requests = listed(server);
  CHECK(at(requests, 0, "model") == "org/Tiny-Model");
  CHECK(at(requests, 0, "phase") == "waiting");
  CHECK(at(requests, 0, "place") == 1);
  CHECK(at(requests, 1, "place") == 2);
  CHECK(at(requests, 0, "prompt_tokens") == 6);  // with the token that begins a text
  CHECK(find(at(requests, 0), "prompt_done") == nullptr);
  CHECK(at(requests, 0, "tokens") == 0);
  CHECK(at(requests, 0, "age_s").as_double() >= 0);
  CHECK(at(requests, 0, "route") == "/v1/completions");
  CHECK(at(requests, 0, "client") == "127.0.0.1");
  CHECK(at(requests, 0, "own") == true);
  CHECK(at(requests, 0, "node") == at(server.get("/cluster/status").json(), "nodes", 0, "id"));
  CHECK(at(requests, 0, "id") != at(requests, 1, "id"));
  one.start(2);
  one.token('a');
  one.token('b');
  REQUIRE(comes_true([&] { return at(listed(server), 0, "tokens") == 2; }));
  requests = listed(server);
  CHECK(at(requests, 0, "phase") == "answer");
  CHECK(at(requests, 0, "prompt_done") == 6);
  CHECK(at(requests, 0, "tokens") == 2);
  CHECK(find(at(requests, 0), "place") == nullptr);
  CHECK(at(requests, 1, "place") == 1);
  server.model->set_state(ModelStatus::State::kRestarting, "rank 1 was killed");
  requests = listed(server);
  CHECK(at(requests, 0, "phase") == "paused");
  CHECK(at(requests, 1, "phase") == "waiting");
  one.end(FinishReason::kStop);
  two.end(FinishReason::kStop);
  CHECK(comes_true([&] { return listed(server).get_array().empty(); }));
}

TEST_CASE("the list shows how much of a prompt is read, and a pause while it is read") {
  Served server;
  RawClient client(server.port());
  client.send(Served::post_text("/v1/completions", R"({"prompt":"hello","stream":true})"));
  const FakeModel::Running running = server.model->request(0);
  REQUIRE(comes_true([&] { return listed(server).get_array().size() == 1; }));
  running.send(RequestEvent::Progress{0, 0});
  // Reports that come while the request is still being submitted are held until it is.
  REQUIRE(comes_true([&] { return at(listed(server), 0, "phase") == "prompt"; }));
  CHECK(at(listed(server), 0, "prompt_done") == 0);
  running.send(RequestEvent::Progress{4, 1});
  CHECK(at(listed(server), 0, "prompt_done") == 4);
  running.send(RequestEvent::Paused{"rank 1 was killed"});
  CHECK(at(listed(server), 0, "phase") == "paused");
  running.send(RequestEvent::Resumed{4});
  running.start(0);
  CHECK(at(listed(server), 0, "phase") == "answer");
  CHECK(at(listed(server), 0, "prompt_done") == 6);
  running.end(FinishReason::kStop);
}

TEST_CASE("a request is cancelled by its own client, and its answer says so") {
  Served server;
  RawClient client(server.port());
  client.send(Served::post_text("/v1/completions", R"({"prompt":"p"})"));
  const FakeModel::Running running = server.model->request(0);
  REQUIRE(comes_true([&] { return listed(server).get_array().size() == 1; }));
  const std::string id = text_at(at(listed(server), 0, "id"));
  const Answer cancelled = server.exchange(delete_text(id));
  CHECK(cancelled.status == 200);
  CHECK(cancelled.body == R"({"id":")" + id + R"("})");
  const Answer answer = Served::parse(client.read_to_end());
  CHECK(answer.status == 410);
  CHECK(at(answer.json(), "error", "code") == "request_cancelled");
  CHECK(server.model->waits_for_cancel(running.id));
  CHECK(listed(server).get_array().empty());
  CHECK(server.exchange(delete_text(id)).status == 404);
  running.end(Error{ErrorCode::kCancelled, "cancelled"});
}

TEST_CASE("a stream that is cancelled ends with the error") {
  Served server;
  RawClient client(server.port());
  client.send(Served::post_text("/v1/completions", R"({"prompt":"p","stream":true})"));
  const FakeModel::Running running = server.model->request(0);
  running.start(0);
  running.token('a');
  REQUIRE(comes_true([&] { return listed(server).get_array().size() == 1; }));
  CHECK(server.exchange(delete_text(text_at(at(listed(server), 0, "id")))).status == 200);
  CHECK(contains(client.read_to_end(), "request_cancelled"));
  CHECK(server.model->waits_for_cancel(running.id));
  running.end(Error{ErrorCode::kCancelled, "cancelled"});
}

TEST_CASE("other keys see a request without its client, and only control may cancel it") {
  const TemporaryFolder folder;
  const auto path = folder.path() / kApiKeyFile;
  const std::string owner = "x-api-key: " + add_api_key(path, "laptop", 1).value() + "\r\n";
  const std::string other = "x-api-key: " + add_api_key(path, "phone", 1).value() + "\r\n";
  Served server([&](ServerOptions& options) { options.access.keys = path; });
  RawClient client(server.port());
  client.send(post_with(owner, R"({"prompt":"p","stream":true})"));
  const FakeModel::Running running = server.model->request(0);
  REQUIRE(comes_true([&] { return listed(server, owner).get_array().size() == 1; }));
  const std::string id = text_at(at(listed(server), 0, "id"));
  CHECK(at(listed(server, owner), 0, "client") == "laptop");
  CHECK(at(listed(server, owner), 0, "own") == true);
  for (const std::string& headers : {other, std::string()}) {
    const Json seen = at(listed(server, headers), 0);
    CHECK(find(seen, "client") == nullptr);
    CHECK(at(seen, "own") == false);
    const Answer refused = server.exchange(delete_text(id, headers));
    CHECK(refused.status == 403);
    CHECK(at(refused.json(), "error", "code") == "control_needed");
  }
  CHECK(server.exchange(delete_text(id, "X-Forwarded-For: 10.0.0.9\r\n")).status == 401);
  const std::string target = "/cluster/requests/" + id;
  CHECK(server.exchange(delete_text(id, server.secret_line("DELETE", target))).status == 200);
  CHECK(server.model->waits_for_cancel(running.id));
  running.end(Error{ErrorCode::kCancelled, "cancelled"});
}

TEST_CASE("pages of other sites and foreign names can neither list nor cancel requests") {
  Served server;
  const std::string origin = "Origin: http://evil.example\r\n";
  CHECK(server.exchange(delete_text("x", origin)).status == 403);
  CHECK(server
            .exchange("DELETE /cluster/requests/x HTTP/1.1\r\nHost: evil.example\r\nConnection: "
                      "close\r\n\r\n")
            .status == 403);
  CHECK(server.exchange(delete_text("x")).status == 404);
  CHECK(server.post("/cluster/requests", "").status == 405);
  CHECK(server.post("/cluster/requests/x", "").status == 405);
  CHECK(server.get("/cluster/requests/x").status == 405);
}

}  // namespace lockstep
