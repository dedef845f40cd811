#include "chat/constraints/call_parts.h"

#include <algorithm>
#include <utility>

#include "chat/calls/call_reader.h"
#include "chat/constraints/constraint_parts.h"
#include "chat/constraints/plain_schema.h"
#include "chat/tools/tool_set.h"

namespace lockstep {
namespace {

using Body = ToolFormat::Body;

Json gap() {
  return rule_part("gap");
}

Json blank_or_marker(std::string_view text) {
  const bool is_blank = text.find_first_not_of(kBlanks) == std::string_view::npos;
  return is_blank ? text_part(text) : marker_part(text);
}

class CallParts {
 public:
  CallParts(const AnswerOptions& options, JsonObject& rules)
      : format_(*options.format), is_parallel_(options.is_parallel), rules_(rules) {
    if (format_.body == Body::kTaggedValues) types_ = options.known_tools();
  }

  Status add(const Json& tools) {
    JsonArray calls;
    size_t index = 0;
    for (const Json& tool : tools.get_array()) {
      const Json* function = find(tool, "function");
      if (!function) function = &tool;
      const std::string name = TRY(get_string(*function, "name")).value_or("");
      TRY(check_name(name));
      const std::string arguments = fmt::format("arguments {}", index++);
      rules_[arguments] = arguments_of(*function, name);
      calls.push_back(call(name, rule_part(arguments)));
    }
    rules_["call"] = choice_part(std::move(calls));
    if (format_.is_harmony) {
      rules_["calls"] = rule_part("call");
    } else {
      rules_["announced calls"] = choice_part(announced());
      rules_["calls"] = all_calls();
    }
    return Ok{};
  }

 private:
  bool is_list() const { return format_.section_filler.find('[') != std::string_view::npos; }

  // The reader must be able to find the name's end.
  Status check_name(const std::string& name) const {
    bool is_fine = !name.empty() && name.size() <= kNameBytesMax;
    if (format_.body != Body::kJsonCall) {
      ToolFormat::Markers ends = format_.name_end;
      if (!format_.id_begin.empty()) ends.push_back(format_.id_begin);
      is_fine = is_fine && name.find_first_of(kBlanks) == std::string::npos &&
                name.find_first_of(format_.name_stops) == std::string::npos &&
                name.find_first_of(format_.mistakes.name_stops) == std::string::npos &&
                (!format_.is_harmony || name.find('<') == std::string::npos) &&
                std::none_of(ends.begin(), ends.end(), [&](std::string_view end) {
                  return name.find(end) != std::string::npos;
                });
    }
    if (is_fine) return Ok{};
    return Error{ErrorCode::kUnsupported,
                 "the tool name \"" + name.substr(0, kNameBytesMax) +
                     "\" cannot be written in this model's format for calls; use a name of "
                     "letters, digits, \"_\" and \"-\""};
  }

  Json arguments_of(const Json& function, const std::string& name) const {
    const Json* given = find(function, "parameters");
    const bool has_schema = given != nullptr && !given->is_null();
    Json schema = has_schema ? plain_schema(*given)
                             : Json(JsonObject{{"type", "object"}, {"properties", JsonObject()}});
    const Json* strict = find(function, "strict");
    JsonObject part{{"strict", strict != nullptr && *strict == Json(true)},
                    {"of", fmt::format("the parameters of \"{}\"", name)}};
    if (format_.body != Body::kTaggedValues) {
      part["json_schema"] = std::move(schema);
      part["object"] = true;
      if (format_.body == Body::kBareKeys) part["bare"] = bare_notation();
      return part;
    }
    JsonObject types;
    const Json* properties = find(schema, "properties");
    if (properties && properties->is_object()) {
      for (const auto& property : properties->get_object()) {
        types[property.key()] = types_->types_of(name, property.key());
      }
    }
    part["tagged"] = std::move(schema);
    part["types"] = std::move(types);
    add_tags(part);
    return part;
  }

  Json bare_notation() const {
    JsonArray stops{Json(format_.value_end)};
    for (const std::string_view end : format_.call_end) stops.emplace_back(end);
    return JsonObject{{"quote", format_.value_end},
                      {"text_stops", std::move(stops)},
                      {"key_stops", ToolFormat::kBareKeyStops}};
  }

  void add_tags(JsonObject& tagged) const {
    const auto line = [&] { return text_part(format_.value_has_lines ? "\n" : ""); };
    const auto before_value = [&](ToolFormat::ValueForm form) {
      auto end = std::find_if(format_.key_ends.begin(), format_.key_ends.end(),
                              [form](const auto& one) { return one.form == form; });
      if (end == format_.key_ends.end()) end = format_.key_ends.begin();
      JsonArray parts{marker_part(end->marker)};
      if (!format_.value_begin.empty()) {
        parts.push_back(gap());
        parts.push_back(marker_part(format_.value_begin));
      }
      parts.push_back(line());
      return sequence_part(std::move(parts));
    };
    JsonArray key_stops;
    for (const ToolFormat::KeyEnd& end : format_.key_ends) {
      key_stops.emplace_back(end.marker);
      if (end.form != ToolFormat::ValueForm::kBySchema) tagged["told"] = true;
    }
    for (const std::string_view end : format_.mistakes.key_end) key_stops.emplace_back(end);
    tagged["before_key"] = marker_part(format_.key_begin);
    tagged["before_text"] = before_value(ToolFormat::ValueForm::kText);
    tagged["before_json"] = before_value(ToolFormat::ValueForm::kJson);
    tagged["after_value"] = sequence_part({line(), marker_part(format_.value_end), gap()});
    tagged["key_stops"] = std::move(key_stops);
    // Where the reader would end a value, or would look whether it ends there (value_end.h).
    JsonArray text_stops{Json(format_.value_end), Json(format_.key_begin)};
    for (const std::string_view end : format_.call_end) text_stops.emplace_back(end);
    tagged["text_stops"] = std::move(text_stops);
  }

  Json call(const std::string& name, Json arguments) const {
    if (format_.is_harmony) return harmony_call(name, arguments);
    switch (format_.body) {
      case Body::kJsonCall:
        return json_call(name, std::move(arguments));
      case Body::kJsonArguments:
      case Body::kBareKeys:
        return headed_call(name, std::move(arguments));
      case Body::kTaggedValues:
        break;
    }
    JsonArray parts{text_part(name)};
    if (format_.name_stops.empty()) parts.push_back(blank_or_marker(format_.name_end.front()));
    parts.push_back(gap());
    parts.push_back(std::move(arguments));
    return sequence_part(std::move(parts));
  }

  Json json_call(const std::string& name, Json arguments) const {
    const Json space = regex_part(" ?");
    const Json line = regex_part("(?: |\\n[ ]{0,8})?");
    JsonArray keys;
    for (const std::string_view key : format_.argument_keys) {
      keys.push_back(text_part(fmt::format("\"{}\":", key)));
    }
    JsonArray parts{text_part("{"), line};
    if (!format_.bare_begin.empty()) {
      parts.push_back(optional_part(
          sequence_part({text_part("\"type\":"), space, text_part("\"function\","), line})));
    }
    for (Json& one : JsonArray{text_part("\"name\":"), space, text_part(json_string(name) + ","),
                               line, choice_part(std::move(keys)), space, std::move(arguments)}) {
      parts.push_back(std::move(one));
    }
    if (format_.id_follows_arguments) {
      parts.push_back(optional_part(sequence_part(
          {text_part(","), line, text_part("\"id\":"), space, regex_part("\"[a-zA-Z0-9]{9}\"")})));
    }
    parts.push_back(line);
    parts.push_back(text_part("}"));
    return sequence_part(std::move(parts));
  }

  Json headed_call(const std::string& name, Json arguments) const {
    JsonArray parts;
    if (!format_.name_prefix.empty()) parts.push_back(marker_part(format_.name_prefix));
    if (format_.name_holds_id) {
      // The reader replaces a repeated id.
      parts.push_back(text_part("functions." + name + ":"));
      parts.push_back(regex_part("0|[1-9][0-9]{0,3}"));
    } else {
      parts.push_back(text_part(name));
    }
    if (!format_.id_begin.empty()) {
      parts.push_back(optional_part(
          sequence_part({marker_part(format_.id_begin), regex_part("[a-zA-Z0-9]{9}")})));
    }
    if (!format_.name_end.empty()) parts.push_back(blank_or_marker(format_.name_end.front()));
    if (!format_.before_arguments.empty()) {
      parts.push_back(marker_part(format_.before_arguments.front()));
      parts.push_back(gap());
    }
    parts.push_back(std::move(arguments));
    if (!format_.after_arguments.empty()) {
      parts.push_back(gap());
      parts.push_back(marker_part(format_.after_arguments.front()));
    }
    return sequence_part(std::move(parts));
  }

  // The recipient follows the channel or the role; one call ends the turn.
  static Json harmony_call(const std::string& name, const Json& arguments) {
    const Json channel =
        sequence_part({marker_part("<|channel|>"),
                       choice_part({text_part("commentary"), text_part("analysis")})});
    const Json recipient = text_part(" to=functions." + name);
    const Json constrain =
        optional_part(sequence_part({text_part(" "), optional_part(marker_part("<|constrain|>")),
                                     choice_part({text_part("json"), text_part("code")})}));
    return sequence_part(
        {choice_part({sequence_part({channel, recipient}), sequence_part({recipient, channel})}),
         constrain, marker_part("<|message|>"), arguments, optional_part(marker_part("<|call|>"))});
  }

  // One or more of `one`, with `separator` between them.
  Json several(Json one, Json separator) const {
    if (!is_parallel_) return one;
    Json more = many_part(sequence_part({std::move(separator), one}), 0);
    return sequence_part({std::move(one), std::move(more)});
  }

  // The calls of a section.
  Json units() const {
    if (!format_.call_begin.empty()) return several(unit(), gap());
    const Json comma = sequence_part({text_part(","), gap()});
    const Json semicolon = sequence_part({text_part(";"), gap()});
    const Json call = rule_part("call");
    if (!is_list()) return several(call, semicolon);
    Json list = sequence_part({text_part("["), gap(), several(call, comma), gap(), text_part("]")});
    // A single call as the whole answer needs no list.
    const bool may_be_single = !format_.bare_begin.empty();
    return may_be_single ? choice_part({std::move(list), call}) : list;
  }

  Json unit() const {
    JsonArray parts{marker_part(format_.call_begin.front())};
    if (format_.body == Body::kJsonCall) parts.push_back(gap());
    parts.push_back(rule_part("call"));
    if (!format_.call_end.empty()) {
      parts.push_back(gap());
      parts.push_back(marker_part(format_.call_end.front()));
    }
    return sequence_part(std::move(parts));
  }

  JsonArray sections() const {
    JsonArray sections;
    for (size_t i = 0; i < format_.section_begin.size(); ++i) {
      JsonArray parts{marker_part(format_.section_begin[i]), gap(), units()};
      if (!is_list() && i < format_.section_end.size()) {
        parts.push_back(gap());
        parts.push_back(marker_part(format_.section_end[i]));
      }
      sections.push_back(sequence_part(std::move(parts)));
    }
    return sections;
  }

  JsonArray announced() const {
    JsonArray forms = sections();
    if (format_.call_begin.empty()) return forms;
    if (format_.section_begin.empty()) {
      forms.push_back(unit());
      return forms;
    }
    // A call without its section; some models still end it.
    JsonArray ends;
    for (const std::string_view end : format_.section_end) ends.push_back(marker_part(end));
    Json end = optional_part(sequence_part({gap(), choice_part(std::move(ends))}));
    forms.push_back(sequence_part({unit(), std::move(end)}));
    return forms;
  }

  Json all_calls() const {
    if (!format_.bare_begin.empty() || format_.section_begin.empty()) return units();
    Json section = choice_part(sections());
    // With a list, one section holds all calls.
    return is_list() ? section : several(std::move(section), gap());
  }

  const ToolFormat& format_;
  std::shared_ptr<const ToolSet> types_;  // not null if values are in tags
  const bool is_parallel_;
  JsonObject& rules_;
};

}  // namespace

Status add_call_rules(const AnswerOptions& options, JsonObject& rules) {
  return CallParts(options, rules).add(*options.tools);
}

}  // namespace lockstep
