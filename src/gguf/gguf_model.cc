#include "gguf/gguf_model.h"

#include <cstdio>
#include <optional>
#include <system_error>
#include <utility>

#include "base/files/file_io.h"
#include "gguf/gguf_parser.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kExtension = ".gguf";

// "PREFIX-00002-of-00003.gguf", counted from 1.
struct PartName {
  std::string prefix;
  int64_t number;
  int64_t count;
};

std::optional<int64_t> five_digits(std::string_view text) {
  if (text.size() != 5 || text.find_first_not_of("0123456789") != std::string_view::npos) {
    return std::nullopt;
  }
  return std::stoll(std::string(text));
}

std::optional<PartName> part_name(const fs::path& path) {
  constexpr size_t kTailSize = std::string_view("-00002-of-00003").size();
  if (path.extension() != kExtension) return std::nullopt;
  const std::string stem = path.stem().string();
  if (stem.size() <= kTailSize) return std::nullopt;
  const std::string_view tail = std::string_view(stem).substr(stem.size() - kTailSize);
  const auto number = five_digits(tail.substr(1, 5));
  const auto count = five_digits(tail.substr(10));
  if (tail[0] != '-' || tail.substr(6, 4) != "-of-" || !number || !count) return std::nullopt;
  return PartName{stem.substr(0, stem.size() - kTailSize), *number, *count};
}

std::string name_of_part(std::string_view prefix, int64_t number, int64_t count) {
  char tail[64];
  std::snprintf(tail, sizeof(tail), "-%05lld-of-%05lld.gguf", static_cast<long long>(number),
                static_cast<long long>(count));
  return std::string(prefix) + tail;
}

// Written by gguf-split into each part; missing in a whole file.
struct SplitKeys {
  int64_t index = 0;
  int64_t count = 1;
  std::optional<int64_t> tensors;  // of all parts
};

Result<SplitKeys> read_split_keys(const GgufFile& file) {
  SplitKeys keys;
  keys.index = TRY(file.integer("split.no")).value_or(0);
  keys.count = TRY(file.integer("split.count")).value_or(1);
  keys.tensors = TRY(file.integer("split.tensors.count"));
  if (keys.count == 0) keys.count = 1;
  if (keys.count < 0 || keys.count > kGgufPartsMax || keys.index < 0 || keys.index >= keys.count) {
    return Error{ErrorCode::kCorrupt, "the file says that it is part " +
                                          std::to_string(keys.index) + ", from 0, of " +
                                          std::to_string(keys.count)};
  }
  return keys;
}

struct OpenPart {
  MappedFile bytes;
  GgufFile file;
  SplitKeys keys;
};

Error in_gguf_file(const fs::path& path, const Error& error) {
  return {error.code, path.string() + ": " + error.message};
}

Result<OpenPart> open_part(const fs::path& path) {
  MappedFile bytes = TRY(MappedFile::open(path));
  auto file = GgufFile::parse(bytes.bytes());
  if (!file.ok()) return in_gguf_file(path, file.error());
  const auto keys = read_split_keys(file.value());
  if (!keys.ok()) return in_gguf_file(path, keys.error());
  return OpenPart{std::move(bytes), std::move(file.value()), keys.value()};
}

// Part `index`, from 0, of the model whose part at `path` is `opened`.
Result<OpenPart> open_other_part(const fs::path& path, const SplitKeys& opened,
                                 const PartName& name, int64_t index) {
  const fs::path other = path.parent_path() / name_of_part(name.prefix, index + 1, opened.count);
  std::error_code ignored;
  if (!fs::exists(other, ignored)) {
    return Error{ErrorCode::kNotFound,
                 "part " + std::to_string(index + 1) + " of " + std::to_string(opened.count) +
                     " of the model is missing: there is no " + other.string()};
  }
  auto part = open_part(other);
  if (!part.ok()) return part;
  const SplitKeys& keys = part.value().keys;
  if (keys.index == index && keys.count == opened.count) return part;
  return Error{ErrorCode::kCorrupt, other.string() + " is part " + std::to_string(keys.index + 1) +
                                        " of " + std::to_string(keys.count) +
                                        ", which its name does not say"};
}

}  // namespace

bool is_gguf_path(const fs::path& path) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) return false;
  if (path.extension() == kExtension) return true;
  const auto file = open_regular(path);
  if (!file.ok()) return false;
  char magic[kGgufMagic.size()];
  const ssize_t got = read_at(file.value().get(), std::as_writable_bytes(std::span(magic)), 0);
  return got == static_cast<ssize_t>(sizeof(magic)) &&
         std::string_view(magic, sizeof(magic)) == kGgufMagic;
}

fs::path gguf_first_part(const fs::path& path) {
  const auto name = part_name(path);
  if (!name) return path;
  return path.parent_path() / name_of_part(name->prefix, 1, name->count);
}

std::string gguf_model_name(const fs::path& path) {
  const auto name = part_name(path);
  return name ? name->prefix : path.stem().string();
}

Result<GgufModel> GgufModel::open(const fs::path& path) {
  GgufModel model;
  std::optional<OpenPart> given = TRY(open_part(path));
  const SplitKeys keys = given->keys;
  const auto name = part_name(path);
  if (keys.count > 1 && (!name || name->number != keys.index + 1 || name->count != keys.count)) {
    return Error{ErrorCode::kInvalidArgument,
                 path.string() + " is part " + std::to_string(keys.index + 1) + " of " +
                     std::to_string(keys.count) + " of a model; it must be named " +
                     name_of_part("NAME", keys.index + 1, keys.count) +
                     " so that the others can be found"};
  }
  for (int64_t i = 0; i < keys.count; ++i) {
    OpenPart part =
        i == keys.index ? std::move(*given) : TRY(open_other_part(path, keys, *name, i));
    model.file_bytes_ += part.bytes.bytes().size();
    model.files_.push_back(std::move(part.bytes));
    model.parts_.push_back(std::move(part.file));
  }
  const auto indexed = model.index();
  if (!indexed.ok()) return in_gguf_file(path, indexed.error());
  if (keys.tensors && static_cast<uint64_t>(*keys.tensors) != model.tensors_.size()) {
    return Error{ErrorCode::kCorrupt, path.string() + ": the parts hold " +
                                          std::to_string(model.tensors_.size()) + " tensors, not " +
                                          std::to_string(*keys.tensors) + " as they say"};
  }
  return model;
}

Result<GgufModel> GgufModel::parse(std::span<const std::byte> file) {
  GgufModel model;
  model.parts_.push_back(TRY(GgufFile::parse(file)));
  model.file_bytes_ = file.size();
  TRY(model.index());
  return model;
}

const GgufTensor* GgufModel::tensor(std::string_view name) const {
  const auto found = tensors_.find(name);
  return found == tensors_.end() ? nullptr : found->second;
}

Status GgufModel::index() {
  for (const GgufFile& part : parts_) {
    for (const GgufTensor& tensor : part.tensors()) {
      if (tensors_.emplace(tensor.name, &tensor).second) continue;
      return Error{ErrorCode::kCorrupt,
                   "two parts of the model have a tensor " + std::string(tensor.name)};
    }
  }
  return Ok{};
}

}  // namespace lockstep
