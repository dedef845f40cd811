#include "cli/bench/load_run.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <future>
#include <memory>
#include <unordered_map>

#include "cli/bench/answer_stream.h"
#include "cli/client/node_client.h"
#include "json/json.h"
#include "net/event_loop.h"
#include "net/http/http_stream.h"
#include "net/http/http_target.h"

namespace lockstep {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kProgressInterval{1};
constexpr size_t kErrorBodyBytesMax = 64 << 10;
constexpr size_t kErrorKindsMax = 64;

double seconds_of(Clock::duration time) {
  return std::chrono::duration<double>(time).count();
}

Clock::duration duration_of(double seconds) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

HttpCall make_call(const LoadTarget& target, const LoadPlan& plan, const PlannedRequest& request) {
  JsonObject body{{"model", target.model},
                  {"max_tokens", request.new_tokens},
                  {"temperature", target.temperature},
                  {"ignore_eos", true},
                  {"stream", true},
                  {"stream_options", JsonObject{{"include_usage", true}}}};
  if (target.api == LoadApi::kChat) {
    body["messages"] =
        JsonArray{JsonObject{{"role", "user"}, {"content", plan.prompt_text(request)}}};
  } else {
    JsonArray ids;
    for (const int32_t id : plan.prompt_ids(request)) ids.push_back(id);
    body["prompt"] = std::move(ids);
  }
  const char* const path = target.api == LoadApi::kChat ? "/chat/completions" : "/completions";
  HttpCall call{.host = target.address.host,
                .port = target.address.port,
                .method = "POST",
                .target = target.base + path,
                .headers = {{"Content-Type", "application/json"}},
                .body = dump_json(body)};
  if (!target.api_key.empty()) {
    call.headers.emplace_back("Authorization", "Bearer " + target.api_key);
  }
  return call;
}

std::string error_kind(const Error& error, bool has_begun) {
  if (error.code == ErrorCode::kTimeout) return "timed out";
  if (error.code != ErrorCode::kPeerLost) return "no HTTP";
  return has_begun ? "broken off" : "not reached";
}

// A request in flight.
struct Running {
  PlannedRequest planned;
  Clock::time_point intended;
  Clock::time_point first_event;
  Clock::time_point last_event;
  int64_t events = 0;
  int status = 0;
  std::string error_body;  // of an answer that is not a stream
  AnswerStream answer;
  HttpStream http;
  EventLoop::Timer timer;
};

// Everything belongs to the loop's thread.
class Load {
 public:
  Load(EventLoop& loop, const LoadTarget& target, const LoadOptions& options,
       const LoadRunProgress& on_progress)
      : loop_(loop),
        target_(target),
        options_(options),
        on_progress_(on_progress),
        plan_(options.shape),
        concurrency_(options.concurrency > 0 ? options.concurrency : LoadOptions::kRunningMax) {}

  std::future<void> ended() { return ended_.get_future(); }
  void begin();
  LoadFigures take() { return std::move(figures_); }

 private:
  bool is_open_loop() const { return options_.shape.rate > 0; }
  bool may_begin(const PlannedRequest& request, double now_s) const;
  void begin_due();
  void send(const PlannedRequest& request, Clock::time_point intended);
  HttpStream::Events events(uint64_t number);
  void take_head(Running& running, const HttpAnswer& head);
  void take_piece(Running& running, std::string_view piece);
  void take_end(Running& running);
  void complete(const Running& running);
  bool keeps_limits(double first_s, double token_s, double whole_s) const;
  void fail(const Running& running, const std::string& kind, const std::string& sentence);
  void leave(uint64_t number);
  void report_progress();

  EventLoop& loop_;
  const LoadTarget& target_;
  const LoadOptions& options_;
  const LoadRunProgress& on_progress_;
  LoadPlan plan_;
  const int concurrency_;
  std::optional<PlannedRequest> next_;  // empty: no request follows
  std::unordered_map<uint64_t, std::unique_ptr<Running>> running_;
  LoadFigures figures_;
  uint64_t failed_ = 0;
  Clock::time_point began_;
  EventLoop::Timer due_;
  EventLoop::Timer progress_;
  bool is_beginning_ = false;
  std::promise<void> ended_;
};

void Load::begin() {
  began_ = Clock::now();
  next_ = plan_.next();
  report_progress();
  begin_due();
}

bool Load::may_begin(const PlannedRequest& request, double now_s) const {
  if (options_.requests > 0 && request.number >= static_cast<uint64_t>(options_.requests)) {
    return false;
  }
  const double at_s = is_open_loop() ? request.at_s : now_s;
  return options_.duration_s <= 0 || at_s < options_.duration_s;
}

// Sends all due requests that the limit allows; every ending request calls this again.
void Load::begin_due() {
  due_.cancel();
  while (next_) {
    const auto now = Clock::now();
    if (!may_begin(*next_, seconds_of(now - began_))) {
      next_.reset();
      break;
    }
    if (static_cast<int>(running_.size()) >= concurrency_) return;
    const auto intended = is_open_loop() ? began_ + duration_of(next_->at_s) : now;
    if (intended > now) {
      const auto wait = std::chrono::ceil<std::chrono::milliseconds>(intended - now);
      due_ = loop_.call_after(wait, [this] { begin_due(); });
      return;
    }
    send(*next_, intended);
    next_ = plan_.next();
  }
  if (!running_.empty()) return;
  progress_.cancel();
  ended_.set_value();
}

void Load::send(const PlannedRequest& request, Clock::time_point intended) {
  auto running = std::make_unique<Running>();
  running->planned = request;
  running->intended = intended;
  const uint64_t number = request.number;
  running->timer = loop_.call_after(options_.timeout, [this, number] {
    fail(*running_.at(number), "timed out",
         fmt::format("a request had no end within {} ms", options_.timeout.count()));
  });
  HttpCall call = make_call(target_, plan_, request);
  figures_.lateness.add(seconds_of(Clock::now() - intended));
  ++figures_.sent;
  running->http = HttpStream::start(loop_, std::move(call),
                                    {.connect_timeout = options_.timeout,
                                     .first_byte_timeout = options_.timeout,
                                     .silence_max = options_.timeout},
                                    events(number));
  running_.emplace(number, std::move(running));
  figures_.running_max = std::max(figures_.running_max, static_cast<int>(running_.size()));
}

HttpStream::Events Load::events(uint64_t number) {
  return {
      .on_head = [this, number](const HttpAnswer& head) { take_head(*running_.at(number), head); },
      .on_piece = [this,
                   number](const std::string& piece) { take_piece(*running_.at(number), piece); },
      .on_end = [this, number] { take_end(*running_.at(number)); },
      .on_failure =
          [this, number](const Error& error) {
            const Running& running = *running_.at(number);
            fail(running, error_kind(error, running.status != 0), error.message);
          }};
}

void Load::take_head(Running& running, const HttpAnswer& head) {
  running.status = head.status;
  if (head.status != 200 || head.header("content-type").starts_with("text/event-stream")) return;
  fail(
      running, "no stream",
      fmt::format("the answer is of type {}, not a stream of events", head.header("content-type")));
}

void Load::take_piece(Running& running, std::string_view piece) {
  if (running.status != 200) {
    const size_t room = kErrorBodyBytesMax - running.error_body.size();
    running.error_body += piece.substr(0, room);
    return running.http.resume();
  }
  const auto now = Clock::now();
  const auto brought = running.answer.take(piece);
  if (!brought.ok()) return fail(running, "no stream", brought.error().message);
  for (int i = 0; i < brought.value(); ++i) {
    if (running.events++ == 0) {
      running.first_event = now;
    } else {
      figures_.inter_token.add(seconds_of(now - running.last_event));
    }
    running.last_event = now;
  }
  if (running.answer.error()) return fail(running, "error in the stream", *running.answer.error());
  running.http.resume();
}

void Load::take_end(Running& running) {
  if (running.status == 200 && running.answer.is_done()) return complete(running);
  if (running.status == 200) {
    return fail(running, "broken off", "the stream ended without its last event, [DONE]");
  }
  const auto body = parse_json(running.error_body);
  const Json* error = body.ok() ? find(body.value(), "error") : nullptr;
  const std::string said = error != nullptr ? text_in(*error, "message") : "";
  fail(running, fmt::format("{}", running.status),
       said.empty() ? fmt::format("status {}", running.status) : said);
}

void Load::complete(const Running& running) {
  const auto now = Clock::now();
  const AnswerStream& answer = running.answer;
  const bool is_counted = answer.new_tokens() >= 0 && answer.prompt_tokens() >= 0;
  const int64_t tokens = is_counted ? answer.new_tokens() : running.events;
  if (!is_counted) figures_.are_tokens_counted_here = true;
  ++figures_.completed;
  figures_.prompt_tokens += is_counted ? answer.prompt_tokens() : running.planned.prompt_tokens;
  figures_.new_tokens += tokens;
  const double whole_s = seconds_of(now - running.intended);
  figures_.whole.add(whole_s);
  double first_s = 0, token_s = 0;
  if (running.events > 0) {
    first_s = seconds_of(running.first_event - running.intended);
    figures_.first_token.add(first_s);
  }
  if (running.events > 1 && tokens > 1) {
    token_s =
        seconds_of(running.last_event - running.first_event) / static_cast<double>(tokens - 1);
    figures_.token.add(token_s);
  }
  if (keeps_limits(first_s, token_s, whole_s)) ++figures_.good;
  leave(running.planned.number);
}

bool Load::keeps_limits(double first_s, double token_s, double whole_s) const {
  const auto keeps = [](double seconds, double limit_ms) {
    return limit_ms <= 0 || seconds * 1e3 <= limit_ms;
  };
  const ServiceLimits& limits = options_.limits;
  return keeps(first_s, limits.first_token_ms) && keeps(token_s, limits.token_ms) &&
         keeps(whole_s, limits.whole_ms);
}

void Load::fail(const Running& running, const std::string& kind, const std::string& sentence) {
  ++failed_;
  const bool has_room = figures_.errors.size() < kErrorKindsMax || figures_.errors.contains(kind);
  LoadErrors& errors = figures_.errors[has_room ? kind : "others"];
  if (errors.count++ == 0) errors.example = sentence;
  leave(running.planned.number);
}

// The request is destroyed when this returns; in a load without a rate the next one begins.
void Load::leave(uint64_t number) {
  figures_.elapsed_s = seconds_of(Clock::now() - began_);
  running_.erase(number);
  if (is_beginning_) return;
  is_beginning_ = true;
  due_ = loop_.call_after(std::chrono::milliseconds(0), [this] {
    is_beginning_ = false;
    begin_due();
  });
}

void Load::report_progress() {
  if (on_progress_) on_progress_(figures_.completed, failed_, static_cast<int>(running_.size()));
  progress_ = loop_.call_after(kProgressInterval, [this] { report_progress(); });
}

}  // namespace

Result<LoadTarget> parse_load_target(std::string_view url) {
  PlainUrl plain = TRY(split_plain_url(url,
                                       "the load is sent over plain HTTP; name the server itself, "
                                       "not the TLS proxy in front of it"));
  LoadTarget target;
  while (plain.path.ends_with('/')) plain.path.remove_suffix(1);
  if (!plain.path.empty()) target.base = plain.path;
  target.address = TRY(parse_net_address(plain.authority, 8600));
  return target;
}

LoadFigures run_load(const LoadTarget& target, const LoadOptions& options,
                     const LoadRunProgress& on_progress) {
  const auto loop = EventLoop::start();
  std::unique_ptr<Load> load;
  std::future<void> ended;
  loop->must_run([&] {
    load = std::make_unique<Load>(*loop, target, options, on_progress);
    ended = load->ended();
    load->begin();
  });
  ended.wait();  // each request has a time-out, and the plan ends
  LoadFigures figures;
  loop->must_run([&] {
    figures = load->take();
    load.reset();
  });
  return figures;
}

}  // namespace lockstep
