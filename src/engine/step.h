// Step: what rank 0 tells the others to compute: a batch and the choices that follow it, or that
// there is nothing more to do. Encoded as a flat message in the byte order of the machines, which
// all ranks of a group share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "engine/choice_orders.h"
#include "engine/page_orders.h"
#include "model/batch.h"
#include "sampling/sampler.h"

namespace lockstep {

struct Step {
  bool is_stop = false;                 // followers leave their loop
  PageOrders pages;                     // before anything is computed
  Batch batch;                          // may be empty where there are orders
  std::vector<ChoiceRequest> requests;  // one for each of batch.outputs
  ChoiceOrders orders;                  // before the choices

  void clear();
  void reserve(const BatchLimits& limits);
};

size_t step_bytes_max(const BatchLimits& limits);
// Of a step without any orders, as nearly all are.
size_t plain_step_bytes_max(const BatchLimits& limits);
void encode_step(const Step& step, std::vector<std::byte>& bytes);
// Behind what is there already.
void append_step(const Step& step, std::vector<std::byte>& bytes);
// kCorrupt if the message breaks the limits or its own counts.
Status decode_step(std::span<const std::byte> bytes, const BatchLimits& limits, Step& step);

}  // namespace lockstep
