// KeptStreams: the streams that outlive their reader (kept_stream.h), by id. An id is random and
// known to its owner alone; nobody else's request finds the stream, even with the id. Any thread.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "server/request/housekeeper.h"
#include "server/streams/kept_stream.h"

namespace lockstep {

struct StreamFigures {
  size_t streams = 0;  // running or kept
  size_t readers = 0;
  size_t bytes = 0;      // of events
  uint64_t resumed = 0;  // all below as in StreamCounts
  uint64_t abandoned = 0;
  uint64_t overfull = 0;
};

class KeptStreams : public Housekeeper::Watched {
 public:
  explicit KeptStreams(StreamLimits limits);
  ~KeptStreams() override;  // ends the answers

  // For the answer to a request whose reply is `first`. 429 beyond the limits: an ended stream that
  // nobody reads makes room for its owner's next one.
  ApiResult<std::shared_ptr<KeptStream>> keep(std::string model, AnswerOwner owner,
                                              const HttpReply& first);
  // 404 for an unknown id and for another owner's stream alike.
  ApiResult<std::shared_ptr<KeptStream>> find(std::string_view id, const AnswerOwner& owner);
  std::vector<StreamFacts> list(const AnswerOwner& owner);
  // Ends the answer, if it still runs, and forgets its events; 404 as find().
  ApiResult<Ok> remove(std::string_view id, const AnswerOwner& owner);

  // Ends what nobody has read for too long, and forgets what ended long ago.
  void on_tick(Housekeeper::Clock::time_point now) override;

  StreamFigures figures() const;

 private:
  using Streams = std::map<std::string, std::shared_ptr<KeptStream>, std::less<>>;

  // Under the lock.
  void forget_over();
  bool make_room(const AnswerOwner& owner);
  Streams::iterator find_own(std::string_view id, const AnswerOwner& owner);

  const std::shared_ptr<const StreamLimits> limits_;
  const std::shared_ptr<StreamCounts> counts_ = std::make_shared<StreamCounts>();
  mutable std::mutex mutex_;
  Streams streams_;
};

}  // namespace lockstep
