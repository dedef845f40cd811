#include "weights/safetensors/checkpoint.h"

#include <algorithm>
#include <functional>
#include <map>
#include <system_error>
#include <unordered_map>
#include <utility>

#include "base/files/mapped_file.h"
#include "base/text_hash.h"
#include "json/json.h"
#include "weights/safetensors/early_tensors.h"
#include "weights/safetensors/safetensors.h"
#include "weights/weight_source.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSingleFile = "model.safetensors";
constexpr const char* kIndexFile = "model.safetensors.index.json";
constexpr size_t kIndexBytesMax = 256 << 20;
constexpr size_t kFilesMax = 4096;

// The tensors that each file of an index must hold.
using FileContents = std::map<std::string, std::vector<std::string>>;

Error in_checkpoint_file(const fs::path& path, const Error& error) {
  return {error.code, path.string() + ": " + error.message};
}

bool is_plain_file_name(std::string_view name) {
  const bool is_folder = name.empty() || name == "." || name == "..";
  return !is_folder && name.find_first_of(std::string_view("/\\\0", 3)) == std::string_view::npos;
}

Result<FileContents> parse_index(std::string_view text) {
  const Json index = TRY(parse_large_json(text, DuplicateKeys::kRefuse));
  const Json* weight_map = find(index, "weight_map");
  if (weight_map == nullptr || !weight_map->is_object()) {
    return Error{ErrorCode::kCorrupt, "the index has no weight_map"};
  }
  FileContents contents;
  for (const auto& member : weight_map->get_object()) {
    const std::string name(member.key().data(), member.key().size());
    const auto* file = member.value().if_string();
    if (file == nullptr || !is_plain_file_name({file->data(), file->size()})) {
      return Error{ErrorCode::kCorrupt, "tensor \"" + name + "\" lies in " +
                                            dump_json(member.value()) +
                                            ", which is not a file name in this folder"};
    }
    contents[std::string(file->data(), file->size())].push_back(name);
  }
  if (contents.empty()) return Error{ErrorCode::kCorrupt, "the weight_map is empty"};
  if (contents.size() <= kFilesMax) return contents;
  return Error{ErrorCode::kUnsupported,
               "the index names more than " + std::to_string(kFilesMax) + " files"};
}

Result<FileContents> read_index(const fs::path& path) {
  const MappedFile file = TRY(MappedFile::open(path));
  const auto bytes = file.bytes();
  if (bytes.size() > kIndexBytesMax) {
    return Error{ErrorCode::kUnsupported,
                 path.string() + " is larger than " + std::to_string(kIndexBytesMax) + " bytes"};
  }
  auto contents = parse_index({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  if (!contents.ok()) return in_checkpoint_file(path, contents.error());
  return contents;
}

// A path that cannot be checked counts as missing; opening it reports why.
bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

Status check_folder(const fs::path& folder) {
  std::error_code error;
  const fs::file_status status = fs::status(folder, error);
  if (status.type() == fs::file_type::not_found) {
    return Error{ErrorCode::kNotFound, folder.string() + " does not exist"};
  }
  if (error) {
    return Error{ErrorCode::kInternal, "cannot read " + folder.string() + ": " + error.message()};
  }
  if (status.type() == fs::file_type::directory) return Ok{};
  return Error{ErrorCode::kInvalidArgument, folder.string() + " is not a folder"};
}

}  // namespace

struct Checkpoint::Impl {
  std::vector<MappedFile> files;
  std::vector<TensorView> tensors;
  // The keys are the names in `tensors`, which no longer changes once this is filled.
  std::unordered_map<std::string_view, const TensorView*, TextHash> by_name;
  std::map<std::string, std::string, std::less<>> unsupported;  // name -> dtype
  std::string format;
  uint64_t file_bytes = 0;
  PartialFiles partial = PartialFiles::kRefused;

  Status add_all(const fs::path& path);
  void add_header(SafetensorsHeader header);
  Status add_indexed(const fs::path& path, const std::vector<std::string>& names);
  Result<SafetensorsHeader> map(const fs::path& path);
  Status check_partial(const MappedFile& file) const;
  void index_names();
};

Result<std::shared_ptr<const Checkpoint>> Checkpoint::open(const fs::path& folder) {
  return open(folder, PartialFiles::kRefused);
}

Result<std::shared_ptr<const Checkpoint>> Checkpoint::open(const fs::path& folder,
                                                           PartialFiles partial) {
  TRY(check_folder(folder));
  auto impl = std::make_unique<Impl>();
  impl->partial = partial;
  const fs::path single = folder / kSingleFile;
  const fs::path index = folder / kIndexFile;
  if (is_there(single)) {
    TRY(impl->add_all(single));
  } else if (is_there(index)) {
    const FileContents contents = TRY(read_index(index));
    for (const auto& [file, names] : contents) {
      TRY(impl->add_indexed(folder / file, names));
    }
  } else {
    return Error{ErrorCode::kNotFound,
                 folder.string() + " has neither " + kSingleFile + " nor " + kIndexFile};
  }
  impl->index_names();
  return std::shared_ptr<const Checkpoint>(new Checkpoint(std::move(impl)));
}

Result<std::shared_ptr<const Checkpoint>> Checkpoint::open_file(const fs::path& file,
                                                                PartialFiles partial) {
  auto impl = std::make_unique<Impl>();
  impl->partial = partial;
  TRY(impl->add_all(file));
  impl->index_names();
  return std::shared_ptr<const Checkpoint>(new Checkpoint(std::move(impl)));
}

Result<std::shared_ptr<const Checkpoint>> Checkpoint::view(std::span<const std::byte> file) {
  auto impl = std::make_unique<Impl>();
  impl->add_header(TRY(read_safetensors_header(file)));
  impl->file_bytes = file.size();
  impl->index_names();
  return std::shared_ptr<const Checkpoint>(new Checkpoint(std::move(impl)));
}

Checkpoint::Checkpoint(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Checkpoint::~Checkpoint() = default;

Result<const TensorView*> Checkpoint::tensor(std::string_view name) const {
  const auto found = impl_->by_name.find(name);
  if (found != impl_->by_name.end()) return found->second;
  const auto unsupported = impl_->unsupported.find(name);
  if (unsupported != impl_->unsupported.end()) {
    return Error{ErrorCode::kUnsupported, "tensor " + std::string(name) + " has the dtype " +
                                              unsupported->second +
                                              ", which lockstep cannot compute with"};
  }
  return no_tensor(name);
}

bool Checkpoint::has(std::string_view name) const {
  return impl_->by_name.contains(name) || impl_->unsupported.contains(name);
}

std::span<const TensorView> Checkpoint::tensors() const {
  return impl_->tensors;
}

const std::string& Checkpoint::format() const {
  return impl_->format;
}

uint64_t Checkpoint::file_bytes() const {
  return impl_->file_bytes;
}

bool Checkpoint::is_mapped() const {
  return !impl_->files.empty();
}

std::span<const MappedFile> Checkpoint::files() const {
  return impl_->files;
}

Result<SafetensorsHeader> Checkpoint::Impl::map(const fs::path& path) {
  files.push_back(TRY(MappedFile::open(path)));
  MappedFile& file = files.back();
  file_bytes += file.bytes().size();
  if (!file.missing().empty()) TRY(check_partial(file));
  auto header = read_safetensors_header(file.bytes());
  if (!header.ok()) return in_checkpoint_file(path, header.error());
  if (partial == PartialFiles::kTables && file.is_in_pieces()) {
    std::vector<ByteRange> kept{{0, safetensors_head_bytes(file.bytes())}};
    for (const TensorView& tensor : header.value().tensors) {
      const auto place = file.place_of(tensor.bytes);
      if (place && is_read_early(tensor) && file.check_here(tensor.bytes).ok()) {
        kept.push_back(*place);
      }
    }
    TRY(file.keep_only(std::move(kept)));
  }
  for (TensorView& tensor : header.value().tensors) {
    tensor.is_here = file.check_here(tensor.bytes).ok();
  }
  format = header.value().format;
  return header;
}

Status Checkpoint::Impl::check_partial(const MappedFile& file) const {
  if (partial == PartialFiles::kRefused) {
    return Error{ErrorCode::kNotFound, file.path().string() +
                                           " is only partly on this machine, which keeps its share "
                                           "of the model; `lockstep pull` fetches the rest"};
  }
  TRY(file.check_here(file.bytes().first(std::min<size_t>(8, file.bytes().size()))));
  return file.check_here(file.bytes().first(safetensors_head_bytes(file.bytes())));
}

Status Checkpoint::Impl::add_all(const fs::path& path) {
  add_header(TRY(map(path)));
  return Ok{};
}

void Checkpoint::Impl::add_header(SafetensorsHeader header) {
  tensors = std::move(header.tensors);
  for (auto& tensor : header.unsupported) {
    unsupported.emplace(std::move(tensor.name), std::move(tensor.dtype));
  }
}

void Checkpoint::Impl::index_names() {
  for (const TensorView& tensor : tensors) by_name.emplace(tensor.name, &tensor);
}

// A file may hold tensors that the index does not list; these are ignored.
Status Checkpoint::Impl::add_indexed(const fs::path& path, const std::vector<std::string>& names) {
  SafetensorsHeader header = TRY(map(path));
  std::unordered_map<std::string_view, TensorView*, TextHash> known;
  for (TensorView& view : header.tensors) known.emplace(view.name, &view);
  std::unordered_map<std::string_view, std::string_view, TextHash> unknown;
  for (const auto& tensor : header.unsupported) unknown.emplace(tensor.name, tensor.dtype);
  for (const std::string& name : names) {
    if (const auto view = known.find(name); view != known.end()) {
      tensors.push_back(*view->second);
    } else if (const auto other = unknown.find(name); other != unknown.end()) {
      unsupported.emplace(name, other->second);
    } else {
      return Error{ErrorCode::kCorrupt,
                   path.string() + " has no tensor " + name + ", which the index says it has"};
    }
  }
  return Ok{};
}

}  // namespace lockstep
