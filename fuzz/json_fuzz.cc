// links: json
// All that parse_json accepts, dump_json writes so that it is accepted again and written the same.
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "base/utf8.h"
#include "json/json.h"

using namespace lockstep;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto value = parse_json(text);
  const auto unique = parse_json(text, DuplicateKeys::kRefuse);
  LOCKSTEP_CHECK(value.ok() || !unique.ok());
  const auto large = parse_large_json(text);
  LOCKSTEP_CHECK(large.ok() || !value.ok());
  LOCKSTEP_CHECK(!value.ok() || large.value() == value.value());
  std::string literal;
  append_json_string(literal, text);
  const auto string = parse_json(literal);
  LOCKSTEP_CHECK(string.ok());
  const auto& read = string.value().get_string();
  LOCKSTEP_CHECK(std::string_view(read.data(), read.size()) == replace_invalid_utf8(text));
  if (!value.ok()) return 0;

  LOCKSTEP_CHECK(is_valid_utf8(text));
  const std::string written = dump_json(value.value());
  const auto again = parse_json(written, DuplicateKeys::kRefuse);
  LOCKSTEP_CHECK(again.ok());
  LOCKSTEP_CHECK(again.value() == value.value());
  LOCKSTEP_CHECK(dump_json(again.value()) == written);
  return 0;
}
