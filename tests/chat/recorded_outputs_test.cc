// Every recorded output cut in every way: the same, expected message each time, and deltas that
// clients can rely on.
#include <algorithm>
#include <random>

#include "chat/recorded_outputs.h"

namespace lockstep {
namespace {

constexpr int kRandomCuts = 12;

std::string trimmed(std::string_view text) {
  return std::string(without_blanks(text));
}

bool is_json(const std::string& text, Json* value = nullptr) {
  auto parsed = parse_json(text);
  if (parsed.ok() && value != nullptr) *value = parsed.value();
  return parsed.ok();
}

bool same_call(const OutputCall& call, const Json& expected) {
  Json arguments;
  if (!is_json(call.arguments, &arguments)) return false;
  const Json* id = find(expected, "id");
  return call.name == text_of(expected.at("name")) && arguments == expected.at("arguments") &&
         !call.id.empty() && (id == nullptr || call.id == text_of(*id));
}

bool same_calls(const std::vector<OutputCall>& calls, const Json& expected, size_t count) {
  const JsonArray& list = expected.as_array();
  if (list.size() != count) return false;
  for (size_t i = 0; i < count; ++i) {
    if (!same_call(calls[i], list[i])) return false;
  }
  return true;
}

bool is_expected(const Parsed& parsed, const Json& expected, std::string_view raw) {
  if (const Json* outcomes = find(expected, "any_of")) {
    const JsonArray& list = outcomes->get_array();
    return std::any_of(list.begin(), list.end(), [&](const Json& outcome) {
      return find(outcome, "error") == nullptr && is_expected(parsed, outcome, raw);
    });
  }
  const OutputMessage& message = parsed.message;
  if (parsed.finish_reason != text_of(expected.at("finish_reason"))) return false;
  if (find(expected, "raw_as_content") != nullptr) {
    return message.calls.empty() && trimmed(message.content) == trimmed(raw);
  }
  if (const Json* complete = find(expected, "complete_tool_calls")) {
    const size_t count = complete->as_array().size();
    const size_t more = message.calls.size() - std::min(count, message.calls.size());
    if (message.calls.size() < count || more > 1) return false;
    if (more == 1 && (message.calls.back().name != text_of(expected.at("incomplete_name")) ||
                      is_json(message.calls.back().arguments))) {
      return false;
    }
    const Json* reasoning = find(expected, "reasoning_content");
    return same_calls(message.calls, *complete, count) &&
           (reasoning == nullptr || trimmed(message.reasoning) == trimmed(text_of(*reasoning)));
  }
  return trimmed(message.content) == trimmed(text_of(expected.at("content"))) &&
         trimmed(message.reasoning) == trimmed(text_of(expected.at("reasoning_content"))) &&
         same_calls(message.calls, expected.at("tool_calls"), message.calls.size());
}

// No delta is empty, a call is announced once and before its arguments, and the deltas' JSON,
// joined as a client does it, is the message.
bool deltas_are_sound(const Parsed& parsed) {
  OutputMessage replayed;
  for (const auto& some : parsed.deltas) {
    for (const OutputDelta& delta : some) {
      const JsonObject json = delta_json(delta);
      if (json.contains("content")) {
        replayed.content += text_of(json.at("content"));
      } else if (json.contains("reasoning_content")) {
        replayed.reasoning += text_of(json.at("reasoning_content"));
      } else {
        const Json& call = json.at("tool_calls").as_array().at(0);
        const Json& function = call.at("function");
        const auto index = call.at("index").to_number<size_t>();
        if (const Json* id = find(call, "id")) {
          if (index != replayed.calls.size() || call.at("type") != "function") return false;
          replayed.calls.push_back({text_of(*id), text_of(function.at("name")), ""});
          if (replayed.calls.back().name.empty() || text_of(*id).empty()) return false;
        } else if (index + 1 != replayed.calls.size() ||
                   text_of(function.at("arguments")).empty()) {
          return false;
        }
        replayed.calls.back().arguments += text_of(function.at("arguments"));
      }
      if (delta.kind != OutputDelta::Kind::kCall && delta.text.empty()) return false;
      if (!is_valid_utf8(delta.text)) return false;
    }
  }
  return told(replayed) == told(parsed.message);
}

class RecordedOutput {
 public:
  RecordedOutput(std::string_view format, const Json& json)
      : json_(json),
        raw_(text_of(json.at("raw"))),
        where_(fmt::format("{} {}", format, text_of(json.at("name")))) {
    options_.format = find_tool_format(format);
    options_.tools = recorded_tools();
    options_.reasoning_is_open = find(json, "prompt_ends_with_open_think") != nullptr;
    whole_ = parse({raw_});
  }

  void check_every_cut() {
    check(whole_, "whole");
    check(parse(characters_of(raw_)), "characters");
    check(parse(bytes_of(raw_)), "bytes");
    for (const Json& split : json_.at("splits").as_array()) check(parse(cut(split)), "a split");
    std::mt19937 random(7);  // always the same cuts
    for (int i = 0; i < kRandomCuts; ++i) check(parse(random_cut(random)), "a random cut");
  }

  // Content up to a given place has been sent once a marker's length more has arrived.
  void check_lateness() const {
    const std::string& content = whole_.message.content;
    const size_t begin = raw_.find(content);
    if (content.empty() || begin == std::string::npos) return;
    size_t late_max = kHeldBlanksMax;
    for (const std::string_view marker : options_.format->markers()) {
      late_max = std::max(late_max, marker.size() + kHeldBlanksMax);
    }
    const Parsed parsed = parse(bytes_of(raw_));
    size_t sent = 0;
    for (size_t fed = 0; fed < begin + content.size(); ++fed) {
      for (const OutputDelta& delta : parsed.deltas[fed]) {
        if (delta.kind == OutputDelta::Kind::kContent) sent += delta.text.size();
      }
      const size_t due = fed < begin ? 0 : fed + 1 - begin;
      CHECK_MESSAGE(sent + late_max >= due, where_);
    }
  }

  void check_arguments_grow() const {
    const Parsed parsed = parse(characters_of(raw_));
    std::vector<int> counts(parsed.message.calls.size());
    for (const auto& some : parsed.deltas) {
      for (const OutputDelta& delta : some) {
        if (delta.kind == OutputDelta::Kind::kArguments) ++counts[delta.index];
      }
    }
    for (size_t i = 0; i < counts.size(); ++i) {
      if (parsed.message.calls[i].arguments.size() > 20) CHECK_MESSAGE(counts[i] >= 2, where_);
    }
  }

 private:
  Parsed parse(const std::vector<std::string>& chunks) const {
    return parse_chunks(options_, chunks, find(json_, "truncated") != nullptr);
  }

  void check(const Parsed& parsed, std::string_view how) const {
    CAPTURE(where_);
    CAPTURE(how);
    CAPTURE(told(parsed.message));
    CHECK(is_expected(parsed, json_.at("expect"), raw_));
    CHECK(told(parsed.message) == told(whole_.message));
    CHECK(parsed.finish_reason == whole_.finish_reason);
    CHECK(deltas_are_sound(parsed));
  }

  std::vector<std::string> cut(const Json& split) const {
    std::vector<std::string> chunks;
    const std::vector<std::string> characters = characters_of(raw_);
    size_t at = 0;
    for (const Json& size : split.as_array()) {
      chunks.emplace_back();
      for (int64_t i = 0; i < size.as_int64(); ++i) chunks.back() += characters.at(at++);
    }
    CHECK(at == characters.size());
    return chunks;
  }

  std::vector<std::string> random_cut(std::mt19937& random) const {
    std::vector<std::string> chunks;
    for (size_t at = 0; at < raw_.size(); at += chunks.back().size()) {
      chunks.push_back(raw_.substr(at, random() % 13));
    }
    return chunks;
  }

  const Json& json_;
  const std::string raw_;
  const std::string where_;
  OutputParser::Options options_;
  Parsed whole_;
};

template <class Check>
int for_each_output(Check check) {
  int count = 0;
  for (const std::string_view format : kRecordedFormats) {
    const Json cases = recorded_file(format);
    for (const Json& one : cases.as_array()) {
      RecordedOutput output(format, one);
      check(output);
      ++count;
    }
  }
  return count;
}

}  // namespace

TEST_CASE("every recorded output becomes the expected message, however it is cut") {
  CHECK(for_each_output([](RecordedOutput& output) { output.check_every_cut(); }) == 297);
}

TEST_CASE("content is at most one marker late") {
  for_each_output([](RecordedOutput& output) { output.check_lateness(); });
}

TEST_CASE("arguments are streamed as they are written, not at the end") {
  for_each_output([](RecordedOutput& output) { output.check_arguments_grow(); });
}

}  // namespace lockstep
