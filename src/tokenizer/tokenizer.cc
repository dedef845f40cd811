#include "tokenizer/tokenizer.h"

#include <system_error>

#include "base/files/mapped_file.h"
#include "gguf/gguf_model.h"
#include "json/json.h"
#include "tokenizer/formats.h"
#include "tokenizer/text/json_part.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFileNames[] = {"tokenizer.json", "tekken.json", "tokenizer.model",
                                      "tiktoken.model"};
constexpr const char* kConfigName = "tokenizer_config.json";
constexpr const char* kKimiFileName = "tiktoken.model";
constexpr size_t kFileBytesMax = 256 << 20;  // except GGUF; the largest known have 35 MB

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

Result<fs::path> file_of_folder(const fs::path& folder) {
  for (const char* name : kFileNames) {
    if (is_there(folder / name)) return folder / name;
  }
  std::error_code error;
  std::optional<fs::path> found;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    // The first part of a split model holds the metadata.
    if (entry->path().extension() != ".gguf") continue;
    if (!found || entry->path() < *found) found = entry->path();
  }
  if (found) return *found;
  return Error{ErrorCode::kNotFound, folder.string() +
                                         " has no tokenizer.json, tekken.json, tokenizer.model, "
                                         "tiktoken.model or .gguf file"};
}

// "IQ== 0": the first line of a file of ranks.
bool looks_like_ranks(std::string_view text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  const size_t space = line.find(' ');
  return space != std::string_view::npos && space > 0 &&
         line.find_first_not_of("0123456789\r", space + 1) == std::string_view::npos;
}

TokenizerResult read_tiktoken_file(std::string_view text, const fs::path& path,
                                   std::string_view pre) {
  if (pre.empty() && path.filename() == kKimiFileName) pre = "kimi-k2";
  const fs::path config_path = path.parent_path() / kConfigName;
  if (!is_there(config_path)) return read_tiktoken(text, nullptr, pre);
  const MappedFile config_file = TRY(MappedFile::open(config_path));
  if (config_file.bytes().size() > kFileBytesMax) return unsupported_part(kConfigName, "size");
  const Json config = TRY(parse_large_json(as_text(config_file.bytes())));
  return read_tiktoken(text, &config, pre);
}

TokenizerResult read_document(std::string_view text, std::string_view pre) {
  if (!pre.empty()) {
    return Error{ErrorCode::kInvalidArgument,
                 "--pre is for GGUF and tiktoken files; this one names its own pre-tokenizer"};
  }
  const Json document = TRY(parse_large_json(text));
  const bool is_tekken = find(document, "model") == nullptr && find(document, "config") != nullptr;
  return is_tekken ? read_tekken(document) : read_json_tokenizer(document);
}

TokenizerResult read_file(std::span<const std::byte> bytes, const fs::path& path,
                          std::string_view pre) {
  if (GgufFile::has_magic(bytes)) {
    return read_gguf_tokenizer(TRY(GgufFile::parse(bytes)), pre);
  }
  if (bytes.size() > kFileBytesMax) {
    return Error{ErrorCode::kUnsupported,
                 "it is larger than " + std::to_string(kFileBytesMax) + " bytes"};
  }
  const std::string_view text = as_text(bytes);
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return Error{ErrorCode::kCorrupt, "it is empty"};
  if (text[first] == '{') return read_document(text, pre);
  if (looks_like_ranks(text)) return read_tiktoken_file(text, path, pre);
  if (!pre.empty()) {
    return Error{
        ErrorCode::kInvalidArgument,
        "--pre is for GGUF and tiktoken files; a SentencePiece model has no pre-tokenizer"};
  }
  return read_sentence_piece(text);
}

}  // namespace

TokenizerResult Tokenizer::load(const fs::path& path, std::string_view pre) {
  std::error_code ignored;
  const fs::path file =
      fs::is_directory(path, ignored) ? TRY(file_of_folder(path)) : gguf_first_part(path);
  const MappedFile mapped = TRY(MappedFile::open(file));
  auto tokenizer = read_file(mapped.bytes(), file, pre);
  if (tokenizer.ok()) return tokenizer;
  return Error{tokenizer.error().code, file.string() + ": " + tokenizer.error().message};
}

TokenizerResult Tokenizer::parse(std::string_view tokenizer_json) {
  return read_json_tokenizer(TRY(parse_large_json(tokenizer_json)));
}

std::vector<int32_t> Tokenizer::encode_pieces(std::span<const PromptText> pieces,
                                              bool add_bos) const {
  std::vector<int32_t> ids;
  if (add_bos && bos_id()) ids.push_back(*bos_id());
  for (const PromptText& piece : pieces) {
    const auto part = encode(piece.text, {.add_bos = false, .parse_special = piece.parse_special});
    ids.insert(ids.end(), part.begin(), part.end());
  }
  return ids;
}

}  // namespace lockstep
