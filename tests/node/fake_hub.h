// A hub on the loopback with one model that counts the bytes it sends and can be told to misbehave;
// the C++ counterpart of tests/hub/fake_hub.py. Its fields may be set at any time.
#pragma once

#include <doctest/doctest.h>
#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/crypto/hasher.h"
#include "json/json.h"
#include "net/http/http_server.h"

namespace lockstep {

inline constexpr const char* kTiny = "org/tiny";  // the model that it has

class FakeHub {
 public:
  static constexpr size_t kLargeBytes = 4096;  // from this size a file is identified by its SHA-256
  static inline const std::string kCommit = "c0ffee" + std::string(34, '0');

  explicit FakeHub(std::map<std::string, std::string> files) : files_(std::move(files)) {
    auto listening = HttpServer::listen(
        "127.0.0.1", 0, {},
        [this](const HttpRequest& request, const HttpReply& reply) { serve(request, reply); });
    REQUIRE_MESSAGE(listening.ok(), (listening.ok() ? "" : listening.error().message));
    server_ = std::move(listening.value());
    url_ = fmt::format("http://127.0.0.1:{}", server_->port());
    thread_ = std::thread([this] { server_->run(); });
  }
  ~FakeHub() { close(); }

  void close() {
    if (!thread_.joinable()) return;
    release();
    server_->stop();
    thread_.join();
    server_.reset();
  }

  // Answers what was held back, and from now on everything at once.
  void release() {
    holds_after = UINT64_MAX;
    std::vector<std::pair<HttpRequest, HttpReply>> held;
    {
      const std::lock_guard lock(mutex_);
      held.swap(held_);
    }
    for (const auto& [request, reply] : held) reply.send(answer(request));
  }
  // The queries of the searches so far.
  std::vector<std::string> searches() const {
    const std::lock_guard lock(mutex_);
    return searches_;
  }
  // The answer to each search from now on.
  void finds(HttpResponse response) {
    const std::lock_guard lock(mutex_);
    found_ = std::move(response);
  }

  const std::string& url() const { return url_; }
  const std::map<std::string, std::string>& files() const { return files_; }
  uint64_t total_bytes() const {
    uint64_t bytes = 0;
    for (const auto& [name, content] : files_) bytes += content.size();
    return bytes;
  }
  static std::string hash_of(const std::string& content) {
    const bool is_large = content.size() >= kLargeBytes;
    Hasher hasher(is_large ? HashKind::kSha256 : HashKind::kSha1);
    if (!is_large) hasher.add(fmt::format("blob {}", content.size()) + std::string(1, '\0'));
    hasher.add(content);
    return hasher.finish_hex();
  }

  std::atomic<uint64_t> sent{0};                  // bytes of files
  std::atomic<int> status{200};                   // if another: of every answer
  std::atomic<int> wrong_totals{0};               // number of answers with a wrong file size
  std::atomic<int> too_long{0};                   // number of answers that are too long
  std::atomic<int> flipped{0};                    // number of answers with a wrong byte in weights
  std::atomic<int64_t> list_lie{0};               // added to the sizes in the list
  std::atomic<uint64_t> fails_after{UINT64_MAX};  // bytes sent
  std::atomic<uint64_t> holds_after{UINT64_MAX};  // bytes sent: files then wait for release()

 private:
  static bool take(std::atomic<int>& count) {
    if (count.load() <= 0) return false;
    --count;
    return true;
  }

  void serve(const HttpRequest& request, const HttpReply& reply) {
    if (sent >= holds_after && request.path.find("/resolve/") != std::string::npos) {
      const std::lock_guard lock(mutex_);
      held_.emplace_back(request, reply);
      return;
    }
    reply.send(answer(request));
  }

  HttpResponse answer(const HttpRequest& request) {
    if (status != 200) return {.status = status, .body = "{}"};
    if (sent >= fails_after) return {.status = 503, .body = "{}"};
    if (request.path == "/api/models") {
      const std::lock_guard lock(mutex_);
      searches_.push_back(request.query);
      return found_;
    }
    if (request.path.starts_with("/api/models/org/tiny/revision/")) return {.body = list()};
    const std::string prefix = "/org/tiny/resolve/" + kCommit + "/";
    const std::string name = request.path.substr(std::min(prefix.size(), request.path.size()));
    if (!request.path.starts_with(prefix) || !files_.contains(name)) return {.status = 404};
    return part(name, std::string(request.header("range")));
  }

  std::string list() const {
    JsonArray siblings;
    for (const auto& [name, content] : files_) {
      const auto size = static_cast<int64_t>(content.size()) +
                        (content.size() >= kLargeBytes ? list_lie.load() : 0);
      JsonObject entry{{"rfilename", name}, {"size", size}, {"blobId", hash_of(content)}};
      if (content.size() >= kLargeBytes) {
        entry["lfs"] = JsonObject{{"sha256", hash_of(content)}, {"size", size}};
      }
      siblings.push_back(std::move(entry));
    }
    return dump_json(JsonObject{{"sha", kCommit}, {"siblings", std::move(siblings)}});
  }

  HttpResponse part(const std::string& name, const std::string& range) {
    const std::string& content = files_.at(name);
    unsigned long long begin = 0, last = content.size() - 1;
    if (std::sscanf(range.c_str(), "bytes=%llu-%llu", &begin, &last) != 2) return {.status = 400};
    if (begin >= content.size()) return {.status = 416};
    last = std::min<unsigned long long>(last, content.size() - 1);
    std::string body = content.substr(begin, last - begin + 1);
    if (name.ends_with(".safetensors") && take(flipped)) body[body.size() / 2] ^= 1;
    if (take(too_long)) body += "more than there is";
    const size_t total = content.size() + (take(wrong_totals) ? 1 : 0);
    sent += body.size();
    return {.status = 206,
            .content_type = "application/octet-stream",
            .body = std::move(body),
            .headers = {{"Content-Range", fmt::format("bytes {}-{}/{}", begin, last, total)}}};
  }

  const std::map<std::string, std::string> files_;
  mutable std::mutex mutex_;  // guards the three below
  std::vector<std::pair<HttpRequest, HttpReply>> held_;
  std::vector<std::string> searches_;
  HttpResponse found_{.body = "[]"};
  std::string url_;
  std::unique_ptr<HttpServer> server_;
  std::thread thread_;
};

}  // namespace lockstep
