#include "net/http_server.h"

#include <algorithm>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <exception>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/log.h"
#include "net/acceptors.h"
#include "net/http_connection.h"
#include "net/http_loop.h"
#include "net/http_reply.h"

namespace lockstep {
namespace {

using boost::system::error_code;
using tcp = boost::asio::ip::tcp;

// Clients above connections_max that are being told so; beyond these they are just closed.
constexpr size_t kRefusedMax = 64;
constexpr std::chrono::milliseconds kAcceptRetry{100};  // after the process ran out of descriptors

}  // namespace

struct HttpServer::Impl {
  Impl(Limits limits, Handler handler)
      : context(1),
        loop(std::make_shared<HttpLoop>(context)),
        drain_timer(context),
        refuse_timer(context) {
    shared.bodies = std::make_shared<BodyBudget>(limits.bodies_bytes_max, limits.body_bytes_free);
    shared.limits = std::move(limits);
    shared.handler = std::move(handler);
    shared.loop = loop;
    shared.on_close = [this](const std::shared_ptr<HttpConnection>& connection) {
      if (connections.erase(connection) > 0) forget_address(*connection);
      if (shared.is_draining && connections.empty()) drain_timer.cancel();
      stop_when_answered();
    };
    shared.on_answered = [this] { stop_when_answered(); };
  }
  ~Impl() { loop->close(); }

  void accept(tcp::acceptor& acceptor);
  void on_accept(tcp::socket socket);
  std::string reason_to_refuse(const HttpConnection& connection);
  void forget_address(const HttpConnection& connection);
  void retry_accept(tcp::acceptor& acceptor);
  void drain();
  void refuse_requests(std::chrono::milliseconds limit);
  void stop_when_answered();
  void close_all();

  boost::asio::io_context context;
  std::shared_ptr<HttpLoop> loop;
  HttpConnection::Context shared;
  std::vector<tcp::acceptor> acceptors;
  std::unordered_set<std::shared_ptr<HttpConnection>> connections;
  std::unordered_map<std::string, int> addresses;  // of other machines: how many connections
  boost::asio::steady_timer drain_timer;
  boost::asio::steady_timer refuse_timer;  // until close_all(), while requests are refused
  uint16_t port = 0;
};

void HttpServer::Impl::accept(tcp::acceptor& acceptor) {
  acceptor.async_accept([this, &acceptor](const error_code& error, tcp::socket socket) {
    if (shared.is_draining) return;
    if (!error) {
      on_accept(std::move(socket));
    } else if (error != boost::asio::error::connection_aborted) {
      log_warn("http: a connection could not be accepted: {}", error.message());
      return retry_accept(acceptor);
    }
    accept(acceptor);
  });
}

void HttpServer::Impl::on_accept(tcp::socket socket) {
  const size_t limit = static_cast<size_t>(shared.limits.connections_max);
  if (connections.size() >= limit + kRefusedMax) return;  // closes the socket
  auto connection = std::make_shared<HttpConnection>(shared, std::move(socket));
  connections.insert(connection);
  const std::string reason = reason_to_refuse(*connection);
  reason.empty() ? connection->start() : connection->refuse(503, reason);
}

// Counts the connection; empty: it may stay.
std::string HttpServer::Impl::reason_to_refuse(const HttpConnection& connection) {
  const Limits& limits = shared.limits;
  const int of_address = connection.is_from_this_machine() ? 0 : ++addresses[connection.address()];
  if (connections.size() > static_cast<size_t>(limits.connections_max)) {
    return "the server has its maximum of " + std::to_string(limits.connections_max) +
           " connections, try again later";
  }
  if (of_address <= limits.connections_of_address_max) return "";
  return "this address has its maximum of " + std::to_string(limits.connections_of_address_max) +
         " connections, try again later";
}

void HttpServer::Impl::forget_address(const HttpConnection& connection) {
  const auto found = addresses.find(connection.address());
  if (found != addresses.end() && --found->second == 0) addresses.erase(found);
}

void HttpServer::Impl::retry_accept(tcp::acceptor& acceptor) {
  auto timer = std::make_shared<boost::asio::steady_timer>(context, kAcceptRetry);
  timer->async_wait([this, timer, &acceptor](const error_code&) {
    if (!shared.is_draining) accept(acceptor);
  });
}

void HttpServer::Impl::drain() {
  if (std::exchange(shared.is_draining, true)) return;
  error_code ignored;
  for (tcp::acceptor& acceptor : acceptors) acceptor.close(ignored);
  const auto open = connections;  // closing changes the set
  for (const auto& connection : open) connection->drain();
  if (connections.empty()) return context.stop();
  drain_timer.expires_after(shared.limits.drain_timeout);
  drain_timer.async_wait([this](const error_code&) { close_all(); });
}

void HttpServer::Impl::refuse_requests(std::chrono::milliseconds limit) {
  if (shared.is_draining || std::exchange(shared.is_refusing, true)) return;
  refuse_timer.expires_after(limit);
  refuse_timer.async_wait([this](const error_code& error) {
    if (!error) close_all();
  });
  stop_when_answered();
}

void HttpServer::Impl::stop_when_answered() {
  if (!shared.is_refusing || shared.is_draining) return;
  const bool is_serving =
      std::any_of(connections.begin(), connections.end(),
                  [](const auto& connection) { return connection->is_serving(); });
  if (!is_serving) drain();
}

void HttpServer::Impl::close_all() {
  shared.is_draining = true;
  error_code ignored;
  for (tcp::acceptor& acceptor : acceptors) acceptor.close(ignored);
  const auto open = connections;  // closing changes the set
  for (const auto& connection : open) connection->close();
  context.stop();
}

Result<std::unique_ptr<HttpServer>> HttpServer::listen(const std::string& host, uint16_t port,
                                                       Limits limits, Handler handler) {
  auto impl = std::make_unique<Impl>(std::move(limits), std::move(handler));
  impl->acceptors = TRY(listen_on(impl->context, host, port));
  error_code error;
  impl->port = impl->acceptors.front().local_endpoint(error).port();
  if (error)
    return Error{ErrorCode::kInternal, "the listening port is unknown: " + error.message()};
  for (tcp::acceptor& acceptor : impl->acceptors) impl->accept(acceptor);
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)));
}

HttpServer::HttpServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
HttpServer::~HttpServer() = default;

uint16_t HttpServer::port() const {
  return impl_->port;
}

void HttpServer::run() {
  for (;;) {
    try {
      impl_->context.run();
      return;
    } catch (const std::exception& error) {  // a handler's; the connection concerned times out
      log_error("http: an exception reached the event loop: {}", error.what());
    }
  }
}

void HttpServer::stop() {
  impl_->loop->post([impl = impl_.get()] { impl->drain(); });
}

void HttpServer::drain(std::chrono::milliseconds limit) {
  impl_->loop->post([impl = impl_.get(), limit] { impl->refuse_requests(limit); });
}

void HttpServer::stop_now() {
  impl_->loop->post([impl = impl_.get()] { impl->close_all(); });
}

std::string_view HttpRequest::header(std::string_view name) const {
  for (const auto& [key, value] : headers) {
    if (key == name) return value;
  }
  return {};
}

}  // namespace lockstep
