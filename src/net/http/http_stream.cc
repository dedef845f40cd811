#include "net/http/http_stream.h"

#include <fmt/core.h>

#include <array>
#include <boost/asio/connect.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <optional>

#include "base/log.h"
#include "base/threads/guarded.h"
#include "net/event_loop_impl.h"
#include "net/http/http_answer_parser.h"
#include "net/http/http_call_impl.h"

namespace lockstep {
namespace {

using boost::system::error_code;
using std::chrono::milliseconds;
using tcp = boost::asio::ip::tcp;

}  // namespace

struct HttpStream::Impl : std::enable_shared_from_this<Impl> {
  Impl(boost::asio::io_context& context, HttpCall asked, const HttpStreamLimits& chosen,
       Events called)
      : call(std::move(asked)),
        limits(chosen),
        events(std::move(called)),
        resolver(context),
        socket(context),
        timer(context),
        whole_timer(context),
        parser(call.method == "HEAD") {}

  void begin();
  void connect(std::vector<tcp::endpoint> endpoints);
  void send();
  void read();
  void on_read(const error_code& error, size_t count);
  void take_head(std::string_view& bytes);
  void go_on();
  void arm(milliseconds timeout, const char* late);
  void arm_whole();
  void end(const std::optional<Error>& error);
  void stop();
  // An exception in `work`, ours or an event's, ends only this exchange.
  template <class Work>
  void run(Work work);

  HttpCall call;
  const HttpStreamLimits limits;
  Events events;
  tcp::resolver resolver;
  tcp::socket socket;
  boost::asio::steady_timer timer;
  boost::asio::steady_timer whole_timer;
  uint64_t timer_round = 0;
  std::string request;
  HttpAnswerParser parser;
  std::array<char, 16 << 10> piece;
  bool is_running = true;
  bool is_connected = false;
  bool is_paused = false;
};

template <class Work>
void HttpStream::Impl::run(Work work) {
  if (!is_running) return;
  const Status done = guarded(work);
  if (done.ok()) return;
  log_error("net: an HTTP exchange threw an exception: {}", done.error().message);
  const Status told = guarded([&] {
    if (is_running) end(Error{ErrorCode::kExhausted, "out of memory for the answer"});
  });
  if (!told.ok()) stop();
}

HttpStream HttpStream::start(EventLoop& loop, HttpCall call, const HttpStreamLimits& limits,
                             Events events) {
  boost::asio::io_context& context = loop.impl().context;
  auto impl = std::make_shared<Impl>(context, std::move(call), limits, std::move(events));
  boost::asio::post(context, [impl] { impl->run([&] { impl->begin(); }); });
  return HttpStream(std::move(impl));
}

void HttpStream::Impl::begin() {
  if (const Status fit = check_http_call(call); !fit.ok()) return end(fit.error());
  request = http_request_bytes(call);
  call.body = {};
  arm_whole();
  arm(limits.connect_timeout, "was not reached");
  if (auto endpoints = known_endpoints(call)) return connect(std::move(*endpoints));
  resolver.async_resolve(
      call.host, std::to_string(call.port),
      [self = shared_from_this()](const error_code& error, const tcp::resolver::results_type& all) {
        self->run([&] {
          if (error) return self->end(connection_error(self->call, error, false));
          std::vector<tcp::endpoint> endpoints;
          for (const auto& entry : all) endpoints.push_back(entry.endpoint());
          self->connect(std::move(endpoints));
        });
      });
}

void HttpStream::Impl::connect(std::vector<tcp::endpoint> endpoints) {
  auto all = std::make_shared<std::vector<tcp::endpoint>>(std::move(endpoints));
  boost::asio::async_connect(
      socket, *all,
      [self = shared_from_this(), all](const error_code& error, const tcp::endpoint&) {
        self->run([&] {
          if (error) return self->end(connection_error(self->call, error, false));
          self->is_connected = true;
          self->send();
        });
      });
}

void HttpStream::Impl::send() {
  error_code ignored;  // without TCP_NODELAY it is slower, not wrong
  socket.set_option(tcp::no_delay(true), ignored);
  arm(limits.first_byte_timeout, "has not begun to answer");
  static const std::string kNone;
  const std::array<boost::asio::const_buffer, 2> parts = {
      boost::asio::buffer(request),
      boost::asio::buffer(call.shared_body ? *call.shared_body : kNone)};
  boost::asio::async_write(socket, parts, [self = shared_from_this()](const error_code&, size_t) {
    self->run([&] {
      // A server may refuse the request and close before it has all of it:
      // its answer says why.
      self->request = {};
      self->call.shared_body.reset();
      self->read();
    });
  });
}

void HttpStream::Impl::read() {
  socket.async_read_some(boost::asio::buffer(piece),
                         [self = shared_from_this()](const error_code& error, size_t count) {
                           self->run([&] { self->on_read(error, count); });
                         });
}

void HttpStream::Impl::on_read(const error_code& error, size_t count) {
  if (error && error != boost::asio::error::eof) return end(connection_error(call, error, true));
  std::string_view bytes(piece.data(), count);
  take_head(bytes);
  if (!is_running) return;
  std::string content;
  if (parser.state() == HttpAnswerParser::State::kBody) parser.feed(bytes, content);
  if (error) parser.end();
  if (content.empty()) return go_on();
  is_paused = true;
  arm({}, "");
  if (const auto on_piece = events.on_piece) on_piece(std::move(content));
}

// Consumes the head from the front of `bytes`, and reports it when it is complete.
void HttpStream::Impl::take_head(std::string_view& bytes) {
  if (parser.state() != HttpAnswerParser::State::kHead) return;
  std::string none;
  bytes.remove_prefix(parser.feed(bytes, none));
  const auto state = parser.state();
  if (state == HttpAnswerParser::State::kHead || state == HttpAnswerParser::State::kFailed) return;
  arm(limits.silence_max, "fell silent in the middle of its answer");
  if (const auto on_head = events.on_head) on_head(std::move(parser.answer()));
}

void HttpStream::Impl::go_on() {
  if (parser.state() == HttpAnswerParser::State::kDone) return end(std::nullopt);
  if (parser.state() != HttpAnswerParser::State::kFailed) return read();
  end(answer_error(call, parser.error()));
}

void HttpStream::Impl::arm_whole() {
  whole_timer.expires_after(limits.whole_timeout);
  whole_timer.async_wait([weak = weak_from_this()](const error_code& error) {
    const auto self = weak.lock();
    if (error || !self) return;
    self->run([&] {
      self->end(Error{ErrorCode::kTimeout,
                      fmt::format("{} did not finish its answer within {} ms",
                                  call_place(self->call), self->limits.whole_timeout.count())});
    });
  });
}

// One deadline at a time; zero disarms.
void HttpStream::Impl::arm(milliseconds timeout, const char* late) {
  const uint64_t round = ++timer_round;
  if (timeout.count() == 0) {
    timer.cancel();
    return;
  }
  timer.expires_after(timeout);
  timer.async_wait([self = shared_from_this(), round, timeout, late](const error_code& error) {
    if (error || round != self->timer_round) return;
    const ErrorCode code = self->is_connected ? ErrorCode::kTimeout : ErrorCode::kPeerLost;
    self->run([&] {
      self->end(Error{
          code, fmt::format("{} {} within {} ms", call_place(self->call), late, timeout.count())});
    });
  });
}

void HttpStream::Impl::end(const std::optional<Error>& error) {
  const auto self = shared_from_this();
  const Events called = std::exchange(events, {});
  stop();
  if (error && called.on_failure) called.on_failure(*error);
  if (!error && called.on_end) called.on_end();
}

void HttpStream::Impl::stop() {
  is_running = false;
  events = {};
  error_code ignored;
  timer.cancel();
  whole_timer.cancel();
  resolver.cancel();
  socket.close(ignored);
}

void HttpStream::resume() {
  if (impl_ == nullptr || !impl_->is_running || !impl_->is_paused) return;
  impl_->is_paused = false;
  boost::asio::post(impl_->socket.get_executor(), [impl = impl_] {
    impl->run([&] {
      impl->arm(impl->limits.silence_max, "fell silent in the middle of its answer");
      impl->go_on();
    });
  });
}

HttpStream& HttpStream::operator=(HttpStream&& other) noexcept {
  if (this != &other) {
    cancel();
    impl_ = std::move(other.impl_);
  }
  return *this;
}

void HttpStream::cancel() {
  if (const auto impl = std::exchange(impl_, nullptr)) impl->stop();
}

}  // namespace lockstep
