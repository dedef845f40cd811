// TokenRules: which tokens may come next in one sequence, where a text has to obey a grammar. The
// sampler asks; the engine implements it over a matcher. One thread.
#pragma once

#include <cstddef>
#include <cstdint>

namespace lockstep {

class TokenRules {
 public:
  virtual ~TokenRules() = default;

  virtual bool allows(int32_t token) = 0;
  // One bit for each of token_count() tokens, in whole words, whose other bits are 0; later tokens
  // are forbidden. Valid until the next call.
  // Null if the text cannot be followed any more.
  virtual const uint64_t* allowed() = 0;
  virtual int32_t token_count() const = 0;
  // Whether the text is complete as it is.
  virtual bool may_end() = 0;

  // The text goes on with `token`; false, and nothing happens, if it may not.
  virtual bool accept(int32_t token) = 0;
  // Takes the last `count` tokens back; false if that is too long ago.
  virtual bool take_back(size_t count) = 0;
};

}  // namespace lockstep
