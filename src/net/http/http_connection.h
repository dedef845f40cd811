// HttpConnection: one client's connection. Reads requests one by one, hands each to the handler,
// sends the answer, and watches for a disconnect meanwhile. Lives on the loop's thread; kept alive
// by its pending operations and the server.
//
//   kIdle -> kHeader -> kBody -> kReplying -> kIdle ...          kReplying -> kLingering -> closed
#pragma once

#include <array>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/threads/guarded.h"
#include "net/byte_budget.h"
#include "net/http/http_request_parser.h"
#include "net/http/http_server.h"
#include "net/http/http_server_reply.h"
#include "net/http_loop.h"

namespace lockstep {

class HttpConnection : public std::enable_shared_from_this<HttpConnection> {
 public:
  // Shared by all connections of a server; outlives them.
  struct Context {
    HttpServer::Limits limits;
    HttpServer::Handler handler;
    std::shared_ptr<HttpLoop> loop;
    std::shared_ptr<ByteBudget> bodies;
    std::shared_ptr<ByteBudget> answers;  // the parts that clients have not read
    std::function<void(const std::shared_ptr<HttpConnection>&)> on_close;
    std::function<void()> on_answered;  // a reply was sent
    bool is_refusing = false;           // further requests get 503
    bool is_draining = false;
  };

  HttpConnection(Context& context, boost::asio::ip::tcp::socket socket);

  void start();
  void start_for_control();  // instead of start(): accepts a single control request
  void refuse(int status, std::string_view message);  // instead of start()
  void drain();  // accepts no further request; finishes an answer in progress
  void close();  // at once
  const std::string& network() const { return network_; }
  bool is_from_this_machine() const { return is_from_this_machine_; }
  // No request is being answered.
  bool is_waiting() const { return phase_ != Phase::kReplying; }
  // A request is being answered and not refused.
  bool is_serving() const { return phase_ == Phase::kReplying && !is_refused_; }

  // For HttpReply, on the loop's thread.
  bool is_answering(const HttpReplyState* state) const {
    return !is_closed_ && state == reply_.get();
  }
  void send(HttpResponse response);
  void start_reply(const HttpResponse& head);
  void write(std::string_view piece, std::function<void()> on_taken);
  void finish();
  void abandon();  // the handler dropped the reply without an answer, or in the middle of one
  void add_disconnect(std::function<void()> callback);
  // An exception in `work` fails only this connection's request.
  template <class Work>
  void run(Work work) {
    if (const Status done = guarded(work); !done.ok()) on_exception(done.error());
  }

 private:
  enum class Phase { kIdle, kHeader, kBody, kReplying, kLingering };

  void read();
  void on_read(const boost::system::error_code& error, size_t count);
  void on_client_end();
  void consume();
  void begin_request();
  bool admit();
  void answer_at_once();
  bool has_room_for_body();
  void dispatch();
  std::shared_ptr<HttpReply::Impl> make_reply();
  void refuse_request();
  void fail(int status, std::string message,
            std::vector<std::pair<std::string, std::string>> headers = {});
  void begin_reply();
  void on_exception(const Error& error);
  bool hold_unsent(size_t more);
  void flush();
  void send_some();
  void on_sent();
  void on_reply_sent();
  void linger();
  void arm(std::chrono::milliseconds timeout);
  void on_timeout();

  Context& context_;
  boost::asio::ip::tcp::socket socket_;
  boost::asio::steady_timer timer_;
  uint64_t timer_round_ = 0;

  Phase phase_ = Phase::kIdle;
  std::string address_;
  std::string network_;
  bool is_from_this_machine_ = false;
  bool is_for_control_ = false;
  bool is_refused_ = false;
  bool is_closed_ = false;
  bool is_reading_ = false;
  bool has_client_ended_ = false;
  std::array<char, 16 << 10> chunk_;
  std::string unparsed_;  // at most kUnparsedBytesMax of further requests during a reply
  size_t lingered_bytes_ = 0;
  std::unique_ptr<HttpRequestParser> parser_;
  HttpAdmission admission_;              // of the request in parser_
  ByteHold::Caller caller_;              // of the request in parser_
  std::shared_ptr<ByteHold> body_hold_;  // of the body in parser_

  std::shared_ptr<HttpReplyState> reply_;  // of the answer in progress
  std::optional<ByteHold> answer_hold_;    // of outgoing_ and sending_
  std::vector<std::function<void()>> on_disconnect_;
  std::function<void()> on_taken_;  // of the last piece that has one
  bool keeps_alive_ = true;
  bool is_head_request_ = false;
  bool is_http_1_0_ = false;
  bool is_head_sent_ = false;
  bool is_chunked_ = false;
  bool is_complete_ = false;
  std::string outgoing_;
  size_t outgoing_piece_bytes_ = 0;  // of HttpReplyState::unsent_bytes, those in outgoing_
  std::string sending_;
  size_t sending_piece_bytes_ = 0;
  size_t sent_bytes_ = 0;  // of sending_
  bool is_sending_ = false;
};

}  // namespace lockstep
