// SafetensorsWriter: writes a checkpoint of known tensors as safetensors files of limited size and
// their index, named as by mlx_lm and Hugging Face. Contents arrive in any order and in pieces, so
// only one piece is in memory. The caller owns the folder and removes an unfinished checkpoint. One
// thread. Format: https://github.com/huggingface/safetensors
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/files/unique_fd.h"
#include "base/result.h"
#include "tensor/dtype.h"

namespace lockstep {

struct PlannedTensor {
  std::string name;
  DType dtype = DType::kBF16;
  std::vector<int64_t> shape;

  uint64_t bytes() const;
};

class SafetensorsWriter {
 public:
  // As in mlx_lm. A larger tensor gets its own file.
  static constexpr uint64_t kFileBytesMax = uint64_t{5} << 30;

  // Creates the files with their headers. `folder` must exist. kInternal names the file and the
  // system's error ("No space left on device").
  static Result<SafetensorsWriter> create(const std::filesystem::path& folder,
                                          std::vector<PlannedTensor> tensors,
                                          uint64_t file_bytes_max = kFileBytesMax);

  // Writes bytes of tensors[tensor] from `offset` on. Each byte must be written once.
  Status write(size_t tensor, uint64_t offset, std::span<const std::byte> bytes);
  // After the last write: writes the index and syncs everything to disk. All bytes must be written.
  Status finish();

  uint64_t file_bytes() const;  // including headers, without the index

 private:
  struct File {
    std::filesystem::path path;
    UniqueFd fd;
    std::vector<size_t> tensors;  // in the order of their data
    uint64_t data_begin = 0;
    uint64_t data_bytes = 0;
    uint64_t bytes_left = 0;  // to be written
  };
  struct Place {
    size_t file = 0;
    uint64_t offset = 0;  // in the file
  };

  SafetensorsWriter(std::filesystem::path folder, std::vector<PlannedTensor> tensors)
      : folder_(std::move(folder)), tensors_(std::move(tensors)) {}
  void plan_files(uint64_t file_bytes_max);
  Status create_file(File& file, size_t index);
  std::string header(const File& file) const;
  Status write_index() const;

  std::filesystem::path folder_;
  std::vector<PlannedTensor> tensors_;
  std::vector<Place> places_;  // of the tensors
  std::vector<File> files_;
};

// Creates the file, writes it and syncs it to disk. For the small files of a model folder.
Status write_new_file(const std::filesystem::path& path, std::string_view content);

}  // namespace lockstep
