#include "weights/gguf_source.h"
#include "weights/safetensors_source.h"
#include "weights/weight_source.h"

namespace lockstep {

Result<std::shared_ptr<const WeightSource>> open_weight_source(const std::filesystem::path& path) {
  if (is_gguf_path(path)) return open_gguf_source(path);
  return SafetensorsSource::open(path);
}

}  // namespace lockstep
