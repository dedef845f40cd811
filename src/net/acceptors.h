// The sockets that a server listens on: one port on every address that a host name stands for. For
// the sources of net/ alone.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace lockstep {

inline constexpr std::string_view kEveryAddress = "*";  // of this machine, IPv4 and IPv6

// "localhost" is 127.0.0.1 and ::1 where they exist; port 0 picks one that is free on all. The
// error says what its user can do about it.
Result<std::vector<boost::asio::ip::tcp::acceptor>> listen_on(boost::asio::io_context& context,
                                                              const std::string& host,
                                                              uint16_t port);

}  // namespace lockstep
