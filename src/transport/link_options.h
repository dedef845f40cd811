// How the ranks of a group are joined: the same for every pair, known to every rank.
#pragma once

#include "base/result.h"
#include "transport/link_kind.h"
#include "transport/topology.h"

namespace lockstep {

struct LinkOptions {
  LinkKind kind = LinkKind::kShm;
  Topology topology = Topology::kMesh;
  int stages = 1;         // of a pipeline, with a mesh: only the links that it uses
  int rails = 1;          // connections to each peer that are used together (tcp, verbs)
  bool encrypts = false;  // tcp: frames are sealed with the group's key
  bool plain = false;     // tcp: not even between machines, for measurements
  // A slower network than there is, for experiments and tests: each frame arrives so much later,
  // and frames follow each other no faster than so many bits in a second (0: as they come).
  int delay_us = 0;
  double gbit_s = 0;

  static constexpr int kRailsMax = 8;
  static constexpr int kDelayMaxUs = 1'000'000;
  static constexpr double kGbitMin = 0.001;
};

// Whether ranks `a` and `b` of `size` have a link; false for a == b. In a pipeline of several
// stages, each of neighbouring ranks, these are the pairs within a stage, those of the same place
// in neighbouring stages, and the first ranks of the first and the last stage.
bool is_joined(const LinkOptions& link, int size, int a, int b);

// kInvalidArgument where the options contradict each other or exceed a limit.
Status check_link_options(const LinkOptions& options);

}  // namespace lockstep
