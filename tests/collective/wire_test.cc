// Rounded partial sums: their error, and that all ranks still agree.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <mutex>

#include "collective/plan/wire_codec.h"
#include "collective/ranks.h"

using namespace lockstep;

namespace {

constexpr Wire kRounded[] = {Wire::kBf16, Wire::kQ8};

std::vector<float> coded(Wire wire, std::span<const float> values) {
  std::vector<std::byte> bytes(wire_bytes(wire, values.size()));
  encode_wire(wire, values, bytes.data());
  std::vector<float> back(values.size());
  decode_wire(wire, bytes.data(), back);
  return back;
}

// For one value among others of at most `largest`.
double error_bound(Wire wire, double value, double largest) {
  return wire == Wire::kBf16 ? std::fabs(value) / 256 : largest / 127;
}

// Every rank's sum over a formed group.
std::vector<std::vector<float>> sums(Topology topology, SumAlgorithm algorithm, Wire wire, int rows,
                                     const std::vector<int>& leaves, size_t count) {
  const int ranks = static_cast<int>(leaves.size());
  LocalLinks links = std::move(open_local_links({.topology = topology}, ranks).value());
  std::vector<std::vector<float>> sums(leaves.size(), std::vector<float>(count));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      const auto r = static_cast<size_t>(rank);
      auto group = Group::form({.rank = rank,
                                .links = std::move(links[r]),
                                .timeout = kTestTimeout,
                                .piece_bytes = 4096,
                                .algorithm = algorithm,
                                .wire = wire});
      if (!group.ok()) return;
      const LeafShares shares = make_shares(leaves);
      const auto own = own_sums(shares, rank, count);
      if (!group.value().all_reduce(shares, own, sums[r], rows).ok()) sums[r].clear();
    });
  }
  for (auto& thread : threads) thread.join();
  return sums;
}

}  // namespace

TEST_CASE("a rounded value is close, and rounding it again changes nothing") {
  std::minstd_rand random(3);
  for (const Wire wire : kRounded) {
    for (int trial = 0; trial < 2000; ++trial) {
      const size_t count = 1 + random() % 70;
      std::vector<float> values(count);
      const int scale = static_cast<int>(random() % 240) - 130;
      for (float& value : values) {
        value = std::ldexp(static_cast<float>(random() % 20'001) - 10'000.0f, scale - 14);
      }
      const auto once = coded(wire, values);
      CHECK(same_bits(coded(wire, once), once));
      std::vector<float> rounded = values;
      round_to_wire(wire, rounded);
      CHECK(same_bits(rounded, once));
      for (size_t begin = 0; begin < count; begin += kWireBlock) {
        const size_t end = std::min(begin + kWireBlock, count);
        double largest = 0;
        for (size_t i = begin; i < end; ++i)
          largest = std::max(largest, std::fabs(double{values[i]}));
        for (size_t i = begin; i < end; ++i) {
          const double bound = error_bound(wire, values[i], largest) + 0x1p-127;
          CHECK(std::fabs(double{once[i]} - values[i]) <= bound);
        }
      }
    }
  }
}

TEST_CASE("the largest, the smallest, zeros, infinities and NaN survive rounding as they should") {
  const float infinity = std::numeric_limits<float>::infinity();
  for (const Wire wire : kRounded) {
    const std::vector<float> zeros(40, 0.0f);
    CHECK(same_bits(coded(wire, zeros), zeros));
    const std::vector<float> tiny{std::numeric_limits<float>::denorm_min(), 0x1p-126f, -0x1p-120f};
    CHECK(same_bits(coded(wire, coded(wire, tiny)), coded(wire, tiny)));
    CHECK(std::isnan(coded(wire, std::vector<float>{std::nanf("")})[0]));
    CHECK(!std::isfinite(coded(wire, std::vector<float>{infinity})[0]));
    const std::vector<float> big{0x1.fcp127f, 1.0f};
    CHECK(std::isfinite(coded(wire, big)[0]));
    CHECK(coded(wire, big)[0] >= 0x1.f8p127f);
  }
  CHECK(wire_bytes(Wire::kF32, 33) == 132);
  CHECK(wire_bytes(Wire::kBf16, 33) == 66);
  CHECK(wire_bytes(Wire::kQ8, 33) == 35);
}

TEST_CASE("all ranks hold the same rounded sum, over any route, and it is close to the exact one") {
  constexpr size_t kCount = 3001;
  for (const std::vector<int>& leaves :
       {std::vector<int>{2, 2}, {1, 1, 1, 1}, {3, 1, 0, 5}, {1, 2, 3, 1, 4}}) {
    const LeafShares shares = make_shares(leaves);
    const auto exact = tree_sum(0, shares.leaf_count(), kCount);
    for (const Wire wire : kRounded) {
      std::vector<float> first;
      for (const Topology topology : {Topology::kMesh, Topology::kLine, Topology::kRing}) {
        const LinkGraph graph = LinkGraph::of(topology, shares.rank_count());
        for (const SumAlgorithm algorithm : kSumAlgorithms) {
          if (!is_possible(algorithm, graph)) continue;
          CAPTURE(sum_algorithm_name(algorithm));
          for (const auto& sum : sums(topology, algorithm, wire, 512, leaves, kCount)) {
            if (first.empty()) first = sum;
            CHECK(same_bits(sum, first));
          }
        }
      }
      // Leaves are at most 1006; every node of the tree is rounded once.
      const double largest = 1006.0 * shares.leaf_count();
      int levels = 1;
      while (1 << levels < shares.leaf_count()) ++levels;
      for (size_t i = 0; i < kCount; ++i) {
        const double bound = (levels + 1) * error_bound(wire, largest, largest);
        CHECK(std::fabs(double{first[i]} - exact[i]) <= bound);
      }
      CHECK(!same_bits(first, exact));
    }
  }
}

TEST_CASE("decoding does not depend on the wire format") {
  const std::vector<int> leaves{1, 2, 1};
  const auto exact = tree_sum(0, 4, 500);
  for (const auto& sum : sums(Topology::kMesh, SumAlgorithm::kAuto, Wire::kQ8, 8, leaves, 500)) {
    CHECK(same_bits(sum, exact));
  }
}
