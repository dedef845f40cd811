#include "gguf/gguf.h"

#include <utility>

#include "gguf/gguf_parser.h"
#include "tensor/ggml_blocks.h"

namespace lockstep {
namespace {

// Types that lockstep does not compute with, by the format's numbers. Block sizes: ggml's
// ggml-common.h.
struct OtherBlock {
  uint32_t type_id;
  GgufBlock block;
};

constexpr OtherBlock kOtherBlocks[] = {
    {9, {"Q8_1", 32, 36}},     {15, {"Q8_K", 256, 292}},   {16, {"IQ2_XXS", 256, 66}},
    {17, {"IQ2_XS", 256, 74}}, {18, {"IQ3_XXS", 256, 98}}, {19, {"IQ1_S", 256, 50}},
    {21, {"IQ3_S", 256, 110}}, {22, {"IQ2_S", 256, 82}},   {24, {"I8", 1, 1}},
    {25, {"I16", 1, 2}},       {26, {"I32", 1, 4}},        {27, {"I64", 1, 8}},
    {28, {"F64", 1, 8}},       {29, {"IQ1_M", 256, 56}},   {34, {"TQ1_0", 256, 54}},
    {35, {"TQ2_0", 256, 66}},
};

Error wrong_type(std::string_view key, std::string_view wanted) {
  return {ErrorCode::kCorrupt,
          "the GGUF value " + std::string(key) + " is not " + std::string(wanted)};
}

GgufValue number_in(const GgufArray& list, uint64_t index) {
  const size_t size = list.numbers.size() / list.count;
  return gguf_number(list.number_type, list.numbers.subspan(index * size, size));
}

}  // namespace

std::optional<GgufBlock> gguf_block(uint32_t type_id) {
  if (const GgmlBlock* block = find_ggml_block(type_id)) {
    return GgufBlock{block->name, static_cast<uint64_t>(block->columns),
                     static_cast<uint64_t>(block->bytes)};
  }
  for (const OtherBlock& other : kOtherBlocks) {
    if (other.type_id == type_id) return other.block;
  }
  return std::nullopt;
}

std::string gguf_type_name(uint32_t type_id) {
  const auto block = gguf_block(type_id);
  return block ? std::string(block->name) : "type " + std::to_string(type_id);
}

Result<GgufFile> GgufFile::parse(std::span<const std::byte> file) {
  return GgufParser(file).parse();
}

bool GgufFile::has_magic(std::span<const std::byte> file) {
  return file.size() >= 4 &&
         std::string_view(reinterpret_cast<const char*>(file.data()), 4) == kGgufMagic;
}

const GgufTensor* GgufFile::tensor(std::string_view name) const {
  const auto found = tensor_index_.find(name);
  return found == tensor_index_.end() ? nullptr : &tensors_[found->second];
}

const GgufValue* GgufFile::find(std::string_view key) const {
  const auto found = metadata_.find(key);
  return found == metadata_.end() ? nullptr : &found->second;
}

Result<std::optional<int64_t>> GgufFile::integer(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return std::optional<int64_t>();
  const int64_t* integer = std::get_if<int64_t>(value);
  if (integer == nullptr) return wrong_type(key, "an integer of 64 bits");
  return std::optional(*integer);
}

Result<std::optional<double>> GgufFile::number(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return std::optional<double>();
  if (const auto* number = std::get_if<double>(value)) return std::optional(*number);
  if (const auto* integer = std::get_if<int64_t>(value)) {
    return std::optional(static_cast<double>(*integer));
  }
  return wrong_type(key, "a number");
}

Result<std::optional<bool>> GgufFile::boolean(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return std::optional<bool>();
  const bool* flag = std::get_if<bool>(value);
  if (flag == nullptr) return wrong_type(key, "true or false");
  return std::optional(*flag);
}

Result<std::optional<std::string_view>> GgufFile::string(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return std::optional<std::string_view>();
  const auto* text = std::get_if<std::string_view>(value);
  if (text == nullptr) return wrong_type(key, "a string");
  return std::optional(*text);
}

// Null if the key is missing.
Result<const GgufArray*> GgufFile::array(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return static_cast<const GgufArray*>(nullptr);
  const auto* array = std::get_if<GgufArray>(value);
  if (array == nullptr) return wrong_type(key, "an array");
  return array;
}

Result<std::vector<std::string_view>> GgufFile::strings(std::string_view key) const {
  const GgufArray* list = TRY(array(key));
  if (list == nullptr) return std::vector<std::string_view>();
  if (list->strings.size() != list->count) return wrong_type(key, "an array of strings");
  return list->strings;
}

// Null if the key is missing or the list is empty.
Result<const GgufArray*> GgufFile::number_list(std::string_view key) const {
  const GgufArray* list = TRY(array(key));
  if (list == nullptr || list->count == 0) return static_cast<const GgufArray*>(nullptr);
  if (list->numbers.empty()) return wrong_type(key, "an array of numbers");
  return list;
}

Result<std::vector<int64_t>> GgufFile::integers(std::string_view key) const {
  std::vector<int64_t> result;
  const GgufArray* list = TRY(number_list(key));
  if (list == nullptr) return result;
  result.reserve(list->count);
  for (uint64_t i = 0; i < list->count; ++i) {
    const GgufValue value = number_in(*list, i);
    const auto* integer = std::get_if<int64_t>(&value);
    if (integer == nullptr) return wrong_type(key, "an array of integers");
    result.push_back(*integer);
  }
  return result;
}

Result<std::vector<double>> GgufFile::numbers(std::string_view key) const {
  std::vector<double> result;
  const GgufArray* list = TRY(number_list(key));
  if (list == nullptr) return result;
  result.reserve(list->count);
  for (uint64_t i = 0; i < list->count; ++i) {
    const GgufValue value = number_in(*list, i);
    if (const auto* number = std::get_if<double>(&value)) {
      result.push_back(*number);
    } else if (const auto* integer = std::get_if<int64_t>(&value)) {
      result.push_back(static_cast<double>(*integer));
    } else {
      return wrong_type(key, "an array of numbers");
    }
  }
  return result;
}

Result<std::string_view> GgufFile::bytes(std::string_view key) const {
  const GgufArray* list = TRY(array(key));
  if (list == nullptr) return std::string_view();
  if (list->numbers.size() != list->count) return wrong_type(key, "an array of bytes");
  return std::string_view(reinterpret_cast<const char*>(list->numbers.data()),
                          list->numbers.size());
}

}  // namespace lockstep
