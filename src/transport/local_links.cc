#include "transport/local_links.h"

#include <sys/socket.h>

#include <optional>
#include <utility>

#include "base/secrets.h"
#include "transport/railed_link.h"
#include "transport/rendezvous.h"
#include "transport/shm_link.h"
#include "transport/socket.h"
#include "transport/tcp_link.h"

namespace lockstep {
namespace {

using Pair = std::pair<std::unique_ptr<Link>, std::unique_ptr<Link>>;

Result<Pair> open_shm_pair(int low, int high, uint32_t epoch) {
  UniqueFd fd = TRY(ShmLink::create_region());
  Pair pair;
  pair.first = TRY(ShmLink::open(fd.get(), {.side = 0, .peer = high, .epoch = epoch}));
  pair.second = TRY(ShmLink::open(fd.get(), {.side = 1, .peer = low, .epoch = epoch}));
  return pair;
}

// Nobody else knows the port, so there is no handshake. Connecting to a listening socket of the
// same machine ends at once, also without anybody in accept().
Result<Pair> open_tcp_pair(int low, int high, uint32_t epoch, bool encrypts) {
  TcpListener listener = TRY(TcpListener::open("127.0.0.1"));
  auto address = TRY(resolve_numeric("127.0.0.1", listener.port()));
  UniqueFd calling(::socket(AF_INET, SOCK_STREAM, 0));
  if (::connect(calling.get(), address->ai_addr, address->ai_addrlen) != 0) {
    return socket_error(ErrorCode::kInternal, "connecting to this machine failed");
  }
  UniqueFd called(::accept(listener.fd(), nullptr, nullptr));
  if (!called.is_open()) return socket_error(ErrorCode::kInternal, "accepting failed");
  std::optional<LinkKeys> first, second;
  if (encrypts) {
    first.emplace();
    TRY(fill_random(first->send));
    TRY(fill_random(first->receive));
    second = LinkKeys{first->cipher, first->receive, first->send};
  }
  Pair pair;
  pair.first = TRY(TcpLink::open(std::move(called), {.peer = high, .epoch = epoch, .keys = first}));
  pair.second =
      TRY(TcpLink::open(std::move(calling), {.peer = low, .epoch = epoch, .keys = second}));
  return pair;
}

Result<Pair> open_pair(const LinkOptions& options, int low, int high, uint32_t epoch) {
  std::vector<std::unique_ptr<Link>> first, second;
  for (int rail = 0; rail < options.rails; ++rail) {
    Pair pair =
        TRY(options.kind == LinkKind::kShm ? open_shm_pair(low, high, epoch)
                                           : open_tcp_pair(low, high, epoch, options.encrypts));
    first.push_back(std::move(pair.first));
    second.push_back(std::move(pair.second));
  }
  return Pair{join_rails(std::move(first), options, high),
              join_rails(std::move(second), options, low)};
}

}  // namespace

Result<LocalLinks> open_local_links(const LinkOptions& options, int size, uint32_t epoch) {
  TRY(check_link_options(options));
  LocalLinks links(static_cast<size_t>(size));
  for (auto& row : links) row.resize(static_cast<size_t>(size));
  for (int low = 0; low < size; ++low) {
    for (int high = low + 1; high < size; ++high) {
      if (!is_joined(options.topology, size, low, high)) continue;
      Pair pair = TRY(open_pair(options, low, high, epoch));
      links[static_cast<size_t>(low)][static_cast<size_t>(high)] = std::move(pair.first);
      links[static_cast<size_t>(high)][static_cast<size_t>(low)] = std::move(pair.second);
    }
  }
  return links;
}

}  // namespace lockstep
