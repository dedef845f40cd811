// Reads a small JSON file, such as a model's config.json; a tokenizer's may be too large.
#pragma once

#include <filesystem>

#include "base/result.h"
#include "json/json.h"

namespace lockstep {

// Errors of read_small_file() (base/files/mapped_file.h) and of parse_large_json(); all name the
// path.
Result<Json> read_json_file(const std::filesystem::path& path);

}  // namespace lockstep
