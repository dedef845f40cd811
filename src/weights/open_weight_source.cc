#include "weights/gguf_source.h"
#include "weights/safetensors_source.h"
#include "weights/weight_source.h"

namespace lockstep {

Result<std::shared_ptr<const WeightSource>> open_weight_source(const std::filesystem::path& path) {
  if (path.extension() == ".gguf") return open_gguf_source(path);
  return SafetensorsSource::open(path);
}

}  // namespace lockstep
