#include "grammar/schema/schema_grammar.h"

#include "grammar/dfa/code_points.h"

namespace lockstep {
namespace {

using Expression = Grammar::Expression;

constexpr uint32_t kIndentSpacesMax = 40;
constexpr uint32_t kIndentTabsMax = 10;
constexpr size_t kObjectStatesMax = 50'000;  // keys times counts of minProperties, maxProperties

}  // namespace

SchemaGrammar::SchemaGrammar(Grammar& grammar, const Json& root, const JsonSchemaOptions& options)
    : grammar_(grammar),
      shapes_(root, options.is_strict, grammar.budget()),
      any_character_(grammar.character(SymbolSet::scalar_values(), CharacterCoding::kJsonString)),
      gap_(grammar.empty()),
      break_(grammar.empty()) {
  if (options.bare != nullptr) bare_.emplace(grammar_, shapes_, *options.bare);
  if (options.space == JsonSpace::kBounded && !bare_) {
    const Expression space = grammar.literal(" ");
    gap_ = grammar.optional(space);
    const Expression indent =
        grammar.choice({grammar.repeat(space, 0, kIndentSpacesMax),
                        grammar.repeat(grammar.literal("\t"), 1, kIndentTabsMax)});
    break_ = grammar.named("json-space",
                           grammar.choice({grammar.empty(), space,
                                           grammar.sequence({grammar.literal("\n"), indent})}));
  }
}

SchemaList SchemaGrammar::whole(const Json& schema, bool only_objects) {
  SchemaList schemas{&schema};
  if (only_objects) schemas.push_back(shapes_.keep(JsonObject{{"type", "object"}}));
  return schemas;
}

Result<JsonSchemaGrammar> SchemaGrammar::define_all(Expression start) {
  while (!pending_.empty()) {
    const Pending next = std::move(pending_.front());
    pending_.pop_front();
    grammar_.define(next.rule, TRY(values_of(TRY(shapes_.shape_of(next.schemas)))));
    if (!grammar_.within_limits()) break;  // compile_grammar() reports it
  }
  return JsonSchemaGrammar{start, shapes_.take_warnings()};
}

Expression SchemaGrammar::value(SchemaList schemas) {
  grammar_.budget().spend(10 + schemas.size() / 2);
  std::erase_if(schemas, [](const Json* schema) {
    return (schema->is_bool() && schema->get_bool()) ||
           (schema->is_object() && schema->get_object().empty());
  });
  const auto known = rules_.find(schemas);
  if (known != rules_.end()) return grammar_.use(known->second);
  const Grammar::Rule rule = grammar_.declare("json-value");
  rules_.emplace(schemas, rule);
  pending_.push_back({std::move(schemas), rule});
  return grammar_.use(rule);
}

Result<Expression> SchemaGrammar::values_of(const SchemaShape& shape) {
  std::vector<Expression> alternatives;
  if (shape.allows_null) alternatives.push_back(grammar_.literal("null"));
  if (shape.allows_true) alternatives.push_back(grammar_.literal("true"));
  if (shape.allows_false) alternatives.push_back(grammar_.literal("false"));
  if (shape.numbers) alternatives.push_back(grammar_.bytes(*shape.numbers));
  if (shape.strings) alternatives.push_back(TRY(quoted(*shape.strings)));
  for (const ArrayShape& alternative : shape.arrays) {
    alternatives.push_back(TRY(array(alternative)));
  }
  for (const ObjectShape& alternative : shape.objects) {
    alternatives.push_back(TRY(object(alternative)));
  }
  return grammar_.choice(alternatives);
}

Result<Expression> SchemaGrammar::quoted(const StringShape& strings) {
  if (bare_) return bare_->text(strings);
  Expression content = grammar_.repeat(any_character_, strings.min, strings.max);
  if (strings.words) content = text_of(TRY(shapes_.words_of(strings)));
  return in_quotes(content);
}

Expression SchemaGrammar::in_quotes(Expression content) {
  const Expression quote = grammar_.literal("\"");
  return grammar_.sequence({quote, content, quote});
}

// Constants and keys: only characters that need it, and those beyond ASCII, may be escaped.
Expression SchemaGrammar::text_of(const Dfa& words) {
  return grammar_.text(words, CharacterCoding::kJsonString);
}

Result<Expression> SchemaGrammar::key_of(const KeySchema& key) {
  if (bare_) return bare_->key(key);
  return key_text(key.name);
}

Expression SchemaGrammar::key_text(const std::string& name) {
  std::vector<Expression> parts;
  for (const uint32_t point : code_points(name)) {
    const bool is_plain = point >= 0x20 && point < 0x7F && point != '"' && point != '\\';
    if (is_plain) {
      parts.push_back(grammar_.literal(std::string(1, static_cast<char>(point))));
    } else {
      parts.push_back(grammar_.character(SymbolSet{{point, point}}, CharacterCoding::kJsonString));
    }
  }
  return in_quotes(grammar_.sequence(parts));
}

Result<Expression> SchemaGrammar::array(const ArrayShape& shape) {
  const ArrayFacts facts = TRY(array_facts(shapes_, shape));
  const Expression comma = grammar_.sequence({grammar_.literal(","), break_});
  const auto first_count = static_cast<uint32_t>(facts.first.size());
  // State i: i items are written. The last one loops for the rest.
  std::vector<Grammar::State> states(first_count + 1);
  for (uint32_t i = 0; i < first_count; ++i) {
    states[i].is_accepting = i >= facts.min && i <= facts.max;
    if (i >= facts.max) continue;
    const Expression item = value(facts.first[i]);
    states[i].edges.push_back({i == 0 ? item : grammar_.sequence({comma, item}), i + 1});
  }
  const uint32_t min = facts.min > first_count ? facts.min - first_count : 0;
  const uint32_t max = facts.max == UINT32_MAX
                           ? kUnbounded
                           : (facts.max > first_count ? facts.max - first_count : 0);
  const Expression item = max == 0 ? grammar_.never() : value(facts.rest);
  Expression rest = grammar_.repeat(grammar_.sequence({comma, item}), min, max);
  if (first_count == 0 && max > 0) {
    const Expression more = grammar_.repeat(grammar_.sequence({comma, item}), min > 0 ? min - 1 : 0,
                                            max == kUnbounded ? kUnbounded : max - 1);
    rest = grammar_.sequence({item, more});
    if (min == 0) rest = grammar_.optional(rest);
  }
  states.push_back({true, {}});
  if (facts.max >= first_count) states[first_count].edges.push_back({rest, first_count + 1});
  if (facts.min > facts.max) return grammar_.never();
  return enclosed("[", grammar_.automaton(std::move(states)), "]");
}

Expression SchemaGrammar::enclosed(std::string_view open, Expression content,
                                   std::string_view close) {
  return grammar_.sequence(
      {grammar_.literal(open), break_, content, break_, grammar_.literal(close)});
}

Expression SchemaGrammar::member(Expression key, SchemaList schemas) {
  return grammar_.sequence({key, grammar_.literal(":"), gap_, value(std::move(schemas))});
}

Result<Expression> SchemaGrammar::object(const ObjectShape& shape) {
  ObjectFacts facts = TRY(object_facts(shapes_, shape));
  if (bare_) BareTexts::sort(facts.keys);
  std::vector<Expression> members;
  for (const KeySchema& key : facts.keys) {
    members.push_back(member(TRY(key_of(key)), key.value));
  }
  std::vector<Expression> others;
  for (const OtherKeys& keys : facts.others) {
    const Expression name =
        bare_ ? TRY(bare_->other_key(keys.names)) : in_quotes(text_of(keys.names));
    others.push_back(member(name, keys.value));
  }
  const Expression other = grammar_.choice(others);
  const Expression comma = grammar_.sequence({grammar_.literal(","), break_});
  return enclosed("{", TRY(members_in_order(facts, members, other, comma)), "}");
}

// States (i, c): i keys were written or skipped, c were written, as far as relevant.
Result<Expression> SchemaGrammar::members_in_order(const ObjectFacts& facts,
                                                   const std::vector<Expression>& members,
                                                   Expression other, Expression separator) {
  const auto key_count = static_cast<uint32_t>(members.size());
  const bool has_end = facts.max != UINT32_MAX;
  const bool has_others = !(other == grammar_.never());
  // A model may repeat a key, which then counts once. So only one unnamed key counts for
  // minProperties.
  if (has_others && facts.min > key_count + 1) {
    TRY(shapes_.cannot_enforce("minProperties", "above 1 with keys that have no names"));
  }
  uint32_t min = facts.min;
  if (has_others && min > key_count + 1) min = key_count + 1;  // not strict: already warned
  uint32_t counted = std::max<uint32_t>(1, min);
  if (has_end && facts.max < key_count + (has_others ? UINT32_MAX - key_count : 0)) {
    counted = std::max(counted, facts.max);
  }
  const bool is_tall = (uint64_t{key_count} + 2) * (uint64_t{counted} + 1) > kObjectStatesMax;
  if (is_tall || (has_others && has_end && min > 1)) {
    TRY(shapes_.cannot_enforce(
        has_end ? "maxProperties" : "minProperties",
        is_tall ? "with so large a number" : "with minProperties and keys that have no names"));
    counted = 1;
    min = std::min<uint32_t>(min, 1);
  }
  const bool checks_max = has_end && counted >= facts.max;
  const uint32_t columns = counted + 1;
  const auto state_of = [&](uint32_t i, uint32_t c) { return i * columns + c; };
  // Row key_count: no other key yet; the row after it: some.
  std::vector<Grammar::State> states(size_t{key_count + 2} * columns);
  for (uint32_t c = 0; c < columns; ++c) {
    const bool may_grow = !checks_max || c < facts.max;
    const uint32_t next = std::min(c + 1, counted);
    for (uint32_t i = 0; i < key_count; ++i) {
      Grammar::State& state = states[state_of(i, c)];
      if (may_grow) {
        const Expression written = c == 0 ? members[i] : grammar_.sequence({separator, members[i]});
        state.edges.push_back({written, state_of(i + 1, next)});
      }
      if (!facts.keys[i].is_required) {
        state.edges.push_back({grammar_.empty(), state_of(i + 1, c)});
      }
    }
    Grammar::State& named = states[state_of(key_count, c)];
    Grammar::State& more = states[state_of(key_count + 1, c)];
    named.is_accepting = more.is_accepting = c >= min;
    if (!has_others || !may_grow) continue;
    const Expression written = c == 0 ? other : grammar_.sequence({separator, other});
    named.edges.push_back({written, state_of(key_count + 1, next)});
    // Counted only for maxProperties: min is at most 1 then.
    more.edges.push_back({written, state_of(key_count + 1, checks_max ? next : c)});
  }
  return grammar_.automaton(std::move(states));
}

Status check_schema_size(const Json& schema) {
  if (dump_json(schema).size() <= kSchemaBytesMax) return Ok{};
  return Error{ErrorCode::kExhausted, "the schema is longer than the limit of " +
                                          std::to_string(kSchemaBytesMax) + " bytes"};
}

Result<JsonSchemaGrammar> add_json_schema(Grammar& grammar, const Json& schema,
                                          const JsonSchemaOptions& options) {
  TRY(check_schema_size(schema));
  SchemaGrammar built(grammar, options.root ? *options.root : schema, options);
  return built.define_all(built.value(built.whole(schema, options.only_objects)));
}

Grammar::Expression add_json_object(Grammar& grammar, JsonSpace space) {
  const Json schema = JsonObject{{"type", "object"}};
  JsonSchemaOptions options;
  options.space = space;
  auto built = add_json_schema(grammar, schema, options);
  return built.ok() ? built.value().expression : grammar.never();
}

}  // namespace lockstep
