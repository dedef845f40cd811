#include "json/json_file.h"

#include "base/files/mapped_file.h"

namespace lockstep {

Result<Json> read_json_file(const std::filesystem::path& path) {
  auto json = parse_large_json(TRY(read_small_file(path)));
  if (json.ok()) return json;
  return Error{json.error().code, path.string() + ": " + json.error().message};
}

}  // namespace lockstep
