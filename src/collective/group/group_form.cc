// Group::form: what the ranks agree on before their first exchange. Every rank sends its neighbours
// what it knows of all ranks, once per link of the longest path; after that all know the same.
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <string>
#include <utility>

#include "base/check.h"
#include "collective/group/group.h"
#include "collective/sums/peer_wait.h"
#include "transport/frame.h"

namespace lockstep {
namespace {

constexpr uint64_t kMagic = 0x31'4d52'4f46'534cull;  // "LSFORM1"
constexpr size_t kPieceAlignment = 64;

// One rank's entry in the table.
struct RankWord {
  uint64_t joined = 0;
  uint64_t piece_bytes = 0;  // 0: nothing is known yet
};

struct Table {
  uint64_t magic = kMagic;
  uint32_t size = 0;
  uint32_t choices = 0;  // what all must have been given alike: algorithm, wire, rows
  std::array<RankWord, LinkGraph::kRanksMax> ranks;

  size_t bytes() const { return offsetof(Table, ranks) + size * sizeof(RankWord); }
};

RankWord own_word(const GroupOptions& options) {
  RankWord word{.joined = 0, .piece_bytes = options.piece_bytes};
  for (size_t peer = 0; peer < options.links.size(); ++peer) {
    if (!options.links[peer]) continue;
    word.joined |= peer_bit(static_cast<int>(peer));
    word.piece_bytes = std::min<uint64_t>(word.piece_bytes, options.links[peer]->frame_bytes_max());
  }
  word.piece_bytes = word.piece_bytes / kPieceAlignment * kPieceAlignment;
  return word;
}

uint32_t choices_of(const GroupOptions& options) {
  const auto rows = static_cast<uint32_t>(options.wire_rows_min) & 0xffff;
  return rows << 16 | static_cast<uint32_t>(options.algorithm) << 8 |
         static_cast<uint32_t>(options.wire);
}

LinkGraph graph_of(const Table& table) {
  std::vector<uint64_t> joined;
  for (size_t rank = 0; rank < table.size; ++rank) joined.push_back(table.ranks[rank].joined);
  return LinkGraph(std::move(joined));
}

class Agreement {
 public:
  explicit Agreement(const GroupOptions& options) : options_(options) {
    table_.size = static_cast<uint32_t>(options.links.size());
    table_.choices = choices_of(options);
    table_.ranks[static_cast<size_t>(options.rank)] = own_word(options);
  }

  // The words of all reachable ranks.
  Result<Table> run() {
    for (int round = 0;; ++round) {
      if (knows_all() && round >= TRY(rounds_needed())) return table_;
      TRY(send());
      TRY(receive());
    }
  }

 private:
  PeerSet neighbours() const { return table_.ranks[static_cast<size_t>(options_.rank)].joined; }
  Link& link(int peer) { return *options_.links[static_cast<size_t>(peer)]; }

  // Every rank that is named as a neighbour is known.
  bool knows_all() const {
    PeerSet named = peer_bit(options_.rank), known = 0;
    for (size_t rank = 0; rank < table_.size; ++rank) {
      named |= table_.ranks[rank].joined;
      if (table_.ranks[rank].piece_bytes > 0) known |= peer_bit(static_cast<int>(rank));
    }
    return named == known;
  }

  // The same on every rank that gets this far.
  Result<int> rounds_needed() const {
    for (size_t a = 0; a < table_.size; ++a) {
      for (size_t b = 0; b < table_.size; ++b) {
        const bool there = (table_.ranks[a].joined >> b & 1) != 0;
        const bool back = (table_.ranks[b].joined >> a & 1) != 0;
        if (there && (!back || a == b)) {
          return Error{ErrorCode::kCorrupt, "rank " + std::to_string(a) + " has a link to rank " +
                                                std::to_string(b) + ", which has none to it"};
        }
      }
    }
    return graph_of(table_).diameter();
  }

  Status send() {
    PeerWait wait(options_);
    for (PeerSet left = neighbours(); left != 0; left &= left - 1) {
      const int peer = std::countr_zero(left);
      auto frame = link(peer).acquire(table_.bytes());
      while (frame.empty()) {
        link(peer).flush();
        TRY(wait.pause(0, peer_bit(peer)));
        frame = link(peer).acquire(table_.bytes());
      }
      std::memcpy(frame.data(), &table_, table_.bytes());
      link(peer).post();
    }
    return Ok{};
  }

  Status receive() {
    PeerWait wait(options_);
    const Table before = table_;  // words received in this round must not be passed on in it
    Table merged = before;
    for (PeerSet left = neighbours(); left != 0; left &= left - 1) {
      const int peer = std::countr_zero(left);
      auto frame = link(peer).peek();
      while (frame.empty()) {
        for (PeerSet all = neighbours(); all != 0; all &= all - 1) {
          link(std::countr_zero(all)).flush();
        }
        TRY(wait.pause(peer));
        frame = link(peer).peek();
      }
      TRY(merge(frame, peer, merged));
      link(peer).release();
      wait.restart();
    }
    table_ = merged;
    return Ok{};
  }

  Status merge(std::span<const std::byte> frame, int peer, Table& merged) const {
    Table said;
    if (frame.size() != table_.bytes()) {
      return peer_error(ErrorCode::kCorrupt, options_.name_of(peer),
                        "it is forming a group of another size");
    }
    std::memcpy(&said, frame.data(), frame.size());
    if (said.magic != kMagic || said.size != table_.size || said.choices != table_.choices) {
      return peer_error(ErrorCode::kCorrupt, options_.name_of(peer),
                        "it is forming the group with other options");
    }
    const PeerSet all = table_.size == 64 ? ~PeerSet{0} : (PeerSet{1} << table_.size) - 1;
    for (size_t rank = 0; rank < table_.size; ++rank) {
      if (said.ranks[rank].piece_bytes == 0) continue;
      if ((said.ranks[rank].joined & ~all) != 0) {
        return peer_error(ErrorCode::kCorrupt, options_.name_of(peer),
                          "it names ranks that do not exist");
      }
      merged.ranks[rank] = said.ranks[rank];
    }
    return Ok{};
  }

  const GroupOptions& options_;
  Table table_;
};

Status check_connected(const LinkGraph& graph, int rank) {
  const uint64_t missing = graph.all() & ~graph.reached(rank);
  if (missing == 0) return Ok{};
  return Error{ErrorCode::kInvalidArgument, "there is no path from rank " + std::to_string(rank) +
                                                " to rank " +
                                                std::to_string(std::countr_zero(missing)) +
                                                "; connect them, directly or through others"};
}

}  // namespace

Result<Group> Group::form(Options options) {
  LOCKSTEP_CHECK(!options.links.empty() && options.links.size() <= LinkGraph::kRanksMax);
  const auto timeout = std::exchange(options.timeout, options.form_timeout);
  const Table table = TRY(Agreement(options).run());
  options.graph = graph_of(table);
  TRY(check_connected(options.graph, options.rank));
  TRY(check_possible(options.algorithm, options.graph));
  for (size_t rank = 0; rank < table.size; ++rank) {
    options.piece_bytes = std::min<size_t>(options.piece_bytes, table.ranks[rank].piece_bytes);
  }
  if (options.piece_bytes < kPieceBytesMin) {
    return Error{ErrorCode::kUnsupported,
                 "a link carries frames of " + std::to_string(options.piece_bytes) +
                     " bytes; at least " + std::to_string(kPieceBytesMin) + " are needed"};
  }
  // From here on a peer may be silent only as long as in any other exchange.
  options.timeout = timeout;
  Group group(std::move(options));
  TRY(group.flush());
  TRY(group.measure_links());
  return group;
}

}  // namespace lockstep
