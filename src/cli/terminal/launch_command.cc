// `lockstep launch`: a coding agent that uses the node of this machine, or another one.
#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/files/private_file.h"
#include "cli/client/launch_plan.h"
#include "cli/client/node_client.h"
#include "cli/commands/commands.h"

namespace lockstep {
namespace {

struct LaunchFlags {
  NodeFlags node;
  std::string client;
  std::string model;
  bool writes = false;
  std::vector<std::string> arguments;
};

std::string variable_or_empty(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// The named model as the node calls it, or the only one.
Result<std::string> launched_model(const LaunchFlags& flags) {
  const Json answer = TRY(ask_node(flags.node, "/v1/models"));
  std::vector<std::string> names;
  for (const Json& model : list_in(answer, "data")) names.push_back(text_in(model, "id"));
  if (!flags.model.empty()) return flags.model;
  if (names.size() == 1) return names.front();
  std::string known;
  for (const std::string& name : names) known += (known.empty() ? "" : ", ") + name;
  return Error{ErrorCode::kInvalidArgument,
               names.empty() ? "the node has no model; load one with `lockstep load MODEL`"
                             : fmt::format("choose a model with --model: {}", known)};
}

// Never over a file that exists: it may hold more than this.
Status write_settings(const LaunchPlan& plan) {
  const std::string home = variable_or_empty("HOME");
  if (home.empty()) return Error{ErrorCode::kNotFound, "HOME is not set, where settings belong"};
  const std::filesystem::path path = std::filesystem::path(home) / plan.file;
  std::error_code error;
  if (std::filesystem::exists(path, error)) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{} exists and is left as it is; add to it by hand:\n{}",
                             path.string(), plan.content)};
  }
  std::filesystem::create_directories(path.parent_path(), error);
  if (error) {
    return Error{ErrorCode::kInternal, fmt::format("{} cannot be created: {}",
                                                   path.parent_path().string(), error.message())};
  }
  if (!TRY(create_private_file(path, plan.content))) {
    return Error{ErrorCode::kInvalidArgument, path.string() + " was created by somebody else"};
  }
  fmt::print(stderr, "Written: {}\n", path.string());
  return Ok{};
}

// Becomes the client; returns only if it cannot be started.
Error run_client(const LaunchPlan& plan, const std::vector<std::string>& own) {
  for (const auto& [name, value] : plan.environment) ::setenv(name.c_str(), value.c_str(), 1);
  std::vector<std::string> words{plan.program};
  words.insert(words.end(), plan.arguments.begin(), plan.arguments.end());
  words.insert(words.end(), own.begin(), own.end());
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  ::execvp(pointers.front(), pointers.data());
  if (errno == ENOENT) {
    return {ErrorCode::kNotFound,
            fmt::format("the program {} is not installed, or not in PATH", plan.program)};
  }
  return {ErrorCode::kInternal,
          fmt::format("{} cannot be started: {}", plan.program, std::strerror(errno))};
}

Status launch(const LaunchFlags& flags) {
  LaunchTarget target;
  target.base = fmt::format("http://{}:{}", flags.node.host, flags.node.port);
  target.model = TRY(launched_model(flags));
  target.key = variable_or_empty("LOCKSTEP_API_KEY");
  const LaunchPlan plan = TRY(plan_launch(flags.client, target));
  if (flags.writes) return write_settings(plan);
  return run_client(plan, flags.arguments);
}

}  // namespace

void add_launch_command(CLI::App& app, Command& chosen) {
  auto flags = std::make_shared<LaunchFlags>();
  CLI::App* command = app.add_subcommand("launch", "run a coding agent that uses a node's model");
  command->add_option("CLIENT", flags->client, "claude, codex or opencode")
      ->required()
      ->check(CLI::IsMember(launch_clients()));
  command->add_option("ARGUMENTS", flags->arguments, "of the client, after --");
  add_node_flags(*command, flags->node);
  command->add_option("--model", flags->model, "a model of the node (default: the only one)");
  command->add_flag("--write", flags->writes,
                    "instead of running it, write its file of settings, unless there is one");
  command->footer(
      "\nLOCKSTEP_API_KEY, if the node needs a key, is passed on to the client.\n"
      "Example: lockstep launch claude -- --continue");
  choose_when_given(*command, chosen, flags, launch);
}

}  // namespace lockstep
