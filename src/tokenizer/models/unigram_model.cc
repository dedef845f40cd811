#include "tokenizer/models/unigram_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>

#include "base/threads/work.h"
#include "base/utf8.h"
#include "tokenizer/text/json_part.h"

namespace lockstep {
namespace {

constexpr double kUnknownPenalty = 10.0;  // below the least probable token, as in SentencePiece
constexpr size_t kTrieBytesMax = 1 << 26;
constexpr int32_t kRoot = 1;

struct BestCut {
  double score = -std::numeric_limits<double>::infinity();
  size_t begin = 0;
  int32_t id = -1;
  bool is_reached = false;
};

}  // namespace

Result<std::shared_ptr<const UnigramModel>> UnigramModel::make(const UnigramOptions& options,
                                                               const Vocabulary& vocabulary,
                                                               std::vector<double> scores) {
  std::shared_ptr<UnigramModel> model(new UnigramModel());
  model->options_ = options;
  model->scores_ = std::move(scores);
  size_t bytes = 0;
  double least = std::numeric_limits<double>::infinity();
  for (int32_t id = 0; id < vocabulary.size(); ++id) {
    const auto text = vocabulary.text(id);
    if (!text || vocabulary.is_hidden(id)) continue;
    bytes += text->size();
    if (id < static_cast<int32_t>(model->scores_.size())) {
      least = std::min(least, model->scores_[static_cast<size_t>(id)]);
    }
  }
  if (bytes > kTrieBytesMax) return unsupported_part("model", "with this many long tokens");
  model->unknown_score_ = (std::isfinite(least) ? least : 0.0) - kUnknownPenalty;
  model->edges_.resize(std::bit_ceil(2 * bytes + 2));
  model->token_of_node_.assign(kRoot + 1, kNone);
  const auto count = static_cast<int32_t>(model->scores_.size());
  for (int32_t id = 0; id < std::min(vocabulary.size(), count); ++id) {
    const auto text = vocabulary.text(id);
    if (text && !text->empty() && !vocabulary.is_hidden(id) && id != options.unknown_id) {
      model->insert(*text, id);
    }
  }
  for (int byte = 0; byte < 256 && options.has_byte_tokens; ++byte) {
    model->byte_ids_[byte] = vocabulary.find(fmt::format("<0x{:02X}>", byte));
  }
  return std::shared_ptr<const UnigramModel>(std::move(model));
}

void UnigramModel::encode(std::string_view piece, std::vector<int32_t>& ids) const {
  std::vector<BestCut> best(piece.size() + 1);  // [i]: of the first i bytes
  best[0] = {0.0, 0, kNone, true};
  const auto offer = [&](size_t begin, size_t end, int32_t id, double score) {
    BestCut& cut = best[end];
    const double total = best[begin].score + score;
    if (!cut.is_reached || total > cut.score) cut = {total, begin, id, true};
  };
  for (size_t begin = 0; begin < piece.size();) {
    if (Work::is_over()) return;
    const size_t character = first_utf8_character(piece.substr(begin)).bytes;
    bool has_character = false;
    int32_t node = kRoot;
    for (size_t end = begin; end < piece.size();) {
      node = child(node, static_cast<uint8_t>(piece[end]));
      if (node == kNone) break;
      ++end;
      const int32_t id = token_of_node_[static_cast<size_t>(node)];
      if (id == kNone) continue;
      offer(begin, end, id, scores_[static_cast<size_t>(id)]);
      has_character |= end - begin == character;
    }
    if (!has_character) offer(begin, begin + character, options_.unknown_id, unknown_score_);
    begin += character;
  }
  std::vector<std::pair<size_t, int32_t>> cuts;  // begins and ids, last first
  for (size_t end = piece.size(); end > 0; end = best[end].begin) {
    cuts.emplace_back(best[end].begin, best[end].id);
  }
  for (size_t i = cuts.size(); i-- > 0;) {
    if (cuts[i].second != options_.unknown_id) {
      ids.push_back(cuts[i].second);
      continue;
    }
    const size_t begin = cuts[i].first;
    while (i > 0 && cuts[i - 1].second == options_.unknown_id) --i;  // joins adjacent ones
    const size_t end = i == 0 ? piece.size() : cuts[i - 1].first;
    append_unknown(piece.substr(begin, end - begin), ids);
  }
}

void UnigramModel::append_unknown(std::string_view text, std::vector<int32_t>& ids) const {
  const bool has_bytes = std::all_of(text.begin(), text.end(), [&](char byte) {
    return byte_ids_[static_cast<uint8_t>(byte)].has_value();
  });
  if (!has_bytes) {
    ids.push_back(options_.unknown_id);
    return;
  }
  for (const char byte : text) ids.push_back(*byte_ids_[static_cast<uint8_t>(byte)]);
}

int32_t UnigramModel::child(int32_t node, uint8_t byte) const {
  const TrieEdge& edge = edges_[edge_of(static_cast<uint64_t>(node) << 8 | byte)];
  return edge.key == 0 ? kNone : edge.node;
}

// If two tokens have the same text the last one counts, as in Hugging Face.
void UnigramModel::insert(std::string_view text, int32_t id) {
  int32_t node = kRoot;
  for (const char byte : text) {
    const uint64_t key = static_cast<uint64_t>(node) << 8 | static_cast<uint8_t>(byte);
    TrieEdge& edge = edges_[edge_of(key)];
    if (edge.key == 0) {
      edge = {key, static_cast<int32_t>(token_of_node_.size())};
      token_of_node_.push_back(kNone);
    }
    node = edge.node;
  }
  token_of_node_[static_cast<size_t>(node)] = id;
}

size_t UnigramModel::edge_of(uint64_t key) const {
  constexpr uint64_t kGolden = 0x9E3779B97F4A7C15;  // Fibonacci hashing: the high bits are mixed
  const size_t mask = edges_.size() - 1;
  size_t index = (key * kGolden >> 32) & mask;
  while (edges_[index].key != 0 && edges_[index].key != key) index = (index + 1) & mask;
  return index;
}

}  // namespace lockstep
