#include "net/http/http_connection.h"

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <utility>

#include "base/check.h"
#include "base/log.h"
#include "net/caller_network.h"
#include "net/http/http_head.h"

namespace lockstep {
namespace {

using boost::system::error_code;

// Pipelined requests that may wait during a reply. Beyond this the socket is not read, and a
// disconnect is only noticed by the next write.
constexpr size_t kUnparsedBytesMax = 64 << 10;
// How long the client has to read the last answer before the connection is closed: closing with
// unread input would reset it and could destroy that answer.
constexpr std::chrono::milliseconds kLingerTimeout{2'000};
constexpr size_t kLingerBytesMax = 32 << 20;
constexpr int kIdleFactor = 6;  // Limits::header_timeout
// Larger buffers are freed once their answer has been sent, and larger answers are not copied after
// their head.
constexpr size_t kKeptBytesMax = 64 << 10;

void release(std::string& buffer) {
  buffer.clear();
  if (buffer.capacity() > kKeptBytesMax) buffer.shrink_to_fit();
}

// Answers with these statuses have neither a body nor its length (RFC 9110 15).
bool has_no_body(int status) {
  return status == 204 || status == 304;
}

// IPv4-mapped IPv6 as IPv4; unspecified if the client has disconnected.
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
  network_ = caller_network(address_);
  is_from_this_machine_ = caller.is_loopback();
}

void HttpConnection::start() {
  error_code ignored;  // without TCP_NODELAY it is slower, not wrong
  socket_.set_option(boost::asio::ip::tcp::no_delay(true), ignored);
  arm(context_.limits.header_timeout * kIdleFactor);
  read();
}

void HttpConnection::start_for_control() {
  is_for_control_ = true;
  start();
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
  const auto callbacks = std::exchange(on_disconnect_, {});
  on_taken_ = nullptr;
  answer_hold_.reset();
  body_hold_.reset();
  admission_ = {};
  for (const std::function<void()>& callback : callbacks) {
    if (is_complete_) break;
    const Status told = guarded(callback);
    if (!told.ok()) {
      log_error("http: reporting that a client has left failed: {}", told.error().message);
    }
  }
  context_.on_close(self);
}

void HttpConnection::read() {
  if (is_closed_ || is_reading_ || has_client_ended_) return;
  if (phase_ == Phase::kReplying && unparsed_.size() >= kUnparsedBytesMax) return;
  is_reading_ = true;
  socket_.async_read_some(boost::asio::buffer(chunk_),
                          [self = shared_from_this()](const error_code& error, size_t count) {
                            self->is_reading_ = false;
                            if (self->is_closed_) return;
                            self->run([&] { self->on_read(error, count); });
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

// A client that closed its sending side counts as disconnected (as in Go's net/http); an answer
// that is already complete is still sent.
void HttpConnection::on_client_end() {
  has_client_ended_ = true;
  if (phase_ != Phase::kReplying || !is_complete_) close();
}

void HttpConnection::consume() {
  if (phase_ == Phase::kIdle) {
    unparsed_.erase(0, unparsed_.find_first_not_of("\r\n"));  // RFC 9112 2.2
    if (unparsed_.empty()) return has_client_ended_ ? close() : read();
    begin_request();
  }
  unparsed_.erase(0, parser_->feed(unparsed_));
  if (parser_->state() == HttpRequestParser::State::kHead) {
    if (!admit()) return;
    unparsed_.erase(0, parser_->feed(unparsed_));
  }
  if (!has_room_for_body()) return;
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
    case HttpRequestParser::State::kHead:
      break;
  }
  if (has_client_ended_) return close();
  read();
}

void HttpConnection::begin_request() {
  phase_ = Phase::kHeader;
  arm(context_.limits.header_timeout);
  const HttpServer::Limits& limits = context_.limits;
  parser_ = std::make_unique<HttpRequestParser>(
      HttpHeadLimits{.bytes_max = limits.header_bytes_max, .fields_max = limits.header_lines_max});
  admission_ = {};
  caller_ = {.id = network_id(network_)};
  is_head_request_ = is_http_1_0_ = false;
}

// Whether to continue with the request; else it has been answered. None of its body has been read.
bool HttpConnection::admit() {
  is_head_request_ = parser_->is_head();
  is_http_1_0_ = parser_->is_http_1_0();
  keeps_alive_ = parser_->keeps_alive() && !context_.is_draining && !is_for_control_;
  const HttpServer::Limits& limits = context_.limits;
  if (context_.is_refusing) {
    refuse_request();
    return false;
  }
  HttpRequest& head = parser_->head();
  head.address = address_;
  head.network = network_;
  head.is_from_this_machine = is_from_this_machine_;
  admission_ = limits.admit ? limits.admit(head) : HttpAdmission{.is_preferred = true};
  if (admission_.terms.caller != 0) caller_.id = admission_.terms.caller;
  caller_.is_preferred = admission_.is_preferred;
  if (is_for_control_ && !admission_.is_control) {
    fail(503,
         "the server has its maximum of " + std::to_string(limits.connections_max) +
             " connections, try again later",
         {{"Retry-After", "1"}});
    return false;
  }
  if (admission_.answer) {
    answer_at_once();
    return false;
  }
  body_hold_ = std::make_shared<ByteHold>(context_.bodies, caller_);
  parser_->accept(std::min(limits.body_bytes_max, admission_.body_bytes_max));
  return true;
}

// An announced body is not read, so the next request cannot be found either.
void HttpConnection::answer_at_once() {
  if (parser_->has_body()) {
    keeps_alive_ = false;
    unparsed_.clear();
  }
  HttpResponse response = std::move(*admission_.answer);
  const auto& headers = admission_.terms.headers;
  response.headers.insert(response.headers.end(), headers.begin(), headers.end());
  begin_reply();
  send(std::move(response));
  read();
}

bool HttpConnection::has_room_for_body() {
  const HttpRequestParser::State state = parser_->state();
  if (state != HttpRequestParser::State::kBody && state != HttpRequestParser::State::kDone) {
    return true;
  }
  const ByteHold::Room room = body_hold_->set(parser_->body_bytes());
  if (room == ByteHold::Room::kYes) return true;
  const ByteBudget::Limits& limits = context_.bodies->limits();
  const bool is_callers = room == ByteHold::Room::kCallerHasItsPart;
  fail(503,
       std::string("the bodies of all requests ") + (is_callers ? "of this client " : "") +
           "together have their maximum of " +
           std::to_string(is_callers ? limits.of_caller_max : limits.bytes_max) +
           " bytes, try again later",
       {{"Retry-After", "1"}});
  return false;
}

void HttpConnection::dispatch() {
  HttpRequest request = parser_->take();
  request.body_hold = std::move(body_hold_);
  begin_reply();
  const HttpReply reply(make_reply());
  const auto self = shared_from_this();
  const Status handled = guarded([&] { context_.handler(std::move(request), reply); });
  if (!handled.ok()) {
    log_error("http: a request could not be handled: {}", handled.error().message);
    abandon();
  }
  if (has_client_ended_) {
    // Posts run in order: an answer that the handler has already sent comes first.
    context_.loop->post([self, state = reply_] {
      if (self->is_answering(state.get()) && !self->is_complete_) self->close();
    });
  }
  read();
}

std::shared_ptr<HttpReply::Impl> HttpConnection::make_reply() {
  auto impl = std::make_shared<HttpReply::Impl>();
  impl->loop = context_.loop;
  impl->connection = weak_from_this();
  impl->state = reply_;
  impl->unsent_bytes_max = context_.limits.unsent_bytes_max;
  impl->terms = std::move(admission_.terms);
  return impl;
}

// An exception means out of memory or a bug of ours; either way only this request fails.
void HttpConnection::on_exception(const Error& error) {
  log_error("http: a request threw an exception: {}", error.message);
  const Status told = guarded([&] {
    if (is_closed_) return;
    if (phase_ == Phase::kReplying || phase_ == Phase::kLingering) return close();
    const bool is_memory = error.code == ErrorCode::kExhausted;
    fail(is_memory ? 503 : 500, is_memory ? "the server has no memory for this request now"
                                          : "the server could not read this request");
  });
  if (!told.ok()) close();
}

void HttpConnection::refuse_request() {
  is_refused_ = true;
  fail(503, "this server is about to stop and does not accept more requests",
       {{"Retry-After", "1"}});
}

// An error found by the server itself: the last answer on this connection. `message` is a copy
// because it may come from the parser, which begin_reply() ends.
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
  answer_hold_.emplace(context_.answers, caller_);
  reply_ = std::make_shared<HttpReplyState>();
  is_head_sent_ = is_chunked_ = is_complete_ = false;
}

void HttpConnection::send(HttpResponse response) {
  if (is_head_sent_) return;
  if (!is_head_request_ && !hold_unsent(response.body.size())) {
    response = {.status = 503, .headers = {{"Retry-After", "1"}}};
    if (context_.limits.error_body) {
      response.body = context_.limits.error_body(
          503, "the answers that clients have not read take too much memory, try again later", "");
    }
  }
  is_head_sent_ = is_complete_ = true;
  keeps_alive_ = keeps_alive_ && !context_.is_draining && !context_.is_refusing;
  outgoing_ += http_head({.status = response.status,
                          .content_type = response.content_type,
                          .headers = &response.headers,
                          .content_bytes = has_no_body(response.status)
                                               ? std::nullopt
                                               : std::optional<size_t>(response.body.size()),
                          .keeps_alive = keeps_alive_,
                          .is_http_1_0 = is_http_1_0_});
  if (is_head_request_ || has_no_body(response.status)) return flush();
  if (response.body.size() <= kKeptBytesMax || is_sending_) {
    outgoing_ += response.body;
    return flush();
  }
  flush();  // the head; the body follows without being copied
  outgoing_ = std::move(response.body);
}

void HttpConnection::start_reply(const HttpResponse& head) {
  if (is_head_sent_) return;
  is_head_sent_ = true;
  is_head_request_ = is_head_request_ || has_no_body(head.status);
  is_chunked_ = !is_http_1_0_ && !has_no_body(head.status);
  keeps_alive_ = keeps_alive_ && !is_http_1_0_ && !context_.is_draining && !context_.is_refusing;
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
    if (!hold_unsent(piece.size())) return close();
    if (is_chunked_) {
      append_chunk(outgoing_, piece);
    } else {
      outgoing_ += piece;
    }
  }
  flush();
}

// False if with `more` bytes all answers, or this caller's, would exceed their budget.
bool HttpConnection::hold_unsent(size_t more) {
  return answer_hold_->set(outgoing_.size() + sending_.size() + more) == ByteHold::Room::kYes;
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

void HttpConnection::add_disconnect(std::function<void()> callback) {
  if (!is_complete_) on_disconnect_.push_back(std::move(callback));
}

void HttpConnection::flush() {
  if (is_sending_) return;
  if (outgoing_.empty()) {
    if (const std::function<void()> taken = std::exchange(on_taken_, nullptr)) taken();
    if (phase_ == Phase::kReplying && is_complete_) on_reply_sent();
    return;
  }
  sending_.swap(outgoing_);
  release(outgoing_);
  sending_piece_bytes_ = std::exchange(outgoing_piece_bytes_, 0);
  sent_bytes_ = 0;
  is_sending_ = true;
  send_some();
}

void HttpConnection::send_some() {
  // A body being read has its own deadline; only "100 Continue" is sent during that.
  if (phase_ == Phase::kReplying) arm(context_.limits.body_timeout);
  socket_.async_write_some(
      boost::asio::buffer(sending_.data() + sent_bytes_, sending_.size() - sent_bytes_),
      [self = shared_from_this()](const error_code& error, size_t count) {
        if (self->is_closed_) return;
        if (error) return self->close();
        self->sent_bytes_ += count;
        if (self->sent_bytes_ < self->sending_.size()) return self->send_some();
        self->run([&] { self->on_sent(); });
      });
}

void HttpConnection::on_sent() {
  is_sending_ = false;
  release(sending_);
  if (phase_ == Phase::kReplying) {
    arm({});
    reply_->unsent_bytes.fetch_sub(sending_piece_bytes_);
    hold_unsent(0);
  }
  flush();
}

void HttpConnection::on_reply_sent() {
  reply_->is_open.store(false, std::memory_order_relaxed);
  reply_.reset();
  answer_hold_.reset();
  on_disconnect_.clear();
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
    if (error || self->is_closed_ || round != self->timer_round_) return;
    self->run([&] { self->on_timeout(); });
  });
}

void HttpConnection::on_timeout() {
  if (phase_ == Phase::kHeader) return fail(408, "the request header took too long to arrive");
  if (phase_ == Phase::kBody) return fail(408, "the request body took too long to arrive");
  close();
}

}  // namespace lockstep
