// How the ranks of a group are linked: the same for every pair, known to every rank.
#pragma once

#include "base/result.h"
#include "transport/link_kind.h"
#include "transport/topology.h"

namespace lockstep {

struct LinkOptions {
  LinkKind kind = LinkKind::kShm;
  Topology topology = Topology::kMesh;
  int stages = 1;         // of a pipeline, with a mesh: only the links it uses are made
  int rails = 1;          // connections to each peer that are used together (tcp, verbs)
  bool encrypts = false;  // tcp: frames are sealed with the group's key
  bool plain = false;     // tcp: never encrypted, even between machines, for measurements
  // Simulates a slower network for experiments and tests: the delay of each frame, and the
  // bandwidth (0: not limited).
  int delay_us = 0;
  double gbit_s = 0;

  static constexpr int kRailsMax = 8;
  static constexpr int kDelayMaxUs = 1'000'000;
  static constexpr double kGbitMin = 0.001;

  friend bool operator==(const LinkOptions&, const LinkOptions&) = default;
};

// Calls visit(name, field) for each field; the names are those of the wire form. It does not
// compile if a field is missing in the first line.
template <class Link, class Visit>
void for_each_link_field(Link& link, Visit&& visit) {
  auto& [kind, topology, stages, rails, encrypts, plain, delay_us, gbit_s] = link;
  visit("kind", kind);
  visit("topology", topology);
  visit("stages", stages);
  visit("rails", rails);
  visit("encrypts", encrypts);
  visit("plain", plain);
  visit("delay_us", delay_us);
  visit("gbit_s", gbit_s);
}

// Whether ranks `a` and `b` of `size` have a link; false for a == b. In a pipeline each stage is a
// range of ranks; linked are the pairs within a stage, those of the same position in neighbouring
// stages, and the first ranks of the first and the last stage.
bool is_joined(const LinkOptions& link, int size, int a, int b);

// kInvalidArgument if the options contradict each other or exceed a limit.
Status check_link_options(const LinkOptions& options);

}  // namespace lockstep
