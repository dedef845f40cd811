// links: hub
// Any answer of a hub is a list of files whose names stay inside the model's folder, or is refused
// with a sentence. An accepted list is written so that it reads back the same.
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "base/hex.h"
#include "hub/files/choose_files.h"
#include "hub/files/model_files.h"
#include "hub/files/model_id.h"

using namespace lockstep;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  (void)parse_model_id(text);
  const auto files = parse_model_files(text);
  if (!files.ok()) {
    LOCKSTEP_CHECK(!files.error().message.empty());
    return 0;
  }
  for (const HubFile& file : files.value().files) {
    LOCKSTEP_CHECK(is_safe_file_name(file.name));
    LOCKSTEP_CHECK(is_hex(file.hash, file.hash_kind == HashKind::kSha256 ? 64 : 40));
  }
  const std::string dumped = dump_model_files(files.value());
  const auto again = parse_model_files(dumped);
  LOCKSTEP_CHECK(again.ok() && dump_model_files(again.value()) == dumped);
  const auto chosen = choose_files(files.value(), {.repository = "org/name"}, {});
  LOCKSTEP_CHECK(!chosen.ok() || chosen.value().files.size() <= files.value().files.size());
  return 0;
}
