#include "cli/client/launch_plan.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "json/json.h"

using namespace lockstep;

namespace {

const LaunchTarget kTarget{.base = "http://localhost:8600", .model = "org/Tiny", .key = "lk-key"};

std::string variable(const LaunchPlan& plan, const std::string& name) {
  for (const auto& [own, value] : plan.environment) {
    if (own == name) return value;
  }
  return "";
}

bool has_argument(const LaunchPlan& plan, const std::string& argument) {
  return std::count(plan.arguments.begin(), plan.arguments.end(), argument) == 1;
}

}  // namespace

TEST_CASE("Claude Code is told by its variables") {
  const auto plan = plan_launch("claude", kTarget);
  REQUIRE(plan.ok());
  CHECK(plan.value().program == "claude");
  CHECK(plan.value().arguments.empty());
  CHECK(variable(plan.value(), "ANTHROPIC_BASE_URL") == "http://localhost:8600");
  CHECK(variable(plan.value(), "ANTHROPIC_AUTH_TOKEN") == "lk-key");
  CHECK(variable(plan.value(), "ANTHROPIC_MODEL") == "org/Tiny");
  const auto settings = parse_json(plan.value().content);
  REQUIRE(settings.ok());
  CHECK(find(*find(settings.value(), "env"), "ANTHROPIC_BASE_URL") != nullptr);
}

TEST_CASE("Codex is told by flags, with the key in a variable") {
  const auto plan = plan_launch("codex", kTarget);
  REQUIRE(plan.ok());
  CHECK(has_argument(plan.value(), R"(model="org/Tiny")"));
  CHECK(has_argument(plan.value(), R"(model_provider="lockstep")"));
  CHECK(has_argument(plan.value(),
                     R"(model_providers.lockstep.base_url="http://localhost:8600/v1")"));
  CHECK(has_argument(plan.value(), R"(model_providers.lockstep.wire_api="responses")"));
  CHECK(has_argument(plan.value(), R"(model_providers.lockstep.env_key="LOCKSTEP_API_KEY")"));
  CHECK(variable(plan.value(), "LOCKSTEP_API_KEY") == "lk-key");
  const auto open = plan_launch("codex", {.base = kTarget.base, .model = "m", .key = ""});
  REQUIRE(open.ok());
  CHECK(open.value().environment.empty());
  CHECK(open.value().content.find("env_key") == std::string::npos);
}

TEST_CASE("OpenCode is told by a configuration in a variable") {
  const auto plan = plan_launch("opencode", kTarget);
  REQUIRE(plan.ok());
  const auto config = parse_json(variable(plan.value(), "OPENCODE_CONFIG_CONTENT"));
  REQUIRE(config.ok());
  CHECK(*find(config.value(), "model") == "lockstep/org/Tiny");
  const Json& provider = *find(*find(config.value(), "provider"), "lockstep");
  CHECK(*find(*find(provider, "options"), "baseURL") == "http://localhost:8600/v1");
  CHECK(find(*find(provider, "models"), "org/Tiny") != nullptr);
}

TEST_CASE("no file of settings holds a key, and no other client is known") {
  for (const std::string& client : launch_clients()) {
    const auto plan = plan_launch(client, kTarget);
    REQUIRE(plan.ok());
    CHECK_MESSAGE(plan.value().content.find("lk-key") == std::string::npos, client);
    CHECK(!plan.value().file.empty());
    CHECK(plan.value().file.is_relative());
    for (const std::string& argument : plan.value().arguments) {
      CHECK(argument.find("lk-key") == std::string::npos);  // anyone can see a command line
    }
  }
  const auto other = plan_launch("emacs", kTarget);
  REQUIRE(!other.ok());
  CHECK(other.error().message.find("claude, codex, opencode") != std::string::npos);
}
