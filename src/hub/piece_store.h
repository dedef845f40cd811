// PieceStore: the blobs of one model on this machine, whole or in pieces. Downloads write into it,
// and other machines' pieces are served from it. A file that arrives is BLOB.lockstep with its
// journal (not the name BLOB.incomplete of Hugging Face's tools, which take a file of that name for
// a beginning without holes); once it is whole and checked it is renamed. Any thread.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "hub/model_files.h"
#include "hub/range_file.h"

namespace lockstep {

class PieceStore {
 public:
  PieceStore(std::filesystem::path folder, uint64_t piece_bytes)
      : folder_(std::move(folder)), piece_bytes_(piece_bytes) {}

  PieceCut cut(const HubFile& file) const { return {file.size, piece_bytes_}; }
  std::filesystem::path blob(const HubFile& file) const { return folder_ / file.hash; }
  // There under its final name, with the right length.
  bool is_whole(const HubFile& file) const;
  // The file in pieces, opened or begun. Not for whole ones.
  Result<std::shared_ptr<RangeFile>> partial(const HubFile& file);

  // A piece of a whole file or of one in pieces; false if it is not there.
  Result<bool> read(const HubFile& file, uint32_t piece, std::span<std::byte> bytes);
  // The same without opening the file in pieces for writing, which whoever downloads it may do.
  Result<bool> peek(const HubFile& file, uint32_t piece, std::span<std::byte> bytes) const;
  // Which pieces can be read; of a whole file all.
  std::vector<bool> pieces_here(const HubFile& file);
  // Gives the room of pieces back that are here in a file in pieces, but for those of a file that
  // somebody has mapped. The bytes that came free.
  Result<uint64_t> drop(const HubFile& file, std::span<const uint32_t> pieces);
  // Forgets the pieces that are not what the seal says; whether there were any.
  Result<bool> forget_unsealed(const HubFile& file);
  // All pieces are there and are the file.
  Result<bool> is_hash_right(const HubFile& file);
  // The checked file takes its final name.
  Status finish(const HubFile& file);
  Status discard_whole(const HubFile& file);
  // Of a file that is whole: what a process that was killed left of its pieces.
  void remove_leftovers(const HubFile& file);

  // The digests of all pieces of a file whose hash was checked while not all of it was here. Pieces
  // that come later are checked with them. Empty if there are none.
  std::vector<Digest> sealed(const HubFile& file) const;
  Status seal(const HubFile& file, std::span<const Digest> digests);

  static std::filesystem::path partial_path(const std::filesystem::path& blob);

 private:
  Result<bool> read_whole(const HubFile& file, uint32_t piece, std::span<std::byte> bytes) const;
  // Null where no piece has ever come.
  std::shared_ptr<RangeFile> existing_partial(const HubFile& file);

  const std::filesystem::path folder_;
  const uint64_t piece_bytes_;
  std::mutex mutex_;  // of the map
  std::map<std::string, std::shared_ptr<RangeFile>> partials_;
};

// Writes a small file so that it is there whole or not at all.
Status write_file_atomically(const std::filesystem::path& path, std::string_view content);

}  // namespace lockstep
