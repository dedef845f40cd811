// AloneDesk: the ModelDesk of a node that is in no cluster: the same downloads, with the hub as the
// only source. One thread makes and destroys it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "node/disks/model_desk.h"
#include "node/fetch/model_fetch.h"

namespace lockstep {

class AloneDesk {
 public:
  // `models`: what this node loads, by path or name: they are not removed.
  AloneDesk(FetchSettings settings, std::vector<std::string> models);
  ~AloneDesk();

  ModelDesk& desk();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockstep
