#include "node/fetch/node_pieces.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <thread>
#include <utility>

#include "base/log.h"
#include "hub/files/piece_plan.h"

namespace lockstep {
namespace {

// How long to wait for a node that is about to fetch to decide.
constexpr int kClaimLooks = 200;
constexpr std::chrono::milliseconds kClaimPause{5};

}  // namespace

NodePieces::~NodePieces() {
  for (auto& [node, stream] : streams_) {
    if (stream) options_.streams.give(node, std::move(stream));
  }
}

std::vector<int> NodePieces::alive() {
  if (fetch_->begin_refresh()) {
    refresh();
    fetch_->end_refresh();
  }
  return fetch_->holders();
}

bool NodePieces::refresh() {
  bool is_one_reading = false;
  for (const NodeId& node : fetch_->due(options_.network.connected())) {
    const FetchStatus own = fetch_->own_status();
    const auto reply = ask(node,
                           {.question = PieceQuestion::kStatus,
                            .commit = own.commit,
                            .file_hash = {},
                            .wants = own.wants,
                            .uses_hub = own.uses_hub},
                           kPieceBodyBytesMax);
    if (!reply.ok()) continue;  // already noted
    is_one_reading = is_one_reading || reply.value().answer.outcome == PieceOutcome::kLater;
    const auto status = decode_fetch_status(reply.value().body);
    fetch_->note(node, status.ok() ? status.value() : FetchStatus{});
  }
  return is_one_reading;
}

Result<ModelFiles> NodePieces::list(const NodeId& node) {
  const auto reply =
      TRY(ask(node, {.question = PieceQuestion::kList, .file_hash = {}}, kPieceBodyBytesMax));
  if (reply.answer.outcome == PieceOutcome::kYes) return parse_model_files(reply.body);
  return Error{ErrorCode::kNotFound, fmt::format("node {} does not have {}",
                                                 options_.network.name_of(node), fetch_->model())};
}

std::map<NodeId, PieceHoldings> NodePieces::holdings() {
  std::map<NodeId, PieceHoldings> all;
  for (const NodeId& node : fetch_->due(options_.network.connected())) {
    const auto reply = ask(
        node, {.question = PieceQuestion::kHoldings, .commit = fetch_->commit(), .file_hash = {}},
        kPieceBodyBytesMax);
    if (!reply.ok() || reply.value().answer.outcome != PieceOutcome::kYes) continue;
    auto holdings = decode_piece_holdings(reply.value().body);
    if (holdings.ok()) all[node] = std::move(holdings.value());
  }
  return all;
}

std::vector<Digest> NodePieces::seal(const HubFile& file) {
  const size_t count = PieceCut{file.size, options_.piece_bytes}.count();
  for (const NodeId& node : fetch_->due(options_.network.connected())) {
    const auto reply =
        ask(node,
            {.question = PieceQuestion::kSeal, .commit = fetch_->commit(), .file_hash = file.hash},
            kPieceBodyBytesMax);
    if (!reply.ok() || reply.value().answer.outcome != PieceOutcome::kYes) continue;
    auto digests = decode_seal(reply.value().body);
    if (digests.ok() && digests.value().size() == count) return std::move(digests.value());
  }
  return {};
}

Result<PieceStream::Reply> NodePieces::ask(const NodeId& node, PieceAsk ask,
                                           size_t body_bytes_max) {
  auto& stream = streams_[node];
  if (!stream || stream->has_failed()) stream = options_.streams.take(node);
  if (!stream) {
    auto opened = PieceStream::open(options_.loop, options_.network, node, options_.times,
                                    options_.cancelled);
    if (!opened.ok()) {
      note_failure(node, opened.error());
      return opened.error();
    }
    stream = std::move(opened.value());
  }
  ask.model = fetch_->model();
  ask.piece_bytes = options_.piece_bytes;
  auto reply = stream->ask(ask, body_bytes_max, options_.cancelled);
  if (!reply.ok()) {
    stream.reset();
    note_failure(node, reply.error());
  }
  return reply;
}

void NodePieces::note_failure(const NodeId& node, const Error& error) {
  const bool is_first = fetch_->note_failure(node);
  if (!is_first || error.code == ErrorCode::kCancelled) return;
  log_info("node: node {} cannot be asked for pieces of {} for now: {}",
           options_.network.name_of(node), fetch_->model(), error.message);
}

Result<PieceStream::Reply> NodePieces::ask_piece(int machine, PieceQuestion question,
                                                 const HubFile& file, uint32_t piece,
                                                 size_t body_bytes_max) {
  const auto node = fetch_->node_of(machine);
  if (!node) return Error{ErrorCode::kPeerLost, "that node is not connected"};
  return ask(
      *node,
      {.question = question, .commit = fetch_->commit(), .file_hash = file.hash, .piece = piece},
      body_bytes_max);
}

Result<bool> NodePieces::fetch(int machine, const HubFile& file, uint32_t piece,
                               std::span<std::byte> bytes, Digest& digest) {
  const auto start = std::chrono::steady_clock::now();
  const auto reply = TRY(ask_piece(machine, PieceQuestion::kPiece, file, piece, bytes.size()));
  if (reply.answer.outcome != PieceOutcome::kYes || reply.body.size() != bytes.size()) return false;
  std::memcpy(bytes.data(), reply.body.data(), bytes.size());
  digest = reply.answer.digest;
  fetch_->from_nodes.fetch_add(bytes.size(), std::memory_order_relaxed);
  fetch_->note_rate(machine, bytes.size(), std::chrono::steady_clock::now() - start);
  return true;
}

Result<std::optional<Digest>> NodePieces::digest(int machine, const HubFile& file, uint32_t piece) {
  const auto reply = TRY(ask_piece(machine, PieceQuestion::kDigest, file, piece, 0));
  if (reply.answer.outcome != PieceOutcome::kYes) return std::optional<Digest>();
  return std::optional(reply.answer.digest);
}

// A node announces a fetch before it asks the others about theirs: of two, one sees the other, so a
// piece is fetched once even if neither knows the other's plans. A node that may return in a
// moment, or has not reported yet, may have the piece.
bool NodePieces::claim(const HubFile& file, uint32_t piece) {
  if (options_.network.is_one_expected() || fetch_->is_one_new(options_.network.connected())) {
    return false;
  }
  fetch_->set_state(file, piece, PieceState::kClaimed);
  for (const int machine : fetch_->fetchers()) {
    if (machine == machine_of(fetch_->self()) || may_go_ahead_of(machine, file, piece)) continue;
    fetch_->set_state(file, piece, PieceState::kIdle);
    return false;
  }
  fetch_->set_state(file, piece, PieceState::kFetching);
  return true;
}

bool NodePieces::may_go_ahead_of(int machine, const HubFile& file, uint32_t piece) {
  const std::array<int, 2> both{machine_of(fetch_->self()), machine};
  for (int look = 0; look < kClaimLooks; ++look) {
    const auto reply = ask_piece(machine, PieceQuestion::kState, file, piece, 0);
    if (!reply.ok()) return true;  // it is gone, or as good as gone
    switch (reply.value().answer.state) {
      case PieceState::kIdle:
        return true;
      case PieceState::kFetching:
        return false;
      case PieceState::kClaimed:
        if (fetcher_of(file.hash, piece, both) == machine) return false;
        std::this_thread::sleep_for(kClaimPause);  // it yields, or has not seen our claim
    }
  }
  return true;
}

void NodePieces::release(const HubFile& file, uint32_t piece, bool has_come) {
  // A received piece stays claimed: it is in the store in a moment.
  if (!has_come) fetch_->set_state(file, piece, PieceState::kIdle);
}

}  // namespace lockstep
