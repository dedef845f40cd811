// A log line on stderr, above all as JSON.
#include "base/log.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <string>
#include <string_view>

#include "base/log_ring.h"
#include "base/utf8.h"

using namespace lockstep;

namespace {

// The text that `write` leaves on stderr; less than a pipe holds.
template <class Write>
std::string on_stderr(Write write) {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const int kept = ::dup(STDERR_FILENO);
  REQUIRE(kept >= 0);
  REQUIRE(::dup2(ends[1], STDERR_FILENO) >= 0);
  ::close(ends[1]);
  write();
  ::dup2(kept, STDERR_FILENO);
  ::close(kept);
  std::string text(4096, '\0');
  const ssize_t bytes = ::read(ends[0], text.data(), text.size());
  ::close(ends[0]);
  text.resize(bytes < 0 ? 0 : static_cast<size_t>(bytes));
  return text;
}

std::string json_line(std::string_view message) {
  return on_stderr([&] {
    set_log_json(true);
    write_log(LogLevel::kWarn, message);
    set_log_json(false);
  });
}

}  // namespace

TEST_CASE("a log line as JSON is valid UTF-8, whatever the message") {
  // A half character, a byte that never occurs, one that is too long, half of a pair.
  for (const std::string_view message :
       {"a\xC3", "\xFF b", "\xC0\xAF", "\xED\xA0\x80", "\xF5\x80\x80\x80", "\xE2\x82"}) {
    const std::string line = json_line(message);
    CHECK(is_valid_utf8(line));
    CHECK(line.find("\"message\":\"") != std::string::npos);
    CHECK(line.find("\uFFFD") != std::string::npos);
    CHECK(line.ends_with("\"}\n"));
  }
  CHECK(json_line("é 🙂").find("\"message\":\"é 🙂\"") != std::string::npos);
}

TEST_CASE("a log line as JSON is one line with its quotes escaped") {
  const std::string line = json_line("a \"b\" \\ c\n\td\x01");
  CHECK(line.find(R"("level":"warn","message":"a \"b\" \\ c\u000a\u0009d\u0001"})") !=
        std::string::npos);
  CHECK(line.find('\n') == line.size() - 1);
}

TEST_CASE("a plain log line has its level and message") {
  const std::string line = on_stderr([] { write_log(LogLevel::kError, "lost"); });
  CHECK(line.find(" error lost\n") != std::string::npos);
}

TEST_CASE("the last lines of the log are kept with numbers that go on, and long ones are cut off") {
  on_stderr([] { log_info("begin"); });
  const std::vector<LogLine> all = log_lines_after(0, kLogLinesKept);
  REQUIRE(!all.empty());
  const uint64_t begin = all.back().number;
  CHECK(all.back().text == "begin");
  CHECK(log_lines_after(begin, 9).empty());
  on_stderr([] {
    log_warn("two\nlines");
    log_error("{}", std::string(2 * kLogLineBytesKept, 'x'));
  });
  const std::vector<LogLine> next = log_lines_after(begin, 9);
  REQUIRE(next.size() == 2);
  CHECK(next[0].number == begin + 1);
  CHECK(next[0].level == LogLevel::kWarn);
  CHECK(next[0].text == "two lines");
  CHECK(next[0].at_ms > 1'700'000'000'000);
  CHECK(next[1].text == std::string(kLogLineBytesKept, 'x'));
  CHECK(log_lines_after(begin, 1).size() == 1);
  // A reader that knew an earlier process begins again.
  CHECK(log_lines_after(UINT64_MAX, kLogLinesKept).size() == all.size() + 2);
}

TEST_CASE("the log keeps a fixed number of lines, the newest") {
  for (size_t i = 0; i < kLogLinesKept + 10; ++i) keep_log_line(LogLevel::kInfo, 1, "line");
  const std::vector<LogLine> lines = log_lines_after(0, 2 * kLogLinesKept);
  REQUIRE(lines.size() == kLogLinesKept);
  CHECK(lines.back().number - lines.front().number == kLogLinesKept - 1);
}

TEST_CASE("a known secret is in no line, neither on stderr nor among those kept") {
  const std::string secret = "hf_a-very-secret-token";
  keep_out_of_log(secret);
  keep_out_of_log("short");  // could be anything
  const std::string line = on_stderr([&] { log_info("a short {0} and {0}", secret); });
  CHECK(line.ends_with("a short *** and ***\n"));
  CHECK(json_line(secret).find(secret) == std::string::npos);
  for (const LogLine& kept : log_lines_after(0, kLogLinesKept)) {
    CHECK(kept.text.find(secret) == std::string::npos);
  }
}
