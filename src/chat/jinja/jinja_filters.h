// Filters that have a file of their own, and what those of sequences share; called by name through
// call_filter in chat/jinja/jinja_methods.h.
#pragma once

#include <vector>

#include "base/result.h"
#include "chat/jinja/jinja_methods.h"
#include "chat/jinja/jinja_value.h"

namespace lockstep::jinja {

using Filter = Result<Value>(Heap& heap, const Value& subject, const Arguments& arguments);

Filter filter_attr;
Filter filter_batch;
Filter filter_center;
Filter filter_dictsort;
Filter filter_escape;
Filter filter_first;
Filter filter_format;
Filter filter_groupby;
Filter filter_items;
Filter filter_join;
Filter filter_last;
Filter filter_list;
Filter filter_map;
Filter filter_max;
Filter filter_min;
Filter filter_reject;
Filter filter_rejectattr;
Filter filter_reverse;
Filter filter_select;
Filter filter_selectattr;
Filter filter_slice;
Filter filter_sort;
Filter filter_sum;
Filter filter_truncate;
Filter filter_unique;
Filter filter_wordcount;

// Text stays unchanged; anything else is printed.
Result<Value> as_text(Heap& heap, const Value& value);
// item[a][b] for the attribute "a.b"; digits are indices.
Result<Value> attribute_of(Heap& heap, Value item, const Value& attribute);
Value without_case(Heap& heap, const Value& value);
// The items in the order of their keys; equal ones stay in their order.
Result<std::vector<Value>> sorted(Heap& heap, const std::vector<Value>& items,
                                  const std::vector<Value>& keys, bool reverse);

}  // namespace lockstep::jinja
