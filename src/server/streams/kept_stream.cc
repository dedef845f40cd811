#include "server/streams/kept_stream.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "server/request/errors.h"
#include "server/request/sse.h"

namespace lockstep {
namespace {

constexpr size_t kPieceBytesMax = 64 << 10;  // written to a reader at once, or one event
constexpr std::string_view kKeepAlive = ": the answer goes on\n\n";

ApiError full_error() {
  return {503,
          "the answer was ended because nobody read its stream and no more of it can be kept: read "
          "it while it runs, or ask for a shorter answer",
          "", "stream_full"};
}

ApiError slow_error(uint64_t next) {
  return {429,
          fmt::format("this reader is too slow for the others: read on from event {} while it is "
                      "kept",
                      next),
          "", "stream_reader_slow"};
}

}  // namespace

// The sink of the answer owns it.
class KeptWriter final : public EventStream {
 public:
  explicit KeptWriter(std::shared_ptr<KeptStream> stream) : stream_(std::move(stream)) {}
  ~KeptWriter() override { stream_->lost(); }

  void refuse(HttpResponse response) override { stream_->refuse(std::move(response)); }
  void open(StreamHeaders headers) override { stream_->open(std::move(headers)); }
  void event(std::string_view json) override { stream_->event(json); }
  void done() override { stream_->done(); }
  bool keep_alive() override {
    stream_->keep_alive();
    return true;
  }
  bool opens_early() const override { return true; }
  std::optional<ApiError> problem() const override { return stream_->problem(); }

 private:
  const std::shared_ptr<KeptStream> stream_;
};

std::shared_ptr<KeptStream> KeptStream::make(Setup setup,
                                             std::shared_ptr<const StreamLimits> limits,
                                             std::shared_ptr<StreamCounts> counts,
                                             HttpReply first) {
  const auto stream = std::make_shared<KeptStream>(std::move(setup), std::move(limits),
                                                   std::move(counts), std::move(first));
  stream->watch(stream->readers_.front());
  return stream;
}

KeptStream::KeptStream(Setup setup, std::shared_ptr<const StreamLimits> limits,
                       std::shared_ptr<StreamCounts> counts, HttpReply first)
    : setup_(std::move(setup)),
      limits_(std::move(limits)),
      counts_(std::move(counts)),
      permit_(first) {
  readers_.push_back({next_reader_++, std::move(first), 0});
}

KeptStream::~KeptStream() {
  counts_->bytes.fetch_sub(bytes_);
}

StreamFacts KeptStream::facts() const {
  const std::lock_guard lock(mutex_);
  return {setup_.id, setup_.model, end_number(), is_ended_};
}

size_t KeptStream::readers() const {
  const std::lock_guard lock(mutex_);
  return readers_.size();
}

std::unique_ptr<EventStream> KeptStream::writer() {
  return std::make_unique<KeptWriter>(shared_from_this());
}

void KeptStream::on_cancel(std::function<void()> cancel) {
  {
    const std::lock_guard lock(mutex_);
    if (!is_ended_) {
      cancel_ = std::move(cancel);
      return;
    }
  }
  cancel();
}

bool KeptStream::is_open() const {
  const std::lock_guard lock(mutex_);
  return is_open_;
}

bool KeptStream::is_abandoned() const {
  const std::lock_guard lock(mutex_);
  return !is_ended_ && readers_.empty() && limits_->now() - unread_since_ >= limits_->unread_max;
}

bool KeptStream::is_over() const {
  const std::lock_guard lock(mutex_);
  if (is_ended_ && !is_open_) return true;  // refused
  return is_ended_ && readers_.empty() && limits_->now() - ended_at_ >= limits_->ended_max;
}

std::optional<StreamLimits::Clock::time_point> KeptStream::unread_end() const {
  const std::lock_guard lock(mutex_);
  if (!is_ended_ || !readers_.empty()) return std::nullopt;
  return ended_at_;
}

ApiResult<Ok> KeptStream::attach(const HttpReply& reply, uint64_t from) {
  const std::lock_guard lock(mutex_);
  if (from > end_number()) {
    return bad_field("from", fmt::format("the stream has {} events so far, so \"from\" may be at "
                                         "most {}",
                                         end_number(), end_number()));
  }
  if (from < first_) {
    return ApiError{410,
                    fmt::format("the events before {} of this stream were sent and are not kept "
                                "any more: ask from there on",
                                first_),
                    "from", "stream_events_gone"};
  }
  if (readers_.size() >= limits_->readers_max) {
    return ApiError{429, fmt::format("the stream has its maximum of {} readers", readers_.size()),
                    "", "too_many_readers"};
  }
  counts_->resumed.fetch_add(1);
  reply.start(200, kSseContentType, stream_headers({{"X-Lockstep-Stream", setup_.id}}));
  readers_.push_back({next_reader_++, reply, from});
  Reader& reader = readers_.back();
  watch(reader);
  if (!send_more(reader)) readers_.pop_back();
  return Ok{};
}

void KeptStream::end(const ApiError& error) {
  std::function<void()> cancel;
  {
    const std::lock_guard lock(mutex_);
    if (is_ended_) return;
    if (is_open_) {
      add(error_json(error));
    } else {
      send_to_all(error_response(error));
    }
    cancel = std::exchange(cancel_, nullptr);
    finish();
  }
  if (cancel) cancel();
}

void KeptStream::refuse(HttpResponse response) {
  const std::lock_guard lock(mutex_);
  if (is_ended_) return;
  send_to_all(response);
  finish();
}

void KeptStream::send_to_all(const HttpResponse& response) {
  for (const Reader& reader : readers_) reader.reply.send(response);
  readers_.clear();
}

void KeptStream::open(StreamHeaders headers) {
  const std::lock_guard lock(mutex_);
  if (is_ended_) return;
  is_open_ = true;
  headers.emplace_back("X-Lockstep-Stream", setup_.id);
  headers = stream_headers(std::move(headers));
  for (const Reader& reader : readers_) reader.reply.start(200, kSseContentType, headers);
}

void KeptStream::event(std::string_view json) {
  const std::lock_guard lock(mutex_);
  if (is_ended_) return;
  add(json);
  make_room();
  send_more();
}

// Not an event: it has no number, and a reader that is being sent something needs none.
void KeptStream::keep_alive() {
  const std::lock_guard lock(mutex_);
  if (is_ended_ || !is_open_) return;
  for (const Reader& reader : readers_) {
    if (!reader.is_sending) reader.reply.write(std::string(kKeepAlive));
  }
}

void KeptStream::done() {
  const std::lock_guard lock(mutex_);
  if (!is_ended_) finish();
}

std::optional<ApiError> KeptStream::problem() const {
  const std::lock_guard lock(mutex_);
  if (!is_full_ || is_ended_) return std::nullopt;
  return full_error();
}

void KeptStream::lost() {
  const std::lock_guard lock(mutex_);
  if (is_ended_) return;
  if (is_open_) add(error_json({500, "the answer was dropped", "", "answer_dropped"}));
  finish();
}

void KeptStream::add(std::string_view data) {
  std::string event = fmt::format("id: {}\n", end_number());
  event += sse_event(data);
  bytes_ += event.size();
  counts_->bytes.fetch_add(event.size());
  events_.push_back(std::move(event));
}

void KeptStream::make_room() {
  const auto has_unsent = [this](const Reader& reader) { return reader.next <= first_; };
  while (true) {
    const bool is_sent =
        !readers_.empty() && std::none_of(readers_.begin(), readers_.end(), has_unsent);
    const bool has_much = bytes_ > limits_->read_bytes_max || is_full();
    if (is_sent && has_much && events_.size() > 1) {
      drop_oldest();
    } else if (is_full() && readers_.size() > 1) {
      drop_slowest();
    } else {
      break;
    }
  }
  if (!is_full()) return;
  if (!std::exchange(is_full_, true)) counts_->overfull.fetch_add(1);
}

bool KeptStream::is_full() const {
  return bytes_ > limits_->stream_bytes_max || counts_->bytes.load() > limits_->all_bytes_max;
}

void KeptStream::drop_oldest() {
  bytes_ -= events_.front().size();
  counts_->bytes.fetch_sub(events_.front().size());
  events_.pop_front();
  ++first_;
}

void KeptStream::drop_slowest() {
  const auto slowest =
      std::min_element(readers_.begin(), readers_.end(),
                       [](const Reader& a, const Reader& b) { return a.next < b.next; });
  slowest->reply.write(sse_event(error_json(slow_error(slowest->next))));
  slowest->reply.finish();
  readers_.erase(slowest);
}

void KeptStream::finish() {
  is_ended_ = true;
  ended_at_ = limits_->now();
  permit_.reset();
  cancel_ = nullptr;  // holds the answer, which holds the writer
  send_more();
}

void KeptStream::watch(Reader& reader) {
  reader.reply.on_disconnect([weak = weak_from_this(), number = reader.number] {
    const auto stream = weak.lock();
    if (stream == nullptr) return;
    const std::lock_guard lock(stream->mutex_);
    stream->leave(number);
  });
}

void KeptStream::leave(uint64_t reader) {
  readers_.remove_if([reader](const Reader& one) { return one.number == reader; });
  if (readers_.empty()) unread_since_ = limits_->now();
}

void KeptStream::taken(uint64_t number) {
  const std::lock_guard lock(mutex_);
  const auto reader = std::find_if(readers_.begin(), readers_.end(),
                                   [number](const Reader& one) { return one.number == number; });
  if (reader == readers_.end()) return;
  reader->is_sending = false;
  if (!send_more(*reader)) leave(number);
}

void KeptStream::send_more() {
  for (auto reader = readers_.begin(); reader != readers_.end();) {
    reader = send_more(*reader) ? std::next(reader) : readers_.erase(reader);
  }
}

bool KeptStream::send_more(Reader& reader) {
  if (reader.is_sending) return true;
  std::string piece;
  while (reader.next < end_number() && piece.size() < kPieceBytesMax) {
    piece += events_[static_cast<size_t>(reader.next++ - first_)];
  }
  const bool is_last = is_ended_ && reader.next == end_number();
  if (!piece.empty()) {
    reader.is_sending = true;
    reader.reply.write(std::move(piece), [weak = weak_from_this(), number = reader.number] {
      if (const auto stream = weak.lock()) stream->taken(number);
    });
  }
  if (is_last) reader.reply.finish();
  return !is_last;
}

}  // namespace lockstep
