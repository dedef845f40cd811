#include "server/generation/openai_answer.h"

#include <algorithm>
#include <ctime>
#include <utility>

#include "server/request/random_id.h"
#include "server/request/sse.h"

namespace lockstep {
namespace {

JsonObject usage_object(GenerationUsage usage, const ChoiceWriters& choices) {
  int64_t reasoning_tokens = 0;
  for (const auto& choice : choices) reasoning_tokens += choice->reasoning_tokens();

  return {{"prompt_tokens", usage.prompt_tokens},
          {"completion_tokens", usage.completion_tokens},
          {"total_tokens", usage.prompt_tokens + usage.completion_tokens},
          {"prompt_tokens_details", JsonObject{{"cached_tokens", usage.cached_tokens}}},
          {"completion_tokens_details", JsonObject{{"reasoning_tokens", reasoning_tokens}}}};
}

// The names are llama.cpp's (tools/server/README.md, "timings" and "prompt_progress").
JsonObject timings_object(const AnswerFacts& facts) {
  const GenerationUsage& usage = facts.usage;
  const AnswerTimes& times = facts.times;
  const int64_t computed = std::max<int64_t>(0, usage.prompt_tokens - usage.cached_tokens);
  JsonObject timings{{"cache_n", usage.cached_tokens},
                     {"prompt_n", computed},
                     {"prompt_ms", times.prompt_ms},
                     {"predicted_n", usage.completion_tokens},
                     {"predicted_ms", times.answer_ms}};
  if (times.prompt_ms > 0) {
    timings["prompt_per_second"] = static_cast<double>(computed) * 1000 / times.prompt_ms;
  }
  if (usage.completion_tokens > 1 && times.answer_ms > 0) {
    const auto later = static_cast<double>(usage.completion_tokens - 1);
    timings["predicted_per_second"] = later * 1000 / times.answer_ms;
  }
  return timings;
}

JsonObject progress_object(const PromptProgress& progress) {
  return {{"total", progress.total},
          {"cache", progress.cached},
          {"processed", progress.done},
          {"time_ms", progress.ms}};
}

JsonObject seam_object(const AnswerSeam& seam) {
  switch (seam.kind) {
    case AnswerSeam::Kind::kPause:
      return {{"kind", "pause"}, {"reason", seam.reason}};
    case AnswerSeam::Kind::kResume:
      return {{"kind", "resume"},
              {"after_s", seam.after_s},
              {"recomputed_tokens", seam.recomputed_tokens}};
    case AnswerSeam::Kind::kNode:
      return {{"kind", "node"}, {"reason", seam.reason}};
  }
  return {};
}

void add_members(JsonObject& object, JsonObject more) {
  for (auto& [name, value] : more) object[name] = std::move(value);
}

// Shared by both kinds of answer: the frame around the choices.
class OpenAiSink : public GenerationSink {
 public:
  OpenAiSink(const OpenAiFormat& format, OpenAiAnswer answer)
      : format_(format),
        answer_(std::move(answer)),
        id_(random_id(format.id_prefix)),
        created_(static_cast<int64_t>(std::time(nullptr))) {}

 protected:
  // Members of a whole answer, or of a stream's last event, as far as they were asked for.
  JsonObject last_members(const AnswerFacts& facts) const {
    JsonObject last, own;
    if (answer_.extras.timings) {
      last["timings"] = timings_object(facts);
      own["first_token_ms"] = facts.times.first_token_ms;
      if (facts.machines > 0) own["machines"] = facts.machines;
    }
    if (!facts.receipt.empty()) {
      own["receipt"] = facts.receipt;
      own["answer_ids"] = JsonArray(facts.answer_ids.begin(), facts.answer_ids.end());
    }
    if (!own.empty()) last["lockstep"] = std::move(own);
    return last;
  }

  JsonObject frame(const char* object, JsonArray choices) const {
    return {{"id", id_},
            {"object", object},
            {"created", created_},
            {"model", answer_.model},
            {"system_fingerprint", answer_.fingerprint},
            {"choices", std::move(choices)}};
  }

  std::vector<std::pair<std::string, std::string>> headers() const {
    auto headers = ignored_fields_header(answer_.ignored);
    for (auto& header : warnings_header(answer_.warnings)) headers.push_back(std::move(header));
    return headers;
  }

  const OpenAiFormat& format_;
  const OpenAiAnswer answer_;

 private:
  const std::string id_;
  const int64_t created_;
};

// Logprobs in a whole answer, at most, including those of alternative tokens: they are held until
// the end.
constexpr size_t kWholeLogprobsMax = 1 << 20;

class WholeSink final : public OpenAiSink {
 public:
  WholeSink(const OpenAiFormat& format, OpenAiAnswer answer, HttpReply reply)
      : OpenAiSink(format, std::move(answer)), reply_(std::move(reply)) {}

  void on_start(const GenerationUsage&) override {}
  void on_silence() override {}
  void on_logprobs(size_t choice, std::vector<TokenLogprobs> tokens) override {
    for (const TokenLogprobs& one : tokens) logprob_count_ += 1 + one.top.size();
    answer_.choices[choice]->logprobs(std::move(tokens));
  }
  std::optional<ApiError> problem() const override {
    if (logprob_count_ <= kWholeLogprobsMax) return std::nullopt;
    return bad_field("logprobs", "the answer has more than " + std::to_string(kWholeLogprobsMax) +
                                     " logprobs, the maximum without \"stream\": ask for a stream, "
                                     "or for fewer tokens, choices or logprobs");
  }
  void on_text(size_t choice, std::string text) override { answer_.choices[choice]->text(text); }
  void on_token(size_t choice) override { answer_.choices[choice]->token(); }
  void on_choice_end(size_t choice, std::string_view reason) override {
    answer_.choices[choice]->end(reason);
  }
  void on_error(const ApiError& error) override { reply_.send(error_response(error)); }
  void on_end(const AnswerFacts& facts) override {
    JsonArray choices;
    for (const auto& choice : answer_.choices) choices.push_back(choice->whole());
    JsonObject body = frame(format_.whole_object, std::move(choices));
    body["usage"] = usage_object(facts.usage, answer_.choices);
    add_members(body, last_members(facts));
    reply_.send({200, "application/json", dump_json(body), headers()});
  }

 private:
  const HttpReply reply_;
  size_t logprob_count_ = 0;
};

class StreamSink final : public OpenAiSink {
 public:
  StreamSink(const OpenAiFormat& format, OpenAiAnswer answer, std::unique_ptr<EventStream> events)
      : OpenAiSink(format, std::move(answer)), events_(std::move(events)) {}

  void on_accept() override {
    if (events_->opens_early()) open();
  }
  std::optional<ApiError> problem() const override { return events_->problem(); }
  void on_start(const GenerationUsage&) override { open(); }
  void on_logprobs(size_t choice, std::vector<TokenLogprobs> tokens) override {
    answer_.choices[choice]->logprobs(std::move(tokens));
  }
  void on_text(size_t choice, std::string text) override {
    write_choices(answer_.choices[choice]->text(text));
    answer_.choices[choice]->drop_sent();
  }
  void on_token(size_t choice) override { answer_.choices[choice]->token(); }
  void on_choice_end(size_t choice, std::string_view reason) override {
    write_choices(answer_.choices[choice]->end(reason));
  }
  // An empty delta, because some clients reject comment lines.
  void on_silence() override {
    if (events_->keep_alive()) return;
    open();
    write_choice(answer_.choices.front()->silence());
  }
  void on_progress(const PromptProgress& progress) override {
    if (answer_.extras.progress) write_report("prompt_progress", progress_object(progress));
  }
  void on_seam(const AnswerSeam& seam) override {
    if (!answer_.extras.events) return;
    write_report("lockstep", JsonObject{{"event", seam_object(seam)}});
  }
  void on_end(const AnswerFacts& facts) override {
    JsonObject last = last_members(facts);
    if (answer_.extras.usage) last["usage"] = usage_object(facts.usage, answer_.choices);
    if (!last.empty()) write_chunk(JsonArray(), std::move(last));
    events_->event(kSseDoneData);
    events_->done();
  }
  void on_error(const ApiError& error) override {
    if (!has_head_) return events_->refuse(error_response(error));
    events_->event(error_json(error));
    events_->done();
  }

 private:
  // The head waits for the first event, so that a refusal can still have its own status.
  void open() {
    if (std::exchange(has_head_, true)) return;
    events_->open(headers());
    for (const auto& choice : answer_.choices) write_choices(choice->begin());
  }
  void write_choices(ChoiceWriter::Objects choices) {
    for (JsonObject& choice : choices) write_choice(std::move(choice));
  }
  void write_choice(JsonObject choice) {
    JsonArray choices;
    choices.push_back(std::move(choice));
    write_chunk(std::move(choices));
  }
  void write_report(const char* name, JsonObject report) {
    open();
    write_chunk(JsonArray(), JsonObject{{name, std::move(report)}});
  }
  // The last chunk alone has usage; the others have null in its place.
  void write_chunk(JsonArray choices, JsonObject more = {}) {
    JsonObject chunk = frame(format_.chunk_object, std::move(choices));
    if (answer_.extras.usage) chunk["usage"] = nullptr;
    add_members(chunk, std::move(more));
    events_->event(dump_json(chunk));
  }
  const std::unique_ptr<EventStream> events_;
  bool has_head_ = false;
};

std::vector<std::pair<std::string, std::string>> one_header(const char* name,
                                                            const std::vector<std::string>& items,
                                                            const char* between) {
  std::string text;
  for (const std::string& item : items) {
    if (text.size() > kHeaderBytesMax) break;
    if (!text.empty()) text += between;
    text += item;
  }
  if (text.empty()) return {};
  if (text.size() > kHeaderBytesMax) text = text.substr(0, kHeaderBytesMax) + "...";
  for (char& letter : text) {
    if (letter < ' ' || letter > '~') letter = '?';
  }
  return {{name, std::move(text)}};
}

}  // namespace

std::vector<std::pair<std::string, std::string>> ignored_fields_header(
    const std::vector<std::string>& ignored) {
  return one_header("x-lockstep-ignored-fields", ignored, ", ");
}

std::vector<std::pair<std::string, std::string>> warnings_header(
    const std::vector<std::string>& warnings) {
  return one_header("x-lockstep-warnings", warnings, "; ");
}

std::unique_ptr<GenerationSink> make_openai_answer(const OpenAiFormat& format, OpenAiAnswer answer,
                                                   HttpReply reply,
                                                   std::unique_ptr<EventStream> events) {
  if (answer.is_streamed) {
    return std::make_unique<StreamSink>(format, std::move(answer), std::move(events));
  }
  return std::make_unique<WholeSink>(format, std::move(answer), std::move(reply));
}

}  // namespace lockstep
