#include "tokenizer/vocabulary.h"

#include <utility>

#include "tokenizer/json_part.h"

namespace lockstep {
namespace {

constexpr std::string_view kPart = "vocabulary";

}  // namespace

Result<Vocabulary> Vocabulary::read(const Json* vocab) {
  if (vocab == nullptr || !vocab->is_object()) return corrupt_part("model", "has no vocab");
  Vocabulary vocabulary;
  vocabulary.ids_.reserve(vocab->get_object().size());
  for (const auto& member : vocab->get_object()) {
    const std::string_view text(member.key().data(), member.key().size());
    const int64_t* id = member.value().if_int64();
    if (id == nullptr) return corrupt_part(kPart, "has an id that is no integer");
    TRY(vocabulary.add(text, *id));
  }
  return vocabulary;
}

Status Vocabulary::add(std::string_view text, int64_t id) {
  if (id < 0 || id > kTokenIdMax) {
    return corrupt_part(kPart, "has the id " + std::to_string(id) + ", which is outside 0 to " +
                                   std::to_string(kTokenIdMax));
  }
  const auto index = static_cast<size_t>(id);
  if (index >= texts_.size()) texts_.resize(index + 1);
  if (texts_[index]) return corrupt_part(kPart, "has the id " + std::to_string(id) + " twice");
  texts_[index] = std::string(text);
  ids_.emplace(text, static_cast<int32_t>(id));
  return Ok{};
}

std::optional<int32_t> Vocabulary::find(std::string_view text) const {
  const auto found = ids_.find(std::string(text));
  return found == ids_.end() ? std::nullopt : std::optional(found->second);
}

const std::string* Vocabulary::text(int32_t id) const {
  const bool is_inside = id >= 0 && static_cast<size_t>(id) < texts_.size();
  if (!is_inside || !texts_[static_cast<size_t>(id)]) return nullptr;
  return &*texts_[static_cast<size_t>(id)];
}

}  // namespace lockstep
