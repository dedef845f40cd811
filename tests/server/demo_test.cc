// POST /demo/kill over HTTP: who may, what is answered, and how often.
#include <doctest/doctest.h>
#include <fmt/core.h>

#include <string>
#include <vector>

#include "server/request/demo_plug.h"
#include "server/served_keys.h"

namespace lockstep {
namespace {

struct ServedDemo : Served {
  explicit ServedDemo(const std::function<void(ServerOptions&)>& change = [](ServerOptions&) {})
      : Served([&](ServerOptions& options) {
          options.kill_worker = [this](std::optional<int> rank) { return kill(rank); };
          change(options);
        }) {}

  Result<RankStatus> kill(std::optional<int> rank) {
    if (rank == 7) return Error{ErrorCode::kInvalidArgument, "m has no rank 7"};
    if (rank == 8) return Error{ErrorCode::kPeerLost, "m is not serving now"};
    killed.push_back(rank.value_or(1));
    return RankStatus{.rank = rank.value_or(1), .pid = 42};
  }
  Answer ask_kill(std::string_view lines, std::string_view body = "") {
    const bool has_host = lines.find("Host:") != std::string_view::npos;
    return exchange(fmt::format(
        "POST /demo/kill HTTP/1.1\r\n{}{}Connection: close\r\nContent-Length: {}\r\n\r\n{}",
        has_host ? "" : "Host: localhost\r\n", lines, body.size(), body));
  }

  std::vector<int> killed;
};

}  // namespace

TEST_CASE("a demo kills the worker that is asked for, and then waits") {
  ServedDemo server;
  CHECK(server.get("/v1/session").body ==
        R"({"control":false,"key":false,"keys_needed":false,"demo":true})");
  CHECK(server.ask_kill("", R"({"rank":0})").body == R"({"rank":0,"pid":42})");
  const Answer soon = server.ask_kill("");
  CHECK(soon.status == 429);
  CHECK(soon.has_header("Retry-After: "));
  CHECK(server.killed == std::vector<int>{0});
}

TEST_CASE("without a rank the highest is killed") {
  ServedDemo server;
  CHECK(server.ask_kill("Origin: http://localhost\r\n").body == R"({"rank":1,"pid":42})");
}

TEST_CASE("a kill that is impossible is refused with its reason, and may be repeated at once") {
  ServedDemo server;
  const Answer unknown = server.ask_kill("", R"({"rank":7})");
  CHECK(unknown.status == 404);
  CHECK(message_of(unknown) == "m has no rank 7");
  const Answer restarting = server.ask_kill("", R"({"rank":8})");
  CHECK(restarting.status == 409);
  CHECK(message_of(restarting) == "m is not serving now");
  for (const char* body : {R"({"rank":-1})", R"({"rank":"0"})", R"({"node":0})", "[]", "x"}) {
    CAPTURE(body);
    CHECK(server.ask_kill("", body).status == 400);
  }
  CHECK(server.get("/demo/kill").status == 405);
  CHECK(server.ask_kill("").status == 200);
}

TEST_CASE("only programs and the page of this machine pull a plug") {
  ServedDemo server;
  for (const char* lines :
       {"Origin: http://evil.example\r\n", "Origin: http://localhost:3000\r\n", "Origin: null\r\n",
        "Host: evil.example\r\n", "X-Forwarded-For: 10.0.0.1\r\n", "Via: 1.1 proxy\r\n"}) {
    CAPTURE(lines);
    CHECK(server.ask_kill(lines).status == 403);
  }
  CHECK(server.killed.empty());
  CHECK(server.ask_kill("").status == 200);
}

TEST_CASE("a node that is no demo has no plug, and says how to get one") {
  Served server;
  const Answer answer = server.post("/demo/kill", "");
  CHECK(answer.status == 404);
  CHECK(message_of(answer).find("--alone --demo") != std::string::npos);
}

TEST_CASE("the pause between two kills is two seconds") {
  int kills = 0;
  DemoPlug plug([&](std::optional<int>) -> Result<RankStatus> {
    ++kills;
    return RankStatus{};
  });
  const DemoPlug::Clock::time_point start{};
  CHECK(plug.pull({}, start).ok());
  CHECK(!plug.pull({}, start + std::chrono::milliseconds(1999)).ok());
  CHECK(plug.pull({}, start + std::chrono::milliseconds(2000)).ok());
  CHECK(kills == 2);
}

}  // namespace lockstep
