#include "net/frames/frame_call.h"

#include <algorithm>
#include <boost/asio/connect.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "net/event_loop_impl.h"
#include "net/frames/frame_connection_socket.h"

namespace lockstep {
namespace {

using boost::system::error_code;
using tcp = boost::asio::ip::tcp;
using Clock = std::chrono::steady_clock;

}  // namespace

struct FrameCall::Impl : std::enable_shared_from_this<Impl> {
  Impl(boost::asio::io_context& context, TlsIdentity own, NetAddress called,
       const FrameLimits& chosen, Ready handler)
      : identity(std::move(own)),
        address(std::move(called)),
        limits(chosen),
        ready(std::move(handler)),
        resolver(context),
        socket(context),
        timer(context),
        deadline(Clock::now() + chosen.connect_timeout) {}

  void begin();
  void connect(std::vector<tcp::endpoint> endpoints);
  void on_connect();
  void complete(Result<FrameConnection> result);
  void stop();
  Error unreachable(const std::string& why) const {
    return {ErrorCode::kPeerLost, address.text() + " was not reached: " + why};
  }

  TlsIdentity identity;
  NetAddress address;
  FrameLimits limits;
  Ready ready;
  tcp::resolver resolver;
  tcp::socket socket;
  boost::asio::steady_timer timer;
  Clock::time_point deadline;
  std::shared_ptr<FrameConnection::Socket> greeting;  // during the TLS handshake
};

FrameCall FrameCall::start(EventLoop& loop, const TlsIdentity& identity, const NetAddress& address,
                           const FrameLimits& limits, Ready ready) {
  boost::asio::io_context& context = loop.impl().context;
  auto impl = std::make_shared<Impl>(context, identity, address, limits, std::move(ready));
  boost::asio::post(context, [impl] {
    if (impl->ready) impl->begin();
  });
  return FrameCall(std::move(impl));
}

void FrameCall::Impl::begin() {
  timer.expires_at(deadline);
  timer.async_wait([self = shared_from_this()](const error_code& error) {
    if (!error && !self->greeting) self->complete(self->unreachable("no answer in time"));
  });
  error_code no_number;
  const auto numeric = boost::asio::ip::make_address(address.host, no_number);
  if (!no_number) return connect({tcp::endpoint(numeric, address.port)});
  resolver.async_resolve(
      address.host, std::to_string(address.port),
      [self = shared_from_this()](const error_code& error, const tcp::resolver::results_type& all) {
        if (!self->ready) return;
        if (error) return self->complete(self->unreachable(error.message()));
        std::vector<tcp::endpoint> endpoints;
        for (const auto& entry : all) endpoints.push_back(entry.endpoint());
        self->connect(std::move(endpoints));
      });
}

void FrameCall::Impl::connect(std::vector<tcp::endpoint> endpoints) {
  auto all = std::make_shared<std::vector<tcp::endpoint>>(std::move(endpoints));
  boost::asio::async_connect(
      socket, *all,
      [self = shared_from_this(), all](const error_code& error, const tcp::endpoint&) {
        if (!self->ready) return;
        if (error) return self->complete(self->unreachable(error.message()));
        self->on_connect();
      });
}

void FrameCall::Impl::on_connect() {
  using std::chrono::milliseconds;
  const auto left = std::chrono::duration_cast<milliseconds>(deadline - Clock::now());
  greeting = std::make_shared<FrameConnection::Socket>(identity, std::move(socket), limits);
  greeting->start(true, std::max(left, milliseconds(1)),
                  [self = shared_from_this()](Result<FrameConnection> result) {
                    if (result.ok()) return self->complete(std::move(result));
                    self->complete(self->unreachable(result.error().message));
                  });
}

void FrameCall::Impl::complete(Result<FrameConnection> result) {
  const auto called = std::exchange(ready, nullptr);
  if (result.ok()) greeting = nullptr;  // now owned by the receiver
  stop();
  if (called) called(std::move(result));
}

void FrameCall::Impl::stop() {
  ready = nullptr;
  error_code ignored;
  timer.cancel();
  resolver.cancel();
  socket.close(ignored);
  if (const auto open = std::exchange(greeting, nullptr)) open->close();
}

FrameCall& FrameCall::operator=(FrameCall&& other) noexcept {
  if (this != &other) {
    cancel();
    impl_ = std::move(other.impl_);
  }
  return *this;
}

void FrameCall::cancel() {
  if (const auto impl = std::exchange(impl_, nullptr)) impl->stop();
}

}  // namespace lockstep
