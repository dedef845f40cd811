// ClusterModel: a model that is served somewhere in the cluster, as the server of the node that
// holds the clients sees it. It keeps each request's prompt and what it was told, and hands it over
// a RequestRoute to a group that serves, the least busy of several (node/least_busy.h). When that
// is lost its requests are held, and go on with another one or the next: the client sees a pause
// and the same text.
//
// Who may call: what ModelService has, any thread; the rest, the loop's thread. GenerationEvents
// come on the loop's thread. close() must be called before the loop ends and before the last handle
// goes; afterwards handles may go anywhere.
//
// Rows of logits of a prompt are refused: they are many and large, and a clients' node that reads
// them slowly would hold up the group.
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
#include "node/model_folder.h"
#include "node/model_service.h"
#include "node/request_route.h"
#include "node/request_table.h"

namespace lockstep {

struct ClusterModelOptions {
  std::string name;       // as clients ask for it; empty: the folder's
  int sequences_max = 8;  // of each group; with queue_max: requests of this node that run or wait
  int queue_max = 64;
  // How long a new request waits for a placement that serves, and how long one that ran waits for
  // the next.
  std::chrono::milliseconds load_wait{600'000};
  std::chrono::milliseconds resume_wait{600'000};
  // Until a request is tried again by the placement that had no room for it, or that lost it alone.
  std::chrono::milliseconds retry_pause{1'000};
  int losses_max = 5;  // in a row without a token between them; a request beyond that fails
  // The route is gone and was destroyed, its requests are held or given to others; add_route() may
  // be called from it.
  std::function<void(uint64_t route, const Error&)> on_route_lost;
};

class ClusterModel final : public ModelService, public std::enable_shared_from_this<ClusterModel> {
 public:
  // Any thread.
  static std::shared_ptr<ClusterModel> make(EventLoop& loop, ModelFolder folder,
                                            ClusterModelOptions options);
  ~ClusterModel() override;

  // A group serves: requests may go to the route that `make` makes of these events, once the group
  // at its end has told its status, so that a way that leads nowhere costs nobody one of his
  // losses. Takes a refusal back. The route's number; what it says once it was dropped is ignored.
  uint64_t add_route(const PlacementEpoch& group, const MakeRoute& make);
  // The group has ended. A route that is not there any more is ignored.
  void drop_route(uint64_t route, const Error& reason);
  size_t route_count() const { return routes_.size(); }
  // How the model stands; `name`, `running` and `pooling` are this object's own. While there are
  // routes, they tell by themselves how their groups stand.
  void set_status(ModelStatus status);
  // The model cannot be placed: requests that have not begun fail with this sentence, those that
  // have go on waiting for the placement to return. Empty: it may be waited for.
  void set_refusal(std::string sentence);
  // Ends every request with kCancelled.
  void close();

  std::shared_ptr<const Tokenizer> tokenizer() const override { return folder_.tokenizer; }
  ModelStatus status() const override;
  std::vector<int32_t> stop_ids() const override { return folder_.stop_ids; }
  ModelChatFormat chat_format() const override { return folder_.chat_format; }
  SamplingDefaults sampling_defaults() const override { return folder_.sampling; }
  ModelCard card() const override { return folder_.card; }
  Result<uint64_t> generate(GenerateRequest request, GenerationEvents events) override;
  void cancel(uint64_t request) override;

 private:
  using Time = RequestTable::Time;
  struct Submitted {
    uint64_t id = 0;
    GenerateRequest request;
    GenerationEvents events;
  };
  // What other threads ask of the loop's.
  struct Inbox {
    std::vector<Submitted> submitted;
    std::vector<uint64_t> cancelled;
  };

  ClusterModel(EventLoop& loop, ModelFolder folder, ClusterModelOptions options);
  Status check(const GenerateRequest& request) const;
  void wake();
  void take_inbox();
  void add_inbox(Inbox inbox);
  Inbox empty_inbox();

  struct Route {
    PlacementEpoch group;
    std::unique_ptr<RequestRoute> way;
    bool is_answered = false;  // by the group at its end: until then nothing is submitted
    ModelStatus status;        // as the group told it last
    int running = 0;           // requests that were given to it and have not ended
    int others_running = 0;    // of other nodes, by that status

    int load() const { return running + others_running; }
  };

  RouteEvents events_of(uint64_t route);
  void on_status(uint64_t route, const ModelStatus& status);
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
  const ClusterModelOptions options_;

  // The loop's thread.
  EventLoop& loop_;  // until close()
  RequestTable requests_;
  std::map<uint64_t, Route> routes_;  // by number, oldest first
  uint64_t last_route_ = 0;
  std::map<uint64_t, uint64_t> given_;  // the route of each request that was submitted
  EventLoop::Timer timer_;
  Time timer_due_ = Time::max();

  mutable std::mutex mutex_;  // of what follows
  ModelStatus status_;
  std::string refusal_;
  Inbox inbox_;
  bool is_woken_ = false;   // the loop was told of the inbox
  bool is_closed_ = false;  // written by the loop's thread alone
  uint64_t next_id_ = 1;
};

}  // namespace lockstep
