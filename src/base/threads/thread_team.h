// ThreadTeam: a fixed number of pinned threads that do pieces of work together. The caller is
// thread 0. Threads spin for a while after a section of work and then sleep, so that an idle
// process uses no processor time. One thread (the owner) calls; nothing is allocated after
// construction.
//
// A section needs no particular thread: whoever is ready takes the next piece, and a thread that
// comes when all pieces are taken is not waited for. So a thread that other programs keep from
// running delays the others only if it holds a piece.
#pragma once

#include <cstdint>
#include <memory>

#include "base/progress.h"

namespace lockstep {

class ThreadTeam {
 public:
  struct Options {
    int threads = 1;
    // The team's first core: threads run on cores [first_core, first_core + threads) modulo the
    // machine's; -1: not pinned. Cores that this process may not use are skipped. The constructing
    // thread is pinned too and stays so; threads that it creates later inherit that.
    int first_core = -1;
    Progress* progress = nullptr;  // ticked by the threads in for_each_chunk()
  };

  explicit ThreadTeam(const Options& options);
  ~ThreadTeam();
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  int size() const;

  // How many sections have woken the team: those of more than one chunk, with several threads.
  uint64_t section_count() const;

  enum class Chunks : uint8_t {
    kEqual,      // of at most `grain`
    kShrinking,  // of at least `grain`; the first are larger, so that fewer places are begun at
  };

  // body(begin, end) over [0, count) in chunks, given to threads as they become free.
  template <class Body>
  void for_each_chunk(int count, int grain, Body&& body) {
    for_each_chunk(count, grain, Chunks::kEqual, body, [] {});
  }
  // The same, and the caller calls after_chunk() after each of its chunks.
  template <class Body, class AfterChunk>
  void for_each_chunk(int count, int grain, Chunks chunks, Body&& body, AfterChunk&& after_chunk) {
    start_chunks(count, grain, chunks);
    const auto take_chunks = [&](int thread) {
      int begin = 0, end = 0;
      while (next_chunk(&begin, &end)) {
        body(begin, end);
        if (thread == 0) after_chunk();
      }
    };
    using Take = decltype(take_chunks);
    run_section([](void* context, int thread) { (*static_cast<Take*>(context))(thread); },
                const_cast<void*>(static_cast<const void*>(&take_chunks)));
  }

 private:
  using RawBody = void (*)(void* context, int thread);
  void run_section(RawBody body, void* context);
  void start_chunks(int count, int grain, Chunks chunks);
  bool next_chunk(int* begin, int* end);

  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockstep
