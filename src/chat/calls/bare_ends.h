// BareEnds: where the values of a call with bare keys end (ToolFormat::Body::kBareKeys), also if
// the model forgot a marker of a string, or wrote quotes in its place. Used by BareArguments; one
// thread. An end that it finds in a correct call is the right one.
#pragma once

#include <string_view>

#include "chat/calls/value_end.h"
#include "chat/text/pending_text.h"
#include "chat/tools/tool_format.h"
#include "chat/tools/tool_set.h"

namespace lockstep {

class BareEnds {
 public:
  // The place of a value: the tool whose argument it is, and how many brackets are open around it.
  struct Place {
    std::string_view tool;
    size_t depth = 1;
  };

  BareEnds(const ToolFormat& format, const ToolSet& tools);

  // The end of a string, after its opening marker. Text before `at` belongs to it in any case; the
  // first `from` bytes hold no end.
  ValueEnd of_text(const PendingText& pending, Place place, size_t from) const;
  // The end of a number, a word, or a string without its opening marker.
  ValueEnd of_word(const PendingText& pending, Place place, size_t from) const;
  // The end of a string in the quotes with which the pending text begins: `at` is the closing one.
  // kNone only once it is certain that there is none.
  ValueEnd of_quotes(const PendingText& pending, size_t from) const;

 private:
  enum class Next { kUnsure, kOther, kValueEnd };

  Next call_end(std::string_view after, bool has_ended) const;
  Next value_end(std::string_view after, bool has_ended) const;
  Next next_key(std::string_view after, Place place, bool has_ended) const;
  Next after_word(std::string_view word, std::string_view after, Place place, bool has_ended) const;
  size_t forgotten_end(std::string_view text, Place place) const;

  const ToolFormat& format_;
  const ToolSet& tools_;
  ToolFormat::Markers text_ends_;  // the end of a string, and those of the call
};

}  // namespace lockstep
