#include "cli/editor/line_editor.h"

#include <fmt/core.h>
#include <histedit.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <clocale>
#include <cstdio>
#include <optional>
#include <utility>

#include "base/utf8.h"
#include "cli/editor/key_input.h"
#include "cli/flags/interrupt.h"

namespace lockstep {
namespace {

constexpr int kHistoryMax = 1000;

// wchar_t holds a code point on all systems that lockstep runs on.
static_assert(sizeof(wchar_t) == 4);

std::wstring wide_of(std::string_view text) {
  std::wstring wide;
  while (!text.empty()) {
    const Utf8Character character = first_utf8_character(text);
    const bool is_valid = character.state == Utf8State::kValid && character.code_point != 0;
    wide += is_valid ? static_cast<wchar_t>(character.code_point) : wchar_t{0xfffd};
    text.remove_prefix(std::max<size_t>(character.bytes, 1));
  }
  return wide;
}

std::string utf8_of(std::wstring_view wide) {
  std::string text;
  for (const wchar_t c : wide) append_code_point(text, static_cast<uint32_t>(c));
  return text;
}

void print_now(std::string_view text) {
  fmt::print(stdout, "{}", text);
  std::fflush(stdout);
}

// A line without editing, of at most kPasteBytesMax; Ctrl-C ends it.
Typed read_plain(std::string_view prompt) {
  const InterruptGuard guard;
  print_now(prompt);
  Typed typed;
  char c = 0;
  while (true) {
    const ssize_t got = ::read(STDIN_FILENO, &c, 1);
    if (got < 0 && errno == EINTR && InterruptGuard::is_interrupted()) {
      typed.kind = Typed::Kind::kInterrupted;
      return typed;
    }
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) {
      typed.kind = typed.text.empty() ? Typed::Kind::kEnd : Typed::Kind::kLine;
      return typed;
    }
    if (c == '\n') return typed;
    if (typed.text.size() < LineEditor::kPasteBytesMax) typed.text += c;
  }
}

}  // namespace

struct LineEditor::Impl {
  explicit Impl(Completer asked);
  ~Impl();
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  void bind(const wchar_t* keys, const wchar_t* function);
  void add(const wchar_t* name, unsigned char (*function)(EditLine*, wint_t));
  std::string line() const;
  std::string line_to_cursor() const;
  void replace_line(std::string_view text);

  static Impl* of(EditLine* editor);
  static int read_character(EditLine* editor, wchar_t* c);
  static unsigned char interrupt(EditLine* editor, wint_t);
  static unsigned char paste(EditLine* editor, wint_t);
  static unsigned char break_line(EditLine* editor, wint_t);
  static unsigned char open_editor(EditLine* editor, wint_t);
  static unsigned char complete(EditLine* editor, wint_t);

  Completer completer;
  EditLine* editor = nullptr;
  HistoryW* history = nullptr;
  std::wstring prompt;
  std::string interrupted_text;
  bool is_interrupted = false;
  KeyInput input{STDIN_FILENO};
};

LineEditor::Impl::Impl(Completer asked) : completer(std::move(asked)) {
  std::setlocale(LC_CTYPE, "");
  editor = el_init("lockstep", stdin, stdout, stderr);
  history = history_winit();
  HistEventW event;
  history_w(history, &event, H_SETSIZE, kHistoryMax);
  history_w(history, &event, H_SETUNIQUE, 1);
  el_wset(editor, EL_CLIENTDATA, this);
  el_wset(
      editor, EL_PROMPT, +[](EditLine* one) { return of(one)->prompt.data(); });
  el_wset(editor, EL_EDITOR, L"emacs");
  el_wset(editor, EL_SIGNAL, 0);
  el_wset(editor, EL_HIST, history_w, history);
  el_wset(editor, EL_GETCFN, read_character);
  // Ctrl-C is a key while a line is edited.
  el_wset(editor, EL_SETTY, L"-d", L"-isig", nullptr);
  add(L"lockstep-interrupt", interrupt);
  add(L"lockstep-paste", paste);
  add(L"lockstep-break", break_line);
  add(L"lockstep-editor", open_editor);
  add(L"lockstep-complete", complete);
  bind(L"^C", L"lockstep-interrupt");
  bind(L"\\e[200~", L"lockstep-paste");
  bind(L"\\e\\r", L"lockstep-break");
  bind(L"\\e\\n", L"lockstep-break");
  bind(L"^G", L"lockstep-editor");
  bind(L"\\t", L"lockstep-complete");
  bind(L"^R", L"em-inc-search-prev");
}

LineEditor::Impl::~Impl() {
  history_wend(history);
  el_end(editor);
}

void LineEditor::Impl::bind(const wchar_t* keys, const wchar_t* function) {
  el_wset(editor, EL_BIND, keys, function, nullptr);
}

void LineEditor::Impl::add(const wchar_t* name, unsigned char (*function)(EditLine*, wint_t)) {
  el_wset(editor, EL_ADDFN, name, L"of lockstep", function);
}

LineEditor::Impl* LineEditor::Impl::of(EditLine* editor) {
  void* data = nullptr;
  el_wget(editor, EL_CLIENTDATA, &data);
  return static_cast<Impl*>(data);
}

std::string LineEditor::Impl::line() const {
  const LineInfoW* info = el_wline(editor);
  return utf8_of({info->buffer, static_cast<size_t>(info->lastchar - info->buffer)});
}

std::string LineEditor::Impl::line_to_cursor() const {
  const LineInfoW* info = el_wline(editor);
  return utf8_of({info->buffer, static_cast<size_t>(info->cursor - info->buffer)});
}

// By the functions that every version of the library has.
void LineEditor::Impl::replace_line(std::string_view text) {
  const LineInfoW* info = el_wline(editor);
  el_cursor(editor, static_cast<int>(info->lastchar - info->cursor));
  el_deletestr(editor, static_cast<int>(info->lastchar - info->buffer));
  el_winsertstr(editor, wide_of(text).c_str());
}

int LineEditor::Impl::read_character(EditLine* editor, wchar_t* c) {
  const std::optional<uint32_t> code = of(editor)->input.next([editor] { el_resize(editor); });
  if (!code) return 0;
  *c = static_cast<wchar_t>(*code);
  return 1;
}

unsigned char LineEditor::Impl::interrupt(EditLine* editor, wint_t) {
  Impl& self = *of(editor);
  self.interrupted_text = self.line();
  self.is_interrupted = true;
  return CC_EOF;
}

unsigned char LineEditor::Impl::paste(EditLine* editor, wint_t) {
  Impl& self = *of(editor);
  const std::string text = self.input.read_paste(kPasteBytesMax);
  return el_winsertstr(editor, wide_of(text).c_str()) == 0 ? CC_REFRESH : CC_ERROR;
}

unsigned char LineEditor::Impl::break_line(EditLine* editor, wint_t) {
  return el_winsertstr(editor, L"\n") == 0 ? CC_REFRESH : CC_ERROR;
}

unsigned char LineEditor::Impl::open_editor(EditLine* editor, wint_t) {
  Impl& self = *of(editor);
  el_wset(editor, EL_PREP_TERM, 0);
  print_now("\n");
  const auto edited = edit_in_editor(self.line());
  if (!edited.ok()) fmt::print(stderr, "lockstep: {}\n", edited.error().message);
  el_wset(editor, EL_PREP_TERM, 1);
  if (edited.ok()) self.replace_line(edited.value());
  return CC_REDISPLAY;
}

unsigned char LineEditor::Impl::complete(EditLine* editor, wint_t) {
  Impl& self = *of(editor);
  const std::string line = self.line_to_cursor();
  const std::vector<std::string> found = self.completer(line);
  if (found.empty()) return CC_ERROR;
  const size_t space = line.rfind(' ');
  const std::string word = space == std::string::npos ? line : line.substr(space + 1);
  const std::string insertion = completion_of_word(word, found);
  if (!insertion.empty()) {
    return el_winsertstr(editor, wide_of(insertion).c_str()) == 0 ? CC_REFRESH : CC_ERROR;
  }
  print_now("\n");
  for (const std::string& one : found) print_now(one + "  ");
  print_now("\n");
  return CC_REDISPLAY;
}

LineEditor::LineEditor(bool may_repaint, Completer completer) {
  if (may_repaint) impl_ = std::make_unique<Impl>(std::move(completer));
}

LineEditor::~LineEditor() = default;

Typed LineEditor::read(std::string_view prompt) {
  if (!impl_) return read_plain(prompt);
  impl_->prompt = wide_of(prompt);
  impl_->is_interrupted = false;
  print_now("\x1b[?2004h");  // pastes arrive between marks (xterm's bracketed paste)
  // libedit draws the prompt first; a key pressed between the two would be the terminal's.
  el_wset(impl_->editor, EL_PREP_TERM, 1);
  int count = 0;
  const wchar_t* line = el_wgets(impl_->editor, &count);
  print_now("\x1b[?2004l");
  Typed typed;
  if (impl_->is_interrupted) {
    print_now("^C\n");
    return {Typed::Kind::kInterrupted, std::move(impl_->interrupted_text)};
  }
  if (line == nullptr || count <= 0) {
    typed.kind = Typed::Kind::kEnd;
    return typed;
  }
  typed.text = utf8_of({line, static_cast<size_t>(count)});
  if (typed.text.ends_with('\n')) typed.text.pop_back();
  return typed;
}

void LineEditor::remember(std::string_view text) {
  if (!impl_ || text.empty()) return;
  HistEventW event;
  history_w(impl_->history, &event, H_ENTER, wide_of(text).c_str());
}

}  // namespace lockstep
