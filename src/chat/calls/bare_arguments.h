// BareArguments: reads the arguments of a call with bare keys (ToolFormat::Body::kBareKeys) and
// writes them as JSON, texts as they arrive and other values whole. Used by the reader of such
// calls; one thread.
#pragma once

#include <string>
#include <string_view>

#include "chat/calls/bare_ends.h"
#include "chat/text/pending_text.h"
#include "chat/tools/tool_format.h"
#include "chat/tools/tool_set.h"

namespace lockstep {

class BareArguments {
 public:
  BareArguments(const ToolFormat& format, const ToolSet& tools);

  // After the bracket that opens the arguments of `tool`: the one that closes them.
  void begin(std::string_view tool, char bracket, std::string& out);
  // True once all has been read. Appends the known JSON to `out`.
  bool read(PendingText& pending, std::string& out);

 private:
  enum class State { kItem, kKey, kColon, kValue, kText, kHeldText, kWord, kQuoted, kEnd };

  // False: more text is needed.
  bool step(PendingText& pending, std::string& out);
  bool read_item(PendingText& pending, std::string& out);
  bool read_key(PendingText& pending, std::string& out);
  bool read_bare_key(PendingText& pending, std::string& out);
  bool read_colon(PendingText& pending);
  bool read_value(PendingText& pending, std::string& out);
  bool read_text(PendingText& pending, std::string& out);
  bool read_held(PendingText& pending, std::string& out);
  bool read_quoted(PendingText& pending, std::string& out);

  bool go_to(State state);
  bool begins_quotes(char letter) const;
  void write_key(std::string& out);
  void write_value(std::string_view json, std::string& out);
  void open(char bracket, std::string& out);
  void close(char bracket, std::string& out);
  void close_from(size_t place, std::string& out);
  bool close_all(std::string& out);
  void end_early(PendingText& pending, std::string& out);
  BareEnds::Place place() const { return {tool_, open_.size()}; }
  JsonTypes types() const;

  const ToolFormat& format_;
  const ToolSet& tools_;
  const BareEnds ends_;
  State state_ = State::kItem;
  std::string tool_;
  std::string open_;  // the brackets that will close the open ones
  bool needs_comma_ = false;
  std::string key_;
  bool quotes_are_letters_ = false;  // since one had no end
  size_t searched_ = 0;              // bytes of a held value in which its end does not begin
};

}  // namespace lockstep
