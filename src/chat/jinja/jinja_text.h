// Methods of text in templates, as in Python's str. Characters keep their marks. Each takes the
// text and the arguments of the call.
#pragma once

#include "base/result.h"
#include "chat/jinja/jinja_methods.h"
#include "chat/jinja/jinja_value.h"

namespace lockstep::jinja {

using TextMethod = Result<Value>(Heap& heap, const Value& text, const Arguments& arguments);

TextMethod text_capitalize;
TextMethod text_count;
TextMethod text_ends_with;
TextMethod text_find;
TextMethod text_join;
TextMethod text_lower;
TextMethod text_remove_prefix;
TextMethod text_remove_suffix;
TextMethod text_replace;
TextMethod text_split;
TextMethod text_split_lines;
TextMethod text_split_right;
TextMethod text_starts_with;
TextMethod text_strip;
TextMethod text_strip_left;
TextMethod text_strip_right;
TextMethod text_title;
TextMethod text_upper;

// & < > ' " as HTML writes them.
MarkedText jinja_escaped(const MarkedText& text);
// separator.join(items); `lenient` prints elements that are not text first.
Result<Value> join_texts(Heap& heap, const MarkedText& separator, const std::vector<Value>& items,
                         bool lenient);

}  // namespace lockstep::jinja
