#include "server/request/text_inputs.h"

#include <fmt/core.h>

#include <limits>

namespace lockstep {
namespace {

ApiError bad_input(std::string_view field) {
  return bad_field(
      std::string(field),
      fmt::format("\"{}\" must be a string, an array of strings, an array of token ids "
                  "or an array of arrays of token ids, and not empty",
                  field));
}

ApiResult<std::vector<int32_t>> parse_token_ids(const JsonArray& array, std::string_view field) {
  std::vector<int32_t> ids;
  ids.reserve(array.size());
  for (const Json& value : array) {
    TRY(check_work());
    if (!value.is_int64()) return bad_input(field);
    const int64_t id = value.get_int64();
    if (id < 0 || id > std::numeric_limits<int32_t>::max()) {
      return bad_field(std::string(field),
                       fmt::format("{} in \"{}\" is not a token id", id, field));
    }
    ids.push_back(static_cast<int32_t>(id));
  }
  if (ids.empty()) return bad_input(field);
  return ids;
}

}  // namespace

ApiResult<std::vector<TextInput>> parse_text_inputs(const Json* value, std::string_view field,
                                                    size_t most) {
  std::vector<TextInput> inputs;
  if (value == nullptr) {
    return bad_field(std::string(field), fmt::format("\"{}\" is required", field));
  }
  if (value->is_string()) {
    inputs.emplace_back(std::string(value->get_string()));
    return inputs;
  }
  if (!value->is_array() || value->get_array().empty()) return bad_input(field);
  const JsonArray& array = value->get_array();
  if (array.front().is_int64()) {
    inputs.emplace_back(TRY(parse_token_ids(array, field)));
    return inputs;
  }
  if (array.size() > most) {
    return bad_field(std::string(field), fmt::format("\"{}\" may have at most {} texts, not {}",
                                                     field, most, array.size()));
  }
  for (const Json& one : array) {
    TRY(check_work());
    if (one.is_string()) {
      inputs.emplace_back(std::string(one.get_string()));
    } else if (one.is_array()) {
      inputs.emplace_back(TRY(parse_token_ids(one.get_array(), field)));
    } else {
      return bad_input(field);
    }
  }
  return inputs;
}

ApiResult<Ok> check_token_ids(const std::vector<int32_t>& ids, const Tokenizer& tokenizer,
                              std::string_view field) {
  for (const int32_t id : ids) {
    if (id < tokenizer.vocab_size()) continue;
    return bad_field(std::string(field),
                     fmt::format("{} in \"{}\" is not a token id: the model has {}", id, field,
                                 tokenizer.vocab_size()));
  }
  return Ok{};
}

}  // namespace lockstep
