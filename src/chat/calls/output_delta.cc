#include "chat/calls/output_delta.h"

#include <fmt/core.h>

#include <utility>

#include "base/hash.h"

namespace lockstep {
namespace {

using DeltaKind = OutputDelta::Kind;

std::string random_letters(uint64_t seed, size_t index, int count) {
  static constexpr std::string_view kLetters =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
  uint64_t state = seed;
  state = next_random(state) + index;
  std::string letters;
  for (int i = 0; i < count; ++i) letters += kLetters[next_random(state) % kLetters.size()];
  return letters;
}

}  // namespace

void MessageBuilder::add(const OutputDelta& delta) {
  switch (delta.kind) {
    case DeltaKind::kContent:
      message_.content += delta.text;
      break;
    case DeltaKind::kReasoning:
      message_.reasoning += delta.text;
      break;
    case DeltaKind::kCall:
      message_.calls.push_back({delta.id, delta.name, ""});
      break;
    case DeltaKind::kArguments:
      message_.calls[delta.index].arguments += delta.text;
      break;
  }
}

JsonObject delta_json(const OutputDelta& delta) {
  JsonObject call{{"index", delta.index}};
  switch (delta.kind) {
    case DeltaKind::kContent:
      return {{"content", delta.text}};
    case DeltaKind::kReasoning:
      return {{"reasoning_content", delta.text}};
    case DeltaKind::kCall:
      call["id"] = delta.id;
      call["type"] = "function";
      call["function"] = JsonObject{{"name", delta.name}, {"arguments", ""}};
      break;
    case DeltaKind::kArguments:
      call["function"] = JsonObject{{"arguments", delta.text}};
      break;
  }
  JsonArray calls;
  calls.emplace_back(std::move(call));
  return {{"tool_calls", std::move(calls)}};
}

JsonArray calls_json(const std::vector<OutputCall>& calls) {
  JsonArray array;
  for (const OutputCall& call : calls) {
    array.emplace_back(
        JsonObject{{"id", call.id},
                   {"type", "function"},
                   {"function", JsonObject{{"name", call.name}, {"arguments", call.arguments}}}});
  }
  return array;
}

std::string make_call_id(const CallIds& ids, std::string_view name, size_t index) {
  switch (ids.form) {
    case ToolFormat::IdForm::kNineLetters:
      return random_letters(ids.seed, index, 9);
    case ToolFormat::IdForm::kNumberedName:
      return fmt::format("functions.{}:{}", name, ids.calls_before + index);
    case ToolFormat::IdForm::kLetters:
      break;
  }
  return "call_" + random_letters(ids.seed, index, 24);
}

void DeltaWriter::call(std::string_view name, std::string_view id) {
  OutputDelta delta{DeltaKind::kCall, "", call_count_, std::string(id), std::string(name)};
  for (size_t again = call_count_; delta.id.empty() || used_ids_.count(delta.id) != 0; ++again) {
    delta.id = make_call_id(ids_, name, again);
  }
  used_ids_.insert(delta.id);
  deltas_.push_back(std::move(delta));
  ++call_count_;
}

std::vector<OutputDelta> DeltaWriter::take() {
  return std::exchange(deltas_, {});
}

void DeltaWriter::append(DeltaKind kind, std::string_view text) {
  if (text.empty()) return;
  if (kind == DeltaKind::kContent) has_content_ = true;
  const size_t index = kind == DeltaKind::kArguments ? call_count_ - 1 : 0;
  const bool goes_on = !std::exchange(has_delta_ended_, false) && !deltas_.empty() &&
                       deltas_.back().kind == kind && deltas_.back().index == index;
  if (goes_on) {
    deltas_.back().text += text;
  } else {
    deltas_.push_back({kind, std::string(text), index, "", ""});
  }
}

}  // namespace lockstep
