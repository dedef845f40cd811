// How a coding agent is told to use a node: by variables and flags of its own, or by its file of
// settings. Facts of the clients' documents: Claude Code "LLM gateway configuration", Codex
// "config.md" (-c, model_providers), OpenCode "Config" (OPENCODE_CONFIG_CONTENT) and "Providers".
// Pure.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace lockstep {

struct LaunchTarget {
  std::string base;  // "http://localhost:8600"
  std::string model;
  std::string key;  // empty: none
};

struct LaunchPlan {
  std::string program;
  std::vector<std::string> arguments;  // in front of the user's own
  std::vector<std::pair<std::string, std::string>> environment;
  // A file of settings that says the same, below the home folder, for --write; it has no key.
  std::filesystem::path file;
  std::string content;
};

std::vector<std::string> launch_clients();
// kNotFound lists the known clients.
Result<LaunchPlan> plan_launch(std::string_view client, const LaunchTarget& target);

}  // namespace lockstep
