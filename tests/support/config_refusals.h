// Values of config.json that parse_config() refuses, for tests.
#pragma once

#include <doctest/doctest.h>

#include <span>
#include <string>

#include "json/json.h"
#include "model/config/config.h"

namespace lockstep {

struct Refusal {
  const char* key;
  Json value;
  const char* sentence;  // a substring
};

// Each of them, in a file that is sound otherwise.
inline void check_refusals(const JsonObject& sound, std::span<const Refusal> refusals) {
  for (const Refusal& refusal : refusals) {
    CAPTURE(refusal.key);
    CAPTURE(refusal.sentence);
    JsonObject file = sound;
    file[refusal.key] = refusal.value;
    const auto refused = parse_config(dump_json(file));
    REQUIRE(!refused.ok());
    CHECK_MESSAGE(refused.error().message.find(refusal.sentence) != std::string::npos,
                  refused.error().message);
  }
}

}  // namespace lockstep
