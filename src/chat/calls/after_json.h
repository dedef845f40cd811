// AfterJson: text after a call as JSON that is no part of anything: brackets too many, the end of a
// list of calls, the end of a fence. Used by MarkedReader. Pure functions; the result does not
// depend on how the text was cut.
#pragma once

#include <cstddef>

#include "chat/text/pending_text.h"
#include "chat/tools/tool_format.h"

namespace lockstep {

struct AfterJson {
  enum class Kind {
    kWait,   // more text is needed
    kCall,   // after `bytes` another call begins with its brace, in the same tag
    kOther,  // `bytes` are to be skipped
  };
  Kind kind = Kind::kOther;
  size_t bytes = 0;
};

// Skips what precedes the end of the call, of its section or of the text, or another call; and the
// end of a list that has begun. `between`: all markers that may follow.
AfterJson after_json(const PendingText& pending, const ToolFormat& format,
                     const ToolFormat::Markers& between, bool is_list);
// Skips the end of a fence, and of a list in it.
AfterJson after_fence(const PendingText& pending);

}  // namespace lockstep
