// ThreadTeam: a fixed number of pinned threads that run one function together. The caller is thread
// 0. Threads spin for a while after a run and then sleep, so that an idle process takes no
// processor time. One thread (the owner) calls run(); after construction nothing is allocated.
#pragma once

#include <memory>

#include "base/progress.h"

namespace lockstep {

class ThreadTeam {
 public:
  struct Options {
    int threads = 1;
    // The team's first core, threads go to cores [first_core, first_core + threads) modulo the
    // machine's; -1: not pinned. A core that this process may not use is left out. The thread that
    // constructs the team is pinned too and stays so; threads that it makes later inherit that.
    int first_core = -1;
    Progress* progress = nullptr;  // ticked by the threads in for_each_chunk()
  };

  explicit ThreadTeam(const Options& options);
  ~ThreadTeam();
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  int size() const;

  // body(thread_index) on every thread; returns when all are done.
  template <class Body>
  void run(Body&& body) {
    run_raw([](void* context, int thread) { (*static_cast<Body*>(context))(thread); },
            const_cast<void*>(static_cast<const void*>(&body)));
  }

  // body(begin, end) over [0, count) in chunks of at most `grain`, handed to threads as they get
  // free.
  template <class Body>
  void for_each_chunk(int count, int grain, Body&& body) {
    for_each_chunk(count, grain, body, [] {});
  }
  // And after each of its chunks the caller calls after_chunk().
  template <class Body, class AfterChunk>
  void for_each_chunk(int count, int grain, Body&& body, AfterChunk&& after_chunk) {
    start_chunks(count, grain);
    run([&](int thread) {
      int begin = 0, end = 0;
      while (next_chunk(&begin, &end)) {
        body(begin, end);
        if (thread == 0) after_chunk();
      }
    });
  }

 private:
  using RawBody = void (*)(void* context, int thread);
  void run_raw(RawBody body, void* context);
  void start_chunks(int count, int grain);
  bool next_chunk(int* begin, int* end);

  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockstep
