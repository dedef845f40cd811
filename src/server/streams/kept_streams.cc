#include "server/streams/kept_streams.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/crypto/secrets.h"

namespace lockstep {
namespace {

constexpr size_t kIdBytes = 16;

ApiError unread_error(std::chrono::milliseconds unread_max) {
  return {503,
          fmt::format("the answer was ended because nobody read its stream for {} s",
                      std::chrono::duration_cast<std::chrono::seconds>(unread_max).count()),
          "", "stream_unread"};
}

ApiError no_such_stream() {
  return {404,
          "there is no such stream: it was never kept, has ended some time ago, or belongs to "
          "another caller",
          "", "stream_not_found"};
}

}  // namespace

KeptStreams::KeptStreams(StreamLimits limits)
    : limits_(std::make_shared<const StreamLimits>(std::move(limits))) {}

KeptStreams::~KeptStreams() {
  for (const auto& [id, stream] : streams_) {
    stream->end({503, "the server is about to stop", "", "server_stopping"});
  }
}

ApiResult<std::shared_ptr<KeptStream>> KeptStreams::keep(std::string model, AnswerOwner owner,
                                                         const HttpReply& first) {
  auto id = random_hex(kIdBytes);
  if (!id.ok()) return ApiError{500, id.error().message, "", "internal_error"};
  const std::lock_guard lock(mutex_);
  forget_over();
  if (!make_room(owner)) {
    return ApiError{429,
                    fmt::format("a client may have {} kept streams, and all clients together {}: "
                                "end one with DELETE /v1/streams/ID, or ask without the header "
                                "X-Lockstep-Stream",
                                limits_->streams_of_caller_max, limits_->streams_max),
                    "", "too_many_streams"};
  }
  auto stream =
      KeptStream::make({id.value(), std::move(model), std::move(owner)}, limits_, counts_, first);
  streams_.emplace(std::move(id.value()), stream);
  return stream;
}

ApiResult<std::shared_ptr<KeptStream>> KeptStreams::find(std::string_view id,
                                                         const AnswerOwner& owner) {
  const std::lock_guard lock(mutex_);
  forget_over();
  const auto found = find_own(id, owner);
  if (found == streams_.end()) return no_such_stream();
  return found->second;
}

std::vector<StreamFacts> KeptStreams::list(const AnswerOwner& owner) {
  const std::lock_guard lock(mutex_);
  forget_over();
  std::vector<StreamFacts> facts;
  for (const auto& [id, stream] : streams_) {
    if (stream->owner() == owner && stream->is_open()) facts.push_back(stream->facts());
  }
  return facts;
}

ApiResult<Ok> KeptStreams::remove(std::string_view id, const AnswerOwner& owner) {
  std::shared_ptr<KeptStream> stream;
  {
    const std::lock_guard lock(mutex_);
    const auto found = find_own(id, owner);
    if (found == streams_.end()) return no_such_stream();
    stream = std::move(found->second);
    streams_.erase(found);
  }
  stream->end({410, "the stream was deleted", "", "stream_deleted"});
  return Ok{};
}

void KeptStreams::on_tick(Housekeeper::Clock::time_point) {
  std::vector<std::shared_ptr<KeptStream>> abandoned;
  {
    const std::lock_guard lock(mutex_);
    forget_over();
    for (const auto& [id, stream] : streams_) {
      if (stream->is_abandoned()) abandoned.push_back(stream);
    }
  }
  for (const auto& stream : abandoned) {
    counts_->abandoned.fetch_add(1);
    stream->end(unread_error(limits_->unread_max));
  }
}

StreamFigures KeptStreams::figures() const {
  StreamFigures figures{.bytes = counts_->bytes.load(),
                        .resumed = counts_->resumed.load(),
                        .abandoned = counts_->abandoned.load(),
                        .overfull = counts_->overfull.load()};
  const std::lock_guard lock(mutex_);
  figures.streams = streams_.size();
  for (const auto& [id, stream] : streams_) figures.readers += stream->readers();
  return figures;
}

void KeptStreams::forget_over() {
  std::erase_if(streams_, [](const auto& entry) { return entry.second->is_over(); });
}

bool KeptStreams::make_room(const AnswerOwner& owner) {
  const auto is_own = [&](const auto& entry) { return entry.second->owner() == owner; };
  const auto has_room = [&] {
    const auto own = std::count_if(streams_.begin(), streams_.end(), is_own);
    return streams_.size() < limits_->streams_max &&
           static_cast<size_t>(own) < limits_->streams_of_caller_max;
  };
  while (!has_room()) {
    auto oldest = streams_.end();
    for (auto one = streams_.begin(); one != streams_.end(); ++one) {
      if (!is_own(*one) || !one->second->unread_end()) continue;
      if (oldest == streams_.end() || *one->second->unread_end() < *oldest->second->unread_end()) {
        oldest = one;
      }
    }
    if (oldest == streams_.end()) return false;
    streams_.erase(oldest);
  }
  return true;
}

KeptStreams::Streams::iterator KeptStreams::find_own(std::string_view id,
                                                     const AnswerOwner& owner) {
  const auto found = streams_.find(id);
  const bool is_own =
      found != streams_.end() && found->second->is_open() && found->second->owner() == owner;
  return is_own ? found : streams_.end();
}

}  // namespace lockstep
