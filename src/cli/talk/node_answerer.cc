#include "cli/talk/node_answerer.h"

#include <fmt/core.h>

#include <utility>

#include "cli/client/cluster_text.h"
#include "cli/client/model_lines.h"
#include "cli/client/served_model.h"
#include "cli/flags/interrupt.h"
#include "cli/talk/model_picker.h"
#include "cli/talk/talk_stream.h"
#include "cli/talk/talk_text.h"

namespace lockstep {
namespace {

constexpr std::chrono::milliseconds kAnswerLook{50};
constexpr std::chrono::milliseconds kQuietBeforeWords{700};
// Inside an answer a word about the wait breaks its line; slow models pause between tokens.
constexpr std::chrono::seconds kQuietInAnswer{10};
constexpr std::chrono::milliseconds kLookPeriod{500};

Error stopped_answer() {
  return {ErrorCode::kCancelled, "the answer was stopped"};
}

Error broken_answer(const Error& error) {
  return {ErrorCode::kPeerLost,
          fmt::format("the connection to the node ended in the middle of the answer ({})",
                      error.message)};
}

}  // namespace

Result<TalkAnswer> NodeAnswerer::answer(const Dialogue& conversation, const TalkSettings& settings,
                                        TalkEvents& events) {
  const InterruptGuard guard;
  const bool is_completion = settings.is_raw || !model_.has_template;
  if (is_completion && settings.schema) {
    return Error{
        ErrorCode::kInvalidArgument,
        fmt::format("a schema holds only for answers of a chat, and {} has no chat template",
                    harmless_line(conversation.model))};
  }
  const JsonObject body = talk_request_body(conversation, settings, is_completion, model_.context);
  NodeStream stream(flags_,
                    post_call(is_completion ? "/v1/completions" : "/v1/chat/completions", body));
  EventReader reader;
  TalkStream talk(TalkStream::Clock::now());
  std::optional<AnswerWatch> watch;  // only a terminal shows what it tells
  if (manner_.is_terminal) watch.emplace(flags_, model_.name);
  std::optional<Error> error;
  while (!error) {
    if (InterruptGuard::is_interrupted()) {
      error = stopped_answer();
      break;
    }
    const NodeStream::Step step = stream.next(kAnswerLook);
    const auto now = TalkStream::Clock::now();
    if (step.kind == NodeStream::Kind::kEnd) break;
    if (step.kind == NodeStream::Kind::kFailure) {
      if (!stream.has_begun()) return *step.error;
      error = broken_answer(*step.error);
    } else if (step.kind == NodeStream::Kind::kPiece) {
      const auto pieces = reader.take(step.piece);
      if (!pieces.ok()) return pieces.error();
      for (const ServerEvent& event : pieces.value()) TRY(talk.take(event, now, events));
      if (watch && talk.has_text()) watch->note_text(now);
    }
    if (watch) watch->look(events, now);
  }
  TalkAnswer answer = talk.answer();
  if (error) answer.error = std::move(error);
  if (!answer.error && !talk.is_done()) {
    answer.error = broken_answer({ErrorCode::kPeerLost, "it ended early"});
  }
  return answer;
}

Status NodeAnswerer::choose_model(const std::string& model) {
  std::string name = model;
  Json status = TRY(ask_node(flags_, "/cluster/status"));
  if (name.empty()) {
    name = TRY(pick_model(flags_, status, true));
    status = TRY(ask_node(flags_, "/cluster/status"));  // the user has taken a while
  }
  model_ = TRY(open_node_model(flags_, status, name, manner_));
  return Ok{};
}

std::vector<std::string> NodeAnswerer::known_models() {
  std::vector<std::string> names;
  const auto status = ask_node(flags_, "/cluster/status");
  if (!status.ok()) return names;
  for (const Json& model : list_in(status.value(), "models")) {
    names.push_back(harmless_line(text_in(model, "name")));
  }
  return names;
}

Result<std::vector<std::string>> NodeAnswerer::node_lines() {
  const Json status = TRY(ask_node(flags_, "/cluster/status"));
  std::vector<std::string> lines = cluster_lines(status);
  for (std::string& line : model_lines(status)) lines.push_back(std::move(line));
  for (std::string& line : lines) line = harmless_line(line);
  return lines;
}

std::string NodeAnswerer::place() const {
  return fmt::format("on the node at {}:{}", flags_.host, flags_.port);
}

AnswerWatch::AnswerWatch(const NodeFlags& flags, std::string model)
    : flags_(flags),
      model_(std::move(model)),
      stream_(flags, {.target = "/cluster/events"}),
      last_text_(Clock::now()),
      next_look_(last_text_ + kQuietBeforeWords) {}

void AnswerWatch::look(TalkEvents& events, Clock::time_point now) {
  read_events(events);
  const auto told = requests_ ? requests_->poll() : std::nullopt;
  if (told) requests_.reset();
  const auto quiet = has_text_ ? Clock::duration(kQuietInAnswer) : kQuietBeforeWords;
  const bool is_due = now >= next_look_;
  if (now - last_text_ < quiet || (!told && !is_due)) return;
  next_look_ = now + kLookPeriod;
  if (!told && !requests_) {
    requests_.emplace(flags_, HttpCall{.target = "/cluster/requests"});
    return;
  }
  // A node that has not told yet does not hold up the words about the time.
  const double waited_s = std::chrono::duration<double>(now - last_text_).count();
  const Json none = JsonObject();
  const Json& requests = told && told->ok() ? told->value() : none;
  events.on_wait(waiting_text(requests, state_.status(), model_, waited_s));
}

void AnswerWatch::read_events(TalkEvents& events) {
  while (!has_ended_) {
    const NodeStream::Step step = stream_.next(std::chrono::milliseconds(0));
    if (step.kind == NodeStream::Kind::kNothing) return;
    const auto pieces = reader_.take(step.piece);
    has_ended_ = step.kind != NodeStream::Kind::kPiece || !pieces.ok();
    if (has_ended_) return;
    for (const ServerEvent& event : pieces.value()) {
      const auto change = state_.take(event);
      if (!change.ok() || change.value() != ClusterState::Change::kHappened) continue;
      const Json& last = state_.happened().back();
      const std::string kind = text_in(last, "kind");
      const std::string sentence = text_in(last, "sentence");
      const bool is_own = (kind == "paused" || kind == "healed") && sentence.starts_with(model_);
      if (is_own || kind == "node_lost") events.on_note(harmless_line(sentence));
    }
  }
}

}  // namespace lockstep
