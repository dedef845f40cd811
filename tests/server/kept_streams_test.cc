// Streams that outlive their reader, over real connections. Time is moved by the tests.
#include <atomic>
#include <chrono>
#include <set>

#include "access/api_keys.h"
#include "server/stream_client.h"
#include "support/comes_true.h"

namespace lockstep {
namespace {

using std::chrono::seconds;

constexpr const char* kCompletionsPath = "/v1/completions";
constexpr const char* kChatPath = "/v1/chat/completions";
constexpr const char* kKeepHeader = "X-Lockstep-Stream: keep\r\n";
const std::string kCompletionBody = R"({"prompt":"p","max_tokens":100000,"stream":true})";

struct MovedClock {
  std::atomic<int64_t> seconds_passed{0};
  StreamLimits::Clock::time_point now() const {
    return StreamLimits::Clock::time_point() + seconds(1'000'000 + seconds_passed.load());
  }
};

class Keeping {
 public:
  explicit Keeping(const std::function<void(ServerOptions&)>& change = [](ServerOptions&) {})
      : served([&](ServerOptions& options) {
          options.silence_max = std::chrono::milliseconds(40);  // the streams are looked at each 10
          options.streams.now = [this] { return clock.now(); };
          change(options);
        }) {}

  StreamClient post(std::string_view headers = kKeepHeader,
                    std::string_view path = kCompletionsPath,
                    std::string_view body = kCompletionBody, int receive_buffer = 0) {
    return {served.port(), "POST", path, headers, body, receive_buffer};
  }
  StreamClient attach(const std::string& id, std::string_view query = "",
                      std::string_view headers = "", int receive_buffer = 0) {
    return {served.port(), "GET", "/v1/streams/" + id + std::string(query),
            headers,       "",    receive_buffer};
  }
  Answer ask(std::string_view method, std::string_view path, std::string_view headers = "") {
    return served.exchange(stream_request(method, path, headers));
  }
  Json list(std::string_view headers = "") {
    return at(ask("GET", "/v1/streams", headers).json(), "streams");
  }
  double metric(const std::string& name) {
    const std::string text = "\n" + served.get("/metrics").body;
    const size_t at = text.find("\n" + name + " ");
    REQUIRE(at != std::string::npos);
    return std::stod(text.substr(at + name.size() + 2));
  }
  bool has_readers(int count) {
    return comes_true([&] { return metric("lockstep_kept_stream_readers") == count; });
  }

  MovedClock clock;
  Served served;
};

// The choices of an answer, without the frame that differs between two answers.
std::vector<std::string> choices_of(const std::vector<std::string>& data) {
  std::vector<std::string> choices;
  for (const std::string& one : data) {
    if (one == "[DONE]") {
      choices.push_back(one);
    } else {
      choices.push_back(dump_json(at(parse_json(one).value(), "choices")));
    }
  }
  return choices;
}

void finish(const FakeModel::Running& running, std::string_view text) {
  FakeModel::say(running, text);
  running.end(FinishReason::kStop);
}

}  // namespace

TEST_CASE("a reload in mid-answer gives exactly the bytes of an undisturbed stream") {
  for (const char* path : {kCompletionsPath, kChatPath}) {
    Keeping keeping;
    const std::string body = path == std::string(kChatPath)
                                 ? R"({"messages":[{"role":"user","content":"p"}],"stream":true})"
                                 : kCompletionBody;
    StreamClient first = keeping.post(kKeepHeader, path, body);
    const auto running = keeping.served.model->request(0);
    FakeModel::say(running, "Once upon");
    const std::string before = first.read(5);
    first.close();
    FakeModel::say(running, " a time");
    StreamClient again = keeping.attach(first.id(), "?from=5");
    finish(running, ".");
    const std::string after = again.read_to_end();
    const std::string whole = keeping.attach(first.id()).read_to_end();
    CHECK(before + after == whole);

    StreamClient other = keeping.post("", path, body);
    finish(keeping.served.model->request(1), "Once upon a time.");
    std::vector<std::string> undisturbed;
    const std::string bytes = other.read_to_end();
    for (size_t from = 0; from < bytes.size();) {
      const size_t end = bytes.find("\n\n", from);
      undisturbed.push_back(bytes.substr(from + 6, end - from - 6));
      from = end + 2;
    }
    CHECK(other.head().find("X-Lockstep-Stream") == std::string::npos);
    CHECK(choices_of(numbered_data(whole)) == choices_of(undisturbed));
    CHECK(undisturbed.back() == "[DONE]");
  }
}

TEST_CASE("two readers of a stream get the same bytes, each at its own pace") {
  Keeping keeping;
  StreamClient first = keeping.post();
  const auto running = keeping.served.model->request(0);
  FakeModel::say(running, "ab");
  StreamClient second = keeping.attach(first.id());
  const std::string begin = first.read(2);
  CHECK(second.read(2) == begin);
  FakeModel::say(running, "cd");
  CHECK(second.read(2) == first.read(2));
  CHECK(keeping.has_readers(2));
  first.close();
  CHECK(keeping.has_readers(1));
  finish(running, "e");
  const std::string rest = second.read_to_end();
  CHECK(numbered_data(rest, 4).back() == "[DONE]");
  CHECK(keeping.served.model->request_count() == 1);
}

TEST_CASE("the head comes before the first token, and comments while the prompt is read") {
  Keeping keeping;
  StreamClient client = keeping.post();
  CHECK(client.status() == 200);
  CHECK(client.id().size() == 32);
  CHECK(client.read(1).starts_with(":"));
  CHECK(client.read(1).starts_with(":"));
  finish(keeping.served.model->request(0), "a");
  const auto data = numbered_data(client.read_to_end());
  CHECK(choices_of(data).front().find("\"text\":\"a\"") != std::string::npos);
}

TEST_CASE("an answer that nobody reads ends at its deadline, and a return before it goes on") {
  Keeping keeping;
  StreamClient first = keeping.post();
  const auto running = keeping.served.model->request(0);
  FakeModel::say(running, "a");
  first.read(1);
  first.close();
  REQUIRE(keeping.has_readers(0));
  keeping.clock.seconds_passed += 59;
  FakeModel::say(running, "b");
  StreamClient second = keeping.attach(first.id(), "?from=1");
  second.read(1);
  keeping.clock.seconds_passed += 300;  // with a reader time does not matter
  FakeModel::say(running, "c");
  second.read(1);
  second.close();
  REQUIRE(keeping.has_readers(0));
  keeping.clock.seconds_passed += 61;
  CHECK(keeping.served.model->waits_for_cancel(running.id));
  const auto data = numbered_data(keeping.attach(first.id()).read_to_end());
  REQUIRE(data.size() == 4);
  CHECK(text_at(at(parse_json(data.back()).value(), "error", "code")) == "stream_unread");
  CHECK(keeping.metric("lockstep_kept_streams_abandoned_total") == 1);
}

TEST_CASE("an ended stream stays for a while, then it is unknown") {
  Keeping keeping;
  StreamClient client = keeping.post();
  finish(keeping.served.model->request(0), "a");
  const std::string whole = client.read_to_end();
  REQUIRE(keeping.has_readers(0));
  keeping.clock.seconds_passed += 59;
  CHECK(keeping.attach(client.id()).read_to_end() == whole);
  const Json list = keeping.list();
  CHECK(at(list, 0, "id") == Json(client.id()));
  CHECK(at(list, 0, "model") == Json("org/Tiny-Model"));
  CHECK(at(list, 0, "events") == Json(numbered_data(whole).size()));
  CHECK(at(list, 0, "done") == Json(true));
  keeping.clock.seconds_passed += 2;
  const Answer gone = keeping.ask("GET", "/v1/streams/" + client.id());
  CHECK(gone.status == 404);
  CHECK(code_of(gone) == "stream_not_found");
  CHECK(keeping.list() == Json(JsonArray()));
}

TEST_CASE("a stream can be read from its end, not from beyond it") {
  Keeping keeping;
  StreamClient client = keeping.post();
  const auto running = keeping.served.model->request(0);
  FakeModel::say(running, "ab");
  client.read(2);
  const std::string path = "/v1/streams/" + client.id();
  for (const char* query : {"?from=3", "?from=x", "?from=-1", "?from=", "?since=1", "?from=1&a=b",
                            "?from=99999999999999999999"}) {
    const Answer refused = keeping.ask("GET", path + query);
    CHECK_MESSAGE(refused.status == 400, query);
    CHECK(text_at(at(refused.json(), "error", "param")) == "from");
  }
  StreamClient next = keeping.attach(client.id(), "?from=2");
  CHECK(next.status() == 200);
  finish(running, "c");
  CHECK(numbered_data(next.read_to_end(), 2).size() == 3);
  client.read_to_end();
  StreamClient after = keeping.attach(client.id(), "?from=5");
  CHECK(after.status() == 200);
  CHECK(after.read_to_end().empty());
}

TEST_CASE("a stream can be ended by its caller") {
  Keeping keeping;
  StreamClient client = keeping.post();
  const auto running = keeping.served.model->request(0);
  FakeModel::say(running, "a");
  client.read(1);
  const std::string path = "/v1/streams/" + client.id();
  const Answer ended = keeping.ask("DELETE", path);
  CHECK(ended.status == 200);
  CHECK(at(ended.json(), "deleted") == Json(true));
  CHECK(keeping.served.model->waits_for_cancel(running.id));
  const auto data = numbered_data(client.read_to_end(), 1);
  REQUIRE(data.size() == 1);
  CHECK(text_at(at(parse_json(data.front()).value(), "error", "code")) == "stream_deleted");
  FakeModel::say(running, "too late");
  CHECK(keeping.ask("DELETE", path).status == 404);
  CHECK(keeping.ask("GET", path).status == 404);
  CHECK(keeping.metric("lockstep_kept_stream_bytes") == 0);
}

TEST_CASE("a stream belongs to its key, and to no other") {
  TemporaryFolder folder;
  const auto file = folder.path() / kApiKeyFile;
  const std::string a = "x-api-key: " + add_api_key(file, "a", 1).value() + "\r\n";
  const std::string b = "x-api-key: " + add_api_key(file, "b", 1).value() + "\r\n";
  Keeping keeping([&](ServerOptions& options) { options.access.keys = file; });
  StreamClient client = keeping.post(kKeepHeader + a);
  const std::string path = "/v1/streams/" + client.id();
  for (const char* method : {"GET", "DELETE"}) {
    CHECK(keeping.ask(method, path).status == 401);
    CHECK(keeping.ask(method, path, "x-api-key: lk-unknown\r\n").status == 401);
    const Answer refused = keeping.ask(method, path, b);
    CHECK(refused.status == 404);
    CHECK(refused.body == keeping.ask(method, "/v1/streams/" + std::string(32, '0'), b).body);
  }
  CHECK(keeping.ask("GET", "/v1/streams").status == 401);
  CHECK(keeping.list(b) == Json(JsonArray()));
  CHECK(keeping.list(a).get_array().size() == 1);
  // A page that sends the key is the key's.
  StreamClient page = keeping.attach(client.id(), "", a + "Origin: https://chat.example\r\n");
  finish(keeping.served.model->request(0), "a");
  CHECK(page.read_to_end() == client.read_to_end());
}

TEST_CASE("without keys a stream belongs to this machine, or to the page that asked for it") {
  Keeping keeping([](ServerOptions& options) {
    options.access.origins = {"https://a.example", "https://b.example"};
  });
  const std::string a = "Origin: https://a.example\r\n", b = "Origin: https://b.example\r\n";
  StreamClient of_a = keeping.post(kKeepHeader + a);
  StreamClient of_machine = keeping.post();
  CHECK(of_a.head().find("Expose-Headers") != std::string::npos);
  CHECK(keeping.ask("GET", "/v1/streams/" + of_a.id(), b).status == 404);
  CHECK(keeping.ask("DELETE", "/v1/streams/" + of_a.id()).status == 404);
  CHECK(keeping.ask("DELETE", "/v1/streams/" + of_machine.id(), a).status == 404);
  CHECK(keeping.ask("GET", "/v1/streams", "Origin: https://c.example\r\n").status == 403);
  CHECK(keeping.ask("GET", "/v1/streams", "Host: evil.example\r\n").status >= 400);
  for (const char* method : {"GET", "DELETE"}) {
    const Answer refused =
        keeping.ask(method, "/v1/streams/" + of_machine.id(), "Origin: https://c.example\r\n");
    CHECK(refused.status == 403);
    CHECK(code_of(refused) == "origin_not_allowed");
    CHECK(keeping.ask(method, "/v1/streams/" + of_machine.id(), "Host: evil.example\r\n").status >=
          400);
  }
  StreamClient foreign = keeping.post(std::string(kKeepHeader) + "Origin: https://c.example\r\n");
  CHECK(foreign.status() == 403);
  CHECK(keeping.list(a).get_array().size() == 1);
  CHECK(keeping.list().get_array().size() == 1);
  const std::string own = "Origin: http://localhost\r\n";  // the node's own page
  CHECK(at(keeping.list(own), 0, "id") == Json(of_machine.id()));
  CHECK(keeping.ask("DELETE", "/v1/streams/" + of_a.id(), a).status == 200);
}

TEST_CASE("kept streams are limited, and an ended one makes room for the next") {
  Keeping keeping([](ServerOptions& options) {
    options.streams.streams_of_caller_max = 2;
    options.streams.streams_max = 3;
    options.streams.readers_max = 2;
    options.access.origins = {"*"};
  });
  StreamClient first = keeping.post();
  CHECK(first.status() == 200);  // its request is the model's first
  StreamClient second = keeping.post();
  CHECK(second.status() == 200);
  StreamClient third = keeping.post();
  CHECK(third.status() == 429);
  CHECK(third.read_to_end().find("too_many_streams") != std::string::npos);
  CHECK(keeping.served.model->request_count() == 2);

  const std::string other = std::string(kKeepHeader) + "Origin: https://a.example\r\n";
  CHECK(keeping.post(other).status() == 200);
  CHECK(keeping.post(other).status() == 429);  // all three

  StreamClient reader = keeping.attach(first.id());
  CHECK(reader.status() == 200);
  const Answer refused = keeping.ask("GET", "/v1/streams/" + first.id());
  CHECK(refused.status == 429);
  CHECK(code_of(refused) == "too_many_readers");

  finish(keeping.served.model->request(0), "a");
  first.read_to_end();
  reader.read_to_end();
  CHECK(keeping.has_readers(1));
  CHECK(keeping.post().status() == 200);
  CHECK(keeping.ask("GET", "/v1/streams/" + first.id()).status == 404);
}

TEST_CASE("a running answer counts towards its client's limit, reading on does not") {
  Keeping keeping([](ServerOptions& options) { options.access.limits.requests_at_once = 1; });
  StreamClient first = keeping.post();
  const std::string id = first.id();
  first.close();
  REQUIRE(keeping.has_readers(0));
  CHECK(keeping.post("").status() == 429);
  StreamClient again = keeping.attach(id);
  CHECK(again.status() == 200);
  finish(keeping.served.model->request(0), "a");
  again.read_to_end();
  CHECK(comes_true([&] {
    StreamClient next = keeping.post();
    return next.status() == 200;
  }));
}

TEST_CASE("an answer that nobody reads ends with an error once its stream is full") {
  Keeping keeping([](ServerOptions& options) {
    options.streams.stream_bytes_max = 10'000;
    options.streams.read_bytes_max = 5'000;
  });
  StreamClient client = keeping.post();
  client.head();
  client.close();
  REQUIRE(keeping.has_readers(0));
  const auto running = keeping.served.model->request(0);
  FakeModel::say(running, std::string(200, 'x'));
  CHECK(keeping.served.model->waits_for_cancel(running.id));
  const std::string whole = keeping.attach(client.id()).read_to_end();
  const auto data = numbered_data(whole);
  CHECK(data.size() < 100);
  CHECK(whole.size() < 12'000);
  CHECK(text_at(at(parse_json(data.back()).value(), "error", "code")) == "stream_full");
  CHECK(keeping.metric("lockstep_kept_streams_full_total") == 1);
}

TEST_CASE("all streams together have a limit") {
  Keeping keeping([](ServerOptions& options) { options.streams.all_bytes_max = 10'000; });
  StreamClient first = keeping.post();
  const auto one = keeping.served.model->request(0);
  FakeModel::say(one, std::string(30, 'x'));
  first.read(30);
  first.close();
  REQUIRE(keeping.has_readers(0));
  StreamClient second = keeping.post();
  second.head();
  second.close();
  REQUIRE(keeping.has_readers(0));
  const auto two = keeping.served.model->request(1);
  FakeModel::say(two, std::string(200, 'x'));
  CHECK(keeping.served.model->waits_for_cancel(two.id));
  CHECK(keeping.metric("lockstep_kept_stream_bytes") < 12'000);
}

TEST_CASE("events that were read make room, and asking for them is an error that says so") {
  Keeping keeping([](ServerOptions& options) {
    options.streams.stream_bytes_max = 10'000;
    options.streams.read_bytes_max = 5'000;
  });
  StreamClient client = keeping.post();
  const auto running = keeping.served.model->request(0);
  for (int i = 0; i < 200; ++i) {
    FakeModel::say(running, "x");
    client.read(1);
  }
  const Answer gone = keeping.ask("GET", "/v1/streams/" + client.id());
  CHECK(gone.status == 410);
  CHECK(code_of(gone) == "stream_events_gone");
  StreamClient late = keeping.attach(client.id(), "?from=195");
  CHECK(late.status() == 200);
  finish(running, "y");
  CHECK(numbered_data(late.read_to_end(), 195).size() == 8);
  CHECK(keeping.metric("lockstep_kept_stream_bytes") < 6'000);
}

TEST_CASE("a reader that is too slow for the others is dropped, and told where to read on") {
  Keeping keeping([](ServerOptions& options) {
    options.streams.stream_bytes_max = 200'000;
    options.streams.read_bytes_max = 100'000;
  });
  StreamClient fast = keeping.post();
  StreamClient slow = keeping.attach(fast.id(), "", "", 4096);
  const auto running = keeping.served.model->request(0);
  REQUIRE(keeping.has_readers(2));
  int said = 0;
  while (said < 100'000 && keeping.served.model->request_count() == 1) {
    FakeModel::say(running, std::string(50, 'x'));
    fast.read(50);
    said += 50;
    if (said % 5'000 == 0 && keeping.metric("lockstep_kept_stream_readers") == 1) break;
  }
  CHECK(said < 100'000);
  finish(running, "y");
  const auto rest = numbered_data(fast.read_to_end(), static_cast<uint64_t>(said));
  CHECK(rest.back() == "[DONE]");
  const std::string got = slow.read_to_end();
  CHECK(got.find("stream_reader_slow") != std::string::npos);
  CHECK(got.find("[DONE]") == std::string::npos);
  CHECK(keeping.metric("lockstep_kept_streams_full_total") == 0);
}

TEST_CASE("the header of a kept stream is checked") {
  Keeping keeping;
  keeping.served.model->says("a");
  const auto post = [&](const std::string& value, const char* path, const std::string& body) {
    const std::string header = "X-Lockstep-Stream: " + value + "\r\n";
    return keeping.served.exchange(stream_request("POST", path, header, body));
  };
  const std::string whole = R"({"prompt":"p"})";
  const std::string message =
      R"({"messages":[{"role":"user","content":"p"}],"input":"p","max_tokens":1,"stream":true})";
  for (const Answer& refused :
       {post("yes", kCompletionsPath, kCompletionBody), post("keep", kCompletionsPath, whole),
        post("keep", "/v1/responses", message), post("keep", "/v1/messages", message),
        post("keep", "/api/chat", message)}) {
    CHECK(refused.status == 400);
    CHECK(refused.body.find("X-Lockstep-Stream") != std::string::npos);
  }
  CHECK(keeping.served.model->request_count() == 0);
}

TEST_CASE("a body that is no request leaves no stream, and a route of streams takes none") {
  Keeping keeping;
  for (const char* body : {"", "{", "[]", R"({"stream":true})", R"({"prompt":1,"stream":true})"}) {
    StreamClient refused = keeping.post(kKeepHeader, kCompletionsPath, body);
    CHECK_MESSAGE(refused.status() == 400, body);
    CHECK(refused.head().find("X-Lockstep-Stream") == std::string::npos);
  }
  CHECK(keeping.metric("lockstep_kept_streams") == 0);
  const std::string large(100'000, ' ');
  const std::string path = "/v1/streams/" + std::string(32, '0');
  CHECK(keeping.served.exchange(stream_request("DELETE", path, "", large)).status == 413);
}

TEST_CASE("a refused answer keeps its status and no stream") {
  Keeping keeping;
  keeping.served.model->refuses({ErrorCode::kExhausted, "the queue is full"});
  StreamClient client = keeping.post();
  CHECK(client.status() == 429);
  CHECK(client.read_to_end().find("the queue is full") != std::string::npos);
  CHECK(keeping.list() == Json(JsonArray()));
  CHECK(keeping.metric("lockstep_kept_stream_readers") == 0);
}

TEST_CASE("an answer that fails in mid-stream tells it as its last event") {
  Keeping keeping;
  StreamClient client = keeping.post();
  const auto running = keeping.served.model->request(0);
  FakeModel::say(running, "a");
  running.end(Error{ErrorCode::kPeerLost, "the group is lost"});
  const std::string whole = client.read_to_end();
  const auto data = numbered_data(whole);
  REQUIRE(data.size() == 2);
  CHECK(message_of({.body = data.back()}) == "the group is lost");
  CHECK(keeping.attach(client.id()).read_to_end() == whole);
}

TEST_CASE("routes of streams refuse other methods") {
  Keeping keeping;
  const Answer list = keeping.ask("POST", "/v1/streams");
  CHECK(list.status == 405);
  CHECK(list.has_header("Allow: GET, HEAD\r\n"));
  const Answer one = keeping.ask("PUT", "/streams/abc");
  CHECK(one.status == 405);
  CHECK(one.has_header("Allow: GET, HEAD, DELETE\r\n"));
  CHECK(keeping.ask("GET", "/v1/streams/").status == 200);
}

TEST_CASE("ids of streams cannot be guessed from one another") {
  Keeping keeping;
  keeping.served.model->says("a");
  std::set<std::string> ids;
  for (int i = 0; i < 20; ++i) {
    StreamClient client = keeping.post();
    ids.insert(client.id().substr(0, 8));
    client.read_to_end();
    CHECK(keeping.has_readers(0));
  }
  CHECK(ids.size() == 20);
}

TEST_CASE("a server that ends ends the answers that nobody reads") {
  std::shared_ptr<FakeModel> model;
  uint64_t id = 0;
  {
    Keeping keeping;
    StreamClient client = keeping.post();
    client.head();
    client.close();
    CHECK(keeping.has_readers(0));
    model = keeping.served.model;
    id = model->request(0).id;
  }
  CHECK(model->waits_for_cancel(id));
}

}  // namespace lockstep
