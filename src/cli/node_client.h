// How commands ask the node that runs on this machine, over its HTTP API, and read what it says.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "json/json.h"

// So that who includes this need not read CLI11.
namespace CLI {
class App;
}  // namespace CLI

namespace lockstep {

struct NodeFlags {
  std::string host = "localhost";
  int port = 8600;
};

void add_node_flags(CLI::App& command, NodeFlags& flags);

// The answer's object. kPeerLost where no node answers, with what to do; where the node refuses,
// its own sentence.
Result<Json> ask_node(const NodeFlags& flags, std::string_view path);
Result<Json> tell_node(const NodeFlags& flags, std::string_view path, const JsonObject& body);

// Fields as far as they are there: the node may be of another version.
std::string text_in(const Json& object, std::string_view key);
int64_t number_in(const Json& object, std::string_view key);
double real_in(const Json& object, std::string_view key);
bool flag_in(const Json& object, std::string_view key);
std::span<const Json> list_in(const Json& object, std::string_view key);

}  // namespace lockstep
