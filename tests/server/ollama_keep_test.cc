// Ollama's keep_alive: it applies to models that are loaded on demand, and is ignored for others.
#include <condition_variable>
#include <mutex>

#include "server/fake_cluster.h"
#include "server/served.h"

namespace lockstep {
namespace {

using std::chrono::milliseconds;

// One model, loaded on demand or always; records the keep times it gets, with the number of its
// requests at that time.
class KeptModels final : public ModelDirectory {
 public:
  KeptModels(std::shared_ptr<FakeModel> model, bool is_on_demand)
      : model_(std::move(model)), is_on_demand_(is_on_demand) {}
  ModelServices models() const override { return {model_}; }
  Result<std::shared_ptr<ModelService>> find(std::string_view) override {
    return std::shared_ptr<ModelService>(model_);
  }
  bool is_on_demand(std::string_view name) const override {
    return is_on_demand_ && name == "org/Tiny-Model";
  }
  void keep(std::string_view name, milliseconds time) override {
    CHECK(name == "org/Tiny-Model");
    std::lock_guard lock(mutex_);
    told_ += std::to_string(time.count()) + "@" + std::to_string(model_->request_count()) + " ";
    changed_.notify_all();
  }
  // The answer may arrive before the models get the time.
  std::string told(bool is_expected) {
    std::unique_lock lock(mutex_);
    if (is_expected) {
      changed_.wait_for(lock, std::chrono::seconds(10), [this] { return !told_.empty(); });
    }
    return std::exchange(told_, "");
  }

 private:
  const std::shared_ptr<FakeModel> model_;
  const bool is_on_demand_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string told_;
};

class ServedKept {
 public:
  explicit ServedKept(bool is_on_demand, ClusterControl* cluster = nullptr)
      : models(std::make_shared<KeptModels>(model, is_on_demand)) {
    model->says("ok");
    model->embeds([](const std::vector<int32_t>&) { return std::vector<float>{3, 4}; });
    ServerOptions options;
    options.port = 0;
    auto server = Server::start(options, models, cluster);
    REQUIRE(server.ok());
    server_ = std::move(server.value());
    thread_ = std::thread([this] { server_->run(); });
  }
  ~ServedKept() {
    server_->stop();
    thread_.join();
  }
  Answer ask(const std::string& bytes) {
    RawClient client(server_->port());
    client.send(bytes);
    return Served::parse(client.read_to_end());
  }
  // "status ignored done_reason, recorded keep times"
  std::string post(const std::string& path, const std::string& fields) {
    const std::string more = path == "/api/embed" ? "" : R"("stream":false,)";
    const Answer answer = ask(Served::post_text(path, R"({"model":"m",)" + more + fields + "}"));
    const Json json = answer.json();
    const bool is_told = answer.status == 200 && fields.find("keep_alive") != std::string::npos;
    const Json* reason = find(json, "done_reason");
    return std::to_string(answer.status) +
           (answer.has_header("x-lockstep-ignored-fields: keep_alive\r\n") ? " ignored" : "") +
           (reason != nullptr ? " " + text_at(*reason) : "") + ", " + models->told(is_told);
  }

  const std::shared_ptr<FakeModel> model = std::make_shared<FakeModel>();
  const std::shared_ptr<KeptModels> models;

 private:
  std::unique_ptr<Server> server_;
  std::thread thread_;
};

const char* const kChat = R"("messages":[{"role":"user","content":"x"}])";

}  // namespace

TEST_CASE("ollama: a model on demand stays as long as the request says, from its start") {
  ServedKept ollama(true);
  const std::string chat = std::string(kChat) + R"(,"keep_alive":)";
  CHECK(ollama.post("/api/chat", chat + R"("5m")") == "200 stop, 300000@1 ");
  CHECK(ollama.post("/api/chat", chat + "0") == "200 stop, 0@2 ");
  CHECK(ollama.post("/api/generate", R"("prompt":"x","keep_alive":-1)") == "200 stop, -1@3 ");
  CHECK(ollama.post("/api/generate", R"("prompt":"x","keep_alive":"1.5s")") == "200 stop, 1500@4 ");
  CHECK(ollama.post("/api/generate", R"("prompt":"x","keep_alive":1e300)") == "200 stop, -1@5 ");
  CHECK(ollama.post("/api/chat", kChat) == "200 stop, ");
  CHECK(ollama.post("/api/embed", R"("input":"x","keep_alive":7)") == "200, 7000@7 ");
  CHECK(ollama.post("/api/chat", R"("messages":[],"keep_alive":60)") == "200 load, 60000@7 ");
  CHECK(ollama.post("/api/generate", R"("keep_alive":0)") == "200 unload, 0@7 ");
}

TEST_CASE("ollama: for a model that always stays the answer says that keep_alive was ignored") {
  ServedKept ollama(false);
  const std::string chat = std::string(kChat) + R"(,"keep_alive":)";
  CHECK(ollama.post("/api/chat", chat + R"("5m")").starts_with("200 ignored stop, "));
  CHECK(ollama.post("/api/chat", chat + "0").starts_with("200 ignored stop, "));
  CHECK(ollama.post("/api/chat", chat + "-1").starts_with("200 stop, "));  // unchanged
  CHECK(ollama.post("/api/embed", R"("input":"x","keep_alive":7)").starts_with("200 ignored, "));
  CHECK(ollama.post("/api/generate", R"("keep_alive":0)").starts_with("501, "));
}

TEST_CASE("ollama: ps shows when an unused model will be unloaded") {
  const auto expiry = [](std::optional<int64_t> idle_left_ms) {
    FakeCluster cluster;
    cluster.report_to_change().models.front().idle_left_ms = idle_left_ms;
    ServedKept ollama(true, &cluster);
    const Answer ps =
        ollama.ask("GET /api/ps HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    return text_at(at(ps.json(), "models", 0, "expires_at"));
  };
  const auto utc = [](int64_t from_now_s) {
    const time_t time = std::time(nullptr) + from_now_s;
    char text[32];
    tm parts{};
    std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", ::gmtime_r(&time, &parts));
    return std::string(text);
  };
  CHECK(expiry(std::nullopt) == "9999-12-31T23:59:59Z");
  CHECK(expiry(int64_t{1} << 50) == "9999-12-31T23:59:59Z");
  const std::string before = utc(3600);
  const std::string told = expiry(3'600'000);
  CHECK(told >= before);
  CHECK(told < utc(3602));
}

}  // namespace lockstep
