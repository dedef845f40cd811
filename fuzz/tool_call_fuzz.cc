// links: chat
// Any model output in any format, cut anywhere: the deltas are UTF-8 and never taken back, a second
// cut gives the same message, and nothing is held beyond the limits. The first byte chooses the
// format, the second how the rest is cut, the third what the prompt has opened.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/check.h"
#include "base/utf8.h"
#include "chat/calls/output_parser.h"

using namespace lockstep;

namespace {

constexpr std::string_view kTools =
    R"([{"function":{"name":"now","parameters":{"properties":{"a":{"type":"string"},)"
    R"("b":{"type":"integer"},"c":{"type":["array","null"]}}}}}])";

OutputMessage parse(const OutputParser::Options& options, std::string_view raw, size_t step,
                    bool is_truncated) {
  OutputParser parser(options);
  MessageBuilder message;
  const auto add = [&](const std::vector<OutputDelta>& deltas) {
    for (const OutputDelta& delta : deltas) {
      LOCKSTEP_CHECK(is_valid_utf8(delta.text) && is_valid_utf8(delta.name));
      LOCKSTEP_CHECK(delta.kind == OutputDelta::Kind::kCall || !delta.text.empty());
      LOCKSTEP_CHECK(delta.index <= message.message().calls.size());
      message.add(delta);
    }
  };
  for (size_t at = 0; at < raw.size(); at += step) add(parser.push(raw.substr(at, step)));
  add(parser.finish(is_truncated));
  LOCKSTEP_CHECK(parser.call_count() == message.message().calls.size());
  return message.message();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 3) return 0;
  OutputParser::Options options;
  options.format = &tool_formats()[data[0] % tool_formats().size()];
  static const auto tools = std::make_shared<const ToolSet>(parse_json(kTools).value());
  if ((data[2] & 8) == 0) options.tools = tools;
  options.reasoning_is_open = (data[2] & 1) != 0;
  options.continues_text = (data[2] & 2) != 0;
  const bool is_truncated = (data[2] & 4) != 0;
  const std::string_view raw(reinterpret_cast<const char*>(data) + 3, size - 3);
  const OutputMessage whole = parse(options, raw, std::max<size_t>(raw.size(), 1), is_truncated);
  const OutputMessage cut = parse(options, raw, data[1] % 16 + 1, is_truncated);
  LOCKSTEP_CHECK(whole.content == cut.content && whole.reasoning == cut.reasoning);
  LOCKSTEP_CHECK(whole.calls.size() == cut.calls.size());
  for (size_t i = 0; i < whole.calls.size(); ++i) {
    LOCKSTEP_CHECK(whole.calls[i].name == cut.calls[i].name);
    LOCKSTEP_CHECK(whole.calls[i].id == cut.calls[i].id);
    LOCKSTEP_CHECK(whole.calls[i].arguments == cut.calls[i].arguments);
  }
  return 0;
}
