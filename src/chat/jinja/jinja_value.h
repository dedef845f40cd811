// Values of chat templates and the heap that owns them. A value is 16 bytes and copied freely; what
// it points to lives until the rendering ends, so values may form cycles. Truth, type names and the
// order of dictionaries follow Python. One thread.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "chat/text/marked_text.h"

namespace lockstep {

class JinjaDict;
struct JinjaList;
struct JinjaLoop;
struct JinjaMacro;
struct JinjaMethod;
struct JinjaScope;
struct JinjaStatement;

enum class JinjaKind : uint8_t {
  kUndefined,
  kNone,
  kBool,
  kInt,
  kFloat,
  kText,
  kList,  // also tuples and generators: see JinjaShape
  kDict,
  kNamespace,
  kLoop,
  kMacro,
  kMethod,    // bound to its object
  kFunction,  // a global such as raise_exception
};

enum class JinjaFunction : uint8_t { kRaiseException, kStrftimeNow, kNamespace, kRange, kDict };

struct JinjaValue {
  JinjaValue() : integer(0) {}  // None
  static JinjaValue boolean(bool value);
  static JinjaValue of(int64_t value);
  static JinjaValue of(double value);
  static JinjaValue of(JinjaFunction value);

  bool is(JinjaKind wanted) const { return kind == wanted; }
  bool is_number() const;  // bool is int, as in Python
  int64_t as_int() const;  // of a bool or an int
  double as_double() const;
  const std::string& as_string() const { return text->text(); }

  // The value with the mark of `origin`, from which it was derived.
  JinjaValue like(const JinjaValue& origin) const;

  JinjaKind kind = JinjaKind::kNone;
  bool is_markup = false;  // a text from the filter "safe": + escapes text added to it
  union {
    bool truth;
    int64_t integer;
    double floating;
    JinjaFunction function;
    const MarkedText* text;  // of kUndefined: the sentence that explains it
    JinjaList* list;
    JinjaDict* dict;  // also of kNamespace
    const JinjaLoop* loop;
    const JinjaMacro* macro;
    const JinjaMethod* method;
  };
};

using JinjaPair = std::pair<JinjaValue, JinjaValue>;

enum class JinjaShape : uint8_t {
  kList,
  kTuple,
  kGenerator,  // always true, and empty after one iteration
};

struct JinjaList {
  JinjaShape shape;
  std::vector<JinjaValue> items;
};

class JinjaDict {
 public:
  const std::vector<JinjaPair>& entries() const { return entries_; }
  const JinjaValue* find(std::string_view key) const;
  // Keys are texts, numbers or None.
  const JinjaValue* find(const JinjaValue& key) const;
  void set(const JinjaValue& key, const JinjaValue& value);
  bool replace(std::string_view key, const JinjaValue& value);  // false: there is no such key
  // Its exact JSON text; empty: written from the entries. A change clears it.
  const std::string& json_text() const { return json_text_; }
  void set_json_text(std::string text) { json_text_ = std::move(text); }

 private:
  size_t position(const JinjaValue& key) const;
  size_t text_position(std::string_view key) const;

  std::vector<JinjaPair> entries_;  // in the order of the first insertion
  std::map<std::string_view, size_t> text_keys_;
  std::string json_text_;
};

struct JinjaLoop {
  const std::vector<JinjaValue>* items;
  size_t index;  // of the current item, from 0
  size_t depth;  // 1 for the outermost loop
};

struct JinjaMacro {
  const JinjaStatement* definition;
  JinjaScope* scope;  // where it was defined
};

struct JinjaMethod {
  JinjaValue object;
  std::string_view name;  // in the table of jinja_methods.cc
};

// The limits at which a template is stopped.
struct JinjaLimits {
  size_t memory_bytes = size_t{256} << 20;
  int64_t steps = 50'000'000;  // expressions, statements, and 64-byte pieces read
};

class JinjaHeap {
 public:
  explicit JinjaHeap(JinjaLimits limits);

  JinjaValue text(MarkedText text);
  JinjaValue text(std::string_view text, bool is_from_input = false);
  JinjaValue list(std::vector<JinjaValue> items, JinjaShape shape = JinjaShape::kList);
  JinjaValue dict();
  JinjaValue make_namespace();
  JinjaValue method(const JinjaValue& object, std::string_view name);
  JinjaValue macro(const JinjaStatement* definition, JinjaScope* scope);
  JinjaValue undefined(std::string_view explanation);

  // Charges work or growth not counted by the allocations above; check() fails once a limit is
  // passed.
  void charge_steps(int64_t steps) { steps_left_ -= steps; }
  void charge_bytes(size_t bytes);
  void charge_look(size_t bytes);  // reading that many bytes
  Status check() const;
  size_t bytes_left() const { return bytes_left_; }
  int64_t steps_left() const { return steps_left_; }

 private:
  size_t bytes_left_;
  int64_t steps_left_;
  std::deque<MarkedText> texts_;
  std::deque<JinjaList> lists_;
  std::deque<JinjaDict> dicts_;
  std::deque<JinjaMethod> methods_;
  std::deque<JinjaMacro> macros_;
};

bool is_true(const JinjaValue& value);
bool is_dict_key(const JinjaValue& value);
// Python's names: "str", "dict", "NoneType".
std::string_view type_name(const JinjaValue& value);

// Values nested deeper are neither compared nor printed.
inline constexpr int kJinjaValueDepthMax = 200;

// Each pair of elements costs a step; once no steps are left, nothing is equal.
bool jinja_equal(JinjaHeap& heap, const JinjaValue& left, const JinjaValue& right, int depth = 0);
// left < right; kUnsupported for types without an order.
Result<bool> jinja_less(JinjaHeap& heap, const JinjaValue& left, const JinjaValue& right,
                        int depth = 0);

// The error of an expression that cannot be evaluated; the interpreter adds the line.
Error jinja_error(std::string message);

}  // namespace lockstep
