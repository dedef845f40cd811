// RoutedModel: a model served somewhere in the cluster, as the server on the clients' node sees
// it. It keeps each request's prompt and the tokens sent so far, and submits it over a RequestRoute
// to a serving group, the least busy of several (node/requests/pick_group.h). When that group is
// lost, its requests are held and continue on another one: the client sees a pause and the same
// text.
//
// Threads: the ModelService functions, any; the rest, the loop's thread. Events of requests
// are reported on the loop's thread. Call close() before the loop ends and before the last handle
// is released; afterwards any thread may release handles.
//
// Rows of prompt logits are refused: they are many and large, and a clients' node that reads them
// slowly would hold up the group.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/result.h"
#include "cluster/part.h"
#include "net/event_loop.h"
#include "node/models/model_folder.h"
#include "node/models/model_service.h"
#include "node/requests/request_route.h"
#include "node/requests/request_table.h"

namespace lockstep {

struct RoutedModelOptions {
  std::string name;  // as clients ask for it; empty: the folder's
  // Per group; with queue_max: requests of this node that run or wait.
  int sequences_max = kSequencesDefault;
  int queue_max = kQueueDefault;
  // How long a new request waits for a serving placement, and how long one that ran waits for the
  // next.
  std::chrono::milliseconds load_wait{600'000};
  std::chrono::milliseconds resume_wait{600'000};
  // Before a request is tried again on a placement that was full, or that lost only this request.
  std::chrono::milliseconds retry_pause{1'000};
  int losses_max = 5;  // in a row without a token; one more and the request fails
  // The route was lost and destroyed, its requests are held or given to other routes; may call
  // add_route().
  std::function<void(uint64_t route, const Error&)> on_route_lost;
};

class RoutedModel final : public ModelService, public std::enable_shared_from_this<RoutedModel> {
 public:
  // Any thread.
  static std::shared_ptr<RoutedModel> make(EventLoop& loop, ModelFolder folder,
                                           RoutedModelOptions options);
  ~RoutedModel() override;

  // A group serves: makes a route to it with `make`. Requests are sent only after the group reports
  // its status, so an unreachable route does not count against `losses_max`. Clears any refusal.
  // Returns the route's number; events of a dropped route are ignored.
  uint64_t add_route(const PlacementEpoch& group, const MakeRoute& make);
  // The group has ended. An unknown route is ignored.
  void drop_route(uint64_t route, const Error& reason);
  size_t route_count() const { return routes_.size(); }
  // The model's state; `name`, `running` and `pooling` are set by this object. While there are
  // routes, their groups report their own state.
  void set_status(ModelStatus status);
  // The model cannot be placed: requests that have not begun fail with this sentence, the others
  // keep waiting for the placement to return. Empty: requests may wait.
  void set_refusal(std::string sentence);
  // Ends every request with kCancelled.
  void close();

  std::shared_ptr<const Tokenizer> tokenizer() const override { return folder_.tokenizer; }
  ModelStatus status() const override;
  std::vector<int32_t> stop_ids() const override { return folder_.stop_ids; }
  ModelChatFormat chat_format() const override { return folder_.chat_format; }
  SamplingDefaults sampling_defaults() const override { return folder_.sampling; }
  ModelCard card() const override { return folder_.card; }
  Result<uint64_t> generate(GenerateRequest request, EventSink events) override;
  void cancel(uint64_t request) override;

 private:
  using Time = RequestTable::Time;
  struct Submitted {
    uint64_t id = 0;
    GenerateRequest request;
    EventSink events;
  };
  // From other threads to the loop's.
  struct Inbox {
    std::vector<Submitted> submitted;
    std::vector<uint64_t> cancelled;
  };

  RoutedModel(EventLoop& loop, ModelFolder folder, RoutedModelOptions options);
  Status check(const GenerateRequest& request) const;
  void wake();
  void take_inbox();
  void add_inbox(Inbox inbox);
  Inbox empty_inbox();

  struct Route {
    PlacementEpoch group;
    std::unique_ptr<RequestRoute> way;
    bool is_answered = false;  // the group has reported its status; required to submit
    ModelStatus status;        // the last one that the group reported
    int running = 0;           // requests submitted to it that have not ended
    int others_running = 0;    // other nodes' requests, by that status

    int load() const { return running + others_running; }
  };

  RouteEvents events_of(uint64_t route);
  void on_status(uint64_t route, const ModelStatus& status);
  void take(uint64_t route, RequestEvent event);
  void end_or_hold(uint64_t id, Result<FinishReason> outcome);
  void put_back(uint64_t id);
  void lose_route(uint64_t route, const Error& error);
  uint64_t shown_route() const;
  void show_routes();
  void show_groups();
  void show_lost(const Error& reason);
  bool is_answered() const;
  bool is_given(uint64_t id, uint64_t route) const;
  void take_back(uint64_t id);
  Status submit(uint64_t id, const GenerateRequest& request);
  RequestTable::Resumption resumption() const;

  void submit_held(Time now);
  void refuse_new();
  void arm();
  void on_timer();

  const ModelFolder folder_;
  const RoutedModelOptions options_;

  // The loop's thread.
  EventLoop& loop_;  // until close()
  RequestTable requests_;
  std::map<uint64_t, Route> routes_;  // by number, oldest first
  uint64_t last_route_ = 0;
  std::map<uint64_t, uint64_t> given_;  // the route of each request that was submitted
  EventLoop::Timer timer_;
  Time timer_due_ = Time::max();

  mutable std::mutex mutex_;  // guards what follows
  ModelStatus status_;
  std::string refusal_;
  Inbox inbox_;
  bool is_woken_ = false;   // the loop has been asked to read the inbox
  bool is_closed_ = false;  // written only by the loop's thread
  uint64_t next_id_ = 1;
};

}  // namespace lockstep
