#include "tokenizer/pipeline/post_processor.h"

#include "tokenizer/models/vocabulary.h"
#include "tokenizer/text/json_part.h"

namespace lockstep {
namespace {

constexpr std::string_view kPostProcessorPart = "post_processor";

const Json* first_of(const Json* list) {
  const JsonArray* array = list == nullptr ? nullptr : list->if_array();
  return array == nullptr || array->empty() ? nullptr : &array->front();
}

// The id of a template's special token; nullopt for the text itself.
Result<std::optional<int32_t>> read_token(const Json& value, const Json& piece) {
  const Json* special = find(piece, "SpecialToken");
  if (special == nullptr) return std::optional<int32_t>();
  const std::string name = TRY(required_string(kPostProcessorPart, *special, "id"));
  const Json* tokens = find(value, "special_tokens");
  const Json* token = tokens == nullptr ? nullptr : find(*tokens, name);
  const Json* id = token == nullptr ? nullptr : first_of(find(*token, "ids"));
  const int64_t* number = id == nullptr ? nullptr : id->if_int64();
  if (number == nullptr || *number < 0 || *number > kTokenIdMax) {
    return corrupt_part(kPostProcessorPart, "has no id for " + name);
  }
  return std::optional(static_cast<int32_t>(*number));
}

Result<TextFrame> read_template(const Json& value) {
  const Json* single = find(value, "single");
  if (first_of(single) == nullptr) return corrupt_part(kPostProcessorPart, "has no template");
  const JsonArray& pieces = single->get_array();
  TextFrame frame;
  frame.bos_id = TRY(read_token(value, pieces.front()));
  if (pieces.size() > 1) frame.end_id = TRY(read_token(value, pieces.back()));
  return frame;
}

}  // namespace

// JSON's depth limit bounds the recursion through sequences.
Result<TextFrame> read_text_frame(const Json* value) {
  if (is_missing(value)) return TextFrame();
  const std::string_view type = TRY(type_of(kPostProcessorPart, *value));
  if (type == "TemplateProcessing") return read_template(*value);
  if (type == "ByteLevel") return TextFrame();  // only corrects offsets, which are not used here
  if (type != "Sequence") return unsupported_part(kPostProcessorPart, type);
  const Json* parts = find(*value, "processors");
  if (parts == nullptr || !parts->is_array())
    return corrupt_part(kPostProcessorPart, "Sequence has no parts");
  TextFrame frame;
  for (const Json& part : parts->get_array()) {
    const TextFrame inner = TRY(read_text_frame(&part));
    if (!frame.bos_id) frame.bos_id = inner.bos_id;
    if (!frame.end_id) frame.end_id = inner.end_id;
  }
  return frame;
}

}  // namespace lockstep
