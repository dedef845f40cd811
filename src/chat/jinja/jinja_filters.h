// Filters that have a file of their own, and what those of sequences share; called by name through
// call_filter in chat/jinja/jinja_methods.h.
#pragma once

#include <vector>

#include "base/result.h"
#include "chat/jinja/jinja_methods.h"
#include "chat/jinja/jinja_value.h"

namespace lockstep {

using JinjaFilter = Result<JinjaValue>(JinjaHeap& heap, const JinjaValue& subject,
                                       const JinjaArguments& arguments);

JinjaFilter filter_attr;
JinjaFilter filter_batch;
JinjaFilter filter_center;
JinjaFilter filter_dictsort;
JinjaFilter filter_escape;
JinjaFilter filter_first;
JinjaFilter filter_format;
JinjaFilter filter_groupby;
JinjaFilter filter_items;
JinjaFilter filter_join;
JinjaFilter filter_last;
JinjaFilter filter_list;
JinjaFilter filter_map;
JinjaFilter filter_max;
JinjaFilter filter_min;
JinjaFilter filter_reject;
JinjaFilter filter_rejectattr;
JinjaFilter filter_reverse;
JinjaFilter filter_select;
JinjaFilter filter_selectattr;
JinjaFilter filter_slice;
JinjaFilter filter_sort;
JinjaFilter filter_sum;
JinjaFilter filter_truncate;
JinjaFilter filter_unique;
JinjaFilter filter_wordcount;

// Text stays unchanged; anything else is printed.
Result<JinjaValue> as_text(JinjaHeap& heap, const JinjaValue& value);
// item[a][b] for the attribute "a.b"; digits are indices.
Result<JinjaValue> attribute_of(JinjaHeap& heap, JinjaValue item, const JinjaValue& attribute);
JinjaValue without_case(JinjaHeap& heap, const JinjaValue& value);
// The items in the order of their keys; equal ones stay in their order.
Result<std::vector<JinjaValue>> sorted(JinjaHeap& heap, const std::vector<JinjaValue>& items,
                                       const std::vector<JinjaValue>& keys, bool reverse);

}  // namespace lockstep
