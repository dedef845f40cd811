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

namespace lockstep::jinja {

class Dict;
struct List;
struct Loop;
struct Macro;
struct Method;
struct Scope;
struct Statement;

enum class Kind : uint8_t {
  kUndefined,
  kNone,
  kBool,
  kInt,
  kFloat,
  kText,
  kList,  // also tuples and generators: see Shape
  kDict,
  kNamespace,
  kLoop,
  kMacro,
  kMethod,    // bound to its object
  kFunction,  // a global such as raise_exception
};

enum class Function : uint8_t { kRaiseException, kStrftimeNow, kNamespace, kRange, kDict };

struct Value {
  Value() : integer(0) {}  // None
  static Value boolean(bool value);
  static Value of(int64_t value);
  static Value of(double value);
  static Value of(Function value);

  bool is(Kind wanted) const { return kind == wanted; }
  bool is_number() const;  // bool is int, as in Python
  int64_t as_int() const;  // of a bool or an int
  double as_double() const;
  const std::string& as_string() const { return text->text(); }

  // The value with the mark of `origin`, from which it was derived.
  Value like(const Value& origin) const;

  Kind kind = Kind::kNone;
  bool is_markup = false;  // a text from the filter "safe": + escapes text added to it
  union {
    bool truth;
    int64_t integer;
    double floating;
    Function function;
    const MarkedText* text;  // of kUndefined: the sentence that explains it
    List* list;
    Dict* dict;  // also of kNamespace
    const Loop* loop;
    const Macro* macro;
    const Method* method;
  };
};

using Pair = std::pair<Value, Value>;

enum class Shape : uint8_t {
  kList,
  kTuple,
  kGenerator,  // always true, and empty after one iteration
};

struct List {
  Shape shape;
  std::vector<Value> items;
};

class Dict {
 public:
  const std::vector<Pair>& entries() const { return entries_; }
  const Value* find(std::string_view key) const;
  // Keys are texts, numbers or None.
  const Value* find(const Value& key) const;
  void set(const Value& key, const Value& value);
  bool replace(std::string_view key, const Value& value);  // false: there is no such key
  // Its exact JSON text; empty: written from the entries. A change clears it.
  const std::string& json_text() const { return json_text_; }
  void set_json_text(std::string text) { json_text_ = std::move(text); }

 private:
  size_t position(const Value& key) const;
  size_t text_position(std::string_view key) const;

  std::vector<Pair> entries_;  // in the order of the first insertion
  std::map<std::string_view, size_t> text_keys_;
  std::string json_text_;
};

struct Loop {
  const std::vector<Value>* items;
  size_t index;  // of the current item, from 0
  size_t depth;  // 1 for the outermost loop
};

struct Macro {
  const Statement* definition;
  Scope* scope;  // where it was defined
};

struct Method {
  Value object;
  std::string_view name;  // in the table of jinja_methods.cc
};

// The limits at which a template is stopped.
struct Limits {
  size_t memory_bytes = size_t{256} << 20;
  int64_t steps = 50'000'000;  // expressions, statements, and 64-byte pieces read
};

class Heap {
 public:
  explicit Heap(Limits limits);

  Value text(MarkedText text);
  Value text(std::string_view text, bool is_from_input = false);
  Value list(std::vector<Value> items, Shape shape = Shape::kList);
  Value dict();
  Value make_namespace();
  Value method(const Value& object, std::string_view name);
  Value macro(const Statement* definition, Scope* scope);
  Value undefined(std::string_view explanation);

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
  std::deque<List> lists_;
  std::deque<Dict> dicts_;
  std::deque<Method> methods_;
  std::deque<Macro> macros_;
};

bool is_true(const Value& value);
bool is_dict_key(const Value& value);
// Python's names: "str", "dict", "NoneType".
std::string_view type_name(const Value& value);

// Values nested deeper are neither compared nor printed.
inline constexpr int kValueDepthMax = 200;

// Each pair of elements costs a step; once no steps are left, nothing is equal.
bool jinja_equal(Heap& heap, const Value& left, const Value& right, int depth = 0);
// left < right; kUnsupported for types without an order.
Result<bool> jinja_less(Heap& heap, const Value& left, const Value& right, int depth = 0);

// The error of an expression that cannot be evaluated; the interpreter adds the line.
Error jinja_error(std::string message);

}  // namespace lockstep::jinja
