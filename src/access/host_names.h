// Checks of a request's Host, for servers without keys. Any web site can make a browser call this
// machine under the site's own name, by letting that name resolve to this machine (DNS rebinding);
// it cannot do so under an address or under a name of this machine. Used by AccessControl; pure
// except own_host_names().
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace lockstep {

// A name that only this machine can use for itself: "localhost:8600", "127.0.0.1", "[::1]:8600".
bool is_loopback_authority(std::string_view authority);
// An address to listen on that no program can open: "*", "0.0.0.0", "::".
bool is_every_address(std::string_view host);
// The host by which this machine opens a server that listens on `host`: "localhost" for every
// address, else `host`.
std::string host_to_open(const std::string& host);

// An IP address, localhost or a name of the local network (*.local), with or without a port.
bool is_address_authority(std::string_view authority);

// One of `names`, which are in lower case, with or without a port.
bool is_named_authority(std::string_view authority, const std::vector<std::string>& names);

// From the host's name and the text of resolv.conf: the name, its part before the first dot, and
// that part with .local and with each search domain. Lower case.
std::vector<std::string> host_names_of(std::string_view host_name, std::string_view resolv_conf);
// The same for this machine, now.
std::vector<std::string> own_host_names();

// A DNS name in lower case; kInvalidArgument for a text with a port or a scheme, or a pattern.
Result<std::string> parse_host_name(std::string_view text);

}  // namespace lockstep
