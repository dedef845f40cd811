#include "grammar/constraint.h"

#include <map>
#include <optional>

#include "base/utf8.h"
#include "grammar/automaton/text.h"
#include "grammar/dfa/limits.h"
#include "grammar/ebnf.h"
#include "grammar/regex/regex.h"
#include "grammar/schema/json_schema.h"
#include "grammar/schema/tagged_object.h"
#include "json/json.h"

namespace lockstep {
namespace {

using Expression = Grammar::Expression;

Error bad_part(std::string what) {
  return Error{ErrorCode::kInvalidArgument, "the constraint " + std::move(what)};
}

Result<std::string> text_at(const Json& part, std::string_view key) {
  const auto text = TRY(get_string(part, key));
  if (!text) return bad_part("has a part without \"" + std::string(key) + "\"");
  return *text;
}

Result<std::vector<std::string>> texts_at(const Json& part, std::string_view key) {
  std::vector<std::string> texts;
  const Json* list = find(part, key);
  if (!list) return texts;
  if (!list->is_array()) return bad_part("has a \"" + std::string(key) + "\" that is not a list");
  for (const Json& text : list->get_array()) {
    if (!text.is_string()) return bad_part("has a list of texts with an entry that is not text");
    texts.emplace_back(text.get_string());
  }
  return texts;
}

class ConstraintBuilder {
 public:
  ConstraintBuilder(Grammar& grammar, const Tokenizer& tokenizer)
      : grammar_(grammar), tokenizer_(tokenizer) {}

  Result<Expression> build(const Json& spec) {
    const Expression whole = TRY(part(spec));
    if (!tokenizer_.strips_leading_space()) return whole;
    return grammar_.sequence({grammar_.optional(grammar_.literal(" ")), whole});
  }

  std::vector<std::string> take_warnings() { return std::move(warnings_); }

 private:
  Result<Expression> part(const Json& spec) {
    if (!spec.is_object()) return bad_part("has a part that is not an object");
    if (find(spec, "text")) return grammar_.literal(TRY(text_at(spec, "text")));
    if (find(spec, "marker")) return marker(TRY(text_at(spec, "marker")));
    if (const Json* free = find(spec, "free")) return free_text(*free);
    if (const Json* parts = find(spec, "sequence")) return grammar_.sequence(TRY(list(*parts)));
    if (const Json* parts = find(spec, "choice")) return grammar_.choice(TRY(list(*parts)));
    if (const Json* body = find(spec, "repeat")) return repeat(spec, *body);
    if (find(spec, "rule")) return use(TRY(text_at(spec, "rule")));
    if (const Json* rules = find(spec, "rules")) return with_rules(spec, *rules);
    if (const Json* schema = find(spec, "json_schema")) return json(spec, *schema);
    if (find(spec, "json_object")) return add_json_object(grammar_);
    if (find(spec, "regex")) return add_regex(grammar_, TRY(text_at(spec, "regex")));
    if (find(spec, "ebnf")) return ebnf(TRY(text_at(spec, "ebnf")));
    if (const Json* schema = find(spec, "tagged")) return tagged(spec, *schema);
    return bad_part(
        "has a part that is not one of text, marker, free, sequence, choice, repeat, rule, rules, "
        "json_schema, json_object, regex, ebnf, tagged");
  }

  Result<std::vector<Expression>> list(const Json& parts) {
    if (!parts.is_array()) return bad_part("has a sequence or choice that is not a list");
    std::vector<Expression> expressions;
    for (const Json& one : parts.get_array()) expressions.push_back(TRY(part(one)));
    return expressions;
  }

  // A tokenizer may have special tokens for only parts of a marker.
  Result<Expression> marker(const std::string& text) {
    if (!is_valid_utf8(text)) return bad_part("has a marker that is not UTF-8");
    const auto known = markers_.find(text);
    if (known != markers_.end()) return known->second;
    std::vector<Expression> parts;
    std::string spelled;
    for (const int32_t id : tokenizer_.encode(text, {.parse_special = true})) {
      if (!tokenizer_.is_special(id)) {
        std::string bytes = tokenizer_.token_bytes(id);
        // The space that some tokenizers put before a word is not part of the marker.
        const bool is_dummy = spelled.empty() && bytes.starts_with(' ') && !text.starts_with(' ');
        if (is_dummy) bytes.erase(0, 1);
        parts.push_back(grammar_.literal(bytes));
        spelled += bytes;
      } else {
        parts.push_back(grammar_.token(id));
        spelled += TRY(tokenizer_.decode(std::span(&id, 1)));
      }
    }
    const Expression whole = spelled == text ? grammar_.sequence(parts) : grammar_.literal(text);
    markers_.emplace(text, whole);
    return whole;
  }

  Result<Expression> free_text(const Json& spec) {
    Dfa words = TRY(words_without(TRY(texts_at(spec, "without")), grammar_.budget()));
    if (const auto unlike = TRY(get_string(spec, "unlike"))) {
      const Dfa refused = TRY(regex_dfa(*unlike, RegexMatch::kSearch, grammar_.budget()));
      words = TRY(join(words, refused, DfaJoin::kFirstOnly, grammar_.budget()));
    }
    return grammar_.text(words, CharacterCoding::kUtf8);
  }

  Result<Expression> repeat(const Json& spec, const Json& body) {
    const auto min = TRY(get_int(spec, "min")).value_or(0);
    const auto max = TRY(get_int(spec, "max"));
    const auto is_count = [](int64_t count) { return count >= 0 && count <= kRepetitionMax; };
    if (!is_count(min) || (max && !is_count(*max))) {
      return bad_part("repeats something more often than the limit of " +
                      std::to_string(kRepetitionMax) + " times");
    }
    return grammar_.repeat(TRY(part(body)), static_cast<uint32_t>(min),
                           max ? static_cast<uint32_t>(*max) : kUnbounded);
  }

  Result<Expression> with_rules(const Json& spec, const Json& rules) {
    const Json* root = find(spec, "root");
    if (!rules.is_object() || !root) return bad_part("has \"rules\" without a \"root\"");
    if (!rules_.empty()) return bad_part("has \"rules\" inside of \"rules\"");
    for (const auto& rule : rules.get_object()) {
      rules_.emplace(rule.key(), grammar_.declare(std::string(rule.key())));
    }
    for (const auto& rule : rules.get_object()) {
      grammar_.define(rules_.at(rule.key()), TRY(part(rule.value())));
    }
    return part(*root);
  }

  Result<Expression> use(const std::string& name) {
    const auto rule = rules_.find(name);
    if (rule == rules_.end())
      return bad_part("uses a rule \"" + name + "\" that it does not define");
    return grammar_.use(rule->second);
  }

  Result<Expression> json(const Json& spec, const Json& schema) {
    JsonSchemaOptions options;
    options.only_objects = TRY(get_bool(spec, "object")).value_or(false);
    BareNotation bare;
    if (const Json* given = find(spec, "bare")) {
      bare.quote = TRY(marker(TRY(text_at(*given, "quote"))));
      bare.text_stops = TRY(texts_at(*given, "text_stops"));
      bare.key_stops = TRY(text_at(*given, "key_stops"));
      options.bare = &bare;
    }
    return named(spec, options, [&] { return add_json_schema(grammar_, schema, options); });
  }

  // Prefixes messages of `add` with the name of the schema's owner.
  template <class Add>
  Result<Expression> named(const Json& spec, JsonSchemaOptions& options, Add&& add) {
    options.is_strict = TRY(get_bool(spec, "strict")).value_or(false);
    const auto of = TRY(get_string(spec, "of"));
    const std::string prefix = of ? *of + ": " : std::string();
    auto added = add();
    if (!added.ok()) return Error{added.error().code, prefix + added.error().message};
    for (const std::string& warning : added.value().warnings) {
      warnings_.push_back(prefix + warning);
    }
    return added.value().expression;
  }

  Result<Expression> ebnf(const std::string& text) {
    return add_ebnf(grammar_, text, [this](std::string_view name) -> std::optional<int32_t> {
      const auto ids = tokenizer_.encode(name, {.parse_special = true});
      if (ids.size() != 1 || !tokenizer_.is_special(ids[0])) return std::nullopt;
      return ids[0];
    });
  }

  Result<Expression> tagged(const Json& spec, const Json& schema) {
    TaggedForm form;
    const auto part_at = [&](const char* key) -> Result<Expression> {
      const Json* inner = find(spec, key);
      if (!inner) return bad_part("has tags without \"" + std::string(key) + "\"");
      return part(*inner);
    };
    form.before_key = TRY(part_at("before_key"));
    form.before_text = TRY(part_at("before_text"));
    form.before_json = TRY(part_at("before_json"));
    form.after_value = TRY(part_at("after_value"));
    form.key_stops = TRY(texts_at(spec, "key_stops"));
    form.text_stops = TRY(texts_at(spec, "text_stops"));
    form.is_told = TRY(get_bool(spec, "told")).value_or(false);
    if (const Json* types = find(spec, "types"); types && types->is_object()) {
      for (const auto& type : types->get_object()) {
        const auto bits = TRY(get_int(*types, type.key())).value_or(kJsonAny);
        form.types.emplace(type.key(), static_cast<JsonTypes>(bits & kJsonAny));
      }
    }
    JsonSchemaOptions options;
    return named(spec, options, [&] { return add_tagged_object(grammar_, schema, form, options); });
  }

  Grammar& grammar_;
  const Tokenizer& tokenizer_;
  std::map<std::string, Grammar::Rule, std::less<>> rules_;
  std::map<std::string, Expression> markers_;
  std::vector<std::string> warnings_;
};

struct Built {
  std::shared_ptr<const CompiledGrammar> grammar;
  std::vector<std::string> warnings;
};

Result<Built> build(std::string_view spec, const Tokenizer& tokenizer) {
  if (spec.size() > kConstraintBytesMax) {
    return Error{ErrorCode::kExhausted, "the constraint has " + std::to_string(spec.size()) +
                                            " bytes, more than the limit of " +
                                            std::to_string(kConstraintBytesMax)};
  }
  auto json = parse_untrusted_json(spec);
  if (!json.ok()) return bad_part("is not valid JSON: " + json.error().message);
  Grammar grammar;
  ConstraintBuilder builder(grammar, tokenizer);
  const Expression whole = TRY(builder.build(json.value()));
  auto compiled = TRY(compile_grammar(grammar, whole));
  return Built{std::move(compiled), builder.take_warnings()};
}

}  // namespace

Result<std::shared_ptr<const CompiledGrammar>> compile_constraint(std::string_view spec,
                                                                  const Tokenizer& tokenizer) {
  return TRY(build(spec, tokenizer)).grammar;
}

Result<std::vector<std::string>> check_constraint(std::string_view spec,
                                                  const Tokenizer& tokenizer) {
  return TRY(build(spec, tokenizer)).warnings;
}

}  // namespace lockstep
