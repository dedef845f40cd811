#include "server/ollama/ollama_answer.h"

#include <fmt/core.h>
#include <time.h>

#include <chrono>
#include <optional>
#include <utility>

#include "json/json.h"

namespace lockstep {
namespace {

using Clock = std::chrono::steady_clock;

int64_t nanoseconds(Clock::duration time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time).count();
}

// The content of a line: a piece of the message, or all of it.
struct Said {
  std::string content{};
  std::string thinking{};
  JsonArray calls{};
};

JsonObject frame(const OllamaForm& form) {
  return {{"model", form.model}, {"created_at", rfc3339(unix_now_us())}};
}

void add_said(JsonObject& line, bool is_chat, Said said) {
  if (!is_chat) {
    line["response"] = std::move(said.content);
    if (!said.thinking.empty()) line["thinking"] = std::move(said.thinking);
    return;
  }
  JsonObject message{{"role", "assistant"}, {"content", std::move(said.content)}};
  if (!said.thinking.empty()) message["thinking"] = std::move(said.thinking);
  if (!said.calls.empty()) message["tool_calls"] = std::move(said.calls);
  line["message"] = std::move(message);
}

// Arguments are an object here. Anything else that the model wrote is shown as text.
Said said_of(const OutputCall& call, size_t index) {
  Said said;
  auto arguments = parse_untrusted_json(call.arguments);
  if (!arguments.ok() || !arguments.value().is_object()) {
    said.content = call.name + " " + call.arguments;
    return said;
  }
  JsonObject function{
      {"index", index}, {"name", call.name}, {"arguments", std::move(arguments.value())}};
  said.calls.push_back(JsonObject{{"id", call.id}, {"function", std::move(function)}});
  return said;
}

class OllamaWriter final : public ChatWriter {
 public:
  explicit OllamaWriter(OllamaForm form) : form_(std::move(form)), began_(Clock::now()) {}

  std::string begin(const GenerationUsage&) override { return ""; }
  std::string silence() override { return text_of(line({}, false)); }

  std::string delta(const OutputDelta& delta) override {
    if (!first_) first_ = Clock::now();
    if (delta.kind == OutputDelta::Kind::kArguments) {  // a call is sent whole
      call_->arguments += delta.text;
      return "";
    }
    std::string told = end_call();
    if (delta.kind == OutputDelta::Kind::kCall) {
      call_ = {delta.id, delta.name, ""};
      return told;
    }
    Said said;
    (delta.kind == OutputDelta::Kind::kContent ? said.content : said.thinking) = delta.text;
    return told + say(std::move(said));
  }

  std::string end(const ChatEnd& end) override {
    const std::string told = end_call();
    last_ = line(form_.is_streamed ? Said() : std::move(whole_), true);
    const Clock::time_point now = Clock::now();
    const Clock::time_point first = first_.value_or(now);
    last_["done_reason"] = end.finish_reason == "length" ? "length" : "stop";
    last_["total_duration"] = nanoseconds(now - began_);
    last_["load_duration"] = 0;  // the model was loaded already
    last_["prompt_eval_count"] = end.usage.prompt_tokens;
    last_["prompt_eval_duration"] = nanoseconds(first - began_);
    last_["eval_count"] = end.usage.completion_tokens;
    last_["eval_duration"] = nanoseconds(now - first);
    return told + text_of(last_);
  }

  std::string error(const ApiError& error) override {
    return error_json(error, ErrorStyle::kOllama) + "\n";
  }
  std::string whole() const override { return dump_json(last_); }
  HttpResponse refusal(const ApiError& error) const override {
    return error_response(error, ErrorStyle::kOllama);
  }

 private:
  // Writes the call in progress, which is now complete.
  std::string end_call() {
    const std::optional<OutputCall> call = std::exchange(call_, std::nullopt);
    return call ? say(said_of(*call, calls_++)) : "";
  }

  std::string say(Said said) {
    if (form_.is_streamed) return text_of(line(std::move(said), false));
    whole_.content += said.content;
    whole_.thinking += said.thinking;
    for (Json& call : said.calls) whole_.calls.push_back(std::move(call));
    return "";
  }

  JsonObject line(Said said, bool is_done) const {
    JsonObject object = frame(form_);
    add_said(object, form_.is_chat, std::move(said));
    object["done"] = is_done;
    return object;
  }
  static std::string text_of(const JsonObject& object) { return dump_json(object) + "\n"; }

  const OllamaForm form_;
  const Clock::time_point began_;
  std::optional<Clock::time_point> first_;  // time of the first delta
  std::optional<OutputCall> call_;          // not sent yet
  size_t calls_ = 0;
  Said whole_;
  JsonObject last_;
};

}  // namespace

std::unique_ptr<ChatWriter> make_ollama_writer(OllamaForm form) {
  return std::make_unique<OllamaWriter>(std::move(form));
}

HttpResponse ollama_loaded(const OllamaForm& form, std::string_view done_reason) {
  JsonObject line = frame(form);
  add_said(line, form.is_chat, {});
  line["done_reason"] = done_reason;
  line["done"] = true;
  const std::string text = dump_json(line);
  if (!form.is_streamed) return {200, kOllamaJsonContentType, text, form.headers};
  return {200, kNdjsonContentType, text + "\n", form.headers};
}

std::string rfc3339(int64_t unix_us) {
  const time_t seconds = unix_us / 1'000'000;
  tm parts{};
  ::gmtime_r(&seconds, &parts);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:06}Z", parts.tm_year + 1900,
                     parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec,
                     unix_us % 1'000'000);
}

int64_t unix_now_us() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace lockstep
