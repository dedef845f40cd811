#include "cli/client/cluster_entry.h"

#include <fmt/core.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <chrono>
#include <iostream>
#include <optional>
#include <thread>
#include <utility>

#include "base/version.h"
#include "cluster/join/join_cluster.h"
#include "cluster/peers/peers.h"

namespace lockstep {
namespace {

constexpr std::chrono::milliseconds kSearchTime{1'500};
constexpr int kPinAttempts = 3;
constexpr const char* kTokenCredential = "lockstep.token";
// For machines switched on together: the node to be asked may come up later.
constexpr std::chrono::seconds kTokenPatience{30};
constexpr std::chrono::seconds kTokenPause{1};

bool is_terminal() {
  return isatty(STDIN_FILENO) != 0 && isatty(STDERR_FILENO) != 0;
}

std::optional<std::string> read_typed() {
  std::string line;
  if (!std::getline(std::cin, line) || line.empty()) return std::nullopt;
  return line;
}

std::optional<std::string> ask_for_pin(const std::string& question) {
  fmt::print(stderr, "{}", question);
  return read_typed();
}

// A wrong PIN is used up; the node shows a new one for the next attempt.
Result<ClusterKey> join_with_attempts(EventLoop& loop, const Identity& identity,
                                      const JoinRequest& request) {
  for (int attempt = 1;; ++attempt) {
    auto key = join_cluster(loop, identity, request);
    const bool is_wrong = !key.ok() && key.error().code == ErrorCode::kInvalidArgument;
    if (!is_wrong || request.token || attempt == kPinAttempts) return key;
    fmt::print(stderr, "{}\n", key.error().message);
  }
}

Result<ClusterKey> join_one_of(EventLoop& loop, const Identity& identity, JoinRequest request,
                               const std::vector<NetAddress>& addresses) {
  const auto deadline = std::chrono::steady_clock::now() + kTokenPatience;
  while (true) {
    Error last{ErrorCode::kPeerLost, "no node was asked"};
    for (const NetAddress& address : addresses) {
      request.address = address;
      auto key = join_with_attempts(loop, identity, request);
      if (key.ok()) return key;
      last = key.error();
      const bool is_answer = last.code != ErrorCode::kPeerLost && last.code != ErrorCode::kTimeout;
      if (is_answer) return last;
    }
    if (!request.token || std::chrono::steady_clock::now() >= deadline) return last;
    std::this_thread::sleep_for(kTokenPause);
  }
}

Status join_by_address(EventLoop& loop, ClusterEntry& entry, const std::string& token) {
  JoinRequest request;
  request.version = kVersion;
  if (!token.empty()) request.token = TRY(parse_join_token(token));
  if (!request.token && !is_terminal()) {
    return Error{ErrorCode::kInvalidArgument,
                 "joining without a terminal needs a token: `lockstep cluster token` on a node of "
                 "the cluster prints one for --token-file (or LOCKSTEP_TOKEN)"};
  }
  request.ask_pin = [](const JoinRequest::Offer& offer) {
    return ask_for_pin(fmt::format(
        "{} (cluster {}) now shows a PIN. Type it here: ", offer.node_name, offer.cluster));
  };
  auto key = join_one_of(loop, entry.identity, request, entry.join);
  if (!key.ok()) {
    return Error{key.error().code, "this machine did not join: " + key.error().message};
  }
  return entry.identity.join_cluster(key.value());
}

// Joins the cluster heard if the user types its PIN; else the identity stays without a cluster.
Status join_by_beacon(EventLoop& loop, ClusterEntry& entry) {
  const auto seen = find_clusters(loop, entry.identity, {}, kSearchTime, true);
  if (!seen.ok() || seen.value().empty()) return Ok{};  // without multicast none can be found
  const ClusterSeen& first = seen.value().front();
  JoinRequest request;
  request.version = kVersion;
  request.address = first.address;
  request.ask_pin = [](const JoinRequest::Offer& offer) {
    return ask_for_pin(
        fmt::format("Cluster of {} found. PIN shown there (or Enter for a cluster of its own): ",
                    offer.node_name));
  };
  auto key = join_with_attempts(loop, entry.identity, request);
  if (key.ok()) return entry.identity.join_cluster(key.value());
  if (key.error().code == ErrorCode::kCancelled) return Ok{};
  return Error{key.error().code,
               fmt::format("this machine did not join the cluster of {}: {}; --no-beacon starts "
                           "one of its own",
                           first.name, key.error().message)};
}

}  // namespace

std::vector<CLI::Option*> add_cluster_flags(CLI::App& command, ClusterFlags& flags) {
  return {
      command
          .add_option("--join", flags.join,
                      "a node of the cluster to join, HOST or HOST:PORT (may be repeated)")
          ->allow_extra_args(false),
      command
          .add_option("--token", flags.token.value,
                      "with --join: a token from `lockstep cluster token`, instead of a PIN")
          ->envname("LOCKSTEP_TOKEN"),
      command
          .add_option("--token-file", flags.token.file,
                      "the file that holds it, which no other user may read")
          ->envname("LOCKSTEP_TOKEN_FILE"),
      command.add_option("--name", flags.name,
                         "this node's name, which is kept (default: the machine's)"),
      command
          .add_option("--control-port", flags.control_port,
                      "port for other nodes (default 8601; 0 picks one)")
          ->check(CLI::Range(0, 65535)),
      command.add_flag("--no-beacon", flags.no_beacon,
                       "do not look for nodes on the local network"),
      command
          .add_option("--memory", flags.memory_gib,
                      "GiB that models may use here (default: the free memory minus an eighth, at "
                      "least 0.5, or a quarter on a small machine)")
          ->check(CLI::PositiveNumber),
      command.add_flag("--spare", flags.spare, "use this node only when the others are not enough"),
      command
          .add_option("--data-network", flags.data_network,
                      "network for ranks of different machines, such as 10.9.0.0/24; several with "
                      "commas, or repeated (default: the one the nodes use)")
          ->allow_extra_args(false),
      command
          .add_option("--keep", flags.keep,
                      "what to keep on this disk of the models that run here: all, or shares (what "
                      "its ranks read, plus copies of other shares, so that everything is on two "
                      "disks; default all)")
          ->check(CLI::IsMember({"all", "shares"})),
  };
}

Result<ClusterEntry> enter_cluster(const ClusterFlags& flags) {
  ClusterEntry entry{TRY(Identity::open(TRY(Identity::default_folder()), flags.name))};
  for (const std::string& text : flags.join) {
    entry.join.push_back(TRY(parse_net_address(text, Peers::kControlPort)));
  }
  if (entry.identity.cluster()) return entry;
  const std::string token = TRY(read_secret(flags.token, kTokenCredential));
  if (!token.empty() && entry.join.empty()) {
    return Error{ErrorCode::kInvalidArgument, "a token needs --join HOST, the node to ask"};
  }
  const std::unique_ptr<EventLoop> loop = EventLoop::start();
  if (!entry.join.empty()) {
    TRY(join_by_address(*loop, entry, token));
  } else if (!flags.no_beacon && is_terminal()) {
    TRY(join_by_beacon(*loop, entry));
  }
  if (!entry.identity.cluster()) {
    TRY(entry.identity.found_cluster());
    entry.has_founded = true;
  }
  return entry;
}

}  // namespace lockstep
