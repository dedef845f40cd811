// HTTP API requests of commands to the node on this machine, and reading its answers.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "json/json.h"

// Declared so that includers need not read CLI11.
namespace CLI {
class App;
}  // namespace CLI

namespace lockstep {

struct NodeFlags {
  std::string host = "localhost";
  int port = 8600;
};

void add_node_flags(CLI::App& command, NodeFlags& flags);

// The answer's object. kPeerLost if no node answers, with what to do; if the node refuses, its own
// sentence.
Result<Json> ask_node(const NodeFlags& flags, std::string_view path);
Result<Json> tell_node(const NodeFlags& flags, std::string_view path, const JsonObject& body);

// Fields that exist: the node may be of another version.
std::string text_in(const Json& object, std::string_view key);
int64_t number_in(const Json& object, std::string_view key);
double real_in(const Json& object, std::string_view key);
bool flag_in(const Json& object, std::string_view key);
std::span<const Json> list_in(const Json& object, std::string_view key);

}  // namespace lockstep
