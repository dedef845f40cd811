#include <doctest/doctest.h>
#include <fmt/core.h>

#include "server/fake_cluster.h"
#include "server/operations/node_metrics.h"
#include "server/served.h"

namespace lockstep {
namespace {

using Clock = RequestMeter::Clock;
using std::chrono::milliseconds;

bool has_line(const std::string& text, const std::string& line) {
  return ("\n" + text).find("\n" + line + "\n") != std::string::npos;
}

}  // namespace

TEST_CASE("metrics: a request is counted with its times, each choice separately") {
  const auto metrics = std::make_shared<RequestMetrics>();
  const Clock::time_point start = Clock::now();
  {
    RequestMeter meter(metrics, "m", 2, start);
    meter.accepted(7);
    meter.token(0, start + milliseconds(200));
    meter.token(1, start + milliseconds(210));
    meter.token(0, start + milliseconds(230));
    meter.end(RequestOutcome::kEnded, start + milliseconds(700));
    meter.end(RequestOutcome::kFailed, start + milliseconds(800));  // ignored, too late
  }
  RequestMeter(metrics, "m", 1, start).accepted(3);  // destroyed without an end
  const auto models = metrics->models();
  REQUIRE(models.size() == 1);
  const ModelRequests& seen = models.at("m");
  CHECK(seen.outcomes == std::array<uint64_t, 3>{1, 0, 1});
  CHECK(seen.prompt_tokens == 10);
  CHECK(seen.generated_tokens == 3);
  CHECK(seen.first_token.sum == doctest::Approx(0.2));
  CHECK(seen.next_token.sum == doctest::Approx(0.03));
  CHECK(seen.first_token.counts[7] == 1);  // up to 0.25 s
  CHECK(seen.next_token.counts[5] == 1);   // up to 0.05 s
}

TEST_CASE("metrics: answers wait, then decode, and are forgotten however they end") {
  const auto metrics = std::make_shared<RequestMetrics>();
  const auto now = [&] {
    const auto models = metrics->models();
    return std::pair(models.at("m").waiting, models.at("m").decoding);
  };
  using Counts = std::pair<int64_t, int64_t>;
  {
    RequestMeter meter(metrics, "m", 3, Clock::now());
    meter.accepted(1);
    CHECK(now() == Counts{3, 0});
    meter.started(0);
    meter.token(1, Clock::now());  // from a service that does not report starts
    CHECK(now() == Counts{1, 2});
    meter.started(0);
    meter.token(0, Clock::now());
    CHECK(now() == Counts{1, 2});
    meter.choice_ended(1);
    meter.started(1);
    CHECK(now() == Counts{1, 1});
    RequestMeter other(metrics, "m", 1, Clock::now());
    other.accepted(1);
    CHECK(now() == Counts{2, 1});
    other.end(RequestOutcome::kFailed, Clock::now());
    CHECK(now() == Counts{1, 1});
  }
  CHECK(now() == Counts{0, 0});
}

TEST_CASE("metrics: the number of model names is limited, and a name may hold anything") {
  const auto metrics = std::make_shared<RequestMetrics>();
  for (size_t i = 0; i < RequestMetrics::kModelsMax + 5; ++i) {
    RequestMeter(metrics, fmt::format("m{}", i), 1, Clock::now()).accepted(1);
  }
  const auto models = metrics->models();
  CHECK(models.size() == RequestMetrics::kModelsMax + 1);
  CHECK(models.at(std::string(RequestMetrics::kOthers)).prompt_tokens == 5);
  ModelRequests busy;
  busy.waiting = 3;
  busy.decoding = 2;
  const std::string text = node_metrics({.requests = {{"a\"b\\c\nd", {}}, {"busy", busy}}});
  CHECK(has_line(text, R"(lockstep_waiting_answers{model="busy"} 3)"));
  CHECK(has_line(text, R"(lockstep_decoding_answers{model="busy"} 2)"));
  CHECK(has_line(text, R"(lockstep_prompt_tokens_total{model="a\"b\\c\nd"} 0)"));
}

TEST_CASE("metrics: disk use of a model is shown if it has any") {
  ModelStatus keeps, other;
  keeps.name = "keeps";
  keeps.pages = PageStoreCounts{.bytes = 1, .pages = 2, .saved = 3, .loaded = 4, .dropped = 5};
  other.name = "other";
  const std::string text = node_metrics({.models = {keeps, other}});
  CHECK(has_line(text, R"(lockstep_page_store_bytes{model="keeps"} 1)"));
  CHECK(has_line(text, R"(lockstep_page_store_pages{model="keeps"} 2)"));
  CHECK(has_line(text, R"(lockstep_page_store_saved_total{model="keeps"} 3)"));
  CHECK(has_line(text, R"(lockstep_page_store_loaded_total{model="keeps"} 4)"));
  CHECK(has_line(text, R"(lockstep_page_store_dropped_total{model="keeps"} 5)"));
  CHECK(text.find(R"(lockstep_page_store_bytes{model="other"})") == std::string::npos);
}

TEST_CASE("metrics: guesses of a draft layer are counted where there is one") {
  ModelStatus drafts, other;
  drafts.name = "drafts";
  drafts.drafts = DraftCounts{.steps = 10, .guesses = 30, .right = 21};
  other.name = "other";
  const std::string text = node_metrics({.models = {drafts, other}});
  CHECK(has_line(text, R"(lockstep_draft_steps_total{model="drafts"} 10)"));
  CHECK(has_line(text, R"(lockstep_draft_guesses_total{model="drafts"} 30)"));
  CHECK(has_line(text, R"(lockstep_draft_right_total{model="drafts"} 21)"));
  CHECK(text.find(R"(lockstep_draft_steps_total{model="other"})") == std::string::npos);
}

TEST_CASE("metrics: a node reports its requests, models, cluster and power") {
  FakeCluster cluster;
  Served server(milliseconds(60'000), &cluster);
  server.model->says(" was a byte.");
  CHECK(server.post("/v1/completions", R"({"prompt":"There","max_tokens":6})").status == 200);
  const Answer answer = server.get("/metrics");
  CHECK(answer.status == 200);
  CHECK(answer.has_header("Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n"));
  const std::string name = R"({model="org/Tiny-Model"})";
  for (const std::string& line :
       {std::string(R"(lockstep_requests_total{model="org/Tiny-Model",outcome="ended"} 1)"),
        std::string(R"(lockstep_requests_total{model="org/Tiny-Model",outcome="failed"} 0)"),
        "lockstep_prompt_tokens_total" + name + " 6",
        "lockstep_generated_tokens_total" + name + " 6",
        "lockstep_time_to_first_token_seconds_count" + name + " 1",
        "lockstep_inter_token_latency_seconds_count" + name + " 5",
        std::string(
            R"(lockstep_request_duration_seconds_bucket{model="org/Tiny-Model",le="+Inf"} 1)"),
        "lockstep_model_ready" + name + " 1", std::string("# TYPE lockstep_model_ready gauge"),
        std::string(R"(lockstep_cluster_nodes{state="alive"} 1)"),
        std::string("lockstep_cluster_strangers_refused_total 5"),
        std::string("lockstep_node_memory_budget_bytes 1000")}) {
    CHECK_MESSAGE(has_line(answer.body, line), line);
  }
}

TEST_CASE("metrics: a node without a cluster reports none") {
  Served server;
  const Answer answer = server.get("/metrics");
  CHECK(answer.status == 200);
  CHECK(answer.body.find("lockstep_cluster") == std::string::npos);
  CHECK(has_line(answer.body, R"(lockstep_build_info{version="0.1.0"} 1)"));
}

}  // namespace lockstep
