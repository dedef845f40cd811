// TokenRules: which tokens may come next in a sequence that must obey a grammar. Used by the
// sampler; implemented by the engine over a matcher. One thread.
#pragma once

#include <cstddef>
#include <cstdint>

namespace lockstep {

class TokenRules {
 public:
  virtual ~TokenRules() = default;

  virtual bool allows(int32_t token) = 0;
  // One bit per token for token_count() tokens, in whole words padded with 0; later tokens are
  // forbidden. Valid until the next call. Null if the text cannot be followed any further.
  virtual const uint64_t* allowed() = 0;
  virtual int32_t token_count() const = 0;
  // Whether the text is complete now.
  virtual bool may_end() = 0;

  // Appends `token` to the text; false, with no effect, if it is not allowed.
  virtual bool accept(int32_t token) = 0;
  // Rolls back the last `count` tokens; false if that is too far.
  virtual bool take_back(size_t count) = 0;
};

}  // namespace lockstep
