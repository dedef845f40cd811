#include "tokenizer/post_processor.h"

#include "tokenizer/json_part.h"
#include "tokenizer/vocabulary.h"

namespace lockstep {
namespace {

constexpr std::string_view kPart = "post_processor";

const Json* first_of(const Json* list) {
  const JsonArray* array = list == nullptr ? nullptr : list->if_array();
  return array == nullptr || array->empty() ? nullptr : &array->front();
}

Result<std::optional<int32_t>> read_template(const Json& value) {
  const Json* first = first_of(find(value, "single"));
  if (first == nullptr) return corrupt_part(kPart, "has no template");
  const Json* special = find(*first, "SpecialToken");
  if (special == nullptr) return std::optional<int32_t>();  // begins with the text
  const std::string name = TRY(required_string(kPart, *special, "id"));
  const Json* tokens = find(value, "special_tokens");
  const Json* token = tokens == nullptr ? nullptr : find(*tokens, name);
  const Json* id = token == nullptr ? nullptr : first_of(find(*token, "ids"));
  const int64_t* number = id == nullptr ? nullptr : id->if_int64();
  if (number == nullptr || *number < 0 || *number > kTokenIdMax) {
    return corrupt_part(kPart, "has no id for " + name);
  }
  return std::optional(static_cast<int32_t>(*number));
}

}  // namespace

// JSON's depth limit bounds the recursion through sequences.
Result<std::optional<int32_t>> read_bos_id(const Json* value) {
  if (is_missing(value)) return std::optional<int32_t>();
  const std::string_view type = TRY(type_of(kPart, *value));
  if (type == "TemplateProcessing") return read_template(*value);
  if (type == "ByteLevel") return std::optional<int32_t>();  // corrects offsets, which we lack
  if (type != "Sequence") return unsupported_part(kPart, type);
  const Json* parts = find(*value, "processors");
  if (parts == nullptr || !parts->is_array()) return corrupt_part(kPart, "Sequence has no parts");
  std::optional<int32_t> bos_id;
  for (const Json& part : parts->get_array()) {
    const auto id = TRY(read_bos_id(&part));
    if (id && !bos_id) bos_id = id;
  }
  return bos_id;
}

}  // namespace lockstep
