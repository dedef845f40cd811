#include "tokenizer/models/word_piece_model.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/threads/work.h"
#include "base/utf8.h"

namespace lockstep {

WordPieceModel::WordPieceModel(WordPieceOptions options,
                               std::shared_ptr<const Vocabulary> vocabulary)
    : options_(std::move(options)), vocabulary_(std::move(vocabulary)) {
  for (int32_t id = 0; id < vocabulary_->size(); ++id) {
    const auto text = vocabulary_->text(id);
    if (text) token_bytes_max_ = std::max(token_bytes_max_, text->size());
  }
}

void WordPieceModel::encode(std::string_view piece, std::vector<int32_t>& ids) const {
  std::vector<size_t> ends;  // of the characters
  for (size_t at = 0; at < piece.size(); ends.push_back(at)) {
    at += first_utf8_character(piece.substr(at)).bytes;
    if (ends.size() == options_.word_characters_max) {
      ids.push_back(options_.unknown_id);
      return;
    }
  }
  const size_t count_before = ids.size();
  size_t begin = 0;
  while (begin < piece.size()) {
    const std::string& prefix = begin == 0 ? options_.first_prefix : options_.continuation_prefix;
    std::optional<int32_t> id;
    size_t end = begin;
    // Starts with the longest possible token, so that long words do not take quadratic time.
    const auto longest = std::upper_bound(ends.begin(), ends.end(), begin + token_bytes_max_);
    for (auto i = static_cast<size_t>(longest - ends.begin()); i-- > 0 && ends[i] > begin && !id;) {
      if (Work::is_over()) return;
      id = vocabulary_->find(prefix + std::string(piece.substr(begin, ends[i] - begin)));
      end = ends[i];
    }
    if (!id) {
      ids.resize(count_before);
      ids.push_back(options_.unknown_id);
      return;
    }
    ids.push_back(*id);
    begin = end;
  }
}

}  // namespace lockstep
