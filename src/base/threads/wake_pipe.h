// WakePipe: ends another thread's poll(). Any thread wakes; the polling thread owns fd() and drains
// it.
#pragma once

#include "base/files/unique_fd.h"
#include "base/result.h"

namespace lockstep {

class WakePipe {
 public:
  static Result<WakePipe> create();

  int fd() const { return read_end_.get(); }  // readable after wake() until drain()
  void wake() const;
  void drain() const;

 private:
  UniqueFd read_end_;
  UniqueFd write_end_;
};

}  // namespace lockstep
