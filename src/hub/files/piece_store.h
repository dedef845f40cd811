// PieceStore: the blobs of one model on this machine, whole or in pieces. Downloads write into it,
// and other machines are served from it. An incomplete file is BLOB.lockstep with its journal (not
// BLOB.incomplete, which Hugging Face's tools take for a beginning without holes); once it is whole
// and checked it is renamed. Any thread.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "hub/files/model_files.h"
#include "hub/files/range_file.h"

namespace lockstep {

class PieceStore {
 public:
  PieceStore(std::filesystem::path folder, uint64_t piece_bytes)
      : folder_(std::move(folder)), piece_bytes_(piece_bytes) {}

  PieceCut cut(const HubFile& file) const { return {file.size, piece_bytes_}; }
  std::filesystem::path blob(const HubFile& file) const { return folder_ / file.hash; }
  // Here under its final name, with the right length.
  bool is_whole(const HubFile& file) const;
  // The file in pieces, opened or created. Not for whole ones.
  Result<std::shared_ptr<RangeFile>> partial(const HubFile& file);

  // A piece of a whole file or of one in pieces; false if it is not here.
  Result<bool> read(const HubFile& file, uint32_t piece, std::span<std::byte> bytes);
  // The same without opening the file in pieces for writing, so it may be used during a download.
  Result<bool> peek(const HubFile& file, uint32_t piece, std::span<std::byte> bytes) const;
  // The readable pieces; for a whole file all.
  std::vector<bool> pieces_here(const HubFile& file);
  // Frees the disk space of these pieces of a file in pieces, unless the file is mapped. Returns
  // the bytes freed.
  Result<uint64_t> drop(const HubFile& file, std::span<const uint32_t> pieces);
  // Forgets the pieces that do not match the seal; whether there were any.
  Result<bool> forget_unsealed(const HubFile& file);
  // All pieces are here and the file's hash is right.
  Result<bool> is_hash_right(const HubFile& file);
  // Gives the checked file its final name.
  Status finish(const HubFile& file);
  Status discard_whole(const HubFile& file);
  // For a whole file: removes what a killed process left of its pieces.
  void remove_leftovers(const HubFile& file);

  // The digests of all pieces of a file whose hash was checked while it was incomplete here. Later
  // pieces are checked with them. Empty if there are none.
  std::vector<Digest> sealed(const HubFile& file) const;
  Status seal(const HubFile& file, std::span<const Digest> digests);

  static std::filesystem::path partial_path(const std::filesystem::path& blob);

 private:
  Result<bool> read_whole(const HubFile& file, uint32_t piece, std::span<std::byte> bytes) const;
  // Null if no piece has ever arrived.
  std::shared_ptr<RangeFile> existing_partial(const HubFile& file);

  const std::filesystem::path folder_;
  const uint64_t piece_bytes_;
  std::mutex mutex_;  // guards the map
  std::map<std::string, std::shared_ptr<RangeFile>> partials_;
};

// Writes a small file completely or not at all.
Status write_file_atomically(const std::filesystem::path& path, std::string_view content);

}  // namespace lockstep
