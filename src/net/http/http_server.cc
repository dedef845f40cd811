#include "net/http/http_server.h"

#include <algorithm>
#include <array>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <list>
#include <unordered_map>
#include <utility>

#include "base/log.h"
#include "base/text_hash.h"
#include "base/threads/guarded.h"
#include "net/acceptors.h"
#include "net/http/http_connection.h"
#include "net/http/http_fields.h"
#include "net/http/http_server_reply.h"
#include "net/http_loop.h"

namespace lockstep {
namespace {

using boost::system::error_code;
using tcp = boost::asio::ip::tcp;

// Clients above connections_max that get an error; further ones are just closed.
constexpr int kRefusedMax = 64;

// How a connection is counted.
enum Place { kOrdinary, kReserved, kRefused, kPlaceCount };

size_t percent(size_t bytes, int of_hundred) {
  return bytes / 100 * static_cast<size_t>(of_hundred) +
         bytes % 100 * static_cast<size_t>(of_hundred) / 100;
}

std::shared_ptr<ByteBudget> make_budget(const HttpServer::Limits& limits, size_t bytes_max,
                                        size_t free_bytes, size_t caller_min) {
  return std::make_shared<ByteBudget>(ByteBudget::Limits{
      .bytes_max = bytes_max,
      .free_bytes = free_bytes,
      .reserved_bytes = percent(bytes_max, limits.reserved_percent),
      .of_caller_max = std::max(percent(bytes_max, limits.of_caller_percent), caller_min)});
}

}  // namespace

struct HttpServer::Impl {
  Impl(Limits limits, Handler handler)
      : context(1),
        loop(std::make_shared<HttpLoop>(context)),
        drain_timer(context),
        refuse_timer(context) {
    shared.bodies =
        make_budget(limits, limits.bodies_bytes_max, limits.body_bytes_free, limits.body_bytes_max);
    shared.answers = make_budget(limits, limits.answers_bytes_max, limits.answer_bytes_free, 0);
    shared.limits = std::move(limits);
    shared.handler = std::move(handler);
    shared.loop = loop;
    shared.on_close = [this](const std::shared_ptr<HttpConnection>& connection) {
      forget(connection);
      if (shared.is_draining && connections.empty()) drain_timer.cancel();
      stop_when_answered();
    };
    shared.on_answered = [this] { stop_when_answered(); };
  }
  ~Impl() { loop->close(); }

  void accept(tcp::acceptor& acceptor);
  void on_accept(tcp::socket socket);
  Place place_for(const HttpConnection& connection, std::string& reason);
  bool make_room_for_control();
  void forget(const std::shared_ptr<HttpConnection>& connection);
  void close_acceptors();
  std::vector<std::shared_ptr<HttpConnection>> open_connections() const;
  void retry_accept(tcp::acceptor& acceptor);
  void drain();
  void refuse_requests(std::chrono::milliseconds limit);
  void stop_when_answered();
  void close_all();

  boost::asio::io_context context;
  std::shared_ptr<HttpLoop> loop;
  HttpConnection::Context shared;
  std::vector<tcp::acceptor> acceptors;
  std::unordered_map<std::shared_ptr<HttpConnection>, Place> connections;
  std::array<int, kPlaceCount> counts{};
  std::list<std::shared_ptr<HttpConnection>> reserved;      // the oldest first
  std::unordered_map<std::string, int, TextHash> networks;  // connections per other machine
  boost::asio::steady_timer drain_timer;
  boost::asio::steady_timer refuse_timer;  // runs close_all(), while requests are refused
  uint16_t port = 0;
};

void HttpServer::Impl::accept(tcp::acceptor& acceptor) {
  acceptor.async_accept([this, &acceptor](const error_code& error, tcp::socket socket) {
    if (shared.is_draining) return;
    if (!error) {
      const Status done = guarded([&] { on_accept(std::move(socket)); });
      // The next one may get the memory it needs.
      if (!done.ok()) log_error("http: a connection could not be served: {}", done.error().message);
    } else if (error != boost::asio::error::connection_aborted) {
      log_warn("http: a connection could not be accepted: {}", error.message());
      return retry_accept(acceptor);
    }
    accept(acceptor);
  });
}

void HttpServer::Impl::on_accept(tcp::socket socket) {
  auto connection = std::make_shared<HttpConnection>(shared, std::move(socket));
  std::string reason;
  const Place place = place_for(*connection, reason);
  if (place == kRefused && counts[kRefused] >= kRefusedMax) return;  // closes the socket
  connections.emplace(connection, place);
  ++counts[place];
  if (place == kOrdinary && !connection->is_from_this_machine()) ++networks[connection->network()];
  if (place == kReserved) reserved.push_back(connection);
  if (place == kOrdinary) return connection->start();
  if (place == kReserved) return connection->start_for_control();
  connection->refuse(503, reason);
}

// `reason`: why it is refused.
Place HttpServer::Impl::place_for(const HttpConnection& connection, std::string& reason) {
  const Limits& limits = shared.limits;
  const bool is_own = connection.is_from_this_machine();
  if (counts[kOrdinary] >= limits.connections_max) {
    if (is_own && make_room_for_control()) return kReserved;
    reason = "the server has its maximum of " + std::to_string(limits.connections_max) +
             " connections, try again later";
    return kRefused;
  }
  const auto found = networks.find(connection.network());
  if (is_own || found == networks.end() || found->second < limits.connections_of_address_max) {
    return kOrdinary;
  }
  reason = "this address has its maximum of " + std::to_string(limits.connections_of_address_max) +
           " connections, try again later";
  return kRefused;
}

// Closes the oldest connection without a request in progress.
bool HttpServer::Impl::make_room_for_control() {
  if (counts[kReserved] < shared.limits.connections_reserved) return true;
  const auto waiting = std::find_if(reserved.begin(), reserved.end(),
                                    [](const auto& one) { return one->is_waiting(); });
  if (waiting == reserved.end()) return false;
  const std::shared_ptr<HttpConnection> oldest = *waiting;  // closing removes it from the list
  oldest->close();
  return true;
}

void HttpServer::Impl::forget(const std::shared_ptr<HttpConnection>& connection) {
  const auto found = connections.find(connection);
  if (found == connections.end()) return;
  --counts[found->second];
  if (found->second == kReserved) reserved.remove(connection);
  const auto network = networks.find(connection->network());
  const bool is_counted = found->second == kOrdinary && network != networks.end();
  if (is_counted && --network->second == 0) networks.erase(network);
  connections.erase(found);
}

void HttpServer::Impl::close_acceptors() {
  error_code ignored;
  for (tcp::acceptor& acceptor : acceptors) acceptor.close(ignored);
}

// A copy: closing one changes the map.
std::vector<std::shared_ptr<HttpConnection>> HttpServer::Impl::open_connections() const {
  std::vector<std::shared_ptr<HttpConnection>> open;
  for (const auto& [connection, place] : connections) open.push_back(connection);
  return open;
}

void HttpServer::Impl::retry_accept(tcp::acceptor& acceptor) {
  auto timer = std::make_shared<boost::asio::steady_timer>(context, kAcceptRetry);
  timer->async_wait([this, timer, &acceptor](const error_code&) {
    if (!shared.is_draining) accept(acceptor);
  });
}

void HttpServer::Impl::drain() {
  if (std::exchange(shared.is_draining, true)) return;
  close_acceptors();
  for (const auto& connection : open_connections()) connection->drain();
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
  const bool is_serving = std::any_of(connections.begin(), connections.end(),
                                      [](const auto& one) { return one.first->is_serving(); });
  if (!is_serving) drain();
}

void HttpServer::Impl::close_all() {
  shared.is_draining = true;
  close_acceptors();
  for (const auto& connection : open_connections()) connection->close();
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
    const Status done = guarded([this] { impl_->context.run(); });
    if (done.ok()) return;
    // From a handler; its connection times out.
    log_error("http: an exception reached the event loop: {}", done.error().message);
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
  return find_field(headers, name);
}

}  // namespace lockstep
