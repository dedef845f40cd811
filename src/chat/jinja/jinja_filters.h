// Filters that look at the elements of a sequence; called by name through call_filter in
// chat/jinja/jinja_methods.h.
#pragma once

#include "base/result.h"
#include "chat/jinja/jinja_methods.h"
#include "chat/jinja/jinja_value.h"

namespace lockstep {

using JinjaFilter = Result<JinjaValue>(JinjaHeap& heap, const JinjaValue& subject,
                                       const JinjaArguments& arguments);

JinjaFilter filter_attr;
JinjaFilter filter_dictsort;
JinjaFilter filter_first;
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
JinjaFilter filter_sort;
JinjaFilter filter_sum;
JinjaFilter filter_unique;

}  // namespace lockstep
