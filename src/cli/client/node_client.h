// HTTP API requests of commands to the node on this machine, and reading its answers.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "json/json.h"
#include "net/http/http_client.h"

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

// Building blocks of these, for answers that are read as they arrive.
HttpCall post_call(std::string_view path, const JsonObject& body);
// Adds the node's address, and LOCKSTEP_API_KEY if it is set.
void address_call(const NodeFlags& flags, HttpCall& call);
// Adds the proof that this user may control the node, if it can be made. Asks the node, with a
// deadline.
void add_control(const NodeFlags& flags, HttpCall& call);
ErrorCode error_code_of_status(int status);
// The sentence of a node's "error", with the variable for the key where a key is missing or wrong.
std::string refusal_text(const Json& error);

// Fields that exist: the node may be of another version.
std::string text_in(const Json& object, std::string_view key);
int64_t number_in(const Json& object, std::string_view key);
double real_in(const Json& object, std::string_view key);
bool flag_in(const Json& object, std::string_view key);
std::span<const Json> list_in(const Json& object, std::string_view key);

}  // namespace lockstep
