// A model of the cluster over routes that the test controls directly, and over real ones to
// services that fail. Clients must receive the text of one uninterrupted placement.
#include "node/cluster/routed_model.h"

#include <doctest/doctest.h>

#include <atomic>
#include <map>
#include <set>

#include "cluster/cluster_fixture.h"
#include "node/fake_service.h"
#include "node/request_client.h"
#include "node/requests/local_route.h"
#include "node/requests/pick_group.h"

using namespace lockstep;
using namespace std::chrono_literals;

namespace {

// One placement. It belongs entirely to the loop's thread.
struct Placement {
  RouteEvents events;
  std::map<uint64_t, GenerateRequest> running;
  std::vector<uint64_t> cancelled;
  Status answer = Ok{};
  bool is_gone = false;
  uint64_t number = 0;  // of the route

  void tell(uint64_t id, int tokens) {
    for (int i = 0; i < tokens; ++i) {
      GenerateRequest& request = running.at(id);
      request.prompt.push_back(next_token(request.prompt));
      events.on_event({id, RequestEvent::Token{request.prompt.back()}});
      if (--request.max_tokens == 0) return end(id, FinishReason::kLength);
    }
  }
  void tell_late(uint64_t id) {
    events.on_event({id, RequestEvent::Token{1}});
    events.on_event({id, RequestEvent::Busy{}});
    events.on_event({id, RequestEvent::Ended{FinishReason::kStop}});
  }
  void end(uint64_t id, const Result<FinishReason>& outcome) {
    running.erase(id);
    events.on_event({id, RequestEvent::Ended{outcome}});
  }
};

class PlayedRoute final : public RequestRoute {
 public:
  explicit PlayedRoute(std::shared_ptr<Placement> placement) : placement_(std::move(placement)) {}
  ~PlayedRoute() override { placement_->is_gone = true; }
  Status submit(uint64_t id, const GenerateRequest& request) override {
    if (placement_->answer.ok()) placement_->running[id] = request;
    return placement_->answer;
  }
  void cancel(uint64_t id) override { placement_->cancelled.push_back(id); }

 private:
  const std::shared_ptr<Placement> placement_;
};

RoutedModelOptions options() {
  RoutedModelOptions options;
  options.name = "tiny";
  options.retry_pause = 5ms;
  return options;
}

const Error kNodeLost{ErrorCode::kPeerLost, "the node is gone"};

struct Cluster {
  explicit Cluster(RoutedModelOptions options) {
    options.on_route_lost = [this](uint64_t, const Error&) { ++routes_lost; };
    model = RoutedModel::make(*loop, {}, std::move(options));
  }
  Cluster() : Cluster(options()) {}
  ~Cluster() {
    on_loop([&] { model->close(); });
  }

  template <class Work>
  void on_loop(const Work& work) {
    loop->must_run(work);
  }
  // Adds a group that serves.
  std::shared_ptr<Placement> add(Status answer = Ok{}) {
    auto placement = std::make_shared<Placement>();
    placement->answer = std::move(answer);
    on_loop([&] {
      placement->number = model->add_route({.counter = ++epochs}, [&](RouteEvents events) {
        placement->events = std::move(events);
        return std::make_unique<PlayedRoute>(placement);
      });
      placement->events.on_status({.state = ModelStatus::State::kReady});
    });
    last = placement->number;
    return placement;
  }
  // Replaces the last placement with a new one.
  std::shared_ptr<Placement> place(Status answer = Ok{}) {
    on_loop([&] { model->drop_route(last, kNodeLost); });
    return add(std::move(answer));
  }
  uint64_t ask(RequestClient& client, std::vector<int32_t> prompt, int max_tokens) {
    auto accepted = model->generate(request_for(std::move(prompt), max_tokens), client.events());
    REQUIRE_MESSAGE(accepted.ok(), (accepted.ok() ? "" : accepted.error().message));
    on_loop([] {});  // the loop has run it
    return accepted.value();
  }

  std::unique_ptr<EventLoop> loop = EventLoop::start();
  std::shared_ptr<RoutedModel> model;
  int routes_lost = 0;  // used on the loop's thread
  int64_t epochs = 0;
  uint64_t last = 0;  // route
};

// How a request can lose its placement.
enum class Loss { kRoute, kReplaced, kDropped, kAlone, kStopped };

void lose(Cluster& cluster, Placement& placement, uint64_t id, Loss loss) {
  cluster.on_loop([&] {
    if (loss == Loss::kRoute) placement.events.on_lost(kNodeLost);
    if (loss == Loss::kDropped) cluster.model->drop_route(placement.number, kNodeLost);
    if (loss == Loss::kAlone) placement.end(id, kNodeLost);
    if (loss == Loss::kStopped) placement.end(id, Error{ErrorCode::kCancelled, "unloaded"});
  });
}

}  // namespace

TEST_CASE("routed model: a request waits until the model is placed") {
  Cluster cluster;
  RequestClient client;
  const uint64_t id = cluster.ask(client, {1, 2}, 3);
  CHECK(cluster.model->status().running == 1);
  const auto placement = cluster.place();
  cluster.on_loop([&] { placement->tell(id, 3); });
  REQUIRE(client.has_ended_well());
  CHECK(client.tokens() == text_after({1, 2}, 3));
  CHECK(cluster.model->status().running == 0);
}

TEST_CASE("routed model: losing a placement at any token, in any way, changes no token") {
  for (Loss loss : {Loss::kRoute, Loss::kReplaced, Loss::kDropped, Loss::kAlone, Loss::kStopped}) {
    for (int at = 0; at <= 8; ++at) {
      CAPTURE(static_cast<int>(loss));
      CAPTURE(at);
      Cluster cluster;
      RequestClient client;
      auto placement = cluster.place();
      const uint64_t id = cluster.ask(client, {5}, 9);
      cluster.on_loop([&] { placement->tell(id, at); });
      lose(cluster, *placement, id, loss);
      CHECK(client.ends() == 0);
      const auto next = cluster.place();
      CHECK(placement->is_gone);
      cluster.on_loop([&] { next->tell(id, 9 - at); });
      REQUIRE(client.has_ended_well());
      CHECK(client.tokens() == text_after({5}, 9));
      CHECK(client.ends() == 1);
      cluster.on_loop([&] { CHECK(cluster.routes_lost == (loss == Loss::kRoute ? 1 : 0)); });
    }
  }
}

TEST_CASE("routed model: requests at different positions all continue") {
  Cluster cluster;
  std::vector<RequestClient> clients(6);
  std::vector<uint64_t> ids;
  auto placement = cluster.place();
  for (size_t i = 0; i < clients.size(); ++i) {
    ids.push_back(cluster.ask(clients[i], {static_cast<int32_t>(i), 3}, 5));
    cluster.on_loop([&] { placement->tell(ids[i], static_cast<int>(i)); });
  }
  cluster.on_loop([&] { placement->events.on_lost(kNodeLost); });
  placement = cluster.place();
  cluster.on_loop([&] {
    for (size_t i = 0; i < clients.size() - 1; ++i) placement->tell(ids[i], 5);
  });
  for (size_t i = 0; i < clients.size(); ++i) {
    REQUIRE(clients[i].has_ended_well());
    CHECK(clients[i].tokens() == text_after({static_cast<int32_t>(i), 3}, 5));
  }
}

TEST_CASE("routed model: late messages of a lost placement are ignored") {
  Cluster cluster;
  RequestClient client;
  const auto first = cluster.place();
  const uint64_t id = cluster.ask(client, {5}, 4);
  cluster.on_loop([&] {
    first->tell(id, 1);
    first->events.on_lost(kNodeLost);
    first->tell(id, 1);
  });
  const auto second = cluster.place();
  cluster.on_loop([&] {
    first->tell(id, 1);
    first->events.on_event({id, RequestEvent::Busy{}});
    first->end(id, FinishReason::kStop);
    first->events.on_lost(kNodeLost);
    second->tell(id, 3);
  });
  REQUIRE(client.has_ended_well());
  CHECK(client.tokens() == text_after({5}, 4));
  cluster.on_loop([&] {
    CHECK(cluster.routes_lost == 1);
    CHECK(cluster.model->route_count() == 1);
  });
}

TEST_CASE("routed model: a cancelled request ends, whether held or submitted") {
  Cluster cluster;
  RequestClient held, lost, asked;
  cluster.model->cancel(cluster.ask(held, {1}, 4));
  CHECK(held.error().code == ErrorCode::kCancelled);
  const auto placement = cluster.place();
  const uint64_t of_lost = cluster.ask(lost, {2}, 4);
  const uint64_t of_asked = cluster.ask(asked, {3}, 4);
  cluster.model->cancel(of_lost);
  cluster.model->cancel(of_asked);
  cluster.on_loop([&] {
    CHECK(placement->cancelled == std::vector<uint64_t>{of_lost, of_asked});
    placement->end(of_asked, Error{ErrorCode::kCancelled, "the request was cancelled"});
    placement->events.on_lost(kNodeLost);
  });
  CHECK(asked.error().code == ErrorCode::kCancelled);
  CHECK(lost.error().code == ErrorCode::kCancelled);
  CHECK(cluster.model->status().running == 0);
}

TEST_CASE("routed model: a request is not held beyond its time limit") {
  RoutedModelOptions hasty = options();
  hasty.load_wait = hasty.resume_wait = 20ms;
  Cluster cluster(hasty);
  RequestClient never_placed, lost;
  cluster.ask(never_placed, {1}, 4);
  CHECK(never_placed.error().code == ErrorCode::kPeerLost);
  CHECK(never_placed.error().message == "the model tiny is not ready, try again later");
  const auto placement = cluster.place();
  cluster.ask(lost, {1}, 4);
  cluster.on_loop([&] { placement->events.on_lost(kNodeLost); });
  CHECK(lost.error().message == "the model tiny is not ready, try again later (the node is gone)");
}

TEST_CASE("routed model: requests beyond the queue are refused, and so are invalid ones") {
  RoutedModelOptions narrow = options();
  narrow.sequences_max = 1;
  narrow.queue_max = 1;
  RequestClient clients[3];  // outlive the model, which ends them
  Cluster cluster(narrow);
  cluster.on_loop([&] { cluster.model->set_status({.context = 3}); });
  cluster.ask(clients[0], {1}, 4);
  const uint64_t second = cluster.ask(clients[1], {1}, 4);
  const auto refused = cluster.model->generate(request_for({1}, 4), clients[2].events());
  REQUIRE(!refused.ok());
  CHECK(refused.error().code == ErrorCode::kExhausted);
  cluster.model->cancel(second);
  CHECK(clients[1].wait().has_value());
  GenerateRequest rows = request_for({1}, 0);
  rows.prompt_logits = true;
  for (const GenerateRequest& bad :
       {request_for({}, 4), request_for({1}, -1), request_for({1, 2, 3, 4}, 4), rows}) {
    CHECK(!cluster.model->generate(bad, clients[2].events()).ok());
  }
  CHECK(clients[2].ends() == 0);
  CHECK(cluster.model->status().name == "tiny");
}

TEST_CASE("routed model: a full placement is retried, which does not count as a loss") {
  RoutedModelOptions strict = options();
  strict.losses_max = 0;
  Cluster cluster(strict);
  RequestClient client;
  const auto placement = cluster.place();
  const uint64_t id = cluster.ask(client, {5}, 4);
  for (int i = 0; i < 3; ++i) {
    cluster.on_loop([&] {
      placement->running.erase(id);
      placement->events.on_event({id, RequestEvent::Busy{}});
    });
    REQUIRE(comes_true([&] {
      bool is_back = false;
      cluster.on_loop([&] { is_back = placement->running.contains(id); });
      return is_back;
    }));
  }
  cluster.on_loop([&] { placement->tell(id, 4); });
  REQUIRE(client.has_ended_well());
  CHECK(client.tokens() == text_after({5}, 4));
}

TEST_CASE("routed model: a model that cannot be placed fails the requests that have not begun") {
  RequestClient begun, waiting, late;  // outlive the model, which ends them
  Cluster cluster;
  const auto placement = cluster.place();
  const uint64_t id = cluster.ask(begun, {5}, 4);
  cluster.on_loop([&] {
    placement->tell(id, 2);
    placement->events.on_lost(kNodeLost);
  });
  cluster.ask(waiting, {6}, 4);
  cluster.on_loop([&] { cluster.model->set_refusal("tiny needs 9 GiB, 4 GiB are free"); });
  CHECK(waiting.error().message == "tiny needs 9 GiB, 4 GiB are free");
  const auto refused = cluster.model->generate(request_for({1}, 4), late.events());
  REQUIRE(!refused.ok());
  CHECK(refused.error().message == "tiny needs 9 GiB, 4 GiB are free");
  CHECK(begun.ends() == 0);
  const auto next = cluster.place();
  cluster.on_loop([&] { next->tell(id, 2); });
  REQUIRE(begun.has_ended_well());
  CHECK(begun.tokens() == text_after({5}, 4));
  cluster.ask(late, {1}, 4);
}

TEST_CASE("routed model: a client's error ends its request") {
  Cluster cluster;
  RequestClient bad, refused, grown;
  const Error too_long{ErrorCode::kExhausted, "the context holds 2"};
  const auto placement = cluster.place();
  const uint64_t of_bad = cluster.ask(bad, {5}, 4);
  const uint64_t of_grown = cluster.ask(grown, {5}, 9);
  cluster.on_loop([&] {
    placement->end(of_bad, Error{ErrorCode::kInvalidArgument, "token 5 is none"});
    placement->tell(of_grown, 2);
  });
  CHECK(bad.error().message == "token 5 is none");
  // The next placement has a shorter context, which the text fills.
  cluster.place(too_long);
  REQUIRE(grown.has_ended_well());
  CHECK(grown.tokens() == text_after({5}, 2));
  cluster.ask(refused, {1, 2, 3}, 4);
  CHECK(refused.error().message == "the context holds 2");
}

TEST_CASE("routed model: a request with which every placement is lost fails") {
  RoutedModelOptions strict = options();
  strict.losses_max = 2;
  Cluster cluster(strict);
  RequestClient client;
  cluster.ask(client, {5}, 4);
  for (int i = 0; i < 3; ++i) {
    CHECK(client.ends() == 0);
    const auto placement = cluster.place();
    cluster.on_loop([&] { placement->events.on_lost(kNodeLost); });
  }
  CHECK(client.error().message == "the node is gone");
}

TEST_CASE("routed model: requests are spread over groups, each to the least busy one") {
  Cluster cluster;
  const auto first = cluster.add(), second = cluster.add(), third = cluster.add();
  std::vector<RequestClient> clients(9);
  std::vector<uint64_t> ids;
  for (size_t i = 0; i < clients.size(); ++i) {
    ids.push_back(cluster.ask(clients[i], {static_cast<int32_t>(i)}, 4));
  }
  for (const auto& group : {first, second, third}) CHECK(group->running.size() == 3);
  REQUIRE(cluster.model->status().groups.size() == 3);
  for (const auto& group : cluster.model->status().groups) CHECK(group.running == 3);
  // A finished request frees a slot, and requests from other nodes count too.
  cluster.on_loop([&] {
    second->tell(second->running.begin()->first, 4);
    third->events.on_status({.state = ModelStatus::State::kReady, .running = 2});
    first->events.on_status({.state = ModelStatus::State::kReady, .running = 9});
  });
  CHECK(cluster.model->status().groups[0].running == 9);
  RequestClient more[4];
  for (RequestClient& client : more) cluster.ask(client, {7}, 4);
  CHECK(first->running.size() == 3);
  CHECK(second->running.size() + third->running.size() == 9);
  cluster.on_loop([&] {
    for (const auto& group : {first, second, third}) {
      const auto running = group->running;
      for (const auto& [id, request] : running) group->tell(id, request.max_tokens);
    }
  });
  for (size_t i = 0; i < clients.size(); ++i) {
    REQUIRE(clients[i].has_ended_well());
    CHECK(clients[i].tokens() == text_after({static_cast<int32_t>(i)}, 4));
  }
  CHECK(cluster.model->status().running == 0);
}

TEST_CASE("routed model: prompts that begin alike go to the same one of equally busy groups") {
  Cluster cluster;
  std::vector<std::shared_ptr<Placement>> groups;
  for (int i = 0; i < 4; ++i) groups.push_back(cluster.add());
  const auto group_of = [&](int32_t beginning, int32_t end) {
    std::vector<int32_t> prompt(kBeginningTokens, beginning);
    prompt.push_back(end);
    RequestClient client;
    const uint64_t id = cluster.ask(client, prompt, 1);
    size_t found = groups.size();
    cluster.on_loop([&] {
      for (size_t i = 0; i < groups.size(); ++i) {
        if (!groups[i]->running.contains(id)) continue;
        found = i;
        groups[i]->tell(id, 1);
        break;
      }
    });
    REQUIRE(client.has_ended_well());
    return found;
  };
  std::set<size_t> used;
  for (int32_t beginning = 1; beginning <= 20; ++beginning) {
    const size_t group = group_of(beginning, 1);
    used.insert(group);
    CHECK(group_of(beginning, 2) == group);
    CHECK(group_of(beginning, 3) == group);
  }
  CHECK(used.size() == 4);
}

TEST_CASE("routed model: a lost group's requests resume on another at once, with the same text") {
  for (Loss loss : {Loss::kRoute, Loss::kDropped, Loss::kAlone, Loss::kStopped}) {
    for (int at = 0; at <= 8; ++at) {
      CAPTURE(static_cast<int>(loss));
      CAPTURE(at);
      Cluster cluster;
      const auto first = cluster.add(), second = cluster.add();
      RequestClient clients[2];
      const uint64_t ids[2] = {cluster.ask(clients[0], {5}, 9), cluster.ask(clients[1], {6}, 9)};
      CHECK(first->running.size() == 1);
      const bool is_first = first->running.contains(ids[0]);
      const auto lost = is_first ? first : second, other = is_first ? second : first;
      cluster.on_loop([&] {
        lost->tell(ids[0], at);
        other->tell(ids[1], 3);
      });
      lose(cluster, *lost, ids[0], loss);
      if (loss == Loss::kAlone || loss == Loss::kStopped) {
        CHECK(comes_true([&] {
          bool is_there = false;
          cluster.on_loop([&] {
            is_there = lost->running.contains(ids[0]) || other->running.contains(ids[0]);
          });
          return is_there;
        }));
      } else {
        CHECK(lost->is_gone);
        CHECK(other->running.size() == 2);
        CHECK(cluster.model->status().state == ModelStatus::State::kReady);
        CHECK(cluster.model->status().groups.size() == 1);
        cluster.on_loop([&] { lost->tell_late(ids[0]); });
      }
      cluster.on_loop([&] {
        for (const auto& group : {lost, other}) {
          const auto running = group->running;
          for (const auto& [id, request] : running) group->tell(id, request.max_tokens);
        }
      });
      for (int i = 0; i < 2; ++i) {
        REQUIRE(clients[i].has_ended_well());
        CHECK(clients[i].tokens() == text_after({5 + i}, 9));
        CHECK(clients[i].ends() == 1);
      }
    }
  }
}

TEST_CASE("routed model: a group that is being formed again gets nothing while another serves") {
  RequestClient clients[3];  // outlive the model, which ends them
  Cluster cluster;
  const auto first = cluster.add(), second = cluster.add();
  cluster.on_loop([&] { first->events.on_status({.state = ModelStatus::State::kRestarting}); });
  for (RequestClient& client : clients) cluster.ask(client, {5}, 4);
  CHECK(first->running.empty());
  CHECK(second->running.size() == 3);
  CHECK(cluster.model->status().state == ModelStatus::State::kReady);
  CHECK(!cluster.model->status().groups[0].is_shown);
  CHECK(cluster.model->status().groups[1].is_shown);
  cluster.on_loop([&] { second->events.on_lost(kNodeLost); });
  CHECK(first->running.size() == 3);
}

TEST_CASE("routed model: closing ends every request once, and nothing follows") {
  RequestClient running, held, late;
  std::shared_ptr<RoutedModel> handle;
  {
    Cluster cluster;
    handle = cluster.model;
    const auto placement = cluster.place();
    const uint64_t id = cluster.ask(running, {5}, 4);
    cluster.on_loop([&] {
      placement->tell(id, 1);
      const auto accepted = handle->generate(request_for({6}, 4), held.events());
      CHECK(accepted.ok());
      handle->close();  // before the loop has seen it
      CHECK(placement->is_gone);
      placement->tell(id, 1);
      placement->events.on_lost(kNodeLost);
    });
  }
  CHECK(running.error().code == ErrorCode::kCancelled);
  CHECK(held.error().code == ErrorCode::kCancelled);
  CHECK(running.ends() == 1);
  CHECK(held.ends() == 1);
  CHECK(running.tokens() == text_after({5}, 1));
  CHECK(!handle->generate(request_for({5}, 4), late.events()).ok());
  handle->cancel(1);
  CHECK(handle->status().state == ModelStatus::State::kStopped);
}

TEST_CASE("routed model: clients on many threads outlive service after service") {
  const auto loop = EventLoop::start();
  std::shared_ptr<RoutedModel> model;
  std::vector<std::shared_ptr<FakeService>> services;  // used on the loop's thread
  const auto place = [&] {
    // Some of them fail before the first token; the sixteenth never fails.
    const auto count = static_cast<int64_t>(services.size());
    FakeService::Options fake;
    if (count < 15) fake.fails_after = 30 * count;
    services.push_back(std::make_shared<FakeService>(fake));
    model->add_route({}, [&](RouteEvents events) {
      return make_local_route(*loop, services.back(), std::move(events));
    });
  };
  RoutedModelOptions many = options();
  many.queue_max = 100;
  many.losses_max = 1'000;
  many.on_route_lost = [&](uint64_t, const Error&) { place(); };
  model = RoutedModel::make(*loop, {}, many);
  loop->must_run(place);

  std::vector<RequestClient> clients(64);
  std::vector<std::thread> threads;
  for (size_t thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      for (size_t i = thread; i < clients.size(); i += 4) {
        const auto accepted =
            model->generate(request_for({static_cast<int32_t>(i)}, 40), clients[i].events());
        CHECK(accepted.ok());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (size_t i = 0; i < clients.size(); ++i) {
    REQUIRE(clients[i].has_ended_well());
    CHECK(clients[i].tokens() == text_after({static_cast<int32_t>(i)}, 40));
    CHECK(clients[i].ends() == 1);
  }
  loop->must_run([&] {
    model->close();
    for (const auto& service : services) service->stop();
    services.clear();
  });
}
