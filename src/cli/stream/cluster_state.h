// ClusterState: what a node's /cluster/events has said so far: the status, kept up to date, the
// latest meters, and what has happened. The events are untrusted. Used by `lockstep run` and
// `lockstep top`; one thread.
#pragma once

#include <deque>

#include "cli/stream/event_reader.h"
#include "json/json.h"

namespace lockstep {

class ClusterState {
 public:
  static constexpr size_t kHappeningsMax = 100;

  enum class Change { kNothing, kStatus, kMeters, kHappened };
  // kCorrupt unless its data is a JSON object. Unknown events change nothing.
  Result<Change> take(const ServerEvent& event);

  bool has_status() const { return has_status_; }
  const Json& status() const { return status_; }  // an object, of GET /cluster/status
  const Json& meters() const { return meters_; }  // an object; empty before the first
  const std::deque<Json>& happened() const { return happened_; }  // the oldest first

 private:
  void add_happening(const Json& happening);

  bool has_status_ = false;
  Json status_ = JsonObject();
  Json meters_ = JsonObject();
  std::deque<Json> happened_;
};

}  // namespace lockstep
