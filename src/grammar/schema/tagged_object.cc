#include "grammar/schema/tagged_object.h"

#include <algorithm>
#include <optional>

#include "grammar/automaton/text.h"
#include "grammar/dfa/code_points.h"
#include "grammar/regex/regex.h"
#include "grammar/schema/number_set.h"
#include "grammar/schema/schema_grammar.h"

namespace lockstep {
namespace {

using Expression = Grammar::Expression;

constexpr size_t kKeyBytesMax = 256;   // of a key that the schema names
constexpr uint32_t kOtherKeyMax = 64;  // characters of one that it does not name
constexpr std::string_view kBlank = " \t\r\n";

// A regex of texts that a reader takes for JSON (or Python's words) of one of these types, and
// more.
std::string read_as_other(JsonTypes types) {
  std::string pattern;
  const auto add = [&](JsonTypes type, std::string_view part) {
    if ((types & type) == 0) return;
    pattern += (pattern.empty() ? "" : "|") + std::string(part);
  };
  add(kJsonNull, "null|None");
  add(kJsonBool, "true|false|True|False");
  add(kJsonInteger | kJsonFraction, R"(-?[0-9]+(?:\.[0-9]+)?(?:[eE][+\-]?[0-9]+)?)");
  add(kJsonArray, R"(\[[\s\S]*)");
  add(kJsonObject, R"(\{[\s\S]*)");
  return "[ \\t\\r\\n]*(?:" + pattern + ")[ \\t\\r\\n]*";
}

class TaggedObject {
 public:
  TaggedObject(SchemaGrammar& schemas, const TaggedForm& form)
      : schemas_(schemas), grammar_(schemas.grammar()), shapes_(schemas.shapes()), form_(form) {}

  Result<Expression> build(const SchemaList& whole) {
    const SchemaShape shape = TRY(shapes_.shape_of(whole));
    std::vector<Expression> alternatives;
    for (const ObjectShape& one : shape.objects) {
      alternatives.push_back(TRY(members(TRY(object_facts(shapes_, one)))));
    }
    return grammar_.choice(alternatives);
  }

 private:
  Result<Expression> members(const ObjectFacts& facts) {
    std::vector<Expression> named;
    for (const KeySchema& key : facts.keys) {
      if (!can_be_written(key.name)) {
        if (key.is_required) return unwritable(key.name);
        named.push_back(grammar_.never());
        continue;
      }
      const auto types = form_.types.find(key.name);
      const JsonTypes read_as = types == form_.types.end() ? kJsonAny : types->second;
      named.push_back(TRY(member(grammar_.literal(key.name), key.value, read_as)));
    }
    std::vector<Expression> others;
    for (const OtherKeys& keys : facts.others) {
      const Dfa names = TRY(writable(keys.names));
      const Expression name = grammar_.text(names, CharacterCoding::kUtf8);
      others.push_back(TRY(member(name, keys.value, kJsonAny)));
    }
    return schemas_.members_in_order(facts, named, grammar_.choice(others), grammar_.empty());
  }

  Result<Expression> member(Expression key, const SchemaList& schemas, JsonTypes read_as) {
    SchemaShape shape = TRY(shapes_.shape_of(schemas));
    const bool may_be_text = (read_as & kJsonString) != 0;
    std::vector<Expression> forms;
    if (shape.strings) {
      const Expression text = TRY(text_value(*shape.strings, read_as));
      forms.push_back(grammar_.sequence({form_.before_text, text}));
    }
    shape.strings.reset();
    if (shape.numbers && may_be_text && !form_.is_told) {
      // A reader takes numbers that it cannot represent for text: those too large for an integer
      // and, if it wants one, those with a point or an exponent.
      const bool has_fractions = (read_as & kJsonFraction) != 0;
      if (!has_fractions) TRY(narrow_to_short(shape));
    }
    if (!shape.is_empty()) {
      const Expression values = TRY(schemas_.values_of(shape));
      forms.push_back(grammar_.sequence({form_.before_json, values}));
    }
    return grammar_.sequence({form_.before_key, key, grammar_.choice(forms), form_.after_value});
  }

  Result<Expression> text_value(const StringShape& strings, JsonTypes read_as) {
    Dfa words = TRY(shapes_.words_of(strings));
    const auto narrow = [&](const Dfa& other, DfaJoin how) -> Status {
      words = TRY(join(words, other, how, shapes_.budget()));
      return Ok{};
    };
    if (!form_.text_stops.empty()) {
      if (!texts_) texts_ = TRY(words_without(form_.text_stops, shapes_.budget()));
      TRY(narrow(*texts_, DfaJoin::kBoth));
    }
    const JsonTypes others = read_as & ~kJsonString;
    if (!form_.is_told && others != 0) {
      Dfa& read = read_as_other_[others];
      if (read.empty()) {
        read = TRY(regex_dfa(read_as_other(others), RegexMatch::kWhole, shapes_.budget()));
      }
      TRY(narrow(read, DfaJoin::kFirstOnly));
    }
    return grammar_.text(words, CharacterCoding::kUtf8);
  }

  bool can_be_written(const std::string& key) const {
    if (key.size() > kKeyBytesMax) return false;
    const bool has_blanks = !key.empty() && (kBlank.find(key.front()) != std::string_view::npos ||
                                             kBlank.find(key.back()) != std::string_view::npos);
    return !has_blanks && std::none_of(form_.key_stops.begin(), form_.key_stops.end(),
                                       [&](const std::string& stop) {
                                         return key.find(stop) != std::string::npos;
                                       });
  }

  static Error unwritable(const std::string& key) {
    return Error{ErrorCode::kUnsupported,
                 "the model's way to write calls cannot hold the required key \"" + key + "\""};
  }

  Result<Dfa> writable(const Dfa& names) {
    const Dfa whole = TRY(regex_dfa(
        "[^ \\t\\r\\n](?:[\\s\\S]{0," + std::to_string(kOtherKeyMax - 2) + "}[^ \\t\\r\\n])?",
        RegexMatch::kWhole, shapes_.budget()));
    Dfa result = TRY(join(names, whole, DfaJoin::kBoth, shapes_.budget()));
    if (form_.key_stops.empty()) return result;
    const Dfa keys = TRY(words_without(form_.key_stops, shapes_.budget()));
    return join(result, keys, DfaJoin::kBoth, shapes_.budget());
  }

  Status narrow_to_short(SchemaShape& shape) {
    if (short_whole_numbers_.empty()) short_whole_numbers_ = TRY(short_whole_numbers());
    Dfa numbers = TRY(join(*shape.numbers, short_whole_numbers_, DfaJoin::kBoth, shapes_.budget()));
    shape.numbers = numbers.empty() ? nullptr : std::make_shared<const Dfa>(std::move(numbers));
    return Ok{};
  }

  // They fit into 64 bits.
  Result<Dfa> short_whole_numbers() {
    return regex_dfa("-?[1-9][0-9]{0,17}|0", RegexMatch::kWhole, shapes_.budget());
  }

  SchemaGrammar& schemas_;
  Grammar& grammar_;
  SchemaShapes& shapes_;
  const TaggedForm& form_;
  // Made at their first use.
  std::optional<Dfa> texts_;  // without a marker
  std::map<JsonTypes, Dfa> read_as_other_;
  Dfa short_whole_numbers_;
};

}  // namespace

Result<JsonSchemaGrammar> add_tagged_object(Grammar& grammar, const Json& schema,
                                            const TaggedForm& form,
                                            const JsonSchemaOptions& options) {
  TRY(check_schema_size(schema));
  SchemaGrammar schemas(grammar, options.root ? *options.root : schema, options);
  const SchemaList whole = schemas.whole(schema, true);
  return schemas.define_all(TRY(TaggedObject(schemas, form).build(whole)));
}

}  // namespace lockstep
