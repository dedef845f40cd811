#include "engine/run/model_identity.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/crypto/hasher.h"
#include "base/files/file_io.h"
#include "base/files/file_time.h"
#include "base/files/mapped_file.h"
#include "base/files/unique_fd.h"
#include "base/hex.h"
#include "base/version.h"
#include "kernels/kernels.h"
#include "model/load/shape_model.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr size_t kSampleBytes = 4096;
constexpr size_t kSamplesMin = 4;  // per file
constexpr size_t kHeadBytesMax = size_t{16} << 20;
constexpr size_t kHashDigits = 64;  // in names of a hub's cache: SHA-256

Error file_error(const fs::path& path) {
  return {ErrorCode::kInternal,
          fmt::format("{} cannot be read: {}", path.string(), std::strerror(errno))};
}

// Texts and numbers, each with its length, so that different lists never give the same bytes.
class Description {
 public:
  void add(std::string_view text) {
    hasher_.add(fmt::format("{}:", text.size()));
    hasher_.add(text);
  }
  void add(std::string_view name, uint64_t number) { add(fmt::format("{}={}", name, number)); }
  void add(std::span<const std::byte> bytes) {
    add({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }
  // Times of files count only for what stays on this machine.
  explicit Description(bool has_times) : has_times_(has_times) {}
  bool has_times() const { return has_times_; }

  Digest finish() {
    Digest digest{};
    LOCKSTEP_CHECK(from_hex(hasher_.finish_hex(), digest));
    return digest;
  }

 private:
  const bool has_times_;
  Hasher hasher_{HashKind::kSha256};
};

Result<std::vector<std::byte>> read_some(const fs::path& path, int fd, uint64_t offset,
                                         size_t size) {
  std::vector<std::byte> bytes(size);
  const ssize_t got = read_at(fd, bytes, offset);
  if (got < 0) return file_error(path);
  bytes.resize(static_cast<size_t>(got));  // was shortened meanwhile: then it is another file
  return bytes;
}

// The end of the table of tensors: exact for a safetensors file, a sufficient guess for GGUF.
Result<size_t> head_bytes_of(const fs::path& path, int fd, uint64_t size) {
  uint64_t head = kHeadBytesMax;
  if (path.extension() == ".safetensors") {
    const std::vector<std::byte> length = TRY(read_some(path, fd, 0, sizeof(uint64_t)));
    if (length.size() == sizeof(head)) std::memcpy(&head, length.data(), sizeof(head));
  }
  return static_cast<size_t>(std::min({head, size, uint64_t{kHeadBytesMax}}));
}

Status describe_content(const fs::path& path, size_t samples, Description& description) {
  const UniqueFd fd = TRY(open_regular(path));
  struct stat facts {};
  if (::fstat(fd.get(), &facts) != 0) return file_error(path);
  const auto size = static_cast<uint64_t>(facts.st_size);
  description.add("size", size);
  if (description.has_times()) {
    description.add("changed_ns", static_cast<uint64_t>(changed_ns(facts)));
  }
  const size_t head = TRY(head_bytes_of(path, fd.get(), size));
  description.add(std::span<const std::byte>(TRY(read_some(path, fd.get(), 0, head))));
  for (size_t i = 0; i < samples; ++i) {  // the last one ends with the file
    const uint64_t last = size - std::min<uint64_t>(size, kSampleBytes);
    const uint64_t offset = last * i / (samples - 1);
    description.add(
        std::span<const std::byte>(TRY(read_some(path, fd.get(), offset, kSampleBytes))));
  }
  return Ok{};
}

// The hash by which a hub's cache names the file; empty if it is not in one.
std::string hash_name(const fs::path& path) {
  std::error_code error;
  if (!fs::is_symlink(path, error)) return {};
  fs::path blob = fs::canonical(path, error);
  if (blob.extension() == kPartialFileEnding) blob.replace_extension();
  const std::string name = blob.filename().string();
  return blob.parent_path().filename() == "blobs" && is_hex(name, kHashDigits) ? name : "";
}

Status describe_file(const fs::path& path, size_t samples, Description& description) {
  description.add(path.filename().string());
  if (const std::string hash = hash_name(path); !hash.empty()) {
    description.add(hash);
    return Ok{};
  }
  std::error_code error;
  const fs::path content = fs::canonical(path, error);
  if (error || fs::exists(piece_journal_of(content), error)) {
    return Error{
        ErrorCode::kUnsupported,
        fmt::format("only parts of {} are here, and nothing identifies the whole", path.string())};
  }
  return describe_content(path, samples, description);
}

// The files of a checkpoint that hold weights, by name. For a split GGUF model one is named; the
// others are next to it.
Result<std::vector<fs::path>> weight_files(const fs::path& model) {
  std::error_code error;
  const bool is_folder = fs::is_directory(model, error);
  const fs::path folder = is_folder ? model : model.parent_path();
  const std::string file = model.filename().string();
  const size_t split = file.rfind("-of-");  // "x-00002-of-00003.gguf"
  const std::string prefix = file.substr(0, split - std::min(split, size_t{5}));
  std::vector<fs::path> files;
  for (fs::directory_iterator entry(folder.empty() ? "." : folder, error), end;
       !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    const bool is_part = split != std::string::npos && name.starts_with(prefix) &&
                         name.find("-of-") != std::string::npos && name.ends_with(".gguf");
    if (is_folder ? name.ends_with(".safetensors") : name == file || is_part) {
      files.push_back(entry->path());
    }
  }
  if (error) {
    return Error{ErrorCode::kInternal,
                 fmt::format("{} cannot be read: {}", folder.string(), error.message())};
  }
  std::sort(files.begin(), files.end());
  return files;
}

Status describe_checkpoint(const std::string& model, Description& description) {
  const std::vector<fs::path> files = TRY(weight_files(model));
  description.add("files", files.size());
  const size_t in_all = kSampleBytesMax / kSampleBytes;
  const size_t samples = std::max(kSamplesMin, in_all / std::max<size_t>(files.size(), 1));
  for (const fs::path& file : files) TRY(describe_file(file, samples, description));
  for (const char* name : {"config.json", "model.safetensors.index.json"}) {
    const auto text = read_small_file(fs::path(model) / name);
    description.add(text.ok() ? text.value() : "");
  }
  return Ok{};
}

Status describe_shape(const std::string& model, Description& description) {
  const ShapeModel shape = TRY(parse_shape_model(model));
  std::error_code ignored;
  const bool is_path = fs::exists(shape.shape, ignored);
  const bool is_folder = fs::is_directory(shape.shape, ignored);
  const fs::path config = shape.shape + (is_folder ? "/config.json" : "");
  description.add(is_path ? TRY(read_small_file(config)) : shape.shape);
  description.add(shape.format);
  description.add("layers", static_cast<uint64_t>(shape.layers));
  return Ok{};
}

Status describe_model(const GroupSpec& spec, Description& description) {
  description.add(kVersion);
  description.add("exact", spec.exact ? 1 : 0);
  description.add("kv");
  description.add(kv_kind_name(kv_of(spec.exact, spec.kv)));
  description.add("bits", static_cast<uint64_t>(spec.bits));
  const std::string model = spec.model.string();
  const bool is_shape = is_shape_model(model);
  description.add(is_shape ? "shape" : "checkpoint");
  return is_shape ? describe_shape(model, description) : describe_checkpoint(model, description);
}

}  // namespace

Result<Digest> model_identity(const GroupSpec& spec) {
  Description description(true);
  description.add("lockstep pages");
  description.add("format", kPageFormat);
  description.add("positions", kPagePositions);
  if (spec.draft_layer) description.add("draft layer");
  TRY(describe_model(spec, description));
  return description.finish();
}

Result<Digest> answer_identity(const GroupSpec& spec) {
  if (spec.wire != Wire::kF32) {
    return Error{ErrorCode::kUnsupported,
                 "sums between ranks are rounded (--wire), so answers depend on the ranks"};
  }
  Description description(false);
  description.add("lockstep answers");
  description.add("format", kPageFormat);
  TRY(describe_model(spec, description));
  return description.finish();
}

}  // namespace lockstep
