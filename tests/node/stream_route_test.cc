// Requests over real streams between two loops of this process, as between two nodes.
#include "node/requests/stream_route.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <future>
#include <map>
#include <mutex>
#include <new>
#include <thread>

#include "cluster/cluster_fixture.h"
#include "net/frames/frame_call.h"
#include "net/frames/frame_server.h"
#include "node/cluster/routed_model.h"
#include "node/fake_service.h"
#include "node/request_client.h"
#include "node/requests/request_frames.h"
#include "node/requests/request_stream_host.h"
#include "node/wire/event_codec.h"
#include "node/wire/messages.h"
#include "node/wire/status_message.h"

using namespace lockstep;
using namespace std::chrono_literals;

namespace {

// Two machines with a connection of frames between them for each call of connect().
struct Machines {
  Machines() {
    owner->must_run([&] {
      server = std::move(FrameServer::listen(*owner, identity(), {.host = "127.0.0.1"},
                                             [this](FrameConnection connection) {
                                               connection.trust();
                                               connection.set_silence_max(0ms);
                                               accept(std::move(connection));
                                             })
                             .value());
    });
  }
  ~Machines() {
    clients->must_run([&] { call = {}; });
    owner->must_run([&] {
      server.reset();
      hosts.clear();
      raw = {};
    });
  }

  static TlsIdentity identity() { return TlsIdentity::make(KeyPair::generate().value()).value(); }

  // The owner's end: a host for `service`, or the bare connection if there is none.
  void accept(FrameConnection connection) {
    if (!service) {
      raw = connection;
      raw.set_events({.on_frame = [](const std::string&) {},
                      .on_close = [](const Error&) {},
                      .on_drained = nullptr});
      has_raw.set_value();
      return;
    }
    hosts.push_back(std::make_unique<RequestStreamHost>(
        *owner, std::move(connection), service,
        [this](const Error& error) {
          const std::lock_guard lock(mutex);
          host_ends.push_back(error.message);
          changed.notify_all();
        },
        decode));
  }

  void serve(std::shared_ptr<ModelService> model) {
    owner->must_run([&] { service = std::move(model); });
  }
  // Whether the owner's end of the stream has been made.
  bool has_host() {
    bool has = false;
    owner->must_run([&] { has = !hosts.empty(); });
    return has;
  }

  FrameConnection connect() {
    std::promise<FrameConnection> ready;
    clients->must_run([&] {
      call = FrameCall::start(*clients, identity(), {"127.0.0.1", server->port()}, {},
                              [&](Result<FrameConnection> called) {
                                if (called.ok()) {
                                  called.value().trust();
                                  called.value().set_silence_max(0ms);
                                }
                                ready.set_value(called.ok() ? called.value() : FrameConnection());
                              });
    });
    return ready.get_future().get();
  }

  bool waits_for_end(const std::string& part) {
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, kPatience, [&] {
      return std::any_of(host_ends.begin(), host_ends.end(), [&](const std::string& end) {
        return end.find(part) != std::string::npos;
      });
    });
  }

  std::unique_ptr<EventLoop> owner = EventLoop::start();
  std::unique_ptr<EventLoop> clients = EventLoop::start();
  std::promise<void> has_raw;

  // Used on the owner's loop.
  std::shared_ptr<ModelService> service;  // for connections accepted from now on
  DecodeRequest decode = decode_request;  // likewise
  std::unique_ptr<FrameServer> server;
  std::vector<std::unique_ptr<RequestStreamHost>> hosts;
  FrameConnection raw;
  // Used on the clients' loop.
  FrameCall call;

  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::string> host_ends;
};

// A model at the clients' machine, and a route to the owner's.
struct Served : Machines {
  explicit Served(std::shared_ptr<FakeService> fake_service) : fake(std::move(fake_service)) {
    serve(fake);
    RoutedModelOptions options;
    options.name = "tiny";
    options.retry_pause = 5ms;
    options.losses_max = 100;
    options.on_route_lost = [this](uint64_t, const Error& error) {
      const std::lock_guard lock(mutex);
      losses.push_back(error.message);
      changed.notify_all();
    };
    model = RoutedModel::make(*clients, {}, options);
    route();
  }
  ~Served() {
    clients->must_run([&] { model->close(); });
    owner->must_run([&] { hosts.clear(); });
    fake->stop();
  }

  void route() {
    FrameConnection connection = connect();
    clients->must_run([&] {
      model->drop_route(number, {ErrorCode::kPeerLost, "another way is taken"});
      number = model->add_route({}, [&](RouteEvents events) {
        return make_stream_route(*clients, std::move(connection), std::move(events));
      });
      connection = {};
    });
  }
  void ask(RequestClient& client, const GenerateRequest& request) {
    const auto accepted = model->generate(request, client.events());
    REQUIRE_MESSAGE(accepted.ok(), (accepted.ok() ? "" : accepted.error().message));
    last_id = accepted.value();
  }
  bool waits_for_losses(size_t count) {
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, kPatience, [&] { return losses.size() >= count; });
  }

  std::shared_ptr<FakeService> fake;
  std::shared_ptr<RoutedModel> model;
  uint64_t last_id = 0;
  uint64_t number = 0;              // of the last route
  std::vector<std::string> losses;  // of routes, under the mutex
};

std::vector<int32_t> long_prompt(size_t size, int32_t first) {
  std::vector<int32_t> prompt(size);
  for (size_t i = 0; i < size; ++i) prompt[i] = first + static_cast<int32_t>(i % 90'000);
  return prompt;
}

}  // namespace

TEST_CASE("stream route: a text, an embedding and the status arrive") {
  Served served(std::make_shared<FakeService>());
  RequestClient text, embedding;
  served.ask(text, request_for({1, 2}, 50));
  GenerateRequest pooled = request_for({1, 2}, 0);
  pooled.pooling = Pooling::kMean;
  served.ask(embedding, pooled);
  REQUIRE(text.has_ended_well());
  CHECK(text.tokens() == text_after({1, 2}, 50));
  CHECK(text.cached_tokens() == std::vector<int>{1});
  REQUIRE(embedding.has_ended_well());
  CHECK(embedding.row() == std::vector<float>{1.5f, -2.0f});
  CHECK(comes_true([&] { return served.model->status().state == ModelStatus::State::kReady; }));
  const ModelStatus status = served.model->status();
  CHECK(status.name == "tiny");
  CHECK(status.context == 1 << 23);
  REQUIRE(status.ranks.size() == 1);
  CHECK(status.ranks[0].pid == 7);
}

TEST_CASE("stream route: the logprobs of each token arrive") {
  Served served(std::make_shared<FakeService>());
  RequestClient client;
  GenerateRequest request = request_for({1, 2}, 5);
  request.top_logprobs = 20;
  served.ask(client, request);
  REQUIRE(client.has_ended_well());
  const auto tokens = client.tokens();
  const auto logprobs = client.logprobs();
  REQUIRE(logprobs.size() == 5);
  for (size_t i = 0; i < logprobs.size(); ++i) {
    REQUIRE(logprobs[i].size() == 21);
    CHECK(logprobs[i][0].token == tokens[i]);
    CHECK(logprobs[i][0].logprob == -0.5f);
    CHECK(logprobs[i][20].token == 19);
  }
}

TEST_CASE("stream route: prompts longer than a frame arrive, many at once") {
  Served served(std::make_shared<FakeService>());
  std::vector<RequestClient> clients(12);  // more than a connection's queue holds
  for (size_t i = 0; i < clients.size(); ++i) {
    served.ask(clients[i], request_for(long_prompt(200'000, static_cast<int32_t>(i)), 2));
  }
  for (size_t i = 0; i < clients.size(); ++i) {
    REQUIRE(clients[i].has_ended_well());
    CHECK(clients[i].tokens() == text_after(long_prompt(200'000, static_cast<int32_t>(i)), 2));
  }
  const std::lock_guard lock(served.mutex);
  CHECK(served.losses.empty());
}

TEST_CASE("stream route: a prompt beyond the largest message is refused with the limit") {
  Served served(std::make_shared<FakeService>());
  RequestClient client;
  served.ask(client, request_for(std::vector<int32_t>(4'194'304, 123'456), 2));
  const Error error = client.error();
  CHECK(error.code == ErrorCode::kExhausted);
  CHECK(error.message.find("at most 16777215") != std::string::npos);
}

TEST_CASE("stream route: a stream that breaks at any token changes no token") {
  Served served(std::make_shared<FakeService>(FakeService::Options{.tokens = 0}));
  RequestClient client;
  served.ask(client, request_for({5}, 6));
  for (size_t told = 0; told < 6; ++told) {
    REQUIRE(client.waits_for_tokens(told));
    REQUIRE(comes_true([&] { return served.has_host(); }));
    served.owner->must_run([&] { served.hosts.clear(); });
    REQUIRE(served.waits_for_losses(told + 1));
    served.route();
    served.fake->allow(1);
  }
  served.fake->allow(1'000);
  REQUIRE(client.has_ended_well());
  CHECK(client.tokens() == text_after({5}, 6));
  CHECK(client.ends() == 1);
}

TEST_CASE("stream route: requests that are cancelled or lose their route end at the owner") {
  RequestClient cancelled, dropped;  // outlive the model, which ends them
  Served served(std::make_shared<FakeService>(FakeService::Options{.tokens = 0}));
  served.ask(cancelled, request_for({1}, 9));
  REQUIRE(comes_true([&] { return served.fake->status().running == 1; }));
  served.model->cancel(served.last_id);
  CHECK(cancelled.error().code == ErrorCode::kCancelled);
  served.ask(dropped, request_for({1}, 9));
  REQUIRE(comes_true([&] { return served.fake->status().running == 1; }));
  served.clients->must_run([&] {
    served.model->drop_route(served.number, {ErrorCode::kPeerLost, "the placement has ended"});
  });
  CHECK(comes_true([&] { return served.fake->status().running == 0; }));
  CHECK(served.waits_for_end("closed"));
  CHECK(dropped.ends() == 0);
}

TEST_CASE("stream route: a missing or full model is reported through the stream") {
  Served served(std::make_shared<FakeService>(FakeService::Options{.requests_max = 1}));
  std::vector<RequestClient> clients(5);
  for (RequestClient& client : clients) served.ask(client, request_for({1}, 30));
  for (RequestClient& client : clients) {
    REQUIRE(client.has_ended_well());
    CHECK(client.tokens() == text_after({1}, 30));
  }
  served.fake->fail();
  REQUIRE(served.waits_for_losses(1));
  CHECK(served.losses[0] == "the model fake failed: rank 0 was killed");
  CHECK(served.waits_for_end("failed"));
  served.route();  // to the same service, which is still missing
  CHECK(served.waits_for_losses(2));
}

TEST_CASE("stream route: a node that sends invalid data loses its stream with a sentence") {
  const std::string event(1, static_cast<char>(RequestMessage::kEvent));
  const std::string submit(1, static_cast<char>(RequestMessage::kSubmit));
  const std::string status(1, static_cast<char>(RequestMessage::kStatus));
  for (const std::string& frame :
       {std::string(), std::string("\x7f"), event, submit + "{}", status}) {
    Served served(std::make_shared<FakeService>());
    REQUIRE(comes_true([&] { return served.has_host(); }));  // the first route has arrived
    served.serve(nullptr);
    served.route();
    served.has_raw.get_future().wait();
    served.owner->must_run([&] { served.raw.send(frame); });
    REQUIRE(served.waits_for_losses(1));
    CHECK(served.losses[0].starts_with("the model's node sent an invalid message: "));
  }
}

TEST_CASE("stream host: a node that sends invalid data loses its stream with a sentence") {
  Machines machines;
  const auto fake = std::make_shared<FakeService>(FakeService::Options{.tokens = 0});
  machines.serve(fake);
  const std::string submit(1, static_cast<char>(RequestMessage::kSubmit));
  const std::string twice = submit + encode_request(3, request_for({1}, 4));
  const std::string event(1, static_cast<char>(RequestMessage::kEvent));
  size_t count = 0;
  for (const auto& frames :
       {std::vector<std::string>{std::string()},
        std::vector<std::string>{event + encode_event({3, RequestEvent::Busy{}})},
        std::vector<std::string>{submit + "{"}, std::vector<std::string>{twice, twice},
        std::vector<std::string>{std::string(1, '\x81') + "{", std::string(1, '\x02')}}) {
    FrameConnection connection = machines.connect();
    machines.clients->must_run([&] {
      for (const std::string& frame : frames) connection.send(frame);
    });
    ++count;
    CHECK(comes_true([&] {
      const std::lock_guard lock(machines.mutex);
      return machines.host_ends.size() == count;
    }));
    machines.clients->must_run([&] { connection = {}; });
  }
  CHECK(comes_true([&] { return fake->status().running == 0; }));
  machines.owner->must_run([&] { machines.hosts.clear(); });
}

TEST_CASE(
    "stream host: the loop continues while a request is decoded, and a cancel finds it there") {
  Machines machines;
  const auto fake = std::make_shared<FakeService>(FakeService::Options{.tokens = 0});
  std::promise<void> has_begun, may_go_on;
  machines.decode = [&](std::string_view payload) {
    has_begun.set_value();
    may_go_on.get_future().wait_for(kPatience);
    return decode_request(payload);
  };
  machines.serve(fake);
  FrameConnection connection = machines.connect();
  std::promise<Error> ended;
  std::promise<void> has_status;
  std::unique_ptr<RequestRoute> route;
  RouteEvents events;
  events.on_event = [&](const RequestEvent& event) {
    const auto* end = event.as<RequestEvent::Ended>();
    const bool is_error = end && !end->outcome.ok();
    ended.set_value(is_error ? end->outcome.error() : Error{ErrorCode::kInternal, ""});
  };
  events.on_status = [&, is_first = true](const ModelStatus&) mutable {
    if (std::exchange(is_first, false)) has_status.set_value();
  };
  events.on_lost = [](const Error&) {};
  machines.clients->must_run([&] {
    route = make_stream_route(*machines.clients, std::move(connection), events);
    CHECK(route->submit(1, request_for({1}, 9)).ok());
    route->cancel(1);
  });
  REQUIRE(has_begun.get_future().wait_for(kPatience) == std::future_status::ready);
  CHECK(has_status.get_future().wait_for(kPatience) == std::future_status::ready);
  machines.owner->must_run([] {});
  may_go_on.set_value();
  CHECK(ended.get_future().get().code == ErrorCode::kCancelled);
  CHECK(fake->status().running == 0);
  machines.clients->must_run([&] {
    route.reset();
    connection = {};
  });
}

TEST_CASE("request decoder: what does not fit is refused, and the rest comes in order") {
  const auto loop = EventLoop::start();
  std::promise<void> may_go_on, has_come;
  std::shared_future<void> released = may_go_on.get_future().share();
  std::vector<uint64_t> ids;  // used on the loop
  std::unique_ptr<RequestDecoder> decoder;
  const std::string half(RequestDecoder::kBytesMax / 2, 'x');
  loop->must_run([&] {
    decoder = std::make_unique<RequestDecoder>(
        *loop,
        [&](std::string_view) -> DecodedRequest {
          released.wait_for(kPatience);
          return Error{ErrorCode::kCorrupt, "not a request"};
        },
        [&](uint64_t id, const DecodedRequest& decoded) {
          CHECK(decoded.error().code == ErrorCode::kCorrupt);
          ids.push_back(id);
          if (ids.size() == 2) has_come.set_value();
        });
    CHECK(decoder->add(1, half));
    CHECK(decoder->add(2, half));
    CHECK_FALSE(decoder->add(3, "x"));
  });
  may_go_on.set_value();
  REQUIRE(has_come.get_future().wait_for(kPatience) == std::future_status::ready);
  loop->must_run([&] {
    CHECK(ids == std::vector<uint64_t>{1, 2});
    CHECK(decoder->add(4, half));
    decoder.reset();
  });
}

TEST_CASE("request decoder: exceptions cost neither the thread nor another request's answer") {
  const auto loop = EventLoop::start();
  std::atomic<int> refusals = 3;
  std::promise<void> has_come;
  std::vector<std::pair<uint64_t, ErrorCode>> answers;  // used on the loop
  std::unique_ptr<RequestDecoder> decoder;
  loop->must_run([&] {
    decoder = std::make_unique<RequestDecoder>(
        [&](std::function<void()> call) {
          if (refusals.fetch_sub(1) > 0) throw std::bad_alloc();
          loop->post(std::move(call));
        },
        [](std::string_view payload) -> DecodedRequest {
          if (payload == "huge") throw std::bad_alloc();
          return Error{ErrorCode::kCorrupt, "not a request"};
        },
        [&](uint64_t id, const DecodedRequest& decoded) {
          answers.emplace_back(id, decoded.error().code);
          if (answers.size() == 3) has_come.set_value();
          if (id == 1) throw std::bad_alloc();
        });
    CHECK(decoder->add(1, "{"));
    CHECK(decoder->add(2, "huge"));
    CHECK(decoder->add(3, "{"));
  });
  CHECK(has_come.get_future().wait_for(kPatience) == std::future_status::ready);
  loop->must_run([&] { decoder.reset(); });
  CHECK(answers == std::vector<std::pair<uint64_t, ErrorCode>>{{1, ErrorCode::kCorrupt},
                                                               {2, ErrorCode::kExhausted},
                                                               {3, ErrorCode::kCorrupt}});
  CHECK(refusals.load() < 0);
}

TEST_CASE("stream host: a request that memory does not suffice for ends, and the others go on") {
  Machines machines;
  machines.decode = [](std::string_view payload) -> DecodedRequest {
    DecodedRequest decoded = decode_request(payload);
    if (decoded.ok() && decoded.value().first == 1) throw std::bad_alloc();
    return decoded;
  };
  machines.serve(std::make_shared<FakeService>());
  FrameConnection connection = machines.connect();
  std::map<uint64_t, Status> ended;  // used on the clients' loop
  std::promise<void> all_ended;
  std::unique_ptr<RequestRoute> route;
  RouteEvents events;
  events.on_status = [](const ModelStatus&) {};
  events.on_lost = [](const Error& error) { FAIL_CHECK(error.message); };
  events.on_event = [&](const RequestEvent& event) {
    const auto* end = event.as<RequestEvent::Ended>();
    if (!end) return;
    ended.emplace(event.id, end->outcome.ok() ? Status(Ok{}) : Status(end->outcome.error()));
    if (ended.size() == 2) all_ended.set_value();
  };
  machines.clients->must_run([&] {
    route = make_stream_route(*machines.clients, std::move(connection), events);
    CHECK(route->submit(1, request_for({1}, 4)).ok());
    CHECK(route->submit(2, request_for({1}, 4)).ok());
  });
  CHECK(all_ended.get_future().wait_for(kPatience) == std::future_status::ready);
  machines.clients->must_run([&] {
    route.reset();
    connection = {};
  });
  REQUIRE(ended.size() == 2);
  REQUIRE(!ended.at(1).ok());
  CHECK(ended.at(1).error().code == ErrorCode::kExhausted);
  CHECK(ended.at(2).ok());
}

TEST_CASE("stream host: rows of logits are refused, and the stream continues") {
  Machines machines;
  machines.serve(std::make_shared<FakeService>());
  FrameConnection connection = machines.connect();
  std::promise<Error> refused;
  std::unique_ptr<RequestRoute> route;
  RouteEvents events;
  events.on_status = [](const ModelStatus&) {};
  events.on_lost = [](const Error&) {};
  events.on_event = [&](const RequestEvent& event) {
    const auto* ended = event.as<RequestEvent::Ended>();
    const bool is_refused = ended && !ended->outcome.ok();
    refused.set_value(is_refused ? ended->outcome.error() : Error{ErrorCode::kInternal, ""});
  };
  machines.clients->must_run([&] {
    route = make_stream_route(*machines.clients, std::move(connection), events);
    GenerateRequest rows = request_for({1}, 0);
    rows.prompt_logits = true;
    CHECK(route->submit(1, rows).ok());
  });
  CHECK(refused.get_future().get().code == ErrorCode::kUnsupported);
  machines.clients->must_run([&] {
    route.reset();
    connection = {};
  });
}

TEST_CASE("a model's status is sent whole") {
  ModelStatus status;
  status.state = ModelStatus::State::kRestarting;
  status.last_error = "rank 1 at \xff was killed";
  status.restarts = 3;
  status.epoch = 9;
  status.link = "tcp";
  status.stages = 2;
  status.threads = 4;
  status.context = 4096;
  status.running = 12;
  status.vocab_size = 32'000;
  status.identity = "ab";
  status.ranks = {{.rank = 1,
                   .pid = 77,
                   .node = "box",
                   .weight_bytes = 5,
                   .state_bytes = 6,
                   .device = "vulkan: GPU"}};
  const auto read = decode_status(encode_status(status));
  REQUIRE(read.ok());
  CHECK(encode_status(read.value()) == encode_status(status));
  CHECK(read.value().last_error == "rank 1 at \xef\xbf\xbd was killed");
  CHECK(read.value().ranks[0].state_bytes == 6);
  CHECK(read.value().running == 12);
  CHECK(read.value().identity == "ab");
  CHECK(read.value().ranks[0].node == "box");
  CHECK(read.value().ranks[0].device == "vulkan: GPU");
  CHECK(!decode_status("{\"state\":9}").ok());
}
