#include "net/acceptors.h"

#include <boost/asio/ip/v6_only.hpp>
#include <optional>
#include <utility>

namespace lockstep {
namespace {

using boost::system::error_code;
using tcp = boost::asio::ip::tcp;

constexpr int kBindAttempts = 16;  // to find one port that is free on all addresses

Error bind_error(const tcp::endpoint& endpoint, const error_code& error) {
  const std::string where =
      "port " + std::to_string(endpoint.port()) + " on " + endpoint.address().to_string();
  if (error == boost::asio::error::address_in_use) {
    return {ErrorCode::kExhausted,
            where + " is already in use: stop the program that holds it, or choose another port"};
  }
  if (error == boost::asio::error::access_denied) {
    return {ErrorCode::kInvalidArgument,
            where + " may not be used by this user: choose a port of 1024 or above"};
  }
  return {ErrorCode::kInvalidArgument, where + " cannot be bound: " + error.message()};
}

Result<std::vector<tcp::endpoint>> resolve_host(boost::asio::io_context& context,
                                                const std::string& host, uint16_t port) {
  using boost::asio::ip::address_v4;
  using boost::asio::ip::address_v6;
  if (host == "localhost") {
    return std::vector<tcp::endpoint>{{address_v4::loopback(), port},
                                      {address_v6::loopback(), port}};
  }
  if (host == kEveryAddress) {
    return std::vector<tcp::endpoint>{{address_v4::any(), port}, {address_v6::any(), port}};
  }
  error_code error;
  tcp::resolver resolver(context);
  const auto results =
      resolver.resolve(host, std::to_string(port), tcp::resolver::flags::passive, error);
  if (error || results.empty()) {
    return Error{ErrorCode::kInvalidArgument,
                 "the address \"" + host + "\" to listen on is unknown: " + error.message()};
  }
  std::vector<tcp::endpoint> endpoints;
  for (const auto& entry : results) endpoints.push_back(entry.endpoint());
  return endpoints;
}

Result<tcp::acceptor> bind(boost::asio::io_context& context, const tcp::endpoint& endpoint) {
  error_code error;
  tcp::acceptor acceptor(context);
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error && endpoint.address().is_v6()) {
    acceptor.set_option(boost::asio::ip::v6_only(true), error);
  }
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(boost::asio::socket_base::max_listen_connections, error);
  if (error) return bind_error(endpoint, error);
  return acceptor;
}

// Binds all endpoints to one port; skips an address that this machine lacks if another one exists.
Result<std::vector<tcp::acceptor>> bind_all(boost::asio::io_context& context,
                                            std::vector<tcp::endpoint> endpoints) {
  std::vector<tcp::acceptor> acceptors;
  std::optional<Error> missing;
  for (tcp::endpoint& endpoint : endpoints) {
    if (endpoint.port() == 0 && !acceptors.empty()) {
      error_code ignored;
      endpoint.port(acceptors.front().local_endpoint(ignored).port());
    }
    auto acceptor = bind(context, endpoint);
    if (acceptor.ok()) {
      acceptors.push_back(std::move(acceptor.value()));
    } else if (acceptor.error().code == ErrorCode::kExhausted) {
      return acceptor.error();
    } else {
      missing = acceptor.error();
    }
  }
  if (acceptors.empty() && missing) return *missing;
  return acceptors;
}

}  // namespace

Result<std::vector<tcp::acceptor>> listen_on(boost::asio::io_context& context,
                                             const std::string& host, uint16_t port) {
  const std::vector<tcp::endpoint> endpoints = TRY(resolve_host(context, host, port));
  for (int attempt = 1;; ++attempt) {
    auto acceptors = bind_all(context, endpoints);
    if (acceptors.ok() || port != 0 || attempt == kBindAttempts) return acceptors;
  }
}

}  // namespace lockstep
