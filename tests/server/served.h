// A Server with a FakeModel on its own thread for the duration of a test, and a client that parses
// its answers.
#pragma once

#include <doctest/doctest.h>

#include <functional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "access/control_secret.h"
#include "json/json.h"
#include "net/raw_client.h"
#include "server/fake_model.h"
#include "server/server.h"
#include "support/temporary_folder.h"

namespace lockstep {

using Ids = std::vector<int32_t>;  // of tokens

struct Answer {
  int status = 0;
  std::string head;
  std::string body;

  Json json() const {
    auto parsed = parse_json(body);
    REQUIRE(parsed.ok());
    return parsed.value();
  }
  bool has_header(std::string_view line) const { return head.find(line) != std::string::npos; }
};

// The value at keys and indices: at(json, "choices", 0, "text").
template <class... Path>
Json at(const Json& json, Path... path) {
  const Json* value = &json;
  const auto step = [&value](auto key) {
    if constexpr (std::is_integral_v<decltype(key)>) {
      REQUIRE(value->is_array());
      REQUIRE(static_cast<size_t>(key) < value->get_array().size());
      value = &value->get_array()[static_cast<size_t>(key)];
    } else {
      value = find(*value, key);
      REQUIRE_MESSAGE(value != nullptr, key);
    }
  };
  (step(path), ...);
  return *value;
}

inline std::string text_at(const Json& json) {
  REQUIRE(json.is_string());
  return std::string(json.get_string());
}

// The code of an error in OpenAI's form.
inline std::string code_of(const Answer& answer) {
  return text_at(at(answer.json(), "error", "code"));
}

// The message of an answer that is an error in OpenAI's shape.
inline std::string message_of(const Answer& answer) {
  return text_at(at(answer.json(), "error", "message"));
}

class Served {
 public:
  explicit Served(std::chrono::milliseconds silence_max = std::chrono::milliseconds(60'000),
                  ClusterControl* cluster = nullptr)
      : Served([silence_max](ServerOptions& options) { options.silence_max = silence_max; },
               cluster) {}
  explicit Served(const std::function<void(ServerOptions&)>& change,
                  ClusterControl* cluster = nullptr, ModelServices models = {}) {
    ServerOptions options;
    options.port = 0;
    options.limits.body_bytes_max = 100'000;
    options.silence_max = std::chrono::milliseconds(60'000);
    options.access.control_folder = home_.path() / "node";
    change(options);
    models.push_back(model);
    auto server = Server::start(options, std::make_shared<FixedModels>(models), cluster);
    REQUIRE(server.ok());
    server_ = std::move(server.value());
    thread_ = std::thread([this] { server_->run(); });
  }
  ~Served() {
    server_->stop();
    thread_.join();
  }

  uint16_t port() const { return server_->port(); }
  Server& server() { return *server_; }

  static std::string post_text(std::string_view path, std::string_view body) {
    return "POST " + std::string(path) + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" +
           "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + std::string(body);
  }
  Answer post(std::string_view path, std::string_view body) {
    return exchange(post_text(path, body));
  }
  ControlSecret secret() const {
    auto secret = ControlSecret::read(home_.path() / "node");
    REQUIRE(secret.ok());
    return std::move(secret.value());
  }
  // The header line that a caller with control sends with this one request.
  std::string secret_line(std::string_view method, std::string_view target,
                          std::string_view body = "") {
    const Json offer = get("/control/proof?nonce=" + std::string(64, 'c')).json();
    const std::string nonce(find(offer, "nonce")->get_string());
    const std::string hash = ControlSecret::body_hash_of(body);
    const auto header = secret().header({port(), method, target, hash, nonce});
    REQUIRE(header.ok());
    return std::string(kControlHeader) + ": " + header.value() + "\r\n";
  }
  // A POST from a caller with control.
  Answer control(std::string_view path, std::string_view body) {
    std::string text = post_text(path, body);
    text.insert(text.find("\r\n") + 2, secret_line("POST", path, body));
    return exchange(text);
  }
  Answer get(std::string_view path) {
    return exchange("GET " + std::string(path) +
                    " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  }
  Answer exchange(const std::string& bytes) {
    RawClient client(port());
    client.send(bytes);
    return parse(client.read_to_end());
  }
  static Answer parse(const std::string& bytes) {
    const size_t end = bytes.find("\r\n\r\n");
    REQUIRE(end != std::string::npos);
    Answer answer;
    answer.status = std::stoi(bytes.substr(9, 3));
    answer.head = bytes.substr(0, end + 2);
    answer.body = bytes.substr(end + 4);
    return answer;
  }

  const std::shared_ptr<FakeModel> model = std::make_shared<FakeModel>();

 private:
  const TemporaryFolder home_;
  std::unique_ptr<Server> server_;
  std::thread thread_;
};

// The bytes of a streamed answer, without HTTP chunks.
inline std::string stream_text(std::string_view body) {
  std::string text;
  while (!body.empty()) {
    const size_t line = body.find("\r\n");
    if (line == std::string_view::npos) break;
    const size_t size = std::stoul(std::string(body.substr(0, line)), nullptr, 16);
    text += body.substr(line + 2, size);
    body.remove_prefix(std::min(body.size(), line + 2 + size + 2));
  }
  return text;
}

// The events of a streamed answer: each the text after "data: ".
inline std::vector<std::string> stream_events(std::string_view body) {
  const std::string text = stream_text(body);
  std::vector<std::string> events;
  for (size_t from = 0; from < text.size();) {
    const size_t end = text.find("\n\n", from);
    REQUIRE(end != std::string::npos);
    REQUIRE(text.substr(from, 6) == "data: ");
    events.push_back(text.substr(from + 6, end - from - 6));
    from = end + 2;
  }
  return events;
}

}  // namespace lockstep
