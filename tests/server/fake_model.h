// A model for tests of the server: its tokens are bytes (256 begins a text, 257 ends it). The test
// decides its output, either at once inside generate() or step by step from the test's thread.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "node/models/model_service.h"

namespace lockstep {

class ByteTokenizer : public Tokenizer {
 public:
  int vocab_size() const override { return 258; }
  std::optional<int32_t> bos_id() const override { return 256; }
  std::optional<int32_t> end_id() const override { return 257; }
  std::vector<int32_t> encode(std::string_view text, EncodeOptions options) const override {
    std::vector<int32_t> ids;
    if (options.add_bos) ids.push_back(256);
    for (char c : text) ids.push_back(static_cast<uint8_t>(c));
    return ids;
  }
  Result<std::string> decode(std::span<const int32_t> ids) const override {
    std::string text;
    for (int32_t id : ids) text += token_bytes(id);
    return text;
  }
  std::string token_bytes(int32_t id) const override {
    return id < 256 ? std::string(1, static_cast<char>(id)) : std::string();
  }
  bool is_special(int32_t id) const override { return id >= 256; }
};

class FakeModel : public ModelService {
 public:
  struct Running {
    uint64_t id;
    GenerateRequest request;
    EventSink events;

    void start(int cached_tokens) const { send(RequestEvent::Started{cached_tokens}); }
    void token(int32_t token) const { send(RequestEvent::Token{token}); }
    void logprobs(std::vector<TokenLogprob> logprobs) const {
      send(RequestEvent::Logprobs{std::move(logprobs)});
    }
    void row(std::vector<float> values) const { send(RequestEvent::Row{std::move(values)}); }
    void end(Result<FinishReason> outcome) const { send(RequestEvent::Ended{std::move(outcome)}); }
    void send(RequestEvent::Kind what) const { events({id, std::move(what)}); }
  };

  FakeModel() {
    folder_.tokenizer = std::make_shared<ByteTokenizer>();
    folder_.stop_ids = {257};
    status_.state = ModelStatus::State::kReady;
    status_.name = "org/Tiny-Model";
    status_.context = 1000;
    status_.identity = std::string(64, 'a');
    status_.link = "shm";
    status_.ranks.push_back({.rank = 0, .pid = 41, .weight_bytes = 600});
    status_.ranks.push_back({.rank = 1,
                             .pid = 42,
                             .weight_bytes = 400,
                             .read_bytes = 410,
                             .token_bytes = 300,
                             .state_bytes = 50,
                             .device = "vulkan: a GPU"});
    status_.links.push_back({.use = {.peer = 1,
                                     .path = LinkPath::kTcp,
                                     .rails = 2,
                                     .reason = "no \"library\"",
                                     .own_host = "10.9.0.1",
                                     .peer_host = "10.9.0.2",
                                     .device = "rdma_en5",
                                     .network_note = "join the two"},
                             .times = {.a = 0, .b = 1, .p50_us = 2.5, .p99_us = 8, .gbit_s = 40}});
    status_.late_calls = 2;
    status_.late_frames = 3;
  }

  // The folder it is loaded from; can be changed before the first request.
  ModelFolder& folder() { return folder_; }

  // From now on every request is answered with this text, before generate() returns.
  void says(std::string text) {
    std::lock_guard lock(mutex_);
    text_ = std::move(text);
    is_scripted_ = true;
  }
  // The state of this many tokens is cached when the first request comes, one more for each later
  // request.
  void has_cached(int tokens) {
    std::lock_guard lock(mutex_);
    cached_tokens_ = tokens;
  }
  // From now on every embedding is made from the prompt's ids by `embed`, before generate()
  // returns.
  void embeds(std::function<std::vector<float>(const std::vector<int32_t>&)> embed) {
    std::lock_guard lock(mutex_);
    embed_ = std::move(embed);
  }
  void refuses(Error error) {
    std::lock_guard lock(mutex_);
    refusal_ = std::move(error);
  }
  void set_name(std::string name) {
    std::lock_guard lock(mutex_);
    status_.name = std::move(name);
  }
  void set_link_rate(double bytes_s) {
    std::lock_guard lock(mutex_);
    status_.links.front().bytes_s = bytes_s;
  }
  void set_context(int context) {
    std::lock_guard lock(mutex_);
    status_.context = context;
  }
  // As hex digits; empty: nothing identifies it.
  void set_identity(std::string identity) {
    std::lock_guard lock(mutex_);
    status_.identity = std::move(identity);
  }
  // The names of the ranks' nodes.
  void set_nodes(const std::vector<std::string>& nodes) {
    std::lock_guard lock(mutex_);
    for (size_t i = 0; i < nodes.size(); ++i) status_.ranks.at(i).node = nodes[i];
  }
  void set_state(ModelStatus::State state, std::string last_error) {
    std::lock_guard lock(mutex_);
    status_.state = state;
    status_.last_error = std::move(last_error);
  }

  // The request with this number, counted from 0, once it has been submitted. Fails the test at a
  // time-out.
  Running request(size_t index) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::seconds(10), [&] { return requests_.size() > index; });
    return requests_.at(index);
  }
  bool waits_for_cancel(uint64_t id) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(10), [&] { return cancelled_.count(id); });
  }
  size_t request_count() {
    std::lock_guard lock(mutex_);
    return requests_.size();
  }
  static void say(const Running& running, std::string_view text) {
    for (char c : text) running.token(static_cast<uint8_t>(c));
  }

  std::shared_ptr<const Tokenizer> tokenizer() const override { return folder_.tokenizer; }
  std::vector<int32_t> stop_ids() const override { return folder_.stop_ids; }
  ModelChatFormat chat_format() const override { return folder_.chat_format; }
  SamplingDefaults sampling_defaults() const override { return folder_.sampling; }
  ModelCard card() const override { return folder_.card; }
  ModelStatus status() const override {
    std::lock_guard lock(mutex_);
    return status_;
  }
  Result<uint64_t> generate(GenerateRequest request, EventSink events) override {
    std::unique_lock lock(mutex_);
    if (refusal_) return *refusal_;
    const size_t index = requests_.size();
    const uint64_t id = 100 + index;
    const Running running{id, request, [this, index, events](RequestEvent event) {
                            if (event.as<RequestEvent::Ended>()) release_events(index);
                            events(std::move(event));
                          }};
    requests_.push_back(running);
    changed_.notify_all();
    if (request.pooling != Pooling::kNone && embed_) {
      const auto embed = embed_;
      lock.unlock();
      running.row(embed(request.prompt));
      running.end(FinishReason::kLength);
      return id;
    }
    if (!is_scripted_) return id;
    const std::string text = text_;
    const int cached_tokens = cached_tokens_++;
    lock.unlock();
    running.start(cached_tokens);
    const size_t count = std::min<size_t>(text.size(), static_cast<size_t>(request.max_tokens));
    for (size_t i = 0; i < count; ++i) running.token(static_cast<uint8_t>(text[i]));
    running.end(count < text.size() ? FinishReason::kLength : FinishReason::kStop);
    return id;
  }
  void cancel(uint64_t request) override {
    std::lock_guard lock(mutex_);
    ++cancelled_[request];
    changed_.notify_all();
  }

 private:
  // Like a real service before it reports the end: the sink holds their receiver, which holds this
  // service. The request stays readable.
  void release_events(size_t index) {
    EventSink released;  // outlives the lock
    std::lock_guard lock(mutex_);
    released = std::exchange(requests_[index].events, {});
  }

  int cached_tokens_ = 0;
  ModelFolder folder_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  ModelStatus status_;
  bool is_scripted_ = false;
  std::function<std::vector<float>(const std::vector<int32_t>&)> embed_;
  std::string text_;
  std::optional<Error> refusal_;
  std::vector<Running> requests_;
  std::map<uint64_t, int> cancelled_;
};

}  // namespace lockstep
