// ValueEnd: the end of a value in a call with tags, whose own end marker models sometimes forget.
// Then the value ends before the next known key, or before the end of the call if nothing or
// another call follows it. Used by the reader of tagged calls; one thread.
#pragma once

#include <string_view>

#include "chat/text/pending_text.h"
#include "chat/tools/tool_format.h"
#include "chat/tools/tool_set.h"

namespace lockstep {

struct ValueEnd {
  enum class Kind {
    kNone,    // not before `at`
    kUnsure,  // at `at`, if the text after it is as expected
    kFound,   // at `at`, `bytes` of its end marker follow
  };
  Kind kind = Kind::kNone;
  size_t at = 0;
  size_t bytes = 0;
};

class ValueEndFinder {
 public:
  explicit ValueEndFinder(const ToolFormat& format, const ToolSet& tools);

  // The first end at or after `from`. `tool` is the name of the called function.
  ValueEnd find(const PendingText& pending, std::string_view tool, size_t from) const;

 private:
  ValueEnd::Kind judge_key(std::string_view after, std::string_view tool, bool has_ended) const;
  ValueEnd::Kind judge_call_end(std::string_view after, bool has_ended) const;

  const ToolFormat& format_;
  const ToolSet& tools_;
  ToolFormat::Markers ends_;  // value_end, key_begin, and the ends of a call
  ToolFormat::Markers key_ends_;
  ToolFormat::Markers openers_;  // of another call
};

}  // namespace lockstep
