// GET /cluster/events over real connections.
#include <doctest/doctest.h>

#include <list>
#include <memory>

#include "access/api_keys.h"
#include "base/files/open_files.h"
#include "server/event_client.h"
#include "server/events/event_hub.h"
#include "server/fake_cluster.h"
#include "server/served.h"
#include "support/comes_true.h"
#include "support/temporary_folder.h"
#include "support/text.h"

namespace lockstep {
namespace {

constexpr std::chrono::milliseconds kLongSilence{60'000};

void rename_node(FakeCluster& cluster, const std::string& name) {
  cluster.change_report([&](ClusterReport& report) { report.nodes[1].name = name; });
}

// The value of a gauge of GET /metrics.
std::string metric(Served& server, const std::string& name) {
  const std::string body = server.get("/metrics").body;
  const size_t at = body.find("\n" + name + " ");
  REQUIRE(at != std::string::npos);
  const size_t from = at + name.size() + 2;
  return body.substr(from, body.find('\n', from) - from);
}

}  // namespace

TEST_CASE("a stream of events begins with the status and goes on with what changes") {
  FakeCluster cluster;
  Served server(kLongSilence, &cluster);
  EventClient client(server.port());
  const Json snapshot = client.next("snapshot").json();
  const Json status = server.get("/cluster/status").json();
  for (const auto& [name, value] : status.get_object()) {
    CHECK_MESSAGE(find(snapshot, name) != nullptr, std::string_view(name));
  }
  CHECK(snapshot.get_object().size() == status.get_object().size());
  CHECK(dump_json(at(snapshot, "models")) == dump_json(at(status, "models")));
  CHECK(at(snapshot, "cluster") == "12345678");
  CHECK(at(snapshot, "control") == false);
  CHECK(find(snapshot, "pins") == nullptr);
  CHECK(at(snapshot, "happened").get_array().empty());

  cluster.change_report([](ClusterReport& report) { report.nodes[1].note = "silent for 3 s"; });
  const Json change = client.next("change").json();
  REQUIRE(change.get_object().size() == 1);  // whole, and nothing else
  CHECK(at(change, "nodes", 0, "name") == "alpha");
  CHECK(at(change, "nodes", 1, "note") == "silent for 3 s");

  server.model->set_context(2000);
  CHECK(at(client.next("change").json(), "models", 0, "context") == 2000);
}

TEST_CASE("the answer is a stream that must not be stored, and HEAD has no stream") {
  Served server;
  EventClient client(server.port());
  const std::string head = client.head();
  CHECK(head.starts_with("HTTP/1.1 200 "));
  CHECK(contains(head, "Content-Type: text/event-stream; charset=utf-8\r\n"));
  CHECK(contains(head, "Cache-Control: no-store\r\n"));
  const Answer empty = server.exchange(
      "HEAD /cluster/events HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  CHECK(empty.status == 200);
  CHECK(empty.body.empty());
}

TEST_CASE("nothing but meters comes while nothing changes") {
  FakeCluster cluster;
  Served server(kLongSilence, &cluster);
  EventClient client(server.port());
  client.next("snapshot");
  client.next("meters");
  // Values that move all the time are no changes.
  cluster.change_report([](ClusterReport& report) {
    report.nodes[0].power_w = 99;
    report.nodes[1].clock_ahead_s = 0.25;
    report.nodes[0].meters.uptime_s = 5;
    report.nodes[0].meters.disk_free_bytes = 6;
  });
  const Json meters = client.next().json();
  CHECK(at(meters, "nodes", 0, "power_w") == 99.0);
  CHECK(client.next().name == "meters");
  rename_node(cluster, "berta");
  CHECK(client.next("change").name == "change");
}

TEST_CASE("a load that stands still is told, and a link whose rate changes is not") {
  FakeCluster cluster;
  const auto load = [&](int64_t bytes_s) {
    cluster.change_report([&](ClusterReport& report) {
      report.models[1].loading = {.read_bytes = 10, .whole_bytes = 30, .bytes_s = bytes_s};
    });
  };
  load(5);
  Served server(kLongSilence, &cluster);
  EventClient client(server.port());
  client.next("snapshot");
  server.model->set_link_rate(1e6);
  client.next("meters");
  CHECK(client.next().name == "meters");
  load(0);
  const Json change = client.next("change").json();
  CHECK(at(change, "models", 1, "loading", "bytes_s") == 0.0);
  CHECK(at(change, "models", 0, "links", 0, "bytes_s") == 1e6);
}

TEST_CASE("meters have what is known of machines, models and links, and nothing else") {
  FakeCluster cluster;
  cluster.report_to_change().nodes[0].meters = {.cpu_percent = 12.5,
                                                .memory_bytes = 1000,
                                                .memory_used_bytes = 400,
                                                .process_bytes = 300,
                                                .temperature_c = 61.5,
                                                .disk_free_bytes = 7000};
  Served server(kLongSilence, &cluster);
  server.model->says("abc");
  EventClient client(server.port());
  client.next("snapshot");
  const Json first = client.next("meters").json();
  CHECK(at(first, "now_ms").as_int64() > 1'600'000'000'000);
  REQUIRE(at(first, "nodes").get_array().size() == 1);  // the other one is silent
  CHECK(dump_json(at(first, "nodes", 0)) ==
        R"({"node":")" + fake_node_id('a').text() +
            R"(","cpu_percent":12.5,"memory_bytes":1000,"memory_used_bytes":400,)"
            R"("process_bytes":300,"temperature_c":61.5,"power_w":12.5,"disk_free_bytes":7000})");
  CHECK(dump_json(at(first, "links")) ==

        R"([{"model":"org/Tiny-Model","a":0,"b":1,"bytes_s":0.0,"p50_us":2.5}])");
  CHECK(dump_json(at(first, "models")) == R"([{"name":"org/Tiny-Model","running":0,"waiting":0}])");
  CHECK(server.post("/v1/completions", R"({"prompt":"hello","max_tokens":3})").status == 200);
  const auto rate_is_known = [&](const char* name) {
    const Json meters = client.next("meters").json();
    return at(meters, "models", 0, name).as_double() > 0;
  };
  CHECK(rate_is_known("tokens_s"));
  // And falls to 0 as soon as nothing comes.
  CHECK(at(client.next("meters").json(), "models", 0, "tokens_s") == 0.0);
}

TEST_CASE("PINs are for callers with control alone, in a stream too") {
  FakeCluster cluster;
  Served server(kLongSilence, &cluster);
  EventClient owner(server.port(), server.secret_line("GET", "/cluster/events"));
  EventClient other(server.port());
  const Json snapshot = owner.next("snapshot").json();
  CHECK(at(snapshot, "control") == true);
  CHECK(at(snapshot, "pins", 0, "pin") == "12345678");
  other.next("snapshot");
  cluster.change_report([](ClusterReport& report) { report.pins.front().pin = "87654321"; });
  CHECK(dump_json(owner.next("change").json()) ==
        R"({"pins":[{"name":"gamma","address":"10.0.0.3","pin":"87654321"}]})");
  cluster.change_report([](ClusterReport& report) { report.strangers_refused = 6; });
  CHECK(other.next("change").data == R"({"strangers_refused":6})");
}

TEST_CASE("a node that leaves and returns is told, and later readers learn it from the snapshot") {
  FakeCluster cluster;
  Served server(kLongSilence, &cluster);
  EventClient client(server.port());
  client.next("snapshot");
  const auto set_state = [&](const char* state, const char* note) {
    cluster.change_report([&](ClusterReport& report) {
      report.nodes[1].state = state;
      report.nodes[1].note = note;
    });
  };
  const auto told = [&] {
    client.next("change");
    const Json json = client.next("happened").json();
    CHECK(at(json, "at_ms").as_int64() > 1'600'000'000'000);
    return std::string(at(json, "kind").as_string()) + ": " +
           std::string(at(json, "sentence").as_string());
  };
  set_state("alive", "");
  CHECK(told() == "node_back: beta is back");
  set_state("dead", "it was switched off");
  CHECK(told() == "node_lost: beta is lost: it was switched off");
  set_state("alive", "");
  CHECK(told() == "node_back: beta is back");
  EventClient later(server.port());
  const Json happened = at(later.next("snapshot").json(), "happened");
  REQUIRE(happened.get_array().size() == 3);
  CHECK(at(happened, 1, "kind") == "node_lost");
  CHECK(dump_json(at(server.get("/cluster/status").json(), "happened")) == dump_json(happened));
}

TEST_CASE("what happens while nobody reads is in the first snapshot") {
  FakeCluster cluster;
  Served server(kLongSilence, &cluster);
  REQUIRE(comes_true([&] { return cluster.report_count() > 0; }));  // the look to compare with
  server.model->set_state(ModelStatus::State::kFailed, "rank 1 is gone");
  CHECK(comes_true(
      [&] { return !at(server.get("/cluster/status").json(), "happened").get_array().empty(); }));
  EventClient client(server.port());
  CHECK(at(client.next("snapshot").json(), "happened", 0, "sentence") ==
        "org/Tiny-Model has failed: rank 1 is gone");
}

TEST_CASE("a machine that serves alone has a node of its own in the status and in events") {
  Served server([](ServerOptions& options) {
    options.machine = std::make_shared<MachineGauge>(std::filesystem::path("/"));
    options.budget_bytes = 5000;
  });
  const Json status = server.get("/cluster/status").json();
  CHECK(find(status, "cluster") == nullptr);
  REQUIRE(at(status, "nodes").get_array().size() == 1);
  const Json node = at(status, "nodes", 0);
  CHECK(at(node, "self") == true);
  CHECK(at(node, "is_self") == true);
  CHECK(at(node, "state") == "alive");
  CHECK_FALSE(text_at(at(node, "name")).empty());
  CHECK(at(node, "budget_bytes") == 5000);
  CHECK(at(node, "promised_bytes") == 1050);  // of the model's two ranks
  CHECK(at(node, "cores").as_int64() >= 1);
  CHECK(at(node, "uptime_s").as_int64() >= 0);
  EventClient client(server.port());
  CHECK(dump_json(at(client.next("snapshot").json(), "nodes", 0, "id")) ==
        dump_json(at(node, "id")));
  CHECK(at(client.next("meters").json(), "nodes", 0, "node") == at(node, "id"));
}

TEST_CASE("a silent publisher costs no stream: comments come instead") {
  FakeCluster cluster;
  Served server(std::chrono::milliseconds(100), &cluster);
  EventClient client(server.port());
  EventClient::Event event = client.next();
  while (event.name != "snapshot") event = client.next();
  cluster.hold_reports();  // as when the cluster's loop waits
  CHECK(client.has_comment());
  CHECK(client.has_comment());
  rename_node(cluster, "berta");
  cluster.release_reports();
  event = client.next();
  while (event.name != "change") event = client.next();
  CHECK(at(event.json(), "nodes", 1, "name") == "berta");
}

TEST_CASE("streams need the access of the status: keys, sites, names and methods") {
  const TemporaryFolder folder;
  const std::string key = add_api_key(folder.path() / kApiKeyFile, "a", 1).value();
  Served server([&](ServerOptions& options) { options.access.keys = folder.path() / kApiKeyFile; });
  const auto refused = [&](const std::string& headers) {
    return server.exchange("GET /cluster/events HTTP/1.1\r\nConnection: close\r\n" + headers +
                           "\r\n");
  };
  const std::string local = "Host: localhost\r\n", proxied = "X-Forwarded-For: 10.0.0.9\r\n";
  CHECK(refused(local + proxied).status == 401);
  CHECK(refused("Host: evil.example\r\n").status == 401);  // DNS rebinding
  CHECK(refused(local + "Origin: http://evil.example\r\n").status == 403);
  CHECK(refused(local + proxied + "x-api-key: lk-wrong\r\n").status == 401);
  EventClient with_key(server.port(), proxied + "x-api-key: " + key + "\r\n");
  CHECK(with_key.next().name == "snapshot");
  for (const char* method : {"POST", "PUT", "DELETE"}) {
    const Answer answer =
        server.exchange(std::string(method) +
                        " /cluster/events HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                        "Content-Length: 0\r\n\r\n");
    CHECK(answer.status == 405);
    CHECK(answer.has_header("Allow: GET, HEAD\r\n"));
  }
}

TEST_CASE("a stream ends when its key is removed") {
  const TemporaryFolder folder;
  const auto path = folder.path() / kApiKeyFile;
  const std::string key = add_api_key(path, "a", 1).value();
  REQUIRE(add_api_key(path, "b", 1).ok());  // with no key left, local programs need none
  Served server([&](ServerOptions& options) { options.access.keys = path; });
  EventClient client(server.port(), "X-Forwarded-For: 10.0.0.9\r\nx-api-key: " + key + "\r\n");
  client.next("snapshot");
  REQUIRE(remove_api_key(path, "a").ok());
  while (client.next().name == "meters") continue;
  CHECK(client.has_ended());
}

TEST_CASE("a slow reader gets the last state once, and never a backlog") {
  FakeCluster cluster;
  cluster.report_to_change().nodes[1].note = std::string(8 << 20, 'n');  // more than sockets hold
  Served server([](ServerOptions& options) { options.limits.unsent_bytes_max = 64 << 20; },
                &cluster);
  EventClient fast(server.port());
  EventClient slow(server.port(), "", 4096);
  fast.next("snapshot");
  CHECK_FALSE(slow.head().empty());
  for (const char* name : {"b1", "b2", "b3", "b4", "b5"}) {
    rename_node(cluster, name);
    CHECK(contains(fast.next("change").data, name));
  }
  const EventClient::Event snapshot = slow.next();
  CHECK(snapshot.name == "snapshot");
  const EventClient::Event change = slow.next("change");
  CHECK(contains(change.data, "\"b5\""));
  CHECK_FALSE(contains(snapshot.data, "\"b5\""));
  rename_node(cluster, "b6");
  CHECK(contains(slow.next("change").data, "\"b6\""));
}

TEST_CASE("streams end when the node drains, and do not delay it") {
  Served server;
  EventClient client(server.port());
  client.next("snapshot");
  server.server().drain(std::chrono::hours(1));
  while (client.next().name == "meters") continue;
  CHECK(client.has_ended());
}

TEST_CASE("an event stream takes no connection that is reserved for short requests") {
  Served server([](ServerOptions& options) {
    options.limits.connections_max = 1;
    options.limits.connections_reserved = 1;
  });
  RawClient busy(server.port());
  busy.send(Served::post_text("/v1/completions", R"({"prompt":"p","stream":true})"));
  const FakeModel::Running running = server.model->request(0);
  CHECK(server.exchange("GET /cluster/events HTTP/1.1\r\nHost: localhost\r\n\r\n").status == 503);
  CHECK(server.get("/cluster/status").status == 200);
  running.end(FinishReason::kStop);
}

TEST_CASE("a thousand streams are held, get each change, and keep no request waiting") {
  FakeCluster cluster;
  Served server([](ServerOptions& options) { options.limits.connections_max = 2000; }, &cluster);
  constexpr int kStreams = 1000;
  REQUIRE(raise_open_files_max() > 2 * EventHub::kStreamsMax + 100);
  std::list<EventClient> clients;
  for (int i = 0; i < kStreams; ++i) clients.emplace_back(server.port());
  for (EventClient& client : clients) client.next("snapshot");
  CHECK(metric(server, "lockstep_event_streams") == "1000");
  rename_node(cluster, "berta");
  for (EventClient& client : clients) {
    CHECK(at(client.next("change").json(), "nodes", 1, "name") == "berta");
  }
  server.model->says("a");
  CHECK(server.post("/v1/completions", R"({"prompt":"p","max_tokens":1})").status == 200);
  // A stream that leaves makes room.
  for (int i = static_cast<int>(EventHub::kStreamsMax) - kStreams; i > 0; --i) {
    clients.emplace_back(server.port());
    clients.back().next("snapshot");
  }
  const Answer full = server.exchange(
      "GET /cluster/events HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  CHECK(full.status == 503);
  CHECK(full.has_header("Retry-After: "));
  CHECK(contains(message_of(full), "maximum of event streams"));
  clients.pop_front();
  CHECK(comes_true([&] { return metric(server, "lockstep_event_streams") == "1023"; }));
  EventClient next(server.port());
  CHECK(next.next().name == "snapshot");
}

}  // namespace lockstep
