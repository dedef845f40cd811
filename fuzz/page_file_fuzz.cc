// links: engine
// Names and heads of files in the folder of the page store: nothing crashes, an accepted name is
// written as it was read, and a head is accepted whole or refused. The input is a name, a newline,
// and the bytes of the file.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/check.h"
#include "engine/store/page_file.h"

using namespace lockstep;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t line = input.find('\n');
  const std::string_view name = input.substr(0, line);
  const std::string_view bytes = line == input.npos ? "" : input.substr(line + 1);
  const auto parsed = parse_page_file_name(name);
  if (!parsed) return 0;
  LOCKSTEP_CHECK(page_file_name(parsed->key, parsed->part, parsed->kind) == name);
  LOCKSTEP_CHECK(parsed->part.blocks() > 0 && parsed->part.blocks() <= kPageBlocksMax);
  PageFileHead expected{.key = parsed->key, .part = parsed->part, .kind = parsed->kind};
  expected.part.block_bytes = 16;
  const auto head = decode_page_file_head(std::as_bytes(std::span(bytes)), expected);
  if (head.ok()) LOCKSTEP_CHECK(head.value().size() == expected.part.blocks());
  return 0;
}
