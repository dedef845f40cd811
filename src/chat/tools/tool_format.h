// ToolFormat: how one family of models writes reasoning and tool calls, as data. The output parser
// (chat/calls/output_parser.h) and the decoding constraint are both made from it, so that the
// parser understands whatever the constraint allows. Immutable, any thread.
#pragma once

#include <string_view>
#include <vector>

namespace lockstep {

// A reply is: reasoning (at most once, at its beginning), text, sections of calls, text...
//
//   section_begin  ( call_begin  CALL  call_end )*  section_end
//
// Without section_begin, calls appear directly in the text. White space is allowed between all of
// these. CALL depends on the body:
//
//   kJsonCall       {"name": NAME, "arguments": {...}}
//   kJsonArguments  name_prefix NAME name_end  before_arguments {...} after_arguments
//   kTaggedValues   NAME name_end  ( key_begin KEY key_end value_begin VALUE value_end )*
//   kBareKeys       name_prefix NAME {KEY:VALUE,KEY:VALUE...}: as JSON, but keys have no quotes
//                   and strings no escapes; strings stand between value_begin and value_end, as do
//                   keys that cannot be bare
struct ToolFormat {
  using Markers = std::vector<std::string_view>;

  enum class Body { kJsonCall, kJsonArguments, kTaggedValues, kBareKeys };
  // Characters of no bare key, which has no white space at its ends either.
  static constexpr std::string_view kBareKeyStops = ",:={}[]()<\"'";

  enum class IdForm {
    kLetters,       // "call_" and 24 letters and digits
    kNineLetters,   // nine letters and digits
    kNumberedName,  // "functions.NAME:INDEX"; the index counts over the conversation
  };
  // How a value in a kTaggedValues call is written.
  enum class ValueForm { kBySchema, kText, kJson };
  struct KeyEnd {
    std::string_view marker;
    ValueForm form;
  };

  std::string_view name;

  // A chat template of the family contains all markers of one of these sets (template_facts()).
  // Formats are looked for in the order of their turns, since a template of an earlier one may also
  // have the markers of a later one. None: no template reveals this format.
  std::vector<Markers> template_markers;
  int template_turn = 0;

  std::string_view reasoning_begin;  // both empty: the family has no reasoning
  std::string_view reasoning_end;
  bool calls_end_reasoning = false;  // a call may come without reasoning_end before it

  Markers section_begin;
  Markers section_end;
  std::string_view section_filler;  // characters allowed between calls, besides white space
  std::string_view bare_begin;      // a reply that begins with one of these characters is a section

  Body body = Body::kJsonCall;
  Markers call_begin;  // empty: a call begins with its brace
  Markers call_end;    // empty: a call ends with its arguments

  std::string_view name_prefix;       // may be missing
  bool prefix_begins_call = false;    // also without call_begin, at the beginning of the text
  Markers name_end;                   // any of these
  std::string_view name_stops;        // characters that also end a name, and belong to what follows
  std::string_view id_begin;          // also ends the name; an id follows, up to name_end
  bool name_holds_id = false;         // NAME is "functions.NAME:INDEX", which is the call's id
  Markers before_arguments;           // may be missing
  Markers after_arguments;            // may be missing
  Markers argument_keys;              // of calls as JSON, any of them
  bool id_follows_arguments = false;  // of kJsonCall: a key "id" may come last
  bool has_python_calls = false;      // section_begin name.call(key="value", ...)

  std::string_view key_begin;
  std::vector<KeyEnd> key_ends;
  std::string_view value_begin;  // empty: the value follows key_end
  std::string_view value_end;
  bool value_has_lines = false;  // one line end before and one after it are not part of the value

  // Forms that models write by mistake: the parser reads them, the constraint forbids them. A
  // format with another body than kJsonCall and with argument_keys is also read as {"name": NAME,
  // ...}.
  struct Mistakes {
    Markers section_begin;
    Markers section_end;
    std::string_view name_prefix;
    Markers name_end;
    std::string_view name_stops;
    Markers key_begin;
    Markers key_end;
    Markers fences;  // of Markdown, around a call as JSON
  } mistakes;

  bool is_harmony =
      false;  // messages with headers instead of markers; see chat/calls/harmony_reader.cc
  IdForm id_form = IdForm::kLetters;

  Markers marker_parts;  // tokens that make up markers which are not single tokens

  // All markers in the output: if the tokenizer has a special token for one of them, that token
  // counts as the marker's text.
  Markers markers() const;
};

// "llama3", "hermes", "qwen3_coder"...
const std::vector<ToolFormat>& tool_formats();
const ToolFormat* find_tool_format(std::string_view name);  // null: unknown

}  // namespace lockstep
