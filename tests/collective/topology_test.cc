// Groups over every topology and with every algorithm, over real links.
#include <doctest/doctest.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <new>

#include "collective/all_topologies.h"
#include "collective/ranks.h"

using namespace lockstep;

namespace {

thread_local uint64_t allocations = 0;

constexpr LinkKind kKinds[] = {LinkKind::kShm, LinkKind::kTcp};

LocalLinks open_links(LinkKind kind, Topology topology, int size) {
  return std::move(open_local_links({.kind = kind, .topology = topology}, size).value());
}

// Calls body(group) on every rank of a formed group; returns how many ranks returned true.
int count_ranks(LocalLinks links, const Group::Options& options,
                const std::function<bool(Group&)>& body) {
  std::atomic<int> right{0};
  std::vector<std::thread> threads;
  for (size_t rank = 0; rank < links.size(); ++rank) {
    threads.emplace_back([&, rank] {
      auto group = Group::form({.rank = static_cast<int>(rank),
                                .links = std::move(links[rank]),
                                .timeout = options.timeout,
                                .kernels = options.kernels,
                                .piece_bytes = options.piece_bytes,
                                .algorithm = options.algorithm,
                                .wire = options.wire,
                                .wire_rows_min = options.wire_rows_min});
      if (!group.ok()) {
        MESSAGE(group.error().message);
        return;
      }
      right += body(group.value());
    });
  }
  for (auto& thread : threads) thread.join();
  return right;
}

bool sums_right(Group& group, const LeafShares& shares, size_t count) {
  const auto expected = tree_sum(0, shares.leaf_count(), count);
  const auto own = own_sums(shares, group.rank(), count);
  for (int round = 0; round < 2; ++round) {
    std::vector<float> sum(count, -1.0f);
    const Status status = group.all_reduce(shares, own, sum);
    if (!status.ok()) {
      MESSAGE(status.error().message);
      return false;
    }
    if (!same_bits(sum, expected)) return false;
  }
  return true;
}

bool exchanges_right(Group& group, size_t bytes) {
  const auto bytes_of = [&](int rank) {
    std::vector<std::byte> some(bytes / static_cast<size_t>(rank + 1));
    for (size_t i = 0; i < some.size(); ++i) some[i] = static_cast<std::byte>(rank * 7 + i % 251);
    return some;
  };
  for (int root = 0; root < group.size(); ++root) {
    auto data = group.rank() == root ? bytes_of(root) : std::vector<std::byte>(3);
    if (!group.wait_for(root).ok() || !group.broadcast(root, data, bytes).ok()) return false;
    if (data != bytes_of(root)) return false;
    std::vector<std::vector<std::byte>> parts;
    for (int rank = 0; rank < group.size(); ++rank) {
      parts.push_back(bytes_of(rank));
      if (rank != group.rank()) std::fill(parts.back().begin(), parts.back().end(), std::byte{255});
      if (!group.carries(root, rank)) parts.back().clear();
    }
    std::vector<std::span<std::byte>> spans(parts.begin(), parts.end());
    if (!group.gather(root, spans).ok()) return false;
    for (int rank = 0; rank < group.size() && group.rank() == root; ++rank) {
      if (parts[static_cast<size_t>(rank)] != bytes_of(rank)) return false;
    }
    for (int rank = 0; rank < group.size(); ++rank) {
      parts[static_cast<size_t>(rank)].resize(bytes_of(rank).size());
    }
    spans.assign(parts.begin(), parts.end());
    if (!group.all_gather(spans).ok()) return false;
    for (int rank = 0; rank < group.size(); ++rank) {
      if (parts[static_cast<size_t>(rank)] != bytes_of(rank)) return false;
    }
  }
  return true;
}

std::vector<std::vector<int>> leaves_of(int ranks) {
  std::vector<int> rising, holes;
  for (int rank = 0; rank < ranks; ++rank) {
    rising.push_back(rank + 1);
    holes.push_back(rank % 3 == 1 ? 0 : 3);
  }
  return {std::vector<int>(static_cast<size_t>(ranks), 2), rising, holes};
}

}  // namespace

// Counts this thread's allocations, for the case that requires none.
[[gnu::noinline]] void* operator new(size_t bytes) {
  ++allocations;
  if (void* memory = std::malloc(bytes)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
  ++allocations;
  return std::malloc(bytes);
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept {
  std::free(memory);
}

TEST_CASE("the bits of a sum depend neither on the topology nor on the algorithm") {
  int tried = 0;
  for (const LinkKind kind : kKinds) {
    for (int ranks = 1; ranks <= 8; ++ranks) {
      for (const Topology topology : kTopologies) {
        const LinkGraph graph = LinkGraph::of(topology, ranks);
        for (const SumAlgorithm algorithm : kSumAlgorithms) {
          if (!is_possible(algorithm, graph)) continue;
          CAPTURE(ranks);
          CAPTURE(link_kind_name(kind));
          CAPTURE(topology_name(topology));
          CAPTURE(sum_algorithm_name(algorithm));
          const int right =
              count_ranks(open_links(kind, topology, ranks),
                          {.timeout = kTestTimeout, .piece_bytes = 8192, .algorithm = algorithm},
                          [&](Group& group) {
                            for (const auto& leaves : leaves_of(ranks)) {
                              for (const size_t count : {1, 100, 3001}) {
                                if (!sums_right(group, make_shares(leaves), count)) return false;
                              }
                            }
                            return true;
                          });
          CHECK(right == ranks);
          ++tried;
        }
      }
    }
  }
  CHECK(tried > 150);
}

TEST_CASE("a sum that is longer than all rings together passes over a line and a ring") {
  constexpr size_t kCount = 6 * 1024 * 1024 / sizeof(float);
  for (const LinkKind kind : kKinds) {
    for (const SumAlgorithm algorithm :
         {SumAlgorithm::kRelay, SumAlgorithm::kTree, SumAlgorithm::kRing}) {
      CAPTURE(sum_algorithm_name(algorithm));
      const auto topology = algorithm == SumAlgorithm::kRing ? Topology::kRing : Topology::kLine;
      const LeafShares shares = make_shares({1, 2, 1});
      const int right = count_ranks(
          open_links(kind, topology, 3), {.timeout = kTestTimeout, .algorithm = algorithm},
          [&](Group& group) {
            const auto nodes = shares.nodes(group.rank()).size();
            const std::vector<float> own(nodes * kCount, static_cast<float>(group.rank() + 1));
            std::vector<float> sum(kCount);
            const float expected = 1 + 2 * static_cast<float>(shares.nodes(1).size()) + 3;
            return group.all_reduce(shares, own, sum).ok() &&
                   sum == std::vector<float>(kCount, expected);
          });
      CHECK(right == 3);
    }
  }
}

TEST_CASE("broadcasts and gathers go over any topology by relays") {
  for (const LinkKind kind : kKinds) {
    for (const Topology topology : kTopologies) {
      for (const int ranks : {1, 2, 3, 5, 6}) {
        CAPTURE(ranks);
        CAPTURE(topology_name(topology));
        const int right =
            count_ranks(open_links(kind, topology, ranks),
                        {.timeout = kTestTimeout, .piece_bytes = 4096}, [&](Group& group) {
                          return exchanges_right(group, 0) && exchanges_right(group, 100) &&
                                 exchanges_right(group, 30'001);
                        });
        CHECK(right == ranks);
      }
    }
  }
}

TEST_CASE("ranks agree on the smallest piece, on the links and on one algorithm") {
  for (const Topology topology : kTopologies) {
    CAPTURE(topology_name(topology));
    LocalLinks links = open_links(LinkKind::kShm, topology, 5);
    std::vector<std::thread> threads;
    std::vector<SumAlgorithm> chosen(5 * 24);
    std::vector<size_t> pieces(5);
    for (int rank = 0; rank < 5; ++rank) {
      threads.emplace_back([&, rank] {
        const auto r = static_cast<size_t>(rank);
        auto group = Group::form({.rank = rank,
                                  .links = std::move(links[r]),
                                  .timeout = kTestTimeout,
                                  .piece_bytes = rank == 3 ? size_t{16 * 1024 - 50} : kPieceBytes});
        if (!group.ok()) return;
        pieces[r] = group.value().piece_bytes();
        CHECK(group.value().graph().diameter() == LinkGraph::of(topology, 5).diameter());
        const LeafShares shares = make_shares({2, 2, 2, 2, 2});
        for (size_t bits = 0; bits < 24; ++bits) {
          chosen[r * 24 + bits] = group.value().algorithm(shares, size_t{1} << bits);
        }
      });
    }
    for (auto& thread : threads) thread.join();
    CHECK(pieces == std::vector<size_t>(5, 16 * 1024 - 64));
    for (size_t i = 24; i < chosen.size(); ++i) {
      CHECK(chosen[i] != SumAlgorithm::kAuto);
      CHECK(chosen[i] == chosen[i % 24]);
    }
  }
}

TEST_CASE("a group that its links do not connect is refused with a sentence") {
  LocalLinks links = open_links(LinkKind::kShm, Topology::kLine, 4);
  links[1][2].reset();
  links[2][1].reset();
  std::vector<std::string> errors(4);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 4; ++rank) {
    threads.emplace_back([&, rank] {
      const auto r = static_cast<size_t>(rank);
      auto group =
          Group::form({.rank = rank, .links = std::move(links[r]), .timeout = kTestTimeout});
      if (group.ok()) return;
      CHECK(group.error().code == ErrorCode::kInvalidArgument);
      errors[r] = group.error().message;
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK(errors[0] ==
        "there is no path from rank 0 to rank 2; connect them, directly or through others");
  CHECK(errors[1].find("from rank 1 to rank 2") != std::string::npos);
  CHECK(errors[3].find("from rank 3 to rank 0") != std::string::npos);
}

TEST_CASE("an algorithm that the links do not allow is refused with a sentence") {
  std::atomic<int> refused{0};
  LocalLinks links = open_links(LinkKind::kShm, Topology::kLine, 3);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 3; ++rank) {
    threads.emplace_back([&, rank] {
      auto group = Group::form({.rank = rank,
                                .links = std::move(links[static_cast<size_t>(rank)]),
                                .timeout = kTestTimeout,
                                .algorithm = SumAlgorithm::kRing});
      refused += !group.ok() && group.error().code == ErrorCode::kUnsupported &&
                 group.error().message.find("algorithm ring") != std::string::npos;
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK(refused == 3);
}

TEST_CASE("ranks with different options do not form a group") {
  LocalLinks links = open_links(LinkKind::kShm, Topology::kLine, 2);
  std::vector<ErrorCode> codes(2, ErrorCode::kInternal);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      auto group = Group::form({.rank = rank,
                                .links = std::move(links[static_cast<size_t>(rank)]),
                                .timeout = kTestTimeout,
                                .wire = rank == 0 ? Wire::kF32 : Wire::kQ8});
      if (!group.ok()) codes[static_cast<size_t>(rank)] = group.error().code;
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK(std::count(codes.begin(), codes.end(), ErrorCode::kCorrupt) >= 1);
  CHECK(std::count(codes.begin(), codes.end(), ErrorCode::kInternal) == 0);
}

TEST_CASE("nothing is allocated after the first round") {
  for (const Topology topology : kTopologies) {
    const LinkGraph graph = LinkGraph::of(topology, 4);
    for (const SumAlgorithm algorithm : kSumAlgorithms) {
      if (!is_possible(algorithm, graph)) continue;
      CAPTURE(topology_name(topology));
      CAPTURE(sum_algorithm_name(algorithm));
      const int right = count_ranks(
          open_links(LinkKind::kShm, topology, 4),
          {.timeout = kTestTimeout, .piece_bytes = 8192, .algorithm = algorithm},
          [&](Group& group) {
            const LeafShares shares = make_shares({3, 1, 2, 2});
            const auto own = own_sums(shares, group.rank(), 5000);
            std::vector<float> sum(5000);
            std::vector<std::byte> message(20'000);
            std::vector<std::vector<std::byte>> parts(4, std::vector<std::byte>(10'000));
            const std::vector<std::span<std::byte>> spans(parts.begin(), parts.end());
            uint64_t before = 0;
            for (int round = 0; round < 4; ++round) {
              if (round == 1) before = allocations;
              if (!group.all_reduce(shares, own, sum).ok()) return false;
              if (!group.broadcast(1, message, message.size()).ok()) return false;
              if (!group.all_gather(spans).ok() || !group.gather(0, spans).ok()) return false;
            }
            return allocations == before;
          });
      CHECK(right == 4);
    }
  }
}

TEST_CASE("a lost rank ends the others, also those that have no link to it") {
  for (const LinkKind kind : kKinds) {
    for (const Topology topology : {Topology::kLine, Topology::kRing, Topology::kStar}) {
      CAPTURE(topology_name(topology));
      const auto start = std::chrono::steady_clock::now();
      const int told = count_ranks(open_links(kind, topology, 5),
                                   {.timeout = std::chrono::minutes{1}}, [&](Group& group) {
                                     const LeafShares shares = make_shares({1, 1, 1, 1, 1});
                                     const std::vector<float> own(100, 1.0f);
                                     std::vector<float> sum(100);
                                     for (int round = 0;; ++round) {
                                       if (group.rank() == 4 && round == 20) return true;
                                       const Status status = group.all_reduce(shares, own, sum);
                                       if (status.ok()) continue;
                                       return status.error().code == ErrorCode::kPeerLost &&
                                              status.error().message.find("rank ") == 0;
                                     }
                                   });
      CHECK(told == 5);
      CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds{30});
    }
  }
}

TEST_CASE("a silent rank in a line is an error at the deadline on every other rank") {
  std::atomic<int> ended{0};
  const int told = count_ranks(open_links(LinkKind::kShm, Topology::kLine, 4),
                               {.timeout = std::chrono::seconds{2}}, [&](Group& group) {
                                 const LeafShares shares = make_shares({1, 1, 1, 1});
                                 const std::vector<float> own(10, 1.0f);
                                 std::vector<float> sum(10);
                                 if (group.rank() == 3) {
                                   return comes_true([&] { return ended == 3; });
                                 }
                                 const Status status = group.all_reduce(shares, own, sum);
                                 ++ended;
                                 return !status.ok() && status.error().message.find("rank ") == 0;
                               });
  CHECK(told == 4);
}
