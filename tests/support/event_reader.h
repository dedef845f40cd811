// EventReader: calls a function for each kind of RequestEvent, for tests that look at a few kinds.
#pragma once

#include <string>
#include <utility>

#include "engine/request_event.h"

namespace lockstep {

class EventReader {
 public:
  virtual ~EventReader() = default;
  // It must outlive the sink.
  operator EventSink() {
    return [this](const RequestEvent& event) {
      std::visit([&](const auto& what) { read(event.id, what); }, event.what);
    };
  }

  virtual void on_start(uint64_t /*request*/, int /*cached_tokens*/) {}
  virtual void on_token(uint64_t /*request*/, int32_t /*token*/) {}
  virtual void on_logprobs(uint64_t /*request*/, const std::vector<TokenLogprob>&) {}
  virtual void on_row(uint64_t /*request*/, const std::vector<float>&) {}
  virtual void on_draft_row(uint64_t /*request*/, const std::vector<float>&) {}
  virtual void on_end(uint64_t /*request*/, FinishReason) {}
  virtual void on_error(uint64_t /*request*/, const Error&) {}
  virtual void on_busy(uint64_t /*request*/) {}
  virtual void on_progress(uint64_t /*request*/, const RequestEvent::Progress&) {}
  virtual void on_pause(uint64_t /*request*/, const std::string& /*reason*/) {}
  virtual void on_resume(uint64_t /*request*/, int /*recomputed_tokens*/) {}

 private:
  void read(uint64_t id, const RequestEvent::Started& what) { on_start(id, what.cached_tokens); }
  void read(uint64_t id, const RequestEvent::Token& what) { on_token(id, what.token); }
  void read(uint64_t id, const RequestEvent::Logprobs& what) { on_logprobs(id, what.logprobs); }
  void read(uint64_t id, const RequestEvent::Row& what) {
    what.is_draft ? on_draft_row(id, what.values) : on_row(id, what.values);
  }
  void read(uint64_t id, const RequestEvent::Ended& what) {
    what.outcome.ok() ? on_end(id, what.outcome.value()) : on_error(id, what.outcome.error());
  }
  void read(uint64_t id, const RequestEvent::Busy&) { on_busy(id); }
  void read(uint64_t id, const RequestEvent::Progress& what) { on_progress(id, what); }
  void read(uint64_t id, const RequestEvent::Paused& what) { on_pause(id, what.reason); }
  void read(uint64_t id, const RequestEvent::Resumed& what) {
    on_resume(id, what.recomputed_tokens);
  }
};

}  // namespace lockstep
