#include "net/http/http_answer_parser.h"

#include <limits>
#include <utility>

namespace lockstep {
namespace {

constexpr std::string_view kWhat = "the head of the answer";
constexpr int kFirstFinalStatus = 200;
constexpr int kLastStatus = 599;
constexpr int kSwitchingProtocols = 101;

}  // namespace

HttpAnswerParser::HttpAnswerParser(bool is_to_head)
    : is_to_head_(is_to_head), head_(HttpHeadReader::Kind::kHead, kAnswerHeadLimits, kWhat) {}

size_t HttpAnswerParser::feed(std::string_view bytes, std::string& body) {
  size_t taken = 0;
  if (state_ == State::kBody) {
    taken = body_->feed(bytes, body, std::numeric_limits<size_t>::max());
    if (body_->state() == HttpBodyReader::State::kDone) state_ = State::kDone;
    if (body_->state() == HttpBodyReader::State::kFailed) {
      fail(ErrorCode::kCorrupt, body_->failure().message);
    }
    return taken;
  }
  while (state_ == State::kHead && taken < bytes.size()) {
    taken += head_.feed(bytes.substr(taken));
    if (head_.state() == HttpHeadReader::State::kFailed) {
      const HttpFailure& failure = head_.failure();
      fail(failure.status == 431 ? ErrorCode::kExhausted : ErrorCode::kCorrupt, failure.message);
    } else if (head_.state() == HttpHeadReader::State::kDone) {
      end_head();
    }
  }
  return taken;
}

void HttpAnswerParser::end() {
  if (state_ == State::kBody && body_->end()) state_ = State::kDone;
  if (state_ == State::kHead || state_ == State::kBody) {
    fail(ErrorCode::kPeerLost, "the connection ended before the answer did");
  }
}

void HttpAnswerParser::fail(ErrorCode code, std::string message) {
  state_ = State::kFailed;
  error_ = {code, std::move(message)};
}

void HttpAnswerParser::end_head() {
  if (!read_status_line(head_.first_line())) return;
  if (answer_.status >= kFirstFinalStatus) {
    answer_.headers = std::move(head_.fields());
    return read_framing();
  }
  if (answer_.status == kSwitchingProtocols) {
    return fail(ErrorCode::kCorrupt, "it switches to another protocol, which was not requested");
  }
  if (++interim_heads_ > kInterimHeadsMax) {
    return fail(ErrorCode::kExhausted,
                "it has more than " + std::to_string(kInterimHeadsMax) + " interim heads");
  }
  head_.reset();
}

// "HTTP/1.1 200 OK"; the reason, and even the space before it, may be missing.
bool HttpAnswerParser::read_status_line(std::string_view line) {
  constexpr std::string_view kVersion = "HTTP/1.";
  constexpr size_t kCode = 9;  // where the status begins
  constexpr size_t kCodeEnd = 12;
  const bool is_http = line.starts_with(kVersion) && line.size() >= kCodeEnd &&
                       (line[7] == '0' || line[7] == '1') && line[8] == ' ' &&
                       (line.size() == kCodeEnd || line[kCodeEnd] == ' ');
  const std::string_view digits = is_http ? line.substr(kCode, kCodeEnd - kCode) : "";
  const auto number = parse_length(digits);
  if (!number) {
    fail(ErrorCode::kCorrupt, "it does not begin with a version of HTTP/1 and a status");
    return false;
  }
  const int status = static_cast<int>(*number);
  if (status < 100 || status > kLastStatus) {
    fail(ErrorCode::kCorrupt, "its status " + std::to_string(status) + " is not an HTTP status");
    return false;
  }
  answer_.status = status;
  return true;
}

// RFC 9112 6.3, but refuses two fields that both determine the end of the body.
void HttpAnswerParser::read_framing() {
  state_ = State::kBody;
  const HttpFields& fields = answer_.headers;
  const size_t lengths = count_fields(fields, "content-length");
  const size_t encodings = count_fields(fields, "transfer-encoding");
  const auto length = parse_length(find_field(fields, "content-length"));
  constexpr std::string_view kBody = "the body of the answer";
  if (is_to_head_ || answer_.status == 204 || answer_.status == 304) {
    state_ = State::kDone;
  } else if (lengths + encodings > 1) {
    fail(ErrorCode::kCorrupt, "it gives the end of the answer in two ways");
  } else if (encodings == 1) {
    if (!is_same_word(find_field(fields, "transfer-encoding"), "chunked")) {
      return fail(ErrorCode::kCorrupt, "its Transfer-Encoding is not chunked");
    }
    body_.emplace(HttpBodyReader::Framing::kChunked, 0, kBody);
  } else if (lengths == 1) {
    if (!length) return fail(ErrorCode::kCorrupt, "its Content-Length is not a number");
    body_.emplace(HttpBodyReader::Framing::kLength, *length, kBody);
    if (*length == 0) state_ = State::kDone;
  } else {
    body_.emplace(HttpBodyReader::Framing::kToEnd, 0, kBody);
  }
}

}  // namespace lockstep
