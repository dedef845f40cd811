#include <doctest/doctest.h>

#include <fmt/core.h>
#include <stdlib.h>

#include "hub/files/model_files.h"
#include "server/fake_cluster.h"
#include "server/served.h"
#include "support/temporary_folder.h"
#include "support/text.h"

namespace lockstep {
namespace {

constexpr std::chrono::milliseconds kSilence{60'000};

// A test's own hub cache, which the node reads.
struct CacheScope {
  TemporaryFolder folder;
  CacheScope() { ::setenv("HF_HUB_CACHE", folder.path().c_str(), 1); }
  ~CacheScope() { ::unsetenv("HF_HUB_CACHE"); }
};

}  // namespace

TEST_CASE("the status shows how much of a hub's model is on the node's disk") {
  const CacheScope cache;
  FakeCluster cluster;  // its second model is org/Large-Model
  Served server(kSilence, &cluster);
  CHECK(at(server.get("/cluster/status").json(), "models", 1, "disk").is_null());
  const std::string commit(40, 'c'), there(40, 'a'), missing(40, 'b');
  const HubFile config{
      .name = "config.json", .size = 3, .hash_kind = HashKind::kSha1, .hash = there};
  const HubFile weights{
      .name = "model.safetensors", .size = 100, .hash_kind = HashKind::kSha1, .hash = missing};
  const std::string folder = "models--org--Large-Model/";
  cache.folder.write(folder + "refs/main", commit);
  cache.folder.write(folder + "blobs/" + there, "{ }");
  cache.folder.write(folder + "lockstep/" + commit + ".json",
                     dump_model_files({.commit = commit, .files = {config, weights}}));
  const Json status = server.get("/cluster/status").json();
  CHECK(dump_json(at(status, "models", 1, "disk")) == R"({"size_bytes":3,"whole_bytes":103})");
  CHECK(at(status, "models", 0, "disk").is_null());  // a path
}

TEST_CASE("the status shows nodes, placements, and waiting models with the reason") {
  FakeCluster cluster;
  Served server(kSilence, &cluster);
  const Json status = server.get("/cluster/status").json();
  CHECK(at(status, "cluster") == "12345678");
  CHECK(at(status, "strangers_refused") == 5);
  CHECK(at(status, "beacon_problem") == "");
  CHECK(text_at(at(status, "nodes", 0, "id")) == fake_node_id('a').text());
  CHECK(at(status, "nodes", 0, "is_self") == true);
  CHECK(at(status, "nodes", 0, "is_coordinator") == true);
  CHECK(at(status, "nodes", 0, "is_spare") == false);
  CHECK(at(status, "nodes", 0, "budget_bytes") == 1000);
  CHECK(at(status, "nodes", 0, "promised_bytes") == 400);
  CHECK(at(status, "nodes", 0, "read_bytes_s") == 50);
  CHECK(at(status, "nodes", 1, "name") == "beta");
  CHECK(at(status, "nodes", 1, "address") == "10.0.0.2:8601");
  CHECK(at(status, "nodes", 0, "data_host") == "");
  CHECK(dump_json(at(status, "nodes", 0, "data_addresses")) == "[]");
  CHECK(at(status, "nodes", 1, "data_host") == "10.9.0.2");
  CHECK(dump_json(at(status, "nodes", 1, "data_addresses")) == R"(["10.9.0.2/24","fd00:9::2/64"])");
  CHECK(at(status, "nodes", 1, "state") == "suspect");
  CHECK(at(status, "nodes", 1, "note") == "silent for 2 s");
  CHECK(at(status, "nodes", 0, "life") == "00000000000000a1");
  CHECK(at(status, "nodes", 0, "power_w") == 12.5);
  CHECK(at(status, "nodes", 1, "power_w").is_null());
  CHECK(at(status, "nodes", 1, "clock_skew_s") == -2.5);
  const Json ready = at(status, "models", 0);
  CHECK(at(ready, "name") == "org/Tiny-Model");
  CHECK(at(ready, "phase") == "ready");
  CHECK(at(ready, "state") == "ready");
  CHECK(dump_json(at(ready, "placement", 0)) ==
        fmt::format(R"({{"rank":0,"node":"{}","node_name":"beta","bytes":300,"group":0}})",
                    fake_node_id('b').text()));
  CHECK(at(ready, "placement", 2, "group") == 1);
  CHECK(dump_json(at(ready, "groups")) ==
        R"([{"group":0,"phase":"ready","stages":1,"running":0},)"
        R"({"group":1,"phase":"loading","stages":1,"running":0}])");
  CHECK(at(ready, "wanted", "replicas") == 1);
  CHECK(at(ready, "wanted", "draft_model").is_null());
  CHECK(at(ready, "placement", 1, "node_name") == "cccccccc");  // its name was never reported
  CHECK(at(ready, "wanted", "nodes", 0) == "beta");
  CHECK(at(ready, "wanted", "aliases", 0) == "small");
  const Json waiting = at(status, "models", 1);
  CHECK(at(waiting, "name") == "Large-Model");
  CHECK(at(waiting, "phase") == "waiting");
  CHECK(at(waiting, "sentence") == "it needs 142 GiB but the 2 nodes have 96 GiB free");
  CHECK(at(waiting, "placement").get_array().empty());
}

TEST_CASE("a node without a cluster reports none and refuses to change it") {
  Served server;
  const Json status = server.get("/cluster/status").json();
  CHECK(find(status, "cluster") == nullptr);
  CHECK(at(status, "nodes").get_array().size() == 1);  // its own
  CHECK(find(at(status, "models", 0), "phase") == nullptr);
  for (const char* path : {"/cluster/load", "/cluster/unload", "/cluster/token"}) {
    const Answer answer = server.control(path, R"({"model":"x"})");
    CHECK(answer.status == 409);
    CHECK(at(answer.json(), "error", "code") == "no_cluster");
    CHECK(contains(message_of(answer), "--alone"));
  }
  CHECK(server.get("/cluster/load").status == 405);
}

TEST_CASE("a load becomes a desired entry with its promises") {
  FakeCluster cluster;
  Served server(kSilence, &cluster);
  const Answer plain = server.control("/cluster/load", R"({"model":"Qwen/Qwen3-0.6B@main"})");
  CHECK(plain.status == 200);
  CHECK(plain.body == R"({"model":"Qwen/Qwen3-0.6B","path":"Qwen/Qwen3-0.6B@main"})");
  CHECK(server.control("/cluster/load", R"({"model":"/models/Llama-3/"})").status == 200);
  CHECK(server.control("/cluster/load", R"({"model":"/models/phi.gguf"})").status == 200);
  const Answer full = server.control(
      "/cluster/load",
      fmt::format(R"({{"model":"m","path":"/p","draft_model":"org/small","context":4096,)"
                  R"("streams":2,"parallel":2,)"
                  R"("parallelism":"pipeline","replicas":2,)"
                  R"("nodes":["beta","{}"],"aliases":["gpt-4"],"idle_unload_s":60,)"
                  R"("ngrams_on_disk":true,"kv":"q8"}})",
                  std::string(8, 'a')));
  CHECK(full.status == 200);
  const auto loaded = cluster.loaded();
  REQUIRE(loaded.size() == 4);
  CHECK(loaded[0].name == "Qwen/Qwen3-0.6B");
  CHECK(loaded[0].wanted);
  CHECK(loaded[0].promises == ModelPromises{});
  CHECK(loaded[1].name == "Llama-3");
  CHECK(loaded[1].path == "/models/Llama-3/");
  CHECK(loaded[2].name == "phi");
  CHECK(loaded[3].name == "m");
  CHECK(loaded[3].path == "/p");
  CHECK(loaded[3].draft_model == "org/small");
  CHECK(loaded[0].draft_model.empty());
  CHECK(loaded[3].promises == ModelPromises{.context = 4096,
                                            .streams = 2,
                                            .parallel = 2,
                                            .parallelism = Parallelism::kPipeline,
                                            .pinned = {fake_node_id('b'), fake_node_id('a')},
                                            .aliases = {"gpt-4"},
                                            .idle_unload_s = 60,
                                            .replicas = 2,
                                            .ngrams_on_disk = true,
                                            .kv = "q8"});
}

TEST_CASE("an invalid load is refused with the field's name") {
  FakeCluster cluster;
  cluster.report_to_change().nodes.push_back({.id = fake_node_id('d'), .name = "beta"});
  Served server(kSilence, &cluster);
  const auto refusal = [&](std::string_view body) {
    const Answer answer = server.control("/cluster/load", body);
    CHECK_MESSAGE(answer.status == 400, body);
    return message_of(answer);
  };
  CHECK(contains(refusal("{"), "not valid JSON"));
  CHECK(refusal("{}") == "\"model\" is required");
  CHECK(contains(refusal(R"({"model":5})"), "\"model\" must be a string"));
  CHECK(contains(refusal(R"({"model":"a\u0001"})"), "without control characters"));
  for (const char* name : {"../../x", "..", "a/../b", "/etc/passwd", "a/", "a//b", "a\\\\b"}) {
    CHECK(contains(refusal(fmt::format(R"({{"model":"{}","path":"/p"}})", name)), "like a path"));
  }
  CHECK(contains(refusal(R"({"model":"a","path":"/p","aliases":["../b"]})"), "like a path"));
  CHECK(contains(refusal(R"({"model":"a","context":-1})"), "\"context\" must be from 0"));
  CHECK(refusal(R"({"model":"a","replicas":0})") == "\"replicas\" must be from 1 to 16, not 0");
  CHECK(contains(refusal(R"({"model":"a","replicas":17})"), "from 1 to 16, not 17"));
  CHECK(refusal(R"({"model":"a","parallelism":"both"})") ==
        "unknown parallelism 'both'; choose auto, tensor or pipeline");
  CHECK(contains(refusal(R"({"model":"a","kv":"q2"})"), "q2"));
  CHECK(contains(refusal(R"({"model":"a","ngrams_on_disk":1})"), "\"ngrams_on_disk\""));
  CHECK(contains(refusal(R"({"model":"a","nodes":"alpha"})"), "\"nodes\" must be an array"));
  CHECK(contains(refusal(R"({"model":"a","nodes":[1]})"), "array of strings"));
  CHECK(refusal(R"({"model":"a","nodes":["delta"]})") ==
        "there is no node \"delta\"; the nodes are alpha, beta, beta");
  CHECK(contains(refusal(R"({"model":"a","nodes":["beta"]})"), "2 nodes are named \"beta\""));
  CHECK(refusal(R"({"model":"a","contxt":1})") == "unknown field \"contxt\"");
  CHECK(refusal(R"({"model":"nope"})") ==
        "\"nope\" is neither a path that begins with / nor a hub model (org/name)");
  CHECK(contains(refusal(R"({"model":"a","path":"nope"})"), "\"nope\" is neither"));
  CHECK(contains(refusal(R"({"model":"org/a","draft_model":"nope"})"), "\"nope\" is neither"));
  CHECK(cluster.loaded().empty());
  cluster.refuses({ErrorCode::kExhausted, "64 models are wanted already"});
  const Answer full = server.control("/cluster/load", R"({"model":"org/a"})");
  CHECK(full.status == 429);
  CHECK(message_of(full) == "64 models are wanted already");
}

TEST_CASE("a model is unloaded by its name, an alias or its path, and an unknown one is refused") {
  FakeCluster cluster;
  cluster.report_to_change().models.front().entry.name = "Other";
  Served server(kSilence, &cluster);
  CHECK(server.control("/cluster/unload", R"({"model":"Large-Model"})").status == 200);
  CHECK(server.control("/cluster/unload", R"({"model":"small"})").body == R"({"model":"Other"})");
  CHECK(server.control("/cluster/unload", R"({"model":"/models/Large-Model"})").status == 200);
  CHECK(cluster.unloaded() == std::vector<std::string>{"Large-Model", "Other", "Large-Model"});
  const Answer unknown = server.control("/cluster/unload", R"({"model":"Large-Modle"})");
  CHECK(unknown.status == 404);
  CHECK(message_of(unknown) == "there is no model 'Large-Modle'; did you mean Large-Model?");
  const Answer own = server.control("/cluster/unload", R"({"model":"Tiny-Model"})");
  CHECK(own.status == 400);
  CHECK(contains(message_of(own), "it ends with the node"));
  CHECK(server.control("/cluster/unload", "{}").status == 400);
  const Answer more = server.control("/cluster/unload", R"({"model":"Large-Model","nod":"beta"})");
  CHECK(more.status == 400);
  CHECK(message_of(more) == "unknown field \"nod\"");
}

TEST_CASE("a node is restarted by its name or id, and the answer has its incarnation") {
  FakeCluster cluster;
  Served server(kSilence, &cluster);
  const Answer named = server.control("/cluster/restart", R"({"node":"beta"})");
  CHECK(named.status == 200);
  CHECK(named.body ==
        fmt::format(R"({{"node":"{}","life":"00000000000000b1"}})", fake_node_id('b').text()));
  CHECK(server.control("/cluster/restart", R"({"node":"aaaaaaaa"})").status == 200);
  CHECK(cluster.restarted() == std::vector{fake_node_id('b'), fake_node_id('a')});
  CHECK(server.control("/cluster/restart", R"({"node":"beta","now":true})").status == 400);
  const Answer nobody = server.control("/cluster/restart", "{}");
  CHECK(nobody.status == 400);
  CHECK(message_of(nobody) == "\"node\" is required");
  const Answer unknown = server.control("/cluster/restart", R"({"node":"delta"})");
  CHECK(unknown.status == 400);
  CHECK(message_of(unknown) == "there is no node \"delta\"; the nodes are alpha, beta");
  cluster.refuses({ErrorCode::kPeerLost, "node bbbbbbbb does not answer"});
  CHECK(server.control("/cluster/restart", R"({"node":"beta"})").status >= 500);
  CHECK(cluster.restarted().size() == 2);
}

TEST_CASE("a token is made here and must not be cached") {
  FakeCluster cluster;
  Served server(kSilence, &cluster);
  const Answer answer = server.control("/cluster/token", "");
  CHECK(answer.status == 200);
  CHECK(answer.body == R"({"token":"a-token"})");
  CHECK(answer.has_header("Cache-Control: no-store\r\n"));
}

TEST_CASE("a draining server lets an answer end and refuses the next one") {
  Served server;
  RawClient busy(server.port());
  busy.send(Served::post_text("/v1/completions", R"({"prompt":"p","stream":true})"));
  const FakeModel::Running running = server.model->request(0);
  server.server().drain(std::chrono::hours(1));
  const Answer refused = server.get("/health");
  CHECK(refused.status == 503);
  CHECK(refused.has_header("Retry-After: "));
  CHECK(contains(message_of(refused), "about to stop"));
  FakeModel::say(running, "the end");
  running.end(FinishReason::kStop);
  CHECK(contains(busy.read_to_end(), "[DONE]"));
}

}  // namespace lockstep
