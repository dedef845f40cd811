#include "model/load/rank_reads.h"

#include <doctest/doctest.h>

#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "base/crypto/hasher.h"
#include "kernels/isa.h"
#include "model/load/stages.h"
#include "model/load/stored_forms.h"
#include "model/load/weights.h"
#include "support/golden.h"
#include "support/temporary_folder.h"
#include "weights/safetensors/early_tensors.h"
#include "weights/safetensors/safetensors.h"
#include "weights/source/safetensors_source.h"

using namespace lockstep;

namespace {

namespace fs = std::filesystem;

constexpr uint64_t kSmallPiece = 4096;  // a page, so that hardly a byte too many is here

// A checkpoint folder in which the weight files have only the pieces that `reads` lists, and their
// tables.
class PartialFolder {
 public:
  PartialFolder(const fs::path& whole, const RankReads& reads) {
    for (const auto& entry : fs::directory_iterator(whole)) {
      if (entry.path().extension() == ".safetensors") {
        add(entry.path(), reads);
      } else {
        fs::copy_file(entry.path(), folder_.path() / entry.path().filename());
      }
    }
  }
  const fs::path& path() const { return folder_.path(); }
  uint64_t here() const { return here_; }
  uint64_t total() const { return total_; }
  // As if the piece with this byte had been lost.
  void lose(const std::string& name, uint64_t at) const {
    const fs::path blob = folder_.path() / (name + kPartialFileEnding);
    std::ofstream journal(piece_journal_of(blob), std::ios::binary | std::ios::app);
    const auto record =
        encode_journal_record(static_cast<uint32_t>(at / kSmallPiece), std::nullopt);
    journal.write(reinterpret_cast<const char*>(record.data()),
                  static_cast<std::streamsize>(record.size()));
  }

 private:
  void add(const fs::path& file, const RankReads& reads) {
    const auto mapped = MappedFile::open(file);
    REQUIRE(mapped.ok());
    const auto bytes = mapped.value().bytes();
    const PieceCut cut{bytes.size(), kSmallPiece};
    std::vector<ByteRange> ranges{{0, safetensors_head_bytes(bytes)}};
    const auto header = read_safetensors_header(bytes);
    REQUIRE(header.ok());
    for (const TensorView& tensor : header.value().tensors) {
      if (is_read_early(tensor)) ranges.push_back(*mapped.value().place_of(tensor.bytes));
    }
    for (const FileReads& of_file : reads) {
      if (of_file.file == file) {
        ranges.insert(ranges.end(), of_file.ranges.begin(), of_file.ranges.end());
      }
    }
    const std::string name = file.filename().string();
    const fs::path blob = folder_.path() / (name + kPartialFileEnding);
    std::ofstream data(blob, std::ios::binary), journal(piece_journal_of(blob), std::ios::binary);
    const auto write = [](std::ofstream& to, std::span<const std::byte> from) {
      to.write(reinterpret_cast<const char*>(from.data()),
               static_cast<std::streamsize>(from.size()));
    };
    write(journal, encode_journal_head(cut));
    for (uint32_t piece = 0; piece < cut.count(); ++piece) {
      const ByteRange place = cut.range(piece);
      const bool is_here = std::any_of(ranges.begin(), ranges.end(), [&](const ByteRange& range) {
        return range.begin < place.end && place.begin < range.end;
      });
      if (!is_here) continue;
      const auto part = bytes.subspan(place.begin, place.size());
      data.seekp(static_cast<std::streamoff>(place.begin));
      write(data, part);
      write(journal, encode_journal_record(piece, sha256(part)));
      here_ += place.size();
    }
    data.close();
    fs::resize_file(blob, bytes.size());
    fs::create_symlink(blob.filename(), folder_.path() / name);
    total_ += bytes.size();
  }

  TemporaryFolder folder_;
  uint64_t here_ = 0, total_ = 0;
};

struct Placed {
  std::vector<double> shares;
  int stages = 1;
};

Result<Weights> load_rank(const OpenedModel& model, const Placed& split, int rank) {
  const int ranks = static_cast<int>(split.shares.size()) / split.stages;
  const int stage = rank / ranks;
  std::vector<Range> layers{{0, model.config.layers}};
  if (split.stages > 1) {
    layers = TRY(deal_layers(TRY(token_bytes_of(*model.source, model.config)),
                             stage_shares(split.shares, split.stages)));
  }
  const auto first = split.shares.begin() + stage * ranks;
  const std::vector<double> shares(first, first + ranks);
  const Cut cut =
      TRY(Cut::make(model.config, shares, {TRY(alignment_of(*model.source, model.config)), false}));
  auto device = TRY(open_device({.kernels = available_kernels().back()}));
  return load_weights({*model.source,
                       model.config,
                       {cut, rank % ranks, layers[static_cast<size_t>(stage)]},
                       *device});
}

}  // namespace

// Reading a byte next to the present ones would end the test with SIGSEGV.
TEST_CASE("a rank reads only what rank_reads lists, whatever the checkpoint's format") {
  std::vector<std::string> names = all_golden_cases();
  names.insert(names.end(), kDraftGoldenCases.begin(), kDraftGoldenCases.end());
  for (const std::string& name : names) {
    CAPTURE(name);
    const bool is_block = name == "deepseekv4-dspark";
    const bool drafts = name.starts_with("mtp-") || is_block;
    for (const Placed& split : {Placed{{1}}, Placed{{1, 1}}, Placed{{3, 1}}, Placed{{1, 1}, 2}}) {
      auto whole = open_model(golden_folder(name));
      REQUIRE(whole.ok());
      if (drafts) use_draft_layer(whole.value(), split.stages);
      const bool has_layer = drafts && (!is_block || split.stages == 1);
      REQUIRE(whole.value().config.has_draft_layer() == has_layer);
      const auto reads = rank_reads(whole.value(), split.shares, split.stages);
      REQUIRE_MESSAGE(reads.ok(), (reads.ok() ? "" : reads.error().message));
      for (int rank = 0; rank < static_cast<int>(split.shares.size()); ++rank) {
        const auto own = static_cast<size_t>(rank);
        const PartialFolder folder(golden_folder(name), reads.value()[own]);
        auto partial = open_model(folder.path().string(), PartialFiles::kAllowed);
        REQUIRE_MESSAGE(partial.ok(), (partial.ok() ? "" : partial.error().message));
        if (drafts) use_draft_layer(partial.value(), split.stages);
        CHECK(partial.value().config.has_draft_layer() == has_layer);
        const auto loaded = load_rank(partial.value(), split, rank);
        REQUIRE_MESSAGE(loaded.ok(), (loaded.ok() ? "" : loaded.error().message));
        const auto expected = load_rank(whole.value(), split, rank);
        REQUIRE(expected.ok());
        CHECK(loaded.value().read_bytes == expected.value().read_bytes);
        // It can also be computed where only the part is present.
        const auto again = rank_reads(partial.value(), split.shares, split.stages);
        REQUIRE(again.ok());
        for (size_t i = 0; i < again.value()[own].size(); ++i) {
          CHECK(again.value()[own][i].ranges == reads.value()[own][i].ranges);
        }
      }
    }
  }
}

TEST_CASE("a stage reads only its layers") {
  const auto whole = open_model(golden_folder("llama3-bf16"));
  REQUIRE(whole.ok());
  const auto reads = rank_reads(whole.value(), std::vector<double>{1, 1}, 2);
  REQUIRE(reads.ok());
  uint64_t here = 0, total = 0;
  for (const RankReads& own : reads.value()) {
    const PartialFolder folder(golden_folder("llama3-bf16"), own);
    here += folder.here();
    total = folder.total();
  }
  // Both have the pieces at the border between the stages, and the table.
  CHECK(here <= total + 4 * kSmallPiece);
  CHECK(here >= total);
  CHECK(!rank_reads(whole.value(), std::vector<double>{1, 1, 1}, 2).ok());
  CHECK(!rank_reads(whole.value(), {}, 1).ok());
}

TEST_CASE("a rank names its missing bytes, and opening without support for parts is refused") {
  const std::string golden = golden_folder("llama3-bf16");
  const auto whole = open_model(golden);
  REQUIRE(whole.ok());
  const auto reads = rank_reads(whole.value(), std::vector<double>{1, 1}, 1);
  REQUIRE(reads.ok());
  const PartialFolder folder(golden, reads.value()[0]);
  const auto refused = open_model(folder.path().string());
  REQUIRE(!refused.ok());
  CHECK(refused.error().message.find("only partly on this machine") != std::string::npos);

  const auto partial = open_model(folder.path().string(), PartialFiles::kAllowed);
  REQUIRE(partial.ok());
  const auto other = load_rank(partial.value(), {{1, 1}}, 1);
  REQUIRE(!other.ok());
  CHECK(other.error().code == ErrorCode::kNotFound);
  CHECK(other.error().message.find("are not on this machine") != std::string::npos);

  const ByteRange last = reads.value()[0].front().ranges.back();
  folder.lose("model.safetensors", last.end - 1);
  const auto damaged = open_model(folder.path().string(), PartialFiles::kAllowed);
  REQUIRE(damaged.ok());
  const auto own = load_rank(damaged.value(), {{1, 1}}, 0);
  REQUIRE(!own.ok());
  CHECK(own.error().code == ErrorCode::kNotFound);
}
