#include "net/http_connection.h"

#include <boost/asio/buffer.hpp>
#include <utility>

#include "base/check.h"
#include "net/http_head.h"

namespace lockstep {
namespace {

using boost::system::error_code;

// Pipelined requests that may wait behind a reply. While so many wait the socket is not read, and
// the end of such a client is noticed by the next write only.
constexpr size_t kUnparsedBytesMax = 64 << 10;
// A connection is closed only after the client had this long to read the last answer: closing with
// unread input would reset the connection and could destroy that answer.
constexpr std::chrono::milliseconds kLingerTimeout{2'000};
constexpr size_t kLingerBytesMax = 32 << 20;
constexpr int kIdleFactor = 6;  // Limits::header_timeout

// An IPv4 one as such, also where it came in over IPv6; of no kind where the client has gone.
boost::asio::ip::address address_of(const boost::asio::ip::tcp::socket& socket) {
  using namespace boost::asio::ip;
  error_code error;
  const address caller = socket.remote_endpoint(error).address();
  if (!caller.is_v6() || !caller.to_v6().is_v4_mapped()) return caller;
  return make_address_v4(v4_mapped, caller.to_v6());
}

}  // namespace

HttpConnection::HttpConnection(Context& context, boost::asio::ip::tcp::socket socket)
    : context_(context), socket_(std::move(socket)), timer_(socket_.get_executor()) {
  const boost::asio::ip::address caller = address_of(socket_);
  address_ = caller.to_string();
  is_from_this_machine_ = caller.is_loopback();
}

void HttpConnection::start() {
  error_code ignored;  // without TCP_NODELAY it is slower, not wrong
  socket_.set_option(boost::asio::ip::tcp::no_delay(true), ignored);
  arm(context_.limits.header_timeout * kIdleFactor);
  read();
}

void HttpConnection::refuse(int status, std::string_view message) {
  fail(status, std::string(message), {{"Retry-After", "1"}});
  read();
}

void HttpConnection::drain() {
  if (phase_ == Phase::kReplying || phase_ == Phase::kLingering) {
    keeps_alive_ = false;
  } else {
    close();
  }
}

void HttpConnection::close() {
  if (std::exchange(is_closed_, true)) return;
  timer_.cancel();
  error_code ignored;
  socket_.close(ignored);
  const auto self = shared_from_this();
  if (reply_ != nullptr) {
    reply_->is_open.store(false, std::memory_order_relaxed);
    reply_->is_lost = !is_complete_;
  }
  const std::function<void()> callback = std::exchange(on_disconnect_, nullptr);
  on_taken_ = nullptr;
  if (callback && !is_complete_) callback();
  context_.on_close(self);
}

void HttpConnection::read() {
  if (is_closed_ || is_reading_ || has_client_ended_) return;
  if (phase_ == Phase::kReplying && unparsed_.size() >= kUnparsedBytesMax) return;
  is_reading_ = true;
  socket_.async_read_some(boost::asio::buffer(chunk_),
                          [self = shared_from_this()](const error_code& error, size_t count) {
                            self->is_reading_ = false;
                            if (!self->is_closed_) self->on_read(error, count);
                          });
}

void HttpConnection::on_read(const error_code& error, size_t count) {
  if (error) return on_client_end();
  if (phase_ == Phase::kLingering) {
    lingered_bytes_ += count;
    return lingered_bytes_ > kLingerBytesMax ? close() : read();
  }
  unparsed_.append(chunk_.data(), count);
  if (phase_ == Phase::kReplying) return read();
  consume();
}

// A client that has closed its sending side counts as gone (as in Go's net/http); an answer that is
// already complete is still sent.
void HttpConnection::on_client_end() {
  has_client_ended_ = true;
  if (phase_ != Phase::kReplying || !is_complete_) close();
}

void HttpConnection::consume() {
  if (phase_ == Phase::kIdle) {
    unparsed_.erase(0, unparsed_.find_first_not_of("\r\n"));  // RFC 9112 2.2
    if (unparsed_.empty()) return has_client_ended_ ? close() : read();
    phase_ = Phase::kHeader;
    arm(context_.limits.header_timeout);
    parser_ = std::make_unique<HttpRequestParser>(context_.limits.header_bytes_max,
                                                  context_.limits.body_bytes_max);
    body_hold_ = std::make_shared<BodyHold>(context_.bodies);
  }
  unparsed_.erase(0, parser_->feed(unparsed_));
  if (!has_room_for_body()) {
    return fail(503,
                "the bodies of all requests together have their maximum of " +
                    std::to_string(context_.bodies->bytes_max()) + " bytes, try again later",
                {{"Retry-After", "1"}});
  }
  switch (parser_->state()) {
    case HttpRequestParser::State::kFailed:
      return fail(parser_->failure().status, parser_->failure().message);
    case HttpRequestParser::State::kDone:
      return dispatch();
    case HttpRequestParser::State::kBody:
      if (phase_ == Phase::kHeader) {
        phase_ = Phase::kBody;
        arm(context_.limits.body_timeout);
        if (parser_->expects_continue() && unparsed_.empty()) {
          outgoing_ += "HTTP/1.1 100 Continue\r\n\r\n";
          flush();
        }
      }
      break;
    case HttpRequestParser::State::kHeader:
      break;
  }
  // The parser takes all but an incomplete line; a chunk's line has no business to be that long.
  if (unparsed_.size() > context_.limits.header_bytes_max + kUnparsedBytesMax) {
    return fail(400, "the request is not valid HTTP: a line of it is too long");
  }
  if (has_client_ended_) return close();
  read();
}

bool HttpConnection::has_room_for_body() {
  const bool is_body = parser_->state() == HttpRequestParser::State::kBody ||
                       parser_->state() == HttpRequestParser::State::kDone;
  return !is_body || body_hold_->grow_to(parser_->body_bytes());
}

void HttpConnection::dispatch() {
  keeps_alive_ = parser_->keeps_alive() && !context_.is_draining;
  is_head_request_ = parser_->is_head();
  is_http_1_0_ = parser_->is_http_1_0();
  if (context_.is_refusing) return refuse_request();
  HttpRequest request = parser_->take();
  request.body_hold = std::move(body_hold_);
  request.address = address_;
  request.is_from_this_machine = is_from_this_machine_;
  begin_reply();
  auto impl = std::make_shared<HttpReply::Impl>();
  impl->loop = context_.loop;
  impl->connection = weak_from_this();
  impl->state = reply_;
  impl->unsent_bytes_max = context_.limits.unsent_bytes_max;
  const auto self = shared_from_this();
  context_.handler(std::move(request), HttpReply(std::move(impl)));
  if (has_client_ended_) {
    // The loop runs posts in order: an answer which the handler has already given comes first.
    context_.loop->post([self, state = reply_] {
      if (self->is_answering(state.get()) && !self->is_complete_) self->close();
    });
  }
  read();
}

void HttpConnection::refuse_request() {
  is_refused_ = true;
  fail(503, "this server is about to stop and takes no more requests", {{"Retry-After", "1"}});
}

// An error that the server itself found: it is the last answer on this connection. `message` is a
// copy because it may come from the parser, which begin_reply() ends.
void HttpConnection::fail(int status, std::string message,
                          std::vector<std::pair<std::string, std::string>> headers) {
  const std::string path = parser_ != nullptr ? parser_->path() : std::string();
  begin_reply();
  keeps_alive_ = false;
  unparsed_.clear();
  HttpResponse response;
  response.status = status;
  response.headers = std::move(headers);
  if (context_.limits.error_body) {
    response.body = context_.limits.error_body(status, message, path);
  } else {
    response.content_type = "text/plain; charset=utf-8";
    response.body = message + "\n";
  }
  send(std::move(response));
  read();
}

void HttpConnection::begin_reply() {
  phase_ = Phase::kReplying;
  arm({});
  parser_.reset();
  body_hold_.reset();
  reply_ = std::make_shared<HttpReplyState>();
  is_head_sent_ = is_chunked_ = is_complete_ = false;
}

void HttpConnection::send(HttpResponse response) {
  if (is_head_sent_) return;
  is_head_sent_ = is_complete_ = true;
  keeps_alive_ = keeps_alive_ && !context_.is_draining && !context_.is_refusing;
  outgoing_ += http_head({.status = response.status,
                          .content_type = response.content_type,
                          .headers = &response.headers,
                          .content_bytes = response.body.size(),
                          .keeps_alive = keeps_alive_,
                          .is_http_1_0 = is_http_1_0_});
  if (!is_head_request_) outgoing_ += response.body;
  flush();
}

void HttpConnection::start_reply(const HttpResponse& head) {
  if (is_head_sent_) return;
  is_head_sent_ = true;
  is_chunked_ = !is_http_1_0_;
  keeps_alive_ = keeps_alive_ && is_chunked_ && !context_.is_draining && !context_.is_refusing;
  outgoing_ += http_head({.status = head.status,
                          .content_type = head.content_type,
                          .headers = &head.headers,
                          .is_chunked = is_chunked_,
                          .keeps_alive = keeps_alive_,
                          .is_http_1_0 = is_http_1_0_});
  flush();
}

void HttpConnection::write(std::string_view piece, std::function<void()> on_taken) {
  LOCKSTEP_CHECK(is_head_sent_);
  outgoing_piece_bytes_ += piece.size();
  if (is_complete_) return;
  if (on_taken) on_taken_ = std::move(on_taken);
  if (!is_head_request_) {
    if (is_chunked_) {
      append_chunk(outgoing_, piece);
    } else {
      outgoing_ += piece;
    }
  }
  flush();
}

void HttpConnection::finish() {
  LOCKSTEP_CHECK(is_head_sent_);
  if (std::exchange(is_complete_, true)) return;
  if (is_chunked_ && !is_head_request_) outgoing_ += kLastChunk;
  flush();
}

void HttpConnection::abandon() {
  if (is_complete_) return;
  if (is_head_sent_) return close();  // the client sees a body without its end
  keeps_alive_ = false;
  HttpResponse response{.status = 500};
  if (context_.limits.error_body) {
    response.body =
        context_.limits.error_body(500, "the request was dropped without an answer", "");
  }
  send(std::move(response));
}

void HttpConnection::set_disconnect(std::function<void()> callback) {
  if (!is_complete_) on_disconnect_ = std::move(callback);
}

void HttpConnection::flush() {
  if (is_sending_) return;
  if (outgoing_.empty()) {
    if (const std::function<void()> taken = std::exchange(on_taken_, nullptr)) taken();
    if (phase_ == Phase::kReplying && is_complete_) on_reply_sent();
    return;
  }
  sending_.clear();
  sending_.swap(outgoing_);
  sending_piece_bytes_ = std::exchange(outgoing_piece_bytes_, 0);
  sent_bytes_ = 0;
  is_sending_ = true;
  send_some();
}

void HttpConnection::send_some() {
  // While a body is read its own deadline holds; "100 Continue" is the only thing sent then.
  if (phase_ == Phase::kReplying) arm(context_.limits.body_timeout);
  socket_.async_write_some(
      boost::asio::buffer(sending_.data() + sent_bytes_, sending_.size() - sent_bytes_),
      [self = shared_from_this()](const error_code& error, size_t count) {
        if (self->is_closed_) return;
        if (error) return self->close();
        self->sent_bytes_ += count;
        if (self->sent_bytes_ < self->sending_.size()) return self->send_some();
        self->is_sending_ = false;
        if (self->phase_ == Phase::kReplying) {
          self->arm({});
          self->reply_->unsent_bytes.fetch_sub(self->sending_piece_bytes_);
        }
        self->flush();
      });
}

void HttpConnection::on_reply_sent() {
  reply_->is_open.store(false, std::memory_order_relaxed);
  reply_.reset();
  on_disconnect_ = nullptr;
  if (!keeps_alive_ || context_.is_draining || context_.is_refusing) {
    linger();
    return context_.on_answered();
  }
  phase_ = Phase::kIdle;
  arm(context_.limits.header_timeout * kIdleFactor);
  consume();
}

void HttpConnection::linger() {
  if (has_client_ended_) return close();
  phase_ = Phase::kLingering;
  unparsed_.clear();
  error_code error;
  socket_.shutdown(boost::asio::ip::tcp::socket::shutdown_send, error);
  if (error) return close();
  arm(kLingerTimeout);
  read();
}

// One deadline at a time; zero disarms.
void HttpConnection::arm(std::chrono::milliseconds timeout) {
  const uint64_t round = ++timer_round_;
  if (timeout.count() == 0) {
    timer_.cancel();
    return;
  }
  timer_.expires_after(timeout);
  timer_.async_wait([self = shared_from_this(), round](const error_code& error) {
    if (!error && !self->is_closed_ && round == self->timer_round_) self->on_timeout();
  });
}

void HttpConnection::on_timeout() {
  if (phase_ == Phase::kHeader) return fail(408, "the request header took too long to arrive");
  if (phase_ == Phase::kBody) return fail(408, "the request body took too long to arrive");
  close();
}

}  // namespace lockstep
