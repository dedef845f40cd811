// What the state of a sequence depends on beside its tokens: the checkpoint's content, the options
// that change bits, and how pages are laid out. Pages on a disk (engine/page_store.h) are kept by
// it, so that none is ever taken for another model's. It does not count how sums are rounded on
// their way between ranks: bits depend on the cut then, and such a group keeps no pages. Called
// once at load; touches some MB of the files.
#pragma once

#include "base/result.h"
#include "base/secrets.h"
#include "engine/engine.h"

namespace lockstep {

// To be counted up when the same tokens come to give other bits: the order of additions, the layout
// of a page.
inline constexpr int kPageFormat = 1;

// Of each file that holds weights: its name in the folder, and where it lies in a hub's cache the
// hash that its content was checked against; else its size, its time of change, its head (names and
// shapes of tensors) and samples of its bytes, kSampleBytesMax in all. So weights that were
// changed in place between the samples, under an old time of change, are not noticed. Where the
// files lie plays no part.
//
// kUnsupported for files of which parts are missing and which have no hash.
Result<Digest> model_identity(const EngineOptions& options);

inline constexpr size_t kSampleBytesMax = size_t{1} << 20;

}  // namespace lockstep
