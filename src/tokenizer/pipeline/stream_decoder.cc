#include <utility>

#include "base/utf8.h"
#include "tokenizer/tokenizer.h"

namespace lockstep {

StreamDecoder::StreamDecoder(std::shared_ptr<const Tokenizer> tokenizer, bool strip_leading_space,
                             std::map<int32_t, std::string> printed)
    : tokenizer_(std::move(tokenizer)),
      printed_(std::move(printed)),
      strip_leading_space_(strip_leading_space && tokenizer_->strips_leading_space()) {}

std::string StreamDecoder::push(int32_t id) {
  if (const auto printed = printed_.find(id); printed != printed_.end()) {
    strip_leading_space_ = false;
    return finish() + printed->second;
  }
  std::string bytes = tokenizer_->token_bytes(id);
  if (bytes.empty()) return "";
  if (std::exchange(strip_leading_space_, false) && bytes.front() == ' ') bytes.erase(0, 1);
  held_ += bytes;
  const size_t complete = held_.size() - incomplete_utf8_tail(held_);
  std::string text = replace_invalid_utf8(std::string_view(held_).substr(0, complete));
  held_.erase(0, complete);
  return text;
}

std::string StreamDecoder::finish() {
  return replace_invalid_utf8(std::exchange(held_, {}));
}

}  // namespace lockstep
