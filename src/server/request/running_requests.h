// RunningRequests: the answers in progress for this node's clients, for GET /cluster/requests,
// which also cancels them. Any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep {

enum class RequestPhase : uint8_t {
  kWaiting,  // no token has come, and the prompt is not known to be computed
  kPrompt,   // it is being computed
  kAnswer,
  kPaused,  // its group has been lost and forms again
};

struct RequestFigures {
  std::string id;  // given by RunningRequests
  std::string model;
  std::string route;   // "/v1/chat/completions"
  std::string client;  // for people: the name of a key, an address
  uint64_t caller = 0;
  RequestPhase phase = RequestPhase::kWaiting;
  int64_t prompt_tokens = 0;
  std::optional<int64_t> prompt_done;  // of these, as far as known
  int64_t tokens = 0;                  // of the answer
  std::chrono::steady_clock::time_point began;
};

class RunningRequest {
 public:
  virtual ~RunningRequest() = default;
  // Nullopt: the answer is over. `id` is left empty.
  virtual std::optional<RequestFigures> figures() const = 0;
  // Ends the answer with an error that says so. Not from inside an event of it.
  virtual void stop() = 0;
};

class RunningRequests : public std::enable_shared_from_this<RunningRequests> {
 public:
  // While it lives the request is in the list.
  class Entry {
   public:
    Entry() = default;
    Entry(std::weak_ptr<RunningRequests> list, uint64_t number)
        : list_(std::move(list)), number_(number) {}
    Entry(Entry&& other) noexcept = default;
    Entry& operator=(Entry&& other) noexcept {
      std::swap(list_, other.list_);
      std::swap(number_, other.number_);
      return *this;
    }
    ~Entry();

   private:
    std::weak_ptr<RunningRequests> list_;
    uint64_t number_ = 0;
  };

  // There are no more of them than connections and kept streams.
  [[nodiscard]] Entry add(std::weak_ptr<RunningRequest> request, std::string id);
  // In the order of their arrival.
  std::vector<RequestFigures> list() const;
  // Null: it is over, or there was none.
  std::shared_ptr<RunningRequest> find(std::string_view id) const;

 private:
  struct Item {
    std::string id;
    std::weak_ptr<RunningRequest> request;
  };

  void remove(uint64_t number);
  std::vector<std::pair<std::string, std::shared_ptr<RunningRequest>>> running() const;

  mutable std::mutex mutex_;  // guards what follows
  uint64_t last_number_ = 0;
  std::map<uint64_t, Item> items_;
};

}  // namespace lockstep
