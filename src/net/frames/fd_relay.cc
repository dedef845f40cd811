#include "net/frames/fd_relay.h"

#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <string>
#include <utility>

#include "net/event_loop_impl.h"

namespace lockstep {
namespace {

using boost::system::error_code;

constexpr size_t kChunkBytes = 64 << 10;
constexpr size_t kUnsentBytesMax = 1 << 20;  // queued for the other end, before reading pauses

}  // namespace

struct FdRelay::Impl : std::enable_shared_from_this<Impl> {
  Impl(boost::asio::io_context& context, UniqueFd own, FrameConnection stream,
       std::function<void(Error)> handler)
      : fd(context, own.release()), connection(std::move(stream)), on_end(std::move(handler)) {}

  void begin();
  void read();
  void on_frame(std::string frame);
  void fd_ended(Error error);
  void end(Error error);

  boost::asio::posix::stream_descriptor fd;
  FrameConnection connection;
  std::function<void(Error)> on_end;
  std::array<char, kChunkBytes> chunk;
  std::string writing;
  bool is_reading = false;
  bool has_ended = false;
  bool says_why = false;     // why our descriptor ended, instead of closing the connection
  bool is_told_why = false;  // the next frame is the peer's reason
};

FdRelay FdRelay::start(EventLoop& loop, UniqueFd fd, FrameConnection connection,
                       std::function<void(Error)> on_end) {
  return begin(std::make_shared<Impl>(loop.impl().context, std::move(fd), std::move(connection),
                                      std::move(on_end)));
}

FdRelay FdRelay::start_with_reason(EventLoop& loop, UniqueFd fd, FrameConnection connection,
                                   std::function<void(Error)> on_end) {
  auto impl = std::make_shared<Impl>(loop.impl().context, std::move(fd), std::move(connection),
                                     std::move(on_end));
  impl->says_why = true;
  return begin(std::move(impl));
}

FdRelay FdRelay::begin(std::shared_ptr<Impl> impl) {
  impl->begin();
  return FdRelay(std::move(impl));
}

void FdRelay::say_why(FrameConnection& connection, std::string_view words) {
  connection.send("");
  connection.send(words);
  connection.finish();
}

void FdRelay::Impl::begin() {
  const auto self = shared_from_this();
  connection.set_events(
      {.on_frame = [self](std::string frame) { self->on_frame(std::move(frame)); },
       .on_close = [self](Error error) { self->end(std::move(error)); },
       .on_drained = [self] { self->read(); }});
  if (connection.is_open()) return read();
  // It closed before the events were set, and will not report that again.
  boost::asio::post(fd.get_executor(), [self] {
    self->end({ErrorCode::kPeerLost, "the other end closed the connection"});
  });
}

void FdRelay::Impl::read() {
  if (is_reading || has_ended || connection.unsent_bytes() > kUnsentBytesMax) return;
  is_reading = true;
  fd.async_read_some(boost::asio::buffer(chunk), [self = shared_from_this()](
                                                     const error_code& error, size_t count) {
    self->is_reading = false;
    if (self->has_ended) return;
    if (error) {
      return self->fd_ended({ErrorCode::kPeerLost, "the process here has ended"});
    }
    self->connection.send({self->chunk.data(), count});
    self->read();
  });
}

// One frame at a time: the connection is paused until the descriptor has accepted it.
void FdRelay::Impl::on_frame(std::string frame) {
  if (has_ended) return;
  if (is_told_why) return end({ErrorCode::kCancelled, std::move(frame)});
  if (frame.empty()) {
    is_told_why = true;
    return;
  }
  writing = std::move(frame);
  connection.pause();
  boost::asio::async_write(
      fd, boost::asio::buffer(writing),
      [self = shared_from_this()](const error_code& error, size_t) {
        if (self->has_ended) return;
        if (error) {
          return self->fd_ended({ErrorCode::kPeerLost, "the process here reads no more"});
        }
        self->connection.resume();
      });
}

void FdRelay::Impl::fd_ended(Error error) {
  if (says_why && connection.is_open()) {
    connection.set_events({});
    connection = {};  // the caller has another handle
  }
  end(std::move(error));
}

void FdRelay::Impl::end(Error error) {
  if (std::exchange(has_ended, true)) return;
  const auto keep = shared_from_this();
  error_code ignored;
  fd.close(ignored);
  connection.finish();
  if (const auto told = std::exchange(on_end, nullptr)) told(std::move(error));
}

FdRelay& FdRelay::operator=(FdRelay&& other) noexcept {
  if (this != &other) {
    stop();
    impl_ = std::move(other.impl_);
  }
  return *this;
}

void FdRelay::stop() {
  if (const auto impl = std::exchange(impl_, nullptr)) {
    impl->on_end = nullptr;
    impl->end({ErrorCode::kCancelled, "stopped"});
  }
}

}  // namespace lockstep
