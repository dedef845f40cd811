#include "grammar/ebnf.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "grammar/dfa/code_points.h"
#include "grammar/dfa/limits.h"
#include "grammar/dfa/text_scan.h"

namespace lockstep {
namespace {

using Expression = Grammar::Expression;

bool is_name_character(uint32_t c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '_';
}

class EbnfParser : private TextScan {
 public:
  EbnfParser(Grammar& grammar, std::vector<uint32_t> text, const SpecialTokenId& special_token)
      : TextScan(std::move(text)), grammar_(grammar), special_token_(special_token) {}

  Result<Expression> parse() {
    skip_space();
    while (more()) {
      const std::string name = take_name();
      if (name.empty() || !take_after_space("::=")) return bad("a rule must be: name ::= ...");
      Rule& rule = rule_of(name);
      if (rule.is_defined) return bad("the rule " + name + " is defined twice");
      rule.is_defined = true;
      const Grammar::Rule handle = rule.handle;
      grammar_.define(handle, TRY(choice(0)));
      skip_space();
      if (more() && !at_rule()) return bad("this is not expected here");
    }
    for (const auto& [name, rule] : rules_) {
      if (!rule.is_defined) {
        return Error{ErrorCode::kInvalidArgument,
                     "the grammar uses the rule " + name + " and does not define it"};
      }
    }
    const auto root = rules_.find("root");
    if (root == rules_.end()) {
      return Error{ErrorCode::kInvalidArgument, "the grammar has no rule named root"};
    }
    return grammar_.use(root->second.handle);
  }

 private:
  struct Rule {
    Grammar::Rule handle;
    bool is_defined = false;
  };

  bool take_after_space(std::string_view word) {
    skip_space();
    return take(word);
  }
  void skip_space() {
    while (more()) {
      if (take('#')) {
        while (more() && text_[at_] != '\n') ++at_;
      } else if (next_is(' ') || next_is('\t') || next_is('\r') || next_is('\n')) {
        ++at_;
      } else {
        return;
      }
    }
  }
  std::string take_name() {
    std::string name;
    while (more() && is_name_character(text_[at_])) name += static_cast<char>(text_[at_++]);
    return name;
  }
  Error bad(const std::string& what) const {
    const auto line =
        1 + std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(at_), '\n');
    return Error{ErrorCode::kInvalidArgument,
                 "line " + std::to_string(line) + " of the grammar: " + what};
  }

  // Whether "name ::=" begins here, which ends the rule before it.
  bool at_rule() {
    const size_t begin = at_;
    const bool is_rule = !take_name().empty() && take_after_space("::=");
    at_ = begin;
    return is_rule;
  }

  Rule& rule_of(const std::string& name) {
    const auto known = rules_.find(name);
    if (known != rules_.end()) return known->second;
    return rules_.emplace(name, Rule{grammar_.declare(name), false}).first->second;
  }

  Result<Expression> choice(int depth) {
    if (depth > kEbnfDepthMax) {
      return Error{ErrorCode::kExhausted,
                   "the grammar has parentheses nested deeper than the limit of " +
                       std::to_string(kEbnfDepthMax)};
    }
    std::vector<Expression> alternatives;
    do {
      alternatives.push_back(TRY(sequence(depth)));
      skip_space();
    } while (take('|'));
    return grammar_.choice(alternatives);
  }

  Result<Expression> sequence(int depth) {
    std::vector<Expression> parts;
    while (true) {
      skip_space();
      if (!more() || next_is('|') || next_is(')') || at_rule()) return grammar_.sequence(parts);
      const Expression part = TRY(atom(depth));
      parts.push_back(TRY(repeated(part)));
    }
  }

  Result<Expression> repeated(Expression body) {
    skip_space();
    if (take('*')) return grammar_.repeat(body, 0, kUnbounded);
    if (take('+')) return grammar_.repeat(body, 1, kUnbounded);
    if (take('?')) return grammar_.optional(body);
    if (!take('{')) return body;
    const auto min = number();
    if (!min) return bad("a { must be followed by how often");
    std::optional<uint32_t> max = min;
    skip_space();
    if (take(',')) {
      skip_space();
      max = next_is('}') ? std::optional<uint32_t>(kUnbounded) : number();
    }
    skip_space();
    if (!max || !take('}')) return bad("a repetition must be {m}, {m,} or {m,n}");
    if (*min > kRepetitionMax || (*max != kUnbounded && *max > kRepetitionMax)) {
      return bad("something is repeated more often than the limit of " +
                 std::to_string(kRepetitionMax) + " times");
    }
    if (*min > *max) return bad("a repetition has its limits in the wrong order");
    return grammar_.repeat(body, *min, *max);
  }

  std::optional<uint32_t> number() {
    skip_space();
    return take_number();
  }

  Result<Expression> atom(int depth) {
    if (take('"')) return literal();
    if (take('[')) return character_class();
    if (take('<')) return token();
    if (take('.')) {
      return grammar_.character(SymbolSet::scalar_values(), CharacterCoding::kUtf8);
    }
    if (take('(')) {
      const Expression inner = TRY(choice(depth + 1));
      skip_space();
      if (!take(')')) return bad("a \"(\" without its \")\"");
      return inner;
    }
    const std::string name = take_name();
    if (name.empty()) return bad("this is not expected here");
    return grammar_.use(rule_of(name).handle);
  }

  Result<Expression> literal() {
    std::string bytes;
    while (!take('"')) {
      if (!more() || next_is('\n')) return bad("a text without its closing quote");
      append_code_point(bytes, TRY(character()));
    }
    return grammar_.literal(bytes);
  }

  Result<Expression> character_class() {
    const bool is_negated = take('^');
    std::vector<SymbolRange> ranges;
    while (!take(']')) {
      if (!more()) return bad("a \"[\" without its \"]\"");
      const uint32_t first = TRY(character());
      uint32_t last = first;
      if (next_is('-') && at_ + 1 < text_.size() && text_[at_ + 1] != ']') {
        ++at_;
        last = TRY(character());
        if (last < first) return bad("a range in the wrong order");
      }
      ranges.push_back({first, last});
    }
    SymbolSet set(std::move(ranges));
    if (is_negated) set = SymbolSet::scalar_values().without(set);
    return grammar_.character(set, CharacterCoding::kUtf8);
  }

  // One character of a literal or class; surrogates are errors.
  Result<uint32_t> character() {
    if (!more()) return bad("the end is missing");
    const uint32_t c = text_[at_++];
    if (c != '\\') return c;
    if (!more()) return bad("the end is missing");
    const uint32_t escaped = text_[at_++];
    switch (escaped) {
      case 'n':
        return uint32_t{'\n'};
      case 't':
        return uint32_t{'\t'};
      case 'r':
        return uint32_t{'\r'};
      case 'x':
        return hex(2);
      case 'u':
        return hex(4);
      case 'U':
        return hex(8);
      default:
        if (is_name_character(escaped) && escaped != '-' && escaped != '_') {
          return bad("an escape that does not exist");
        }
        return escaped;
    }
  }

  Result<uint32_t> hex(int count) {
    const auto value = take_hex_digits(count);
    if (!value) return bad("an escape without its digits");
    if (*value > kCodePointMax || (*value >= 0xD800 && *value <= 0xDFFF)) {
      return bad("an escape that is not a character");
    }
    return *value;
  }

  Result<Expression> token() {
    std::string name = "<";
    while (more() && !next_is('\n') && !next_is('>')) append_code_point(name, text_[at_++]);
    if (!take('>')) return bad("a \"<\" without its \">\"");
    name += '>';
    if (name.size() > 4 && name.starts_with("<[") && name.ends_with("]>")) {
      const std::string digits = name.substr(2, name.size() - 4);
      if (digits.size() > 9 || digits.find_first_not_of("0123456789") != std::string::npos) {
        return bad(name + " is not a token id");
      }
      return grammar_.token(std::stoi(digits));
    }
    const auto id = special_token_ ? special_token_(name) : std::nullopt;
    if (!id) return bad(name + " is not a special token of the model");
    return grammar_.token(*id);
  }

  Grammar& grammar_;
  const SpecialTokenId& special_token_;
  std::map<std::string, Rule> rules_;
};

}  // namespace

Result<Expression> add_ebnf(Grammar& grammar, std::string_view text,
                            const SpecialTokenId& special_token) {
  if (text.size() > kEbnfBytesMax) {
    return Error{ErrorCode::kExhausted, "the grammar is longer than the limit of " +
                                            std::to_string(kEbnfBytesMax) + " bytes"};
  }
  if (!is_valid_utf8(text)) {
    return Error{ErrorCode::kInvalidArgument, "the grammar is not UTF-8"};
  }
  return EbnfParser(grammar, code_points(text), special_token).parse();
}

}  // namespace lockstep
