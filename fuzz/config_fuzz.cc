// links: model
// Any config.json gives a configuration whose cut can be computed, or is refused with a sentence.
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "model/config/config.h"
#include "model/load/cut.h"

using namespace lockstep;

namespace {

// Larger inputs only take longer.
constexpr int kSizeMax = 1 << 20;

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto config = parse_config({reinterpret_cast<const char*>(data), size});
  if (!config.ok()) {
    LOCKSTEP_CHECK(!config.error().message.empty());
    return 0;
  }
  const ModelConfig& model = config.value();
  if (model.heads > kSizeMax || model.ffn > kSizeMax || model.experts.ffn > kSizeMax) return 0;
  const std::vector<double> shares = {3, 1, 1};
  const auto cut = Cut::make(model, shares, {.alignment = {.ffn = 128, .experts = 64}});
  LOCKSTEP_CHECK(cut.ok());
  int columns = 0;
  for (int rank = 0; rank < 3; ++rank) columns += cut.value().ffn(rank).size();
  LOCKSTEP_CHECK(columns == model.ffn);
  return 0;
}
