#include "tokenizer/tokenizer.h"

#include <system_error>

#include "base/mapped_file.h"
#include "json/json.h"
#include "tokenizer/bpe_tokenizer.h"
#include "tokenizer/json_part.h"

namespace lockstep {
namespace {

constexpr const char* kFileName = "tokenizer.json";
constexpr size_t kFileBytesMax = 256 << 20;  // the largest known have 35 MB

// Files of before 2021 have no type; only BPE has merges.
Result<std::string_view> model_type(const Json& model) {
  if (find(model, "type") != nullptr) return type_of("model", model);
  if (find(model, "merges") != nullptr) return std::string_view("BPE");
  return corrupt_part("model", "has no type");
}

}  // namespace

Result<std::shared_ptr<const Tokenizer>> Tokenizer::load(const std::filesystem::path& path) {
  std::error_code ignored;
  const bool is_folder = std::filesystem::is_directory(path, ignored);
  const std::filesystem::path file = is_folder ? path / kFileName : path;
  if (is_folder && !std::filesystem::exists(file, ignored)) {
    return Error{ErrorCode::kNotFound, path.string() + " has no " + kFileName};
  }
  const MappedFile mapped = TRY(MappedFile::open(file));
  const auto bytes = mapped.bytes();
  if (bytes.size() > kFileBytesMax) {
    return Error{ErrorCode::kUnsupported,
                 file.string() + " is larger than " + std::to_string(kFileBytesMax) + " bytes"};
  }
  auto tokenizer = parse({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  if (tokenizer.ok()) return tokenizer;
  return Error{tokenizer.error().code, file.string() + ": " + tokenizer.error().message};
}

Result<std::shared_ptr<const Tokenizer>> Tokenizer::parse(std::string_view tokenizer_json) {
  const Json document = TRY(parse_json(tokenizer_json));
  const Json* model = find(document, "model");
  if (model == nullptr) return corrupt_part("file", "has no model");
  const std::string_view type = TRY(model_type(*model));
  if (type == "BPE") return read_bpe_tokenizer(document);
  return unsupported_part("model", type);
}

}  // namespace lockstep
