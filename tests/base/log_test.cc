// A log line on stderr, above all as JSON.
#include "base/log.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <string>
#include <string_view>

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
