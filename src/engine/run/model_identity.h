// Identifies everything besides its tokens that a sequence's state depends on: the checkpoint's
// content, the options that change bits, and the layout of pages. It is part of the key of pages on
// disk (engine/store/page_store.h), so that none is ever taken for another model's. How sums
// between ranks are rounded is not included: bits then depend on the cut, and such a group keeps no
// pages. Called once at load; reads some MB of the files.
#pragma once

#include "base/crypto/secrets.h"
#include "base/result.h"
#include "engine/group_spec.h"

namespace lockstep {

// Increment when the same tokens give other bits: the order of additions, the layout of a page or
// of a state of recurrent layers.
inline constexpr int kPageFormat = 2;

// Covers, for each file with weights, its name in the folder and, if it is in a hub's cache, the
// hash that its content was checked against; else its size, modification time, head (names and
// shapes of tensors) and samples of its bytes, kSampleBytesMax in all. So changes in place between
// the samples that keep the modification time go unnoticed.
// The folder's own path does not matter.
//
// kUnsupported for incomplete files that have no hash.
Result<Digest> model_identity(const GroupSpec& spec);

// The same for answers, which another machine may have: without the times of files and the layout
// of pages. Also kUnsupported if sums are rounded on their way, since bits then depend on the cut.
Result<Digest> answer_identity(const GroupSpec& spec);

inline constexpr size_t kSampleBytesMax = size_t{1} << 20;

}  // namespace lockstep
