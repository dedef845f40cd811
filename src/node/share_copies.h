// ShareCopies: sees to it that of the models that serve each piece lies on two disks of the nodes
// that keep shares, and on no more: looks now and then, and has the fetcher bring or give back what
// the plan (hub/piece_plan.h) says. Used by node/cluster_models.h. Loop's thread.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "cluster/part.h"
#include "net/event_loop.h"
#include "node/model_fetcher.h"

namespace lockstep {

class ShareCopies {
 public:
  // This must be there until the fetcher has ended, or keeps nothing any more. `on_whole`: a model
  // has turned out to be one of which whole files are kept.
  ShareCopies(EventLoop& loop, ModelFetcher& fetcher, std::function<void()> on_whole)
      : loop_(loop), fetcher_(fetcher), on_whole_(std::move(on_whole)) {}
  ShareCopies(const ShareCopies&) = delete;
  ShareCopies& operator=(const ShareCopies&) = delete;

  // The models that serve, by DesiredEntry.path, and how they are placed.
  void keep(const std::map<std::string, RankPlan>& plans);
  bool is_kept_whole(const std::string& path) const;

 private:
  struct Model {
    RankPlan plan;
    uint64_t request = 0;  // under way; 0: none
    bool is_kept_whole = false;
    std::string failure;  // the last one that was told of
    EventLoop::Timer timer{};
  };
  void look(const std::string& path);
  void on_done(const std::string& path, const Result<FetchedModel>& outcome);
  void look_later(const std::string& path, Model& model);

  EventLoop& loop_;
  ModelFetcher& fetcher_;
  const std::function<void()> on_whole_;
  std::map<std::string, Model> models_;
};

}  // namespace lockstep
