// links: model
// The configuration of any GGUF file is JSON that the parser of config.json accepts or refuses with
// a sentence.
#include <cstdint>
#include <span>

#include "base/check.h"
#include "json/json.h"
#include "model/config/config.h"
#include "model/config/gguf_config.h"

using namespace lockstep;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto model = GgufModel::parse(std::as_bytes(std::span(data, size)));
  if (!model.ok()) return 0;
  const auto text = gguf_config(model.value());
  if (!text.ok()) {
    LOCKSTEP_CHECK(!text.error().message.empty());
    return 0;
  }
  LOCKSTEP_CHECK(parse_json(text.value()).ok());
  const auto config = parse_config(text.value());
  LOCKSTEP_CHECK(config.ok() || !config.error().message.empty());
  return 0;
}
