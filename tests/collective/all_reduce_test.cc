#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>

#include "collective/group/bench.h"
#include "collective/ranks.h"

using namespace lockstep;

namespace {

// The number of ranks whose result has exactly the bits of a single rank's tree.
int right_ranks(const NamedLinks& kind, const LeafShares& shares, size_t count) {
  const auto expected = tree_sum(0, shares.leaf_count(), count);
  std::atomic<int> right{0};
  run_ranks(kind.open(shares.rank_count()), {.timeout = kTestTimeout}, [&](Group& group) {
    const auto own = own_sums(shares, group.rank(), count);
    std::vector<float> sum(count);
    for (int round = 0; round < 3; ++round) {
      std::fill(sum.begin(), sum.end(), -1.0f);
      if (!group.all_reduce(shares, own, sum).ok() || !same_bits(sum, expected)) return;
    }
    ++right;
  });
  return right;
}

}  // namespace

TEST_CASE("the bits of a sum depend neither on the number of ranks, nor on shares, nor on links") {
  const std::vector<int> cases[] = {{12},
                                    {6, 6},
                                    {8, 4},
                                    {9, 3},
                                    {11, 1},
                                    {4, 4, 4},
                                    {5, 4, 3},
                                    {3, 3, 3, 3},
                                    {1, 2, 3, 6},
                                    {6, 0, 6},
                                    {0, 12},
                                    {12, 0, 0},
                                    {3, 1},
                                    {2, 1, 1},
                                    {1, 1},
                                    {1, 0},
                                    {33, 31},
                                    {17, 29, 18},
                                    {8, 8, 8, 8, 8, 8, 8, 8},
                                    {1, 2, 3, 4, 5, 6, 7, 9},
                                    {0, 0, 5, 0, 1, 0, 7, 0}};
  for (const auto& kind : kAllLinks) {
    for (const auto& leaves : cases) {
      CAPTURE(kind.name);
      CAPTURE(leaves.size());
      CAPTURE(leaves[0]);
      CHECK(right_ranks(kind, make_shares(leaves), 100) == static_cast<int>(leaves.size()));
    }
  }
}

TEST_CASE("a sum that overlaps with other work has the same bits") {
  constexpr size_t kCount = 300'000;  // several pieces, more than the links buffer
  for (const auto& kind : kAllLinks) {
    CAPTURE(kind.name);
    for (const auto& leaves : std::vector<std::vector<int>>{{6, 6}, {5, 4, 3}, {8}}) {
      const LeafShares shares = make_shares(leaves);
      const auto expected = tree_sum(0, shares.leaf_count(), kCount);
      std::atomic<int> right{0};
      run_ranks(kind.open(shares.rank_count()), {.timeout = kTestTimeout}, [&](Group& group) {
        const auto own = own_sums(shares, group.rank(), kCount);
        std::vector<float> first(kCount), second(kCount);
        // The second begin_sum() finishes the first sum.
        if (!group.begin_sum(shares, own, first).ok()) return;
        for (int i = 0; i < 10 * group.rank(); ++i) {
          if (!group.poll_sum().ok()) return;
        }
        if (!group.begin_sum(shares, own, second).ok() || !same_bits(first, expected)) return;
        if (!group.finish_sum().ok() || !same_bits(second, expected)) return;
        right += group.finish_sum().ok() && group.poll_sum().ok();
      });
      CHECK(right == shares.rank_count());
    }
  }
}

TEST_CASE("polling alone completes a sum, by one hop and by a plan") {
  constexpr size_t kCount = 300'000;
  const LeafShares shares = make_shares({5, 4, 3});
  const auto expected = tree_sum(0, shares.leaf_count(), kCount);
  for (const SumAlgorithm algorithm : {SumAlgorithm::kMesh, SumAlgorithm::kRing}) {
    CAPTURE(sum_algorithm_name(algorithm));
    auto links = kAllLinks[1].open(3);
    std::atomic<int> right{0}, done{0};
    std::vector<std::thread> ranks;
    for (size_t rank = 0; rank < links.size(); ++rank) {
      ranks.emplace_back([&, rank] {
        Group group({.rank = static_cast<int>(rank),
                     .links = std::move(links[rank]),
                     .timeout = kTestTimeout,
                     .algorithm = algorithm});
        const auto own = own_sums(shares, group.rank(), kCount);
        std::vector<float> sum(kCount);
        bool is_fine = group.begin_sum(shares, own, sum).ok(), is_counted = false;
        const auto end = std::chrono::steady_clock::now() + kTestTimeout;
        while (done < 3 && is_fine && std::chrono::steady_clock::now() < end) {
          is_fine = group.poll_sum().ok();
          if (is_counted || !same_bits(sum, expected)) continue;
          is_counted = true;
          ++done;
        }
        right += is_counted && group.finish_sum().ok();
      });
    }
    for (std::thread& rank : ranks) rank.join();
    CHECK(right == 3);
  }
}

TEST_CASE("every number of leaves from 1 to 64 gives the same bits on two uneven ranks") {
  for (int leaf_count = 1; leaf_count <= 64; ++leaf_count) {
    CAPTURE(leaf_count);
    const int left = (leaf_count * 5 + 3) / 7;
    CHECK(right_ranks(kAllLinks[1], make_shares({left, leaf_count - left}), 17) == 2);
  }
}

TEST_CASE("vectors of 0, 1 and many lengths around a piece are summed") {
  for (const size_t count : {0, 1, 15, 16, 17, 16 * 1024 - 1, 16 * 1024, 16 * 1024 + 1}) {
    CAPTURE(count);
    CHECK(right_ranks(kAllLinks[1], make_shares({1, 1}), count) == 2);
    CHECK(right_ranks(kAllLinks[2], make_shares({2, 1}), count) == 2);
  }
}

TEST_CASE("a vector that is longer than all rings together is summed without a deadlock") {
  constexpr size_t kCount = 10 * 1024 * 1024 / sizeof(float);
  for (const auto& kind : kAllLinks) {
    CAPTURE(kind.name);
    const LeafShares shares = make_shares({2, 2});
    std::atomic<int> right{0};
    run_ranks(kind.open(2), {.timeout = kTestTimeout}, [&](Group& group) {
      const std::vector<float> own(kCount, static_cast<float>(group.rank() + 1));
      std::vector<float> sum(kCount);
      const bool is_ok = group.all_reduce(shares, own, sum).ok();
      right += is_ok && sum == std::vector<float>(kCount, 3.0f);
    });
    CHECK(right == 2);
  }
}

TEST_CASE("a sum may overwrite the rank's own part") {
  const LeafShares shares = make_shares({3, 1, 4});  // subtrees: two, one, one
  constexpr size_t kCount = 40'000;                  // several pieces
  const auto expected = tree_sum(0, 8, kCount);
  std::atomic<int> right{0};
  run_ranks(kAllLinks[1].open(3), {.timeout = kTestTimeout}, [&](Group& group) {
    auto own = own_sums(shares, group.rank(), kCount);
    const auto sum = std::span(own).first(kCount);
    right += group.all_reduce(shares, own, sum).ok() && same_bits(sum, expected);
  });
  CHECK(right == 3);
}

TEST_CASE("the kernels' addition is used and gives the same bits") {
  static std::atomic<int> calls{0};
  KernelTable kernels{};
  kernels.add = [](const float* x, float* sum, size_t count) {
    ++calls;
    for (size_t i = 0; i < count; ++i) sum[i] += x[i];
  };
  const LeafShares shares = make_shares({3, 5, 4});
  const auto expected = tree_sum(0, 12, 100);
  std::atomic<int> right{0};
  run_ranks(kAllLinks[1].open(3), {.timeout = kTestTimeout, .kernels = &kernels},
            [&](Group& group) {
              std::vector<float> sum(100);
              const auto own = own_sums(shares, group.rank(), 100);
              right += group.all_reduce(shares, own, sum).ok() && same_bits(sum, expected);
            });
  CHECK(right == 3);
  CHECK(calls > 0);
}

TEST_CASE("more ranks than processors finish many rounds") {
  for (const auto& kind : kAllLinks) {
    CAPTURE(kind.name);
    std::atomic<int> right{0};
    run_ranks(kind.open(4), {.timeout = kTestTimeout}, [&](Group& group) {
      const auto times = bench_all_reduce(group, 4096, 200);
      right +=
          times.ok() && times.value().min_us > 0 && times.value().p50_us <= times.value().p99_us;
    });
    CHECK(right == 4);
  }
}
