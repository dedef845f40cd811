#include "weights/safetensors/safetensors_writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <system_error>
#include <utility>

#include "base/check.h"
#include "base/files/file_io.h"
#include "json/json.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr size_t kWrittenLengthBytes = 8;
constexpr size_t kHeaderAlignment = 8;

Error system_error(const fs::path& path, int error_number) {
  return {ErrorCode::kInternal,
          "cannot write " + path.string() + ": " + std::generic_category().message(error_number)};
}

Result<UniqueFd> create_new(const fs::path& path) {
  UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (!fd.is_open()) return system_error(path, errno);
  return fd;
}

Status write_all(const fs::path& path, int fd, uint64_t offset, std::span<const std::byte> bytes) {
  if (!write_at(fd, bytes, offset)) return system_error(path, errno);
  return Ok{};
}

// A full disk or a network file system may report its failure only here.
Status close_durably(const fs::path& path, UniqueFd& fd) {
  if (::fsync(fd.get()) != 0) return system_error(path, errno);
  if (::close(fd.release()) != 0) return system_error(path, errno);
  return Ok{};
}

std::string file_name(size_t index, size_t count) {
  if (count == 1) return "model.safetensors";
  return fmt::format("model-{:05}-of-{:05}.safetensors", index + 1, count);
}

}  // namespace

uint64_t PlannedTensor::bytes() const {
  uint64_t bytes = dtype_bytes(dtype);
  for (const int64_t size : shape) bytes *= static_cast<uint64_t>(size);
  return bytes;
}

Result<SafetensorsWriter> SafetensorsWriter::create(const fs::path& folder,
                                                    std::vector<PlannedTensor> tensors,
                                                    uint64_t file_bytes_max) {
  SafetensorsWriter writer(folder, std::move(tensors));
  writer.plan_files(file_bytes_max);
  for (size_t i = 0; i < writer.files_.size(); ++i) TRY(writer.create_file(writer.files_[i], i));
  return writer;
}

void SafetensorsWriter::plan_files(uint64_t file_bytes_max) {
  files_.emplace_back();
  for (size_t i = 0; i < tensors_.size(); ++i) {
    const uint64_t bytes = tensors_[i].bytes();
    if (!files_.back().tensors.empty() && files_.back().data_bytes + bytes > file_bytes_max) {
      files_.emplace_back();
    }
    files_.back().tensors.push_back(i);
    files_.back().data_bytes += bytes;
  }
  places_.resize(tensors_.size());
  for (size_t f = 0; f < files_.size(); ++f) {
    File& file = files_[f];
    // Widest elements first, so that all are aligned.
    std::stable_sort(file.tensors.begin(), file.tensors.end(), [&](size_t a, size_t b) {
      return dtype_bytes(tensors_[a].dtype) > dtype_bytes(tensors_[b].dtype);
    });
    file.bytes_left = file.data_bytes;
    file.data_begin = kWrittenLengthBytes + header(file).size();
    uint64_t offset = file.data_begin;
    for (const size_t tensor : file.tensors) {
      places_[tensor] = {f, offset};
      offset += tensors_[tensor].bytes();
    }
  }
}

std::string SafetensorsWriter::header(const File& file) const {
  JsonObject object;
  object["__metadata__"] = JsonObject{{"format", "mlx"}};
  uint64_t begin = 0;
  for (const size_t index : file.tensors) {
    const PlannedTensor& tensor = tensors_[index];
    const uint64_t end = begin + tensor.bytes();
    LOCKSTEP_CHECK(!object.contains(tensor.name));
    object[tensor.name] = JsonObject{{"dtype", dtype_name(tensor.dtype)},
                                     {"shape", JsonArray(tensor.shape.begin(), tensor.shape.end())},
                                     {"data_offsets", JsonArray{begin, end}}};
    begin = end;
  }
  std::string text = dump_json(object);
  text.append((kHeaderAlignment - text.size() % kHeaderAlignment) % kHeaderAlignment, ' ');
  return text;
}

Status SafetensorsWriter::create_file(File& file, size_t index) {
  file.path = folder_ / file_name(index, files_.size());
  file.fd = TRY(create_new(file.path));
  const std::string text = header(file);
  std::string start;
  for (size_t i = 0; i < kWrittenLengthBytes; ++i) start += static_cast<char>(text.size() >> 8 * i);
  start += text;
  return write_all(file.path, file.fd.get(), 0, std::as_bytes(std::span<const char>(start)));
}

Status SafetensorsWriter::write(size_t tensor, uint64_t offset, std::span<const std::byte> bytes) {
  const Place place = places_[tensor];
  File& file = files_[place.file];
  LOCKSTEP_CHECK(offset + bytes.size() <= tensors_[tensor].bytes());
  LOCKSTEP_CHECK(bytes.size() <= file.bytes_left);
  TRY(write_all(file.path, file.fd.get(), place.offset + offset, bytes));
  file.bytes_left -= bytes.size();
  return Ok{};
}

Status SafetensorsWriter::finish() {
  for (File& file : files_) {
    LOCKSTEP_CHECK(file.bytes_left == 0);
    TRY(close_durably(file.path, file.fd));
  }
  return write_index();
}

uint64_t SafetensorsWriter::file_bytes() const {
  uint64_t bytes = 0;
  for (const File& file : files_) bytes += file.data_begin + file.data_bytes;
  return bytes;
}

Status SafetensorsWriter::write_index() const {
  uint64_t total = 0;
  std::map<std::string_view, std::string> sorted;
  for (size_t i = 0; i < tensors_.size(); ++i) {
    total += tensors_[i].bytes();
    sorted.emplace(tensors_[i].name, files_[places_[i].file].path.filename().string());
  }
  JsonObject weight_map;
  for (const auto& [name, file] : sorted) weight_map[name] = file;
  const JsonObject index{{"metadata", JsonObject{{"total_size", total}}},
                         {"weight_map", std::move(weight_map)}};
  return write_new_file(folder_ / "model.safetensors.index.json", dump_json(index) + "\n");
}

Status write_new_file(const fs::path& path, std::string_view content) {
  UniqueFd fd = TRY(create_new(path));
  TRY(write_all(path, fd.get(), 0, std::as_bytes(std::span<const char>(content))));
  return close_durably(path, fd);
}

}  // namespace lockstep
