#include "cli/talk/talk_stream.h"

#include <utility>

#include "cli/client/node_client.h"

namespace lockstep {
namespace {

double talk_seconds(TalkStream::Clock::duration time) {
  return std::chrono::duration<double>(time).count();
}

}  // namespace

Status TalkStream::take(const ServerEvent& event, Clock::time_point now, TalkEvents& events) {
  if (event.data == "[DONE]") {
    is_done_ = true;
    return Ok{};
  }
  const auto parsed = parse_untrusted_json(event.data);
  if (!parsed.ok() || !parsed.value().is_object()) {
    return Error{ErrorCode::kCorrupt, "an event of the answer is not a JSON object"};
  }
  const Json& chunk = parsed.value();
  if (const Json* error = find(chunk, "error"); error != nullptr && error->is_object()) {
    answer_.error = Error{ErrorCode::kPeerLost, text_in(*error, "message")};
  }
  for (const Json& choice : list_in(chunk, "choices")) take_choice(choice, now, events);
  if (const Json* usage = find(chunk, "usage"); usage != nullptr && usage->is_object()) {
    take_usage(*usage);
  }
  take_progress(chunk);
  take_timings(chunk);
  return Ok{};
}

void TalkStream::take_choice(const Json& choice, Clock::time_point now, TalkEvents& events) {
  const Json* delta = find(choice, "delta");
  const std::string content =
      delta != nullptr ? text_in(*delta, "content") : text_in(choice, "text");
  const std::string reasoning = delta != nullptr ? text_in(*delta, "reasoning_content") : "";
  if (!reasoning.empty()) {
    add(answer_.reasoning, reasoning, now);
    events.on_reasoning(reasoning);
  }
  if (!content.empty()) {
    add(answer_.content, content, now);
    events.on_content(content);
  }
  if (std::string reason = text_in(choice, "finish_reason"); !reason.empty()) {
    answer_.finish_reason = std::move(reason);
  }
}

void TalkStream::add(std::string& to, std::string_view text, Clock::time_point now) {
  to += text;
  if (!first_text_) first_text_ = now;
  last_text_ = now;
  ++pieces_;
}

void TalkStream::take_usage(const Json& usage) {
  answer_.figures.prompt_tokens = number_in(usage, "prompt_tokens");
  answer_.figures.new_tokens = number_in(usage, "completion_tokens");
  const Json* details = find(usage, "prompt_tokens_details");
  if (details != nullptr) answer_.figures.cached_tokens = number_in(*details, "cached_tokens");
}

// A stopped answer has no usage; the tokens of its prompt are known all the same.
void TalkStream::take_progress(const Json& event) {
  const Json* progress = find(event, "prompt_progress");
  if (progress == nullptr || !progress->is_object()) return;
  answer_.figures.prompt_tokens = number_in(*progress, "total");
  answer_.figures.cached_tokens = number_in(*progress, "cache");
}

// llama.cpp's "timings", and "lockstep" with the time to the first token.
void TalkStream::take_timings(const Json& event) {
  const Json* timings = find(event, "timings");
  if (timings != nullptr && real_in(*timings, "predicted_per_second") > 0) {
    node_tokens_s_ = real_in(*timings, "predicted_per_second");
  }
  const Json* own = find(event, "lockstep");
  if (own != nullptr && real_in(*own, "first_token_ms") > 0) {
    node_first_s_ = real_in(*own, "first_token_ms") / 1e3;
  }
}

TalkAnswer TalkStream::answer() const {
  TalkAnswer answer = answer_;
  TalkFigures& figures = answer.figures;
  if (figures.new_tokens < 0 && pieces_ > 0) figures.new_tokens = pieces_;  // it was stopped
  if (!first_text_) return answer;
  figures.first_s = node_first_s_.value_or(talk_seconds(*first_text_ - began_));
  figures.whole_s = talk_seconds(*last_text_ - began_);
  const double after_first_s = talk_seconds(*last_text_ - *first_text_);
  if (node_tokens_s_) {
    figures.tokens_s = *node_tokens_s_;
  } else if (figures.new_tokens > 1 && after_first_s > 0) {
    figures.tokens_s = static_cast<double>(figures.new_tokens - 1) / after_first_s;
  }
  return answer;
}

}  // namespace lockstep
