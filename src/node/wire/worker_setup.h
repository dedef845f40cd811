// WorkerSetup: what a worker needs to load its part of a group's model, and its encoding on the
// control channel. Pure functions; an invalid payload is kCorrupt.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engine/group_spec.h"
#include "node/wire/data_paths.h"

namespace lockstep {

struct WorkerSetup {
  GroupSpec spec;
  int rank = 0;
  int first_core = -1;  // of this rank's threads; -1: they are not pinned
  int group_timeout_ms = 10'000;
  // Not 0: measure all-reduces of this many bytes instead of serving a model.
  uint64_t bench_bytes = 0;
  int bench_rounds = 0;
  bool probes = false;  // measure the links of each pair instead
  // Not sent: filled in by the worker's own node (node/worker/worker_flags.h).
  std::vector<std::string> hosts{};
  std::vector<DataPaths> paths{};

  int size() const { return spec.size(); }
  friend bool operator==(const WorkerSetup&, const WorkerSetup&) = default;
};

// As for_each_group_field(), for the fields that are sent, those of the spec included.
template <class Setup, class Visit>
void for_each_setup_field(Setup& setup, Visit&& visit) {
  auto& [spec, rank, first_core, group_timeout_ms, bench_bytes, bench_rounds, probes, hosts,
         paths] = setup;
  for_each_group_field(spec, visit);
  visit("rank", rank);
  visit("first_core", first_core);
  visit("group_timeout_ms", group_timeout_ms);
  visit("bench_bytes", bench_bytes);
  visit("bench_rounds", bench_rounds);
  visit("probes", probes);
}

std::string encode_setup(const WorkerSetup& setup);
Result<WorkerSetup> decode_setup(std::string_view payload);

}  // namespace lockstep
