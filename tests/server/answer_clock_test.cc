#include "server/generation/answer_clock.h"

#include <doctest/doctest.h>

namespace lockstep {
namespace {

using std::chrono::milliseconds;

constexpr AnswerClock::Time kBegan{std::chrono::seconds(100)};

AnswerClock::Time after(int ms) {
  return kBegan + milliseconds(ms);
}

}  // namespace

TEST_CASE("an answer's times begin with its prompt's turn and end with its last token") {
  AnswerClock clock({10}, kBegan);
  CHECK_FALSE(clock.has_turn());
  clock.progress(0, 4, 4, after(50));
  CHECK(clock.has_turn());
  clock.progress(0, 7, 4, after(60));
  CHECK(clock.prompt(after(70)).done == 7);
  CHECK(clock.prompt(after(70)).cached == 4);
  CHECK(clock.prompt(after(70)).total == 10);
  CHECK(clock.prompt(after(70)).ms == doctest::Approx(20));
  clock.started(0, 4, after(80));
  clock.token(after(81));
  clock.token(after(100));
  clock.token(after(131));
  CHECK(clock.prompt(after(140)).done == 10);
  const AnswerTimes times = clock.times();
  CHECK(times.prompt_ms == doctest::Approx(31));
  CHECK(times.answer_ms == doctest::Approx(50));
  CHECK(times.first_token_ms == doctest::Approx(81));
}

TEST_CASE("choices that share a prompt count it once") {
  AnswerClock clock({10, 0, 5}, kBegan);
  clock.started(0, 2, after(1));
  clock.started(1, 9, after(2));
  clock.progress(2, 3, 1, after(3));
  const PromptProgress prompt = clock.prompt(after(4));
  CHECK(prompt.total == 15);
  CHECK(prompt.done == 13);
  CHECK(prompt.cached == 3);
}

TEST_CASE("a pause lasts until the answer goes on, and a second loss does not begin another") {
  AnswerClock clock({10}, kBegan);
  CHECK_FALSE(clock.resume(after(1)));
  CHECK(clock.pause(after(100)));
  CHECK(clock.is_paused());
  CHECK_FALSE(clock.pause(after(200)));
  CHECK(clock.resume(after(1'400)).value() == doctest::Approx(1.3));
  CHECK_FALSE(clock.is_paused());
}

TEST_CASE("an answer without tokens has no times of tokens") {
  AnswerClock clock({10}, kBegan);
  clock.started(0, 0, after(30));
  CHECK(clock.times().answer_ms == 0);
  CHECK(clock.times().first_token_ms == doctest::Approx(30));
}

}  // namespace lockstep
