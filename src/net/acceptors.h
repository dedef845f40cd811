// The listening sockets of a server: one port on every address of a host name. Internal to net/.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace lockstep {

// How long a server waits after the process ran out of descriptors.
inline constexpr std::chrono::milliseconds kAcceptRetry{100};
inline constexpr std::string_view kEveryAddress = "*";  // of this machine, IPv4 and IPv6

// "localhost" is 127.0.0.1 and ::1, if they exist; port 0 picks one that is free on all. The error
// tells users what they can do about it.
Result<std::vector<boost::asio::ip::tcp::acceptor>> listen_on(boost::asio::io_context& context,
                                                              const std::string& host,
                                                              uint16_t port);

}  // namespace lockstep
