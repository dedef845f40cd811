#include <algorithm>
#include <array>

#include "base/check.h"
#include "base/crypto/hasher.h"
#include "engine/store/page_store.h"
#include "kernels/kernels.h"

namespace lockstep {

PageKey page_key(const PageKey& before, std::span<const int32_t> tokens) {
  constexpr size_t kTokenBytes = 4;
  LOCKSTEP_CHECK(tokens.size() == kPagePositions);
  std::array<std::byte, sizeof(PageKey) + kPagePositions * kTokenBytes> bytes;
  std::copy(before.begin(), before.end(), bytes.begin());
  size_t at = before.size();
  for (const int32_t token : tokens) {  // little-endian on every machine
    for (size_t i = 0; i < kTokenBytes; ++i) {
      bytes[at++] = static_cast<std::byte>(static_cast<uint32_t>(token) >> (8 * i));
    }
  }
  return sha256(bytes);
}

}  // namespace lockstep
