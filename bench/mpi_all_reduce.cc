// The all-reduce of Open MPI, measured as `lockstep bench collective` measures its own: float sums
// back to back after a warm-up, p50 of the slowest rank, best of several runs. Built with mpicxx by
// bench/collective_bench.sh if that exists; not part of lockstep.
//   mpirun -np 2 mpi_all_reduce RUNS ROUNDS BYTES...     prints "BYTES P50_US" for each size
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

double median_us(size_t count, int rounds) {
  const std::vector<float> own(count, 1.0f);
  std::vector<float> sum(count);
  std::vector<double> times_us;
  const int warm_up_rounds = std::max(10, rounds / 10);
  for (int round = -warm_up_rounds; round < rounds; ++round) {
    const auto start = Clock::now();
    MPI_Allreduce(own.data(), sum.data(), static_cast<int>(count), MPI_FLOAT, MPI_SUM,
                  MPI_COMM_WORLD);
    const std::chrono::duration<double, std::micro> time = Clock::now() - start;
    if (round >= 0) times_us.push_back(time.count());
  }
  std::sort(times_us.begin(), times_us.end());
  const double own_us = times_us[(times_us.size() - 1) / 2];
  double slowest_us = 0;
  MPI_Allreduce(&own_us, &slowest_us, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return slowest_us;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const int runs = argc > 1 ? std::atoi(argv[1]) : 5;
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 10'000;
  for (int i = 3; i < argc; ++i) {
    const size_t bytes = std::strtoul(argv[i], nullptr, 10);
    double best_us = 0;
    for (int run = 0; run < runs; ++run) {
      const double p50_us = median_us(std::max<size_t>(bytes / sizeof(float), 1), rounds);
      if (run == 0 || p50_us < best_us) best_us = p50_us;
    }
    if (rank == 0) std::printf("%zu %.2f\n", bytes, best_us);
  }
  MPI_Finalize();
  return 0;
}
