// ShareCopies: keeps each piece of a serving model on two disks of the nodes that keep shares, and
// on no more: checks from time to time, and has the fetcher fetch or give back pieces as planned
// (hub/files/piece_plan.h). Used by node/cluster/cluster_models.h. Loop's thread.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "cluster/part.h"
#include "net/event_loop.h"
#include "node/fetch/model_fetcher.h"

namespace lockstep {

class ShareCopies {
 public:
  // Must exist until the fetcher has ended, or until it keeps nothing any more. `on_whole`: a model
  // has turned out to be kept as whole files.
  ShareCopies(EventLoop& loop, ModelFetcher& fetcher, std::function<void()> on_whole)
      : loop_(loop), fetcher_(fetcher), on_whole_(std::move(on_whole)) {}
  ShareCopies(const ShareCopies&) = delete;
  ShareCopies& operator=(const ShareCopies&) = delete;

  // The serving models, by DesiredEntry.path, and their placements.
  void keep(const std::map<std::string, RankPlan>& plans);
  bool is_kept_whole(const std::string& path) const;

 private:
  struct Model {
    RankPlan plan;
    uint64_t request = 0;  // in flight; 0: none
    bool is_kept_whole = false;
    std::string failure;  // the last one that was logged
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
