// Methods of text in templates, as in Python's str. Characters keep their marks. Each takes the
// text and the arguments of the call.
#pragma once

#include "base/result.h"
#include "chat/jinja/jinja_methods.h"
#include "chat/jinja/jinja_value.h"

namespace lockstep {

using JinjaTextMethod = Result<JinjaValue>(JinjaHeap& heap, const JinjaValue& text,
                                           const JinjaArguments& arguments);

JinjaTextMethod text_capitalize;
JinjaTextMethod text_count;
JinjaTextMethod text_ends_with;
JinjaTextMethod text_find;
JinjaTextMethod text_join;
JinjaTextMethod text_lower;
JinjaTextMethod text_remove_prefix;
JinjaTextMethod text_remove_suffix;
JinjaTextMethod text_replace;
JinjaTextMethod text_split;
JinjaTextMethod text_split_lines;
JinjaTextMethod text_split_right;
JinjaTextMethod text_starts_with;
JinjaTextMethod text_strip;
JinjaTextMethod text_strip_left;
JinjaTextMethod text_strip_right;
JinjaTextMethod text_title;
JinjaTextMethod text_upper;

// & < > ' " as HTML writes them.
MarkedText jinja_escaped(const MarkedText& text);
// separator.join(items); `lenient` prints elements that are not text first.
Result<JinjaValue> join_texts(JinjaHeap& heap, const MarkedText& separator,
                              const std::vector<JinjaValue>& items, bool lenient);

}  // namespace lockstep
