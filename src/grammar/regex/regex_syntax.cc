#include "grammar/regex/regex_syntax.h"

#include <optional>
#include <string>

#include "base/utf8.h"
#include "grammar/dfa/limits.h"
#include "grammar/dfa/text_scan.h"
#include "grammar/regex/regex_classes.h"

namespace lockstep {
namespace {

using NodeKind = RegexNode::Kind;

class Parser : private TextScan {
 public:
  Parser(std::vector<uint32_t> text, WorkBudget& budget)
      : TextScan(std::move(text)), budget_(budget) {}

  Result<RegexNode> parse() {
    RegexNode node = TRY(choice(0));
    if (at_ < text_.size()) return bad("a \")\" without its \"(\"");
    return node;
  }

 private:
  Error bad(std::string what) const {
    return Error{ErrorCode::kInvalidArgument,
                 "the regex has " + std::move(what) + " at character " + std::to_string(at_)};
  }
  Error cannot(std::string what) const {
    return Error{ErrorCode::kUnsupported, "the regex uses " + std::move(what) + " at character " +
                                              std::to_string(at_) +
                                              ", which cannot be enforced while decoding"};
  }

  Result<RegexNode> choice(int depth) {
    if (depth > kRegexDepthMax) {
      return Error{ErrorCode::kExhausted, "the regex has groups nested deeper than the limit of " +
                                              std::to_string(kRegexDepthMax)};
    }
    RegexNode node{.kind = NodeKind::kChoice, .set = {}, .parts = {}};
    do {
      node.parts.push_back(TRY(sequence(depth)));
    } while (take('|'));
    if (node.parts.size() == 1) {
      RegexNode only = std::move(node.parts[0]);
      return only;
    }
    return node;
  }

  Result<RegexNode> sequence(int depth) {
    RegexNode node{.kind = NodeKind::kSequence, .set = {}, .parts = {}};
    while (more() && !next_is('|') && !next_is(')')) {
      RegexNode part = TRY(atom(depth));
      node.parts.push_back(TRY(repeated(std::move(part))));
    }
    return node;
  }

  Result<RegexNode> repeated(RegexNode body) {
    uint32_t min = 0;
    uint32_t max = UINT32_MAX;
    if (!TRY(quantifier(min, max))) return body;
    if (body.kind == NodeKind::kBegin || body.kind == NodeKind::kEnd)
      return bad("nothing to repeat");
    take('?');  // lazy: the same texts
    if (next_is('+')) return cannot("a possessive repetition");
    if (next_is('*') || next_is('?')) return bad("nothing to repeat");
    RegexNode outer{.kind = NodeKind::kRepeat, .set = {}, .min = min, .max = max, .parts = {}};
    outer.parts.push_back(std::move(body));
    return outer;
  }

  Result<bool> quantifier(uint32_t& min, uint32_t& max) {
    if (take('*')) return true;
    if (take('+')) {
      min = 1;
      return true;
    }
    if (take('?')) {
      max = 1;
      return true;
    }
    const size_t begin = at_;
    if (next_is('{') && TRY(counts(min, max))) return true;
    at_ = begin;
    return false;
  }

  // {m}, {m,}, {m,n}; false if it is none of these.
  Result<bool> counts(uint32_t& min, uint32_t& max) {
    take('{');
    const auto first = take_number();
    if (!first) return false;
    std::optional<uint32_t> second = first;
    if (take(',')) second = next_is('}') ? std::optional<uint32_t>(UINT32_MAX) : take_number();
    if (!second || !take('}')) return false;
    min = *first;
    max = *second;
    if (min > kRepetitionMax || (max != UINT32_MAX && max > kRepetitionMax)) {
      return Error{ErrorCode::kExhausted,
                   "the regex repeats something more often than the limit "
                   "of " +
                       std::to_string(kRepetitionMax) + " times"};
    }
    if (min > max) return bad("a repetition with its limits in the wrong order");
    return true;
  }

  static RegexNode set_node(SymbolSet set) {
    return {.kind = NodeKind::kSet, .set = std::move(set), .parts = {}};
  }

  Result<RegexNode> atom(int depth) {
    if (!budget_.spend(kStepsOfAtom)) return too_much_work();
    const uint32_t c = text_[at_];
    if (take('(')) return group(depth);
    if (take('[')) return set_node(TRY(bracket()));
    if (take('.')) {
      return set_node(SymbolSet::scalar_values().without(
          SymbolSet{{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}}));
    }
    if (take('^')) return RegexNode{.kind = NodeKind::kBegin, .set = {}, .parts = {}};
    if (take('$')) return RegexNode{.kind = NodeKind::kEnd, .set = {}, .parts = {}};
    if (c == '*' || c == '+' || c == '?') return bad("nothing to repeat");
    if (take('\\')) return set_node(TRY(escape(false)));
    ++at_;
    return set_node(SymbolSet{{c, c}});
  }

  Result<RegexNode> group(int depth) {
    if (take("?:")) {
    } else if (take("?<") || take("?P<")) {
      if (next_is('=') || next_is('!')) return cannot("lookbehind (?<=...)");
      while (more() && !next_is('>')) ++at_;
      if (!take('>')) return bad("a group name without its end");
    } else if (next_is('?')) {
      if (take("?=") || take("?!")) return cannot("lookahead (?=...)");
      return cannot("a group with options (?...)");
    }
    RegexNode inner = TRY(choice(depth + 1));
    if (!take(')')) return bad("a \"(\" without its \")\"");
    return inner;
  }

  Result<SymbolSet> bracket() {
    const bool is_negated = take('^');
    std::vector<SymbolRange> ranges;
    while (true) {
      if (!more()) return bad("a \"[\" without its \"]\"");
      if (take(']')) break;
      bool is_class = false;
      SymbolSet item = TRY(class_item(is_class));
      if (next_is('-') && at_ + 1 < text_.size() && text_[at_ + 1] != ']') {
        ++at_;
        bool last_is_class = false;
        const SymbolSet last = TRY(class_item(last_is_class));
        if (is_class || last_is_class) return bad("a range with a class as its border");
        const uint32_t from = item.ranges()[0].first;
        const uint32_t to = last.ranges()[0].first;
        if (from > to) return bad("a range in the wrong order");
        item = SymbolSet{{from, to}};
      }
      ranges.insert(ranges.end(), item.ranges().begin(), item.ranges().end());
    }
    SymbolSet set(std::move(ranges));
    return is_negated ? SymbolSet::scalar_values().without(set) : set;
  }

  Result<SymbolSet> class_item(bool& is_class) {
    if (!more()) return bad("a \"[\" without its \"]\"");
    if (!budget_.spend(kStepsOfAtom)) return too_much_work();
    if (take('\\')) {
      const size_t begin = at_;
      SymbolSet set = TRY(escape(true));
      is_class = is_class_letter(text_[begin]);
      return set;
    }
    const uint32_t c = text_[at_++];
    return SymbolSet{{c, c}};
  }

  static bool is_class_letter(uint32_t c) {
    return c < 128 &&
           std::string_view("dDwWsSpP").find(static_cast<char>(c)) != std::string_view::npos;
  }

  // After a backslash.
  Result<SymbolSet> escape(bool in_class) {
    if (!more()) return bad("a \"\\\" at its end");
    const uint32_t c = text_[at_];
    if (c >= '1' && c <= '9') return cannot("a backreference");
    if (!in_class && (c == 'b' || c == 'B')) return cannot("a word boundary \\b");
    if (!in_class && c == 'k') return cannot("a backreference");
    if (!in_class && (c == 'A' || c == 'Z' || c == 'z')) {
      return cannot("the anchor \\A, \\Z or \\z (write ^ and $)");
    }
    ++at_;
    if (c == 'p' || c == 'P') return property(c == 'P');
    if (is_class_letter(c)) return regex_class(static_cast<char>(c));
    uint32_t value = c;
    switch (c) {
      case 'b':
        value = '\b';
        break;
      case 'f':
        value = '\f';
        break;
      case 'n':
        value = '\n';
        break;
      case 'r':
        value = '\r';
        break;
      case 't':
        value = '\t';
        break;
      case 'v':
        value = '\v';
        break;
      case '0':
        value = 0;
        break;
      case 'x':
        value = TRY(hex_digits(2));
        break;
      case 'u':
        value = TRY(unicode_escape());
        break;
      case 'c':
        if (!more() || text_[at_] >= 128) return bad("a \\c without its letter");
        value = text_[at_++] % 32;
        break;
      default:
        if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) {
          return bad("an escape that does not exist");
        }
    }
    return SymbolSet{{value, value}};
  }

  Result<SymbolSet> property(bool is_negated) {
    if (!take('{')) return bad("a \\p without its {name}");
    std::string name;
    while (more() && !next_is('}') && text_[at_] < 128) name += static_cast<char>(text_[at_++]);
    if (!take('}')) return bad("a \\p without its {name}");
    const auto set = unicode_property(name);
    if (!set) return cannot("the property \\p{" + name + "}");
    if (!budget_.spend(kStepsOfRange * set->ranges().size())) return too_much_work();
    return is_negated ? SymbolSet::scalar_values().without(*set) : *set;
  }

  Result<uint32_t> hex_digits(int count) {
    const auto value = take_hex_digits(count);
    if (!value) return bad("a \\x or \\u without its hexadecimal digits");
    return *value;
  }

  Result<uint32_t> unicode_escape() {
    if (take('{')) {
      uint32_t value = 0;
      while (more() && !next_is('}')) {
        value = value * 16 + TRY(hex_digits(1));
        if (value > kCodePointMax) return bad("a code point beyond 10FFFF");
      }
      if (!take('}')) return bad("a \\u{ without its }");
      return value;
    }
    const uint32_t high = TRY(hex_digits(4));
    const size_t begin = at_;
    if (high >= 0xD800 && high <= 0xDBFF && take("\\u")) {
      const uint32_t low = TRY(hex_digits(4));
      if (low >= 0xDC00 && low <= 0xDFFF) {
        return 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00);
      }
      at_ = begin;
    }
    return high;
  }

  static constexpr size_t kStepsOfAtom = 6;
  static constexpr size_t kStepsOfRange = 4;

  WorkBudget& budget_;
};

}  // namespace

Result<RegexNode> parse_regex(std::string_view pattern, WorkBudget& budget) {
  if (pattern.size() > kRegexBytesMax) {
    return Error{ErrorCode::kExhausted, "the regex is longer than the limit of " +
                                            std::to_string(kRegexBytesMax) + " bytes"};
  }
  std::vector<uint32_t> text;
  while (!pattern.empty()) {
    const Utf8Character character = first_utf8_character(pattern);
    if (character.state != Utf8State::kValid) {
      return Error{ErrorCode::kInvalidArgument, "the regex is not UTF-8"};
    }
    text.push_back(character.code_point);
    pattern.remove_prefix(character.bytes);
  }
  return Parser(std::move(text), budget).parse();
}

}  // namespace lockstep
