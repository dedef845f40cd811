// ModelFiles: the files of one revision of a model with their sizes and hashes, as a hub lists them
// (GET /api/models/ORG/NAME/revision/REVISION?blobs=true). The same JSON is stored with a download,
// so that it can be finished and checked without the hub. The hub's data is not trusted.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/crypto/hasher.h"
#include "base/result.h"

namespace lockstep {

struct HubFile {
  std::string name;                        // in the repository, checked: is_safe_file_name()
  uint64_t size = 0;                       // bytes
  HashKind hash_kind = HashKind::kSha256;  // SHA-1 is git's: of "blob SIZE\0" and the content
  std::string hash;                        // hexadecimal; also the name of the blob in the cache
};

struct ModelFiles {
  std::string commit;  // 40 hexadecimal digits
  std::vector<HubFile> files;

  uint64_t total_bytes() const;
};

inline constexpr size_t kModelFilesMax = 100'000;
inline constexpr size_t kModelFilesTextMax = size_t{64} << 20;

// kCorrupt with what is missing or invalid.
Result<ModelFiles> parse_model_files(std::string_view text);
std::string dump_model_files(const ModelFiles& files);

// A hasher prepared for the file's content.
Hasher hasher_for(const HubFile& file);

}  // namespace lockstep
