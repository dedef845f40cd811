// links: server
// A request from bytes to a struct: the parser of requests, the decoding of targets, and the bodies
// of completions and chat. The first byte chooses how the rest is cut into pieces.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "base/utf8.h"
#include "net/http/http_request_parser.h"
#include "net/http/http_target.h"
#include "server/anthropic/anthropic_models.h"
#include "server/chat/chat_prompt.h"
#include "server/generation/stop_matcher.h"
#include "server/openai/openai_chat.h"
#include "server/openai/openai_completions.h"

namespace lockstep {
namespace {

constexpr HttpHeadLimits kHeadLimits = {.bytes_max = 8192, .fields_max = 64};
constexpr size_t kBodyBytesMax = 65536;

void parse_bodies(std::string_view body) {
  const auto completion = parse_completion_request(body);
  LOCKSTEP_CHECK(completion.ok() ? !completion.value().prompts.empty()
                                 : completion.error().status == 400);
  const auto chat = parse_chat_request(body);
  if (!chat.ok()) {
    LOCKSTEP_CHECK(chat.error().status == 400 && !chat.error().message.empty());
    return;
  }
  StopMatcher matcher(chat.value().options.stop);
  const std::string prompt = plain_conversation(chat.value().messages);
  const std::string emitted = matcher.push(prompt) + matcher.finish();
  LOCKSTEP_CHECK(matcher.is_stopped() ? emitted.size() < prompt.size() : emitted == prompt);
}

void parse_query(std::string_view query) {
  const auto page = parse_model_page(query);
  if (!page.ok()) {
    LOCKSTEP_CHECK(page.error().status == 400 && is_valid_utf8(page.error().param));
    return;
  }
  LOCKSTEP_CHECK(page.value().limit >= 1 && page.value().limit <= 1000);
  LOCKSTEP_CHECK(page.value().after_id.empty() || page.value().before_id.empty());
  LOCKSTEP_CHECK(is_valid_utf8(page.value().after_id + page.value().before_id));
}

void feed(HttpRequestParser& parser, std::string& unparsed) {
  const size_t taken = parser.feed(unparsed);
  LOCKSTEP_CHECK(taken <= unparsed.size());
  unparsed.erase(0, taken);
}

void check_head(const HttpRequest& head) {
  LOCKSTEP_CHECK(is_token(head.method) && head.body.empty());
  LOCKSTEP_CHECK(head.headers.size() <= kHeadLimits.fields_max);
  LOCKSTEP_CHECK(count_fields(head.headers, "host") <= 1);
  size_t bytes = 0;
  for (const auto& [name, value] : head.headers) {
    LOCKSTEP_CHECK(is_token(name) && is_field_text(value));
    bytes += name.size() + value.size();
  }
  LOCKSTEP_CHECK(bytes <= kHeadLimits.bytes_max);
}

void parse_requests(std::string_view bytes, size_t step) {
  std::string unparsed;
  while (!bytes.empty()) {
    HttpRequestParser parser(kHeadLimits);
    while (parser.state() == HttpRequestParser::State::kHeader ||
           parser.state() == HttpRequestParser::State::kBody) {
      if (bytes.empty()) return;
      unparsed += bytes.substr(0, step);
      bytes.remove_prefix(std::min(step, bytes.size()));
      feed(parser, unparsed);
      if (parser.state() != HttpRequestParser::State::kHead) continue;
      check_head(parser.head());
      parser.accept(kBodyBytesMax);
      feed(parser, unparsed);
    }
    if (parser.state() == HttpRequestParser::State::kFailed) {
      LOCKSTEP_CHECK(parser.failure().status >= 400 && !parser.failure().message.empty());
      return;
    }
    const HttpRequest request = parser.take();
    LOCKSTEP_CHECK(!request.path.empty() && request.path.front() == '/');
    LOCKSTEP_CHECK(request.path.find('\0') == std::string::npos);
    LOCKSTEP_CHECK(request.body.size() <= kBodyBytesMax);
    parse_bodies(request.body);
  }
}

}  // namespace
}  // namespace lockstep

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const size_t step = data[0] == 0 ? size : data[0];
  lockstep::parse_requests(bytes, step);
  lockstep::parse_bodies(bytes);
  auto target = lockstep::parse_target(bytes);
  if (target.ok()) {
    // A normalised path is a fixed point: the string matched against routes cannot decode to
    // another one.
    LOCKSTEP_CHECK(target.value().path.find("/../") == std::string::npos);
    lockstep::parse_query(target.value().query);
  }
  return 0;
}
