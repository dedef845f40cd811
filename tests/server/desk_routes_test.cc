// The routes about disks, downloads, the hub's search, plans, the doctor and the log, over real
// connections and without a page: who may call them, what they refuse, what they answer.
#include <doctest/doctest.h>

#include <fmt/core.h>

#include <atomic>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "access/api_keys.h"
#include "base/log.h"
#include "base/log_ring.h"
#include "model/load/open_model.h"
#include "node/disks/alone_desk.h"
#include "node/fetch_fixture.h"
#include "planner/cluster_file.h"
#include "planner/plan_json.h"
#include "server/fake_cluster.h"
#include "server/request/slow_answer.h"
#include "server/served.h"
#include "support/comes_true.h"

namespace lockstep {
namespace {

struct DeskRoute {
  const char* method;
  const char* path;
};
constexpr DeskRoute kControlRoutes[] = {{"DELETE", "/cluster/disk"}, {"POST", "/cluster/pull"},
                                        {"DELETE", "/cluster/pull"}, {"GET", "/cluster/doctor"},
                                        {"GET", "/cluster/log"},     {"GET", "/hub/search"}};
constexpr DeskRoute kLookRoutes[] = {{"GET", "/cluster/disk"}, {"POST", "/cluster/plan"}};

// A node with a desk of its own and a hub.
struct DeskNode {
  explicit DeskNode(
      ClusterControl* cluster = nullptr,
      const std::function<void(ServerOptions&)>& change = [](ServerOptions&) {},
      std::vector<std::string> loaded = {})
      : hub(tiny_model()),
        alone(settings(), std::move(loaded)),
        server(
            [&](ServerOptions& options) {
              options.desk = &alone.desk();
              change(options);
            },
            cluster) {}

  FetchSettings settings() const {
    FetchSettings chosen;
    chosen.hub.endpoint = hub.url();
    chosen.hub.cache = folder.path() / "cache";
    chosen.home = folder.path() / "home";
    chosen.piece_bytes = kTestPieceBytes;
    chosen.retries = 1;
    return chosen;
  }
  // `headers` end with line ends; the default Host is localhost.
  Answer ask(std::string_view method, std::string_view target, const std::string& headers = "",
             const std::string& body = "") {
    const bool has_host = ("\n" + headers).find("\nHost:") != std::string::npos;
    return server.exchange(fmt::format(
        "{} {} HTTP/1.1\r\n{}{}Connection: close\r\nContent-Length: {}\r\n\r\n{}", method, target,
        has_host ? "" : "Host: localhost:8600\r\n", headers, body.size(), body));
  }
  // By a caller with control.
  Answer control(std::string_view method, std::string_view target, const std::string& body = "") {
    return ask(method, target, server.secret_line(method, target, body), body);
  }
  Json pull() {
    const Json status = server.get("/cluster/status").json();
    const Json pulls = at(status, "pulls");
    return pulls.get_array().size() == 1 ? pulls.get_array()[0] : Json();
  }

  TemporaryFolder folder;
  FakeHub hub;
  AloneDesk alone;
  Served server;
};

std::string param_of(const Answer& answer) {
  const Json param = at(answer.json(), "error", "param");
  return param.is_string() ? text_at(param) : "";
}

std::string member_text(const Json& json, std::string_view key) {
  const Json* value = find(json, key);
  return value != nullptr && value->is_string() ? std::string(value->get_string()) : "";
}

}  // namespace

TEST_CASE("the routes that change something or reveal much need control, from this machine alone") {
  DeskNode node;
  for (const DeskRoute& route : kControlRoutes) {
    CAPTURE(route.method);
    CAPTURE(route.path);
    const Answer open = node.ask(route.method, route.path);
    CHECK(open.status == 403);
    CHECK(code_of(open) == "control_needed");
    for (const char* headers :
         {"Via: 1.1 cache\r\n", "X-Forwarded-For: 10.0.0.9\r\n", "Forwarded: for=a\r\n",
          "X-Real-IP: 10.0.0.9\r\n", "Host: lockstep.example:8600\r\n",
          "Origin: http://lockstep.example\r\n", "Origin: null\r\n",
          "Origin: http://localhost:3000\r\n"}) {
      CAPTURE(headers);
      const std::string proof = node.server.secret_line(route.method, route.path);
      const Answer answer = node.ask(route.method, route.path, headers + proof);
      CHECK(answer.status == 403);
      CHECK(code_of(answer) == "not_local");
    }
    // The proof of another method or path is none.
    const std::string other = node.server.secret_line("POST", "/cluster/token");
    CHECK(node.ask(route.method, route.path, other).status == 403);
  }
  CHECK(node.hub.searches().empty());
  CHECK(node.alone.desk().pulls().list().empty());
}

TEST_CASE("the routes for looking need a key where there are keys, and no foreign page has them") {
  const TemporaryFolder keys;
  REQUIRE(add_api_key(keys.path() / kApiKeyFile, "laptop", 1).ok());
  DeskNode node(nullptr, [&](ServerOptions& options) {
    options.access.takes_control = false;  // then no caller counts as a program of this machine
    options.access.keys = keys.path() / kApiKeyFile;
  });
  for (const DeskRoute& route : kLookRoutes) {
    CAPTURE(route.path);
    CHECK(node.ask(route.method, route.path).status == 401);
  }
  DeskNode open;
  for (const DeskRoute& route : kLookRoutes) {
    CAPTURE(route.path);
    const Answer page = open.ask(route.method, route.path, "Origin: http://lockstep.example\r\n");
    CHECK(page.status == 403);
    CHECK(code_of(page) == "origin_not_allowed");
    const Answer name = open.ask(route.method, route.path, "Host: lockstep.example:8600\r\n");
    CHECK(name.status == 403);
    CHECK(code_of(name) == "host_not_allowed");
  }
}

TEST_CASE("a wrong method is refused with those that the path has") {
  DeskNode node;
  const auto allowed = [&](const char* method, const char* path, const char* line) {
    const Answer answer = node.ask(method, path);
    CHECK_MESSAGE(answer.status == 405, path);
    CHECK_MESSAGE(answer.has_header(line), answer.head);
  };
  allowed("PUT", "/cluster/disk", "Allow: GET, HEAD, DELETE\r\n");
  allowed("GET", "/cluster/pull", "Allow: POST, DELETE\r\n");
  allowed("GET", "/cluster/plan", "Allow: POST\r\n");
  allowed("POST", "/cluster/doctor", "Allow: GET, HEAD\r\n");
  allowed("DELETE", "/cluster/log", "Allow: GET, HEAD\r\n");
  allowed("POST", "/hub/search", "Allow: GET, HEAD\r\n");
}

TEST_CASE("bodies and queries that are wrong are refused by name") {
  DeskNode node;
  for (const DeskRoute& route : {kControlRoutes[0], kControlRoutes[1], kControlRoutes[2]}) {
    CAPTURE(route.method);
    CAPTURE(route.path);
    CHECK(node.control(route.method, route.path, "").status == 400);
    CHECK(node.control(route.method, route.path, "[]").status == 400);
    CHECK(node.control(route.method, route.path, "{").status == 400);
    CHECK(param_of(node.control(route.method, route.path, "{}")) == "model");
    CHECK(param_of(node.control(route.method, route.path, R"({"model":3})")) == "model");
    CHECK(param_of(node.control(route.method, route.path, R"({"model":""})")) == "model");
    CHECK(param_of(node.control(route.method, route.path, R"({"model":"org/a","moddel":1})")) ==
          "moddel");
    const std::string large = fmt::format(R"({{"model":"{}"}})", std::string(70'000, 'a'));
    CHECK(node.control(route.method, route.path, large).status == 413);
  }
  CHECK(param_of(node.control("GET", "/hub/search")) == "q");
  CHECK(param_of(node.control("GET", "/hub/search?q=a&limit=0")) == "limit");
  CHECK(param_of(node.control("GET", "/hub/search?q=a&limit=101")) == "limit");
  CHECK(param_of(node.control("GET", "/hub/search?q=a&limit=x")) == "limit");
  CHECK(param_of(node.control("GET", "/hub/search?q=a&endpoint=http://x")) == "endpoint");
  CHECK(param_of(node.control("GET", "/hub/search?q=%FF")) == "q");
  CHECK(param_of(node.control("GET", "/hub/search?q=")) == "q");
  CHECK(param_of(node.control("GET", "/hub/search?q=" + std::string(201, 'a'))) == "q");
  CHECK(param_of(node.control("GET", "/cluster/log?after=-1")) == "after");
  CHECK(param_of(node.control("GET", "/cluster/log?before=1")) == "before");
  CHECK(node.hub.searches().empty());
}

TEST_CASE("a server without a desk says so") {
  Served server;
  const Answer answer = server.get("/cluster/disk");
  CHECK(answer.status == 409);
  CHECK(code_of(answer) == "no_disk");
  CHECK(at(server.get("/cluster/status").json(), "pulls").get_array().empty());
}

TEST_CASE("a pull is accepted, goes on without its caller, and its rate falls to 0 in a stall") {
  DeskNode node;
  node.hub.holds_after = 200'000;
  const Answer accepted = node.control("POST", "/cluster/pull", R"({"model":"org/tiny"})");
  CHECK(accepted.status == 202);
  CHECK(at(accepted.json(), "model") == "org/tiny");
  Json moving;  // each finished file is "checking" for a moment
  REQUIRE(comes_true([&] {
    moving = node.pull();
    return find(moving, "bytes_s") != nullptr &&
           find(moving, "bytes_s")->to_number<int64_t>() > 0 &&
           at(moving, "phase") == "downloading";
  }));
  CHECK(at(moving, "model") == "org/tiny");
  CHECK(at(moving, "whole_bytes").to_number<uint64_t>() == node.hub.total_bytes());
  CHECK(at(moving, "source") == "hub");
  // Real time: the rate is that of the last five seconds.
  REQUIRE(comes_true([&] { return find(node.pull(), "bytes_s")->to_number<int64_t>() == 0; }));
  const Json stalled = node.pull();
  CHECK(at(stalled, "phase") == "downloading");
  CHECK(find(stalled, "seconds_left") == nullptr);
  CHECK(at(stalled, "read_bytes").to_number<uint64_t>() < node.hub.total_bytes());
  node.hub.release();
  REQUIRE(comes_true([&] { return member_text(node.pull(), "phase") == "done"; }));
  const Json disk = node.server.get("/cluster/disk").json();
  CHECK(at(disk, "nodes").get_array().size() == 1);
  CHECK(at(disk, "nodes", 0, "models", 0, "name") == "org/tiny");
  CHECK(at(disk, "nodes", 0, "models", 0, "complete") == true);
  CHECK(at(disk, "nodes", 0, "models", 0, "copies") == "whole");
  CHECK(at(disk, "nodes", 0, "free_bytes").to_number<uint64_t>() > 0);

  const Answer removed = node.control("DELETE", "/cluster/disk", R"({"model":"org/tiny"})");
  CHECK(removed.status == 200);
  CHECK(at(removed.json(), "removed_bytes").to_number<uint64_t>() >= node.hub.total_bytes());
  CHECK(at(node.server.get("/cluster/disk").json(), "nodes", 0, "models").get_array().empty());
  const Answer again = node.control("DELETE", "/cluster/disk", R"({"model":"org/tiny"})");
  CHECK(again.status == 404);
  CHECK(code_of(again) == "model_not_found");
}

TEST_CASE("a pull can be stopped; a loaded model is not removed; paths are not pulled") {
  DeskNode node(nullptr, [](ServerOptions&) {}, {"org/tiny"});
  node.hub.holds_after = 0;
  REQUIRE(node.control("POST", "/cluster/pull", R"({"model":"org/tiny"})").status == 202);
  CHECK(node.control("DELETE", "/cluster/pull", R"({"model":"org/tiny"})").status == 200);
  CHECK(node.pull().is_null());
  const Answer none = node.control("DELETE", "/cluster/pull", R"({"model":"org/tiny"})");
  CHECK(none.status == 404);
  const Answer loaded = node.control("DELETE", "/cluster/disk", R"({"model":"org/tiny"})");
  CHECK(loaded.status == 400);
  CHECK(message_of(loaded).find("unload") != std::string::npos);
  for (const char* model : {"/etc/passwd", "tiny", "org/../tiny", "http://x/y"}) {
    const Answer answer =
        node.control("POST", "/cluster/pull", fmt::format(R"({{"model":"{}"}})", model));
    CHECK_MESSAGE(answer.status == 400, model);
    CHECK(param_of(answer) == "model");
  }
}

TEST_CASE("nodes that are not connected are listed with a sentence, and can be named in vain") {
  FakeCluster cluster;
  DeskNode node(&cluster);
  const Json disk = node.server.get("/cluster/disk").json();
  REQUIRE(at(disk, "nodes").get_array().size() == 3);  // the desk's own, alpha and beta
  CHECK(at(disk, "nodes", 2, "name") == "beta");
  CHECK(text_at(at(disk, "nodes", 2, "sentence")).find("suspect") != std::string::npos);
  CHECK(find(at(disk, "nodes", 2), "models") == nullptr);
  const Answer unknown =
      node.control("DELETE", "/cluster/disk", R"({"model":"org/tiny","node":"gamma"})");
  CHECK(unknown.status == 400);
  CHECK(param_of(unknown) == "node");
  const Answer away =
      node.control("DELETE", "/cluster/disk", R"({"model":"org/tiny","node":"beta"})");
  CHECK(away.status == 503);
}

TEST_CASE("the hub is searched by the node, with a bounded answer of known fields") {
  DeskNode node;
  node.hub.finds({.body = R"([{"id":"org/a","downloads":5,"likes":2,"gated":"manual",
      "lastModified":"2026-11-01T08:00:00.000Z","secret":1},{"id":"no name"},{"id":"org/b"}])"});
  const Answer answer = node.control("GET", "/hub/search?q=qwen+3&limit=2");
  CHECK(answer.status == 200);
  CHECK(dump_json(at(answer.json(), "models", 0)) ==
        R"({"id":"org/a","gated":true,"downloads":5,"likes":2,)"
        R"("updated":"2026-11-01T08:00:00.000Z"})");
  CHECK(dump_json(at(answer.json(), "models", 1)) == R"({"id":"org/b","gated":false})");
  REQUIRE(node.hub.searches().size() == 1);
  CHECK(node.hub.searches()[0].find("search=qwen%203&limit=2") == 0);
  node.hub.finds({.body = R"([{"id":"org/a"},{"id":"org/b"},{"id":"org/c"}])"});
  const Json two = node.control("GET", "/hub/search?q=a&limit=2").json();
  CHECK(at(two, "models").get_array().size() == 2);
}

TEST_CASE("a hub that misbehaves costs a search a sentence") {
  DeskNode node;
  const auto status_with = [&](HttpResponse response) {
    node.hub.finds(std::move(response));
    return node.control("GET", "/hub/search?q=a").status;
  };
  CHECK(status_with({.body = "not json"}) == 502);
  CHECK(status_with({.body = R"({"models":[]})"}) == 502);
  CHECK(status_with({.body = "[" + std::string(2 << 20, ' ') + "]"}) == 502);
  CHECK(status_with({.status = 500, .body = "{}"}) == 503);
  CHECK(status_with({.status = 429, .body = "{}"}) == 429);
  // It is asked nowhere else.
  FakeHub other({});
  CHECK(status_with(
            {.status = 302, .body = "", .headers = {{"Location", other.url() + "/api/models"}}}) ==
        502);
  CHECK(other.searches().empty());
  node.hub.close();
  CHECK(node.control("GET", "/hub/search?q=a").status == 503);
}

TEST_CASE("a plan for machines of profiles is what the command prints for the same cluster") {
  FakeCluster cluster;
  DeskNode node(&cluster);
  const auto facts = parse_cluster(
      R"({"machines":[{"profile":"mac-studio-m3-ultra","count":2}],"link":"tb5-rdma"})");
  REQUIRE(facts.ok());
  const auto opened = open_model("shape:llama-3.3-70b?format=bf16");
  REQUIRE(opened.ok());
  const auto model = model_facts(opened.value());
  REQUIRE(model.ok());
  PlanSubject subject{.model = "llama-3.3-70b", .format = "bf16", .request = {}};
  subject.request.limits = {.context = 4096, .streams = 2};
  const auto plan = plan_model(model.value(), facts.value(), subject.request);
  REQUIRE(plan.ok());
  const std::string expected = dump_json(plan_json(subject, facts.value(), plan.value()));

  const Answer answer = node.ask("POST", "/cluster/plan", "", R"({"model":"llama-3.3-70b",
      "context":4096,"streams":2,"remove":["alpha"],
      "add":[
        {"profile":"mac-studio-m3-ultra","link":"tb5-rdma","name":"mac-studio-m3-ultra-1"},
        {"profile":"mac-studio-m3-ultra","link":"tb5-rdma","name":"mac-studio-m3-ultra-2"}]})");
  CHECK(answer.status == 200);
  CHECK(answer.body == expected);
}

TEST_CASE("a plan counts nodes that are alive, without those removed and with those added") {
  FakeCluster cluster;
  cluster.report_to_change().nodes[0].budget_bytes = int64_t{64} << 30;
  cluster.report_to_change().nodes[0].promised_bytes = int64_t{4} << 30;
  cluster.report_to_change().nodes[0].read_bytes_s = 100'000'000'000;
  DeskNode node(&cluster);
  const auto machines = [&](const std::string& rest) {
    const Answer answer = node.ask("POST", "/cluster/plan", "",
                                   R"({"model":"qwen3-0.6b","context":1024)" + rest + "}");
    REQUIRE_MESSAGE(answer.status == 200, answer.body);
    std::set<std::string> names;
    const Json placements = at(answer.json(), "placements");
    for (const Json& placement : placements.get_array()) {
      const Json groups = at(placement, "groups");
      for (const Json& group : groups.get_array()) {
        const Json ranks = at(group, "ranks");
        for (const Json& rank : ranks.get_array()) {
          names.insert(text_at(at(rank, "machine")));
          if (text_at(at(rank, "machine")) != "alpha") continue;
          CHECK(at(rank, "available_bytes").to_number<uint64_t>() == uint64_t{60} << 30);
        }
      }
    }
    return names;
  };
  using Names = std::set<std::string>;
  CHECK(machines("") == Names{"alpha"});  // beta is only suspect
  const std::string added = R"({"profile":"mac-studio-m3-ultra","link":"10gbe"})";
  CHECK(machines(R"(,"add":[)" + added + "," + added + "]") ==
        Names{"alpha", "mac-studio-m3-ultra", "mac-studio-m3-ultra-2"});
  CHECK(machines(R"(,"remove":["alpha"],"add":[)" + added + "]") == Names{"mac-studio-m3-ultra"});
}

TEST_CASE("a plan counts the model that guesses: the named one, or the cluster's") {
  FakeCluster cluster;
  cluster.report_to_change().nodes[0].budget_bytes = int64_t{64} << 30;
  cluster.report_to_change().nodes[0].read_bytes_s = 100'000'000'000;
  DeskNode node(&cluster);
  const auto asked = [&](const std::string& rest) {
    const Answer answer = node.ask("POST", "/cluster/plan", "",
                                   R"({"model":"qwen3-1.7b","context":1024)" + rest + "}");
    REQUIRE_MESSAGE(answer.status == 200, answer.body);
    return answer.json();
  };
  const auto memory = [](const Json& plan) {
    const Json rank = at(plan, "choice", "groups", 0, "ranks", 0);
    return at(rank, "weight_bytes").to_number<int64_t>();
  };
  const Json alone = asked(""), none = asked(R"(,"draft_model":"")");
  const Json guessed = asked(R"(,"draft_model":"qwen3-0.6b")");
  CHECK(at(alone, "draft_model").is_null());
  CHECK(at(alone, "choice", "draft_tok_s").is_null());
  CHECK(dump_json(none) == dump_json(alone));
  CHECK(at(guessed, "draft_model") == "qwen3-0.6b");
  CHECK(at(guessed, "choice", "draft_tok_s").to_number<double>() > 0);
  CHECK(memory(guessed) > memory(alone) + (int64_t{1} << 30));  // 0.6e9 weights of two bytes
}

TEST_CASE("a node without a cluster is one machine of a plan, and can be removed from it") {
  DeskNode node;
  const std::string added =
      R"("add":[{"profile":"mac-studio-m3-ultra","link":"10gbe"}],"model":"qwen3-0.6b")";
  for (const std::string& name : {std::string("this machine"), NodeId().text()}) {
    const Answer answer = node.ask("POST", "/cluster/plan", "",
                                   fmt::format(R"({{{},"remove":["{}"]}})", added, name));
    REQUIRE_MESSAGE(answer.status == 200, answer.body);
    const Json ranks = at(answer.json(), "choice", "groups", 0, "ranks");
    REQUIRE(ranks.get_array().size() == 1);
    CHECK(at(ranks, 0, "machine") == "mac-studio-m3-ultra");
  }
  const Answer both = node.ask("POST", "/cluster/plan", "", "{" + added + "}");
  REQUIRE(both.status == 200);
  CHECK(both.body.find("\"this machine\"") != std::string::npos);
  const Answer other =
      node.ask("POST", "/cluster/plan", "", "{" + added + R"(,"remove":["another"]})");
  CHECK(other.status == 400);
  CHECK(param_of(other) == "remove");
}

TEST_CASE("a plan refuses what it does not know, and reads no file that a caller names") {
  FakeCluster cluster;
  cluster.report_to_change().nodes[0].budget_bytes = int64_t{64} << 30;
  DeskNode node(&cluster);
  const auto asked = [&](const std::string& body) {
    const Answer answer = node.ask("POST", "/cluster/plan", "", body);
    return fmt::format("{} {}", answer.status, answer.status == 200 ? "" : param_of(answer));
  };
  CHECK(asked("{}") == "400 model");
  CHECK(asked("[]").starts_with("400"));
  CHECK(asked(R"({"model":"qwen3-0.6b","context":0})") == "400 context");
  CHECK(asked(R"({"model":"qwen3-0.6b","streams":5000})") == "400 streams");
  CHECK(asked(R"({"model":"qwen3-0.6b","context":100000000})") == "400 context");
  CHECK(asked(R"({"model":"qwen3-0.6b","add":{}})") == "400 add");
  CHECK(asked(R"({"model":"qwen3-0.6b","add":[3]})") == "400 add");
  CHECK(asked(R"({"model":"qwen3-0.6b","add":[{}]})") == "400 add.profile");
  CHECK(asked(R"({"model":"qwen3-0.6b","add":[{"profile":"abacus","link":"10gbe"}]})") ==
        "400 add");
  CHECK(
      asked(
          R"({"model":"qwen3-0.6b","add":[{"profile":"mac-studio-m3-ultra","link":"string"}]})") ==
      "400 add");
  CHECK(asked(R"({"model":"qwen3-0.6b","add":[{"profile":"mac-studio-m3-ultra"}]})") == "400 add");
  CHECK(asked(R"({"model":"qwen3-0.6b","remove":["gamma"]})") == "400 remove");
  CHECK(asked(R"({"model":"qwen3-0.6b","remove":[1]})") == "400 remove");
  CHECK(asked(R"({"model":"qwen3-0.6b","remove":["alpha"]})") == "400 add");  // no machine is left
  CHECK(asked(R"({"model":"qwen3-0.6b","price":3})") == "400 price");
  CHECK(asked(R"({"model":"qwen3-0.6b","draft_model":3})") == "400 draft_model");
  CHECK(asked(R"({"model":"qwen3-0.6b","draft_model":"/etc/passwd"})") == "404 draft_model");
  CHECK(asked(R"({"model":"qwen3-0.6b","draft_model":"llama-3.2-1b"})") ==
        "400 model");  // its tokens
  for (const char* model : {"/etc/passwd", "../x", "no-such-model", "org/not-here", "a/b/c",
                            "shape:/etc/passwd", "config.json", "shape:qwen3-0.6b"}) {
    CHECK_MESSAGE(asked(fmt::format(R"({{"model":"{}"}})", model)) == "404 model", model);
  }
}

TEST_CASE("the doctor's findings are those of the command, made once for all who ask at a time") {
  DeskNode node;
  const Answer answer = node.control("GET", "/cluster/doctor");
  REQUIRE_MESSAGE(answer.status == 200, answer.body);
  const Json found = answer.json();
  CHECK(at(found, "problems").is_number());
  CHECK(at(found, "findings").get_array().size() > 5);
  CHECK(at(found, "findings", 0, "check").is_string());
  CHECK(at(found, "findings", 0, "sentence").is_string());
  // It has asked the node itself, which answers.
  CHECK(answer.body.find("no node answers") == std::string::npos);
}

TEST_CASE("something slow that hangs is waited for until the deadline, and no longer") {
  SlowAnswer slow;
  const auto gate = std::make_shared<std::atomic<bool>>(false);
  const auto calls = std::make_shared<std::atomic<int>>(0);
  const auto make = [gate, calls] {
    ++*calls;
    gate->wait(false);
    return std::string("done");
  };
  for (int i = 0; i < 3; ++i) {
    const auto late = slow.get(make, std::chrono::milliseconds(20));
    REQUIRE(!late.ok());
    CHECK(late.error().code == ErrorCode::kTimeout);
  }
  gate->store(true);
  gate->notify_all();
  const auto made = slow.get(make, std::chrono::seconds(30));
  REQUIRE(made.ok());
  CHECK(made.value() == "done");
  CHECK(*calls <= 2);  // one run was shared by all who came while it hung
}

TEST_CASE("the log's lines follow each other by number, without secrets") {
  DeskNode node;
  const Json first = node.control("GET", "/cluster/log").json();
  keep_out_of_log("a-secret-of-this-test");
  log_warn("the route shows this and not a-secret-of-this-test");
  const std::string secret = node.server.secret().text();
  log_info("nor {}", secret);
  uint64_t next = at(first, "next").to_number<uint64_t>();
  std::string all;
  for (;;) {
    const Json page = node.control("GET", fmt::format("/cluster/log?after={}", next)).json();
    const JsonArray lines = at(page, "lines").get_array();
    if (lines.empty()) break;
    for (const Json& line : lines) {
      CHECK(at(line, "number").to_number<uint64_t>() > next);
      next = at(line, "number").to_number<uint64_t>();
      CHECK(at(line, "at_ms").to_number<int64_t>() > 1'700'000'000'000);
      all += text_at(at(line, "level")) + " " + text_at(at(line, "text")) + "\n";
    }
    CHECK(at(page, "next").to_number<uint64_t>() == next);
  }
  CHECK(all.find("warn the route shows this and not ***\n") != std::string::npos);
  CHECK(all.find("info nor ***\n") != std::string::npos);
  CHECK(all.find(secret) == std::string::npos);
}

}  // namespace lockstep
