#include "net/frames/frame_server.h"

#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <map>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/threads/guarded.h"
#include "net/acceptors.h"
#include "net/caller_network.h"
#include "net/event_loop_impl.h"
#include "net/frames/frame_connection_socket.h"

namespace lockstep {
namespace {

using boost::system::error_code;
using tcp = boost::asio::ip::tcp;

}  // namespace

struct FrameServer::Impl : std::enable_shared_from_this<Impl> {
  Impl(boost::asio::io_context& loop, TlsIdentity own, const Options& chosen, OnConnection handler)
      : context(loop),
        identity(std::move(own)),
        options(chosen),
        on_connection(std::move(handler)),
        gate(chosen.calls) {}

  void accept(size_t index);
  void try_accept(tcp::socket socket);
  void on_accept(tcp::socket socket);
  void close();

  boost::asio::io_context& context;
  TlsIdentity identity;
  Options options;
  OnConnection on_connection;
  CallerGate gate;
  std::vector<tcp::acceptor> acceptors;
  std::map<uint64_t, std::weak_ptr<FrameConnection::Socket>> strangers;
  uint64_t calls = 0;
  Counts counts;
  bool is_closed = false;
};

void FrameServer::Impl::accept(size_t index) {
  acceptors[index].async_accept(
      [self = shared_from_this(), index](const error_code& error, tcp::socket socket) {
        if (self->is_closed) return;
        if (!error) {
          self->try_accept(std::move(socket));
        } else if (error != boost::asio::error::connection_aborted) {
          log_warn("net: a connection could not be accepted: {}", error.message());
          auto timer = std::make_shared<boost::asio::steady_timer>(self->context, kAcceptRetry);
          timer->async_wait([self, timer, index](const error_code&) {
            if (!self->is_closed) self->accept(index);
          });
          return;
        }
        self->accept(index);
      });
}

void FrameServer::Impl::try_accept(tcp::socket socket) {
  const Status done = guarded([&] { on_accept(std::move(socket)); });
  // The next one may get the memory it needs.
  if (!done.ok()) log_error("net: a connection could not be served: {}", done.error().message);
}

void FrameServer::Impl::on_accept(tcp::socket socket) {
  error_code error;
  const auto endpoint = socket.remote_endpoint(error);
  if (error) return;
  const std::string address = caller_network(endpoint.address().to_string());
  if (strangers.size() >= options.strangers_max || !gate.admit(address, CallerGate::Clock::now())) {
    ++counts.refused;
    return;  // closes the socket
  }
  const uint64_t number = ++calls;
  auto connection =
      std::make_shared<FrameConnection::Socket>(identity, std::move(socket), options.limits);
  strangers.emplace(number, connection);
  connection->set_settled([weak = weak_from_this(), number, address](bool is_trusted) {
    const auto self = weak.lock();
    if (!self) return;
    self->strangers.erase(number);
    if (is_trusted) self->gate.give_back(address, CallerGate::Clock::now());
  });
  connection->start(false, options.limits.handshake_timeout,
                    [weak = weak_from_this()](Result<FrameConnection> ready) {
                      const auto self = weak.lock();
                      if (!self || self->is_closed) return;
                      if (ready.ok()) {
                        self->on_connection(std::move(ready.value()));
                      } else {
                        ++self->counts.failed;
                      }
                    });
}

void FrameServer::Impl::close() {
  is_closed = true;
  error_code ignored;
  for (tcp::acceptor& acceptor : acceptors) acceptor.close(ignored);
  for (const auto& [number, weak] : std::exchange(strangers, {})) {
    if (const auto stranger = weak.lock()) stranger->close();
  }
}

Result<std::unique_ptr<FrameServer>> FrameServer::listen(EventLoop& loop,
                                                         const TlsIdentity& identity,
                                                         const Options& options,
                                                         OnConnection on_connection) {
  boost::asio::io_context& context = loop.impl().context;
  auto impl = std::make_shared<Impl>(context, identity, options, std::move(on_connection));
  impl->acceptors = TRY(listen_on(context, options.host, options.port));
  for (size_t i = 0; i < impl->acceptors.size(); ++i) impl->accept(i);
  return std::unique_ptr<FrameServer>(new FrameServer(std::move(impl)));
}

FrameServer::~FrameServer() {
  impl_->close();
}

uint16_t FrameServer::port() const {
  error_code ignored;
  return impl_->acceptors.front().local_endpoint(ignored).port();
}

FrameServer::Counts FrameServer::counts() const {
  return impl_->counts;
}

}  // namespace lockstep
