#include "net/http_stream.h"

#include <fmt/core.h>

#include <array>
#include <boost/asio/connect.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <optional>

#include "net/event_loop_impl.h"
#include "net/http_call_impl.h"

namespace lockstep {
namespace {

namespace http = boost::beast::http;
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
        timer(context) {
    parser.header_limit(kAnswerHeaderBytesMax);
    parser.body_limit(boost::none);
    parser.skip(call.method == "HEAD");
  }

  void begin();
  void connect(std::vector<tcp::endpoint> endpoints);
  void send();
  void read_head();
  void read_body();
  void on_body(const error_code& error);
  void arm(milliseconds timeout, const char* late);
  void fail(const error_code& error);
  void end(const std::optional<Error>& error);
  void stop();

  HttpCall call;
  const HttpStreamLimits limits;
  Events events;
  tcp::resolver resolver;
  tcp::socket socket;
  boost::asio::steady_timer timer;
  uint64_t timer_round = 0;
  http::request<http::string_body> request;
  http::response_parser<http::buffer_body> parser;
  boost::beast::flat_buffer buffer;  // grows to a head's length, and to what one read brings
  std::array<char, 16 << 10> piece;
  bool is_running = true;
  bool is_connected = false;
  bool is_paused = false;
};

HttpStream HttpStream::start(EventLoop& loop, HttpCall call, const HttpStreamLimits& limits,
                             Events events) {
  boost::asio::io_context& context = loop.impl().context;
  auto impl = std::make_shared<Impl>(context, std::move(call), limits, std::move(events));
  boost::asio::post(context, [impl] {
    if (impl->is_running) impl->begin();
  });
  return HttpStream(std::move(impl));
}

void HttpStream::Impl::begin() {
  if (const Status fit = check_http_call(call); !fit.ok()) return end(fit.error());
  request = make_http_request(call);
  call.body = {};
  arm(limits.connect_timeout, "was not reached");
  if (auto endpoints = known_endpoints(call)) return connect(std::move(*endpoints));
  resolver.async_resolve(
      call.host, std::to_string(call.port),
      [self = shared_from_this()](const error_code& error, const tcp::resolver::results_type& all) {
        if (!self->is_running) return;
        if (error) return self->fail(error);
        std::vector<tcp::endpoint> endpoints;
        for (const auto& entry : all) endpoints.push_back(entry.endpoint());
        self->connect(std::move(endpoints));
      });
}

void HttpStream::Impl::connect(std::vector<tcp::endpoint> endpoints) {
  auto all = std::make_shared<std::vector<tcp::endpoint>>(std::move(endpoints));
  boost::asio::async_connect(
      socket, *all,
      [self = shared_from_this(), all](const error_code& error, const tcp::endpoint&) {
        if (!self->is_running) return;
        if (error) return self->fail(error);
        self->is_connected = true;
        self->send();
      });
}

void HttpStream::Impl::send() {
  error_code ignored;  // without TCP_NODELAY it is slower, not wrong
  socket.set_option(tcp::no_delay(true), ignored);
  arm(limits.first_byte_timeout, "has not begun to answer");
  http::async_write(socket, request, [self = shared_from_this()](const error_code& error, size_t) {
    if (!self->is_running) return;
    // Who refuses a request may close before all of it is there: its answer says
    // why.
    if (error && !is_broken_off(error)) return self->fail(error);
    self->request.body() = {};
    self->read_head();
  });
}

void HttpStream::Impl::read_head() {
  http::async_read_header(socket, buffer, parser,
                          [self = shared_from_this()](const error_code& error, size_t) {
                            if (!self->is_running) return;
                            if (error) return self->fail(error);
                            HttpAnswer head;
                            head.status = static_cast<int>(self->parser.get().result_int());
                            head.headers = header_list(self->parser.get());
                            const auto on_head = self->events.on_head;
                            if (on_head) on_head(std::move(head));
                            if (self->is_running) self->read_body();
                          });
}

void HttpStream::Impl::read_body() {
  if (parser.is_done()) return end(std::nullopt);
  parser.get().body().data = piece.data();
  parser.get().body().size = piece.size();
  parser.get().body().more = true;
  arm(limits.silence_max, "fell silent in the middle of its answer");
  http::async_read_some(socket, buffer, parser,
                        [self = shared_from_this()](const error_code& error, size_t) {
                          if (self->is_running) self->on_body(error);
                        });
}

void HttpStream::Impl::on_body(const error_code& error) {
  const size_t count = piece.size() - parser.get().body().size;
  if (count > 0) {
    is_paused = true;
    arm({}, "");
    const auto on_piece = events.on_piece;
    if (on_piece) on_piece(std::string(piece.data(), count));
    if (!is_running) return;
  }
  if (error && error != http::error::need_buffer) return fail(error);
  if (count == 0) read_body();  // else resume() does
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
    if (error || !self->is_running || round != self->timer_round) return;
    const ErrorCode code = self->is_connected ? ErrorCode::kTimeout : ErrorCode::kPeerLost;
    self->end(Error{
        code, fmt::format("{} {} within {} ms", call_place(self->call), late, timeout.count())});
  });
}

void HttpStream::Impl::fail(const error_code& error) {
  const std::string place = call_place(call);
  if (!is_connected) {
    return end(Error{ErrorCode::kPeerLost,
                     fmt::format("nobody answers at {}: {}", place, error.message())});
  }
  if (error == http::error::header_limit) {
    return end(Error{ErrorCode::kExhausted,
                     fmt::format("the head of the answer of {} is longer than {} bytes", place,
                                 kAnswerHeaderBytesMax)});
  }
  if (is_broken_off(error)) {
    return end(Error{ErrorCode::kPeerLost,
                     fmt::format("{} broke off its answer: {}", place, error.message())});
  }
  end(Error{ErrorCode::kCorrupt,
            fmt::format("what answers at {} does not speak HTTP: {}", place, error.message())});
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
  resolver.cancel();
  socket.close(ignored);
}

void HttpStream::resume() {
  if (impl_ == nullptr || !impl_->is_running || !impl_->is_paused) return;
  impl_->is_paused = false;
  boost::asio::post(impl_->socket.get_executor(), [impl = impl_] {
    if (impl->is_running) impl->read_body();
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
