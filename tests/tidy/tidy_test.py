#!/usr/bin/env python3
"""Every rule of tidy.py refuses a bad example and lets a good one pass."""

import tempfile
import unittest
from pathlib import Path

import cpp_text
import layers
import rules
import tidy

TABLE = """
base:
json: base  # a comment
net: base
net/.:
net/http: .
server: base net json
"""
LAYERS = layers.parse(TABLE)


def reasons(check, path, text, *arguments):
    return [finding.reason for finding in check(tidy.SourceFile(path, text), *arguments)]


class Case(unittest.TestCase):
    def refused(self, check, path, text, *arguments, lines=None):
        findings = list(check(tidy.SourceFile(path, text), *arguments))
        self.assertTrue(findings, f"not refused: {text!r}")
        if lines is not None:
            self.assertEqual([finding.line for finding in findings], lines)

    def passes(self, check, path, text, *arguments):
        self.assertEqual(reasons(check, path, text, *arguments), [])


class Layers(Case):
    def test_an_include_that_is_declared_passes(self):
        self.passes(tidy.check_layers, "src/server/a.cc", '#include "base/result.h"\n#include "server/b.h"\n', LAYERS)
        self.passes(tidy.check_layers, "src/net/http/a.cc", '#include "net/loop.h"\n#include "net/http/b.h"\n', LAYERS)

    def test_an_include_of_a_higher_layer_is_refused_at_its_line(self):
        self.refused(tidy.check_layers, "src/net/a.cc", '\n#include "server/api.h"\n', LAYERS, lines=[2])
        self.refused(tidy.check_layers, "src/net/a.cc", '\n#include "net/http/api.h"\n', LAYERS, lines=[2])

    def test_an_include_that_is_not_declared_is_refused(self):
        self.refused(tidy.check_layers, "src/net/a.cc", '#include "json/json.h"\n', LAYERS)

    def test_a_use_is_not_inherited_from_another_folder(self):
        self.refused(tidy.check_layers, "src/cli/a.cc", '#include "base/a.h"\n', layers.parse(TABLE + "cli: server\n"))

    def test_an_include_without_a_folder_or_of_an_unknown_one_is_refused(self):
        self.refused(tidy.check_layers, "src/net/a.cc", '#include "socket.h"\n', LAYERS)
        self.refused(tidy.check_layers, "src/net/a.cc", '#include "other/socket.h"\n', LAYERS)

    def test_an_include_in_a_comment_does_not_count(self):
        self.passes(tidy.check_layers, "src/net/a.cc", '// #include "server/api.h"\n/*\n#include "cli/x.h"\n*/', LAYERS)

    def test_main_may_use_every_folder(self):
        self.passes(tidy.check_layers, "src/main.cc", '#include "server/server.h"\n', LAYERS)


class LayerTable(Case):
    FILES = {
        "src/base/a.h": "",
        "src/json/a.h": '#include "base/a.h"\n',
        "src/net/a.h": '#include "base/a.h"\n',
        "src/net/http/a.h": '#include "net/a.h"\n',
        "src/server/a.h": '#include "base/a.h"\n#include "json/a.h"\n#include "net/http/a.h"\n',
    }

    def problems(self, table, more=None):
        files = [tidy.SourceFile(path, text) for path, text in {**self.FILES, **(more or {})}.items()]
        return [finding.reason for finding in tidy.check_layer_table(files, layers.parse(table))]

    def says(self, sentence, table, more=None):
        problems = self.problems(table, more)
        self.assertTrue(any(sentence in problem for problem in problems), problems)

    def test_a_table_that_agrees_with_the_includes_passes(self):
        self.assertEqual(self.problems(TABLE), [])

    def test_a_folder_or_sub_folder_outside_the_table_is_refused(self):
        self.says("the folder stray is not in the table", TABLE, {"src/stray/a.h": ""})
        self.says("net/frames is not in the table", TABLE, {"src/net/frames/a.h": ""})

    def test_a_cycle_is_refused(self):
        self.says("each other", "a: b\nb: c\nc: a\n")
        self.says("net/http and net/. use each other", TABLE.replace("net/.:", "net/.: http"))

    def test_a_use_of_an_unknown_folder_is_refused(self):
        self.says("stray, which is not in the table", TABLE.replace("base:", "base: stray", 1))
        self.says("net/stray, which is not in the table", TABLE.replace("net/http: .", "net/http: . stray"))

    def test_an_unused_declaration_is_refused(self):
        self.says("net does not use json", TABLE.replace("net: base", "net: base json"))
        self.says("server/b does not use .", TABLE + "server/.:\nserver/b: .\n", {"src/server/b/a.h": ""})


class FolderSizes(Case):
    def test_a_folder_with_too_many_files_is_refused_sub_folders_are_not_counted(self):
        def count(path, files):
            return list(tidy.check_folder_sizes([tidy.SourceFile(f"{path}/{i}.h", "") for i in range(files)]))

        self.assertTrue(count("src/base", rules.FOLDER_FILES_MAX + 1))
        self.assertEqual(count("src/base/files", rules.FOLDER_FILES_MAX), [])
        self.assertEqual(count("tests/base", rules.FOLDER_FILES_MAX + 1), [])


class Libraries(Case):
    def test_each_library_is_seen_by_its_folders_only(self):
        for include, folder in [
            ("<boost/asio.hpp>", "net"),
            ("<boost/beast/http.hpp>", "net"),
            ("<boost/json.hpp>", "json"),
            ("<boost/system/error_code.hpp>", "json"),
            ("<CLI/CLI.hpp>", "cli"),
            ("<openssl/sha.h>", "base"),
            ("<infiniband/verbs.h>", "transport"),
        ]:
            self.passes(tidy.check_library_walls, f"src/{folder}/a.cc", f"#include {include}\n")
            self.refused(tidy.check_library_walls, "src/engine/a.cc", f"#include {include}\n")

    def test_test_libraries_stay_out_of_src(self):
        self.refused(tidy.check_library_walls, "src/base/a.cc", "#include <doctest/doctest.h>\n")
        self.passes(tidy.check_library_walls, "tests/base/a_test.cc", "#include <doctest/doctest.h>\n")

    def test_a_wall_of_json_holds_for_net(self):
        self.refused(tidy.check_library_walls, "src/net/a.cc", "#include <boost/json.hpp>\n")


class Sizes(Case):
    def test_a_line_has_at_most_100_columns(self):
        self.passes(tidy.check_line_length, "src/base/a.cc", "x" * 100 + "\n")
        self.refused(tidy.check_line_length, "src/base/a.cc", "\n" + "x" * 101 + "\n", lines=[2])

    def test_columns_are_characters_and_an_address_may_be_long(self):
        self.passes(tidy.check_line_length, "src/base/a.cc", "// " + "ä" * 97 + "\n")
        self.passes(tidy.check_line_length, "src/base/a.cc", "// https://" + "x" * 100 + "\n")

    def test_a_file_has_at_most_600_lines_unless_it_is_a_table(self):
        self.passes(tidy.check_file_length, "src/base/a.cc", "\n" * 600)
        self.refused(tidy.check_file_length, "src/base/a.cc", "\n" * 601)
        self.passes(tidy.check_file_length, "src/base/a_table.cc", "\n" * 601)

    def test_a_function_has_at_most_70_lines(self):
        def function(lines, head="int f() {"):
            return f"namespace lockstep {{\n{head}\n" + "x;\n" * (lines - 2) + "}\n}\n"

        for head in ["int f() {", "template <class T> T C::f(const T& x) const noexcept {", 'TEST_CASE("a {") {']:
            self.passes(tidy.check_function_length, "src/base/a.cc", function(70, head))
            self.refused(tidy.check_function_length, "src/base/a.cc", function(71, head), lines=[2])

    def test_methods_constructors_and_lambdas_count(self):
        body = "x;\n" * 80
        for text in [
            f"struct A {{ void f() {{\n{body}}} }};",
            f"A::A() : a_(1), b_{{2}} {{\n{body}}}",
            f"A::A()\n : a_{{1}}\n {{\n{body}}}",
            f"auto f = [](int x) {{\n{body}}};",
            f"void f(int x = {{}}) {{\n{body}}}",
        ]:
            self.refused(tidy.check_function_length, "src/base/a.cc", text)

    def test_types_namespaces_and_tables_are_no_functions(self):
        body = "x,\n" * 80
        for text in [
            f"const int kTable[] = {{\n{body}}};",
            f"constexpr Row kRows{{\n{body}}};",
            f"enum class A : int {{\n{body}}};",
            f"template <class T>\nclass A : public B<T> {{\n{body.replace(',', ';')}}};",
            f"namespace {{\n{body.replace(',', ';')}}}",
        ]:
            self.passes(tidy.check_function_length, "src/base/a.cc", text)

    def test_braces_in_strings_comments_and_macros_do_not_count(self):
        text = 'int f() {\n  g("{", \'{\', R"x({")x");  // {\n /* { */ return 1\'000;\n}\n#define A \\\n  {\n'
        self.assertEqual([f.lines for f in cpp_text.functions(text)], [4])

    def test_a_file_whose_braces_cannot_be_counted_is_refused(self):
        self.refused(tidy.check_function_length, "src/base/a.cc", "void f() {\n#if A\n{\n#else\n{\n#endif\n}\n}\n")
        self.refused(tidy.check_function_length, "src/base/a.cc", "}\n")


class Headers(Case):
    GOOD = "// A: a thing.\n#pragma once\n\nnamespace lockstep {}\n"

    def test_a_header_starts_with_a_comment_and_pragma_once(self):
        self.passes(tidy.check_header_start, "src/base/a.h", self.GOOD)
        self.refused(tidy.check_header_start, "src/base/a.h", self.GOOD.replace("// A: a thing.", ""))
        self.refused(tidy.check_header_start, "src/base/a.h", self.GOOD.replace("#pragma once", ""))
        self.refused(tidy.check_header_start, "src/base/a.h", "// A.\n#include <string>\n#pragma once\n")

    def test_no_iostream_in_a_header(self):
        self.refused(tidy.check_header_includes, "src/base/a.h", "#include <iostream>\n")
        self.passes(tidy.check_header_includes, "src/base/a.h", "#include <string>\n// #include <iostream>\n")
        self.passes(tidy.check_header_includes, "src/cli/a.cc", "#include <iostream>\n")

    def test_no_using_namespace_in_a_header(self):
        self.refused(tidy.check_code_rules, "src/base/a.h", "using namespace std;\n")
        self.passes(tidy.check_code_rules, "src/base/a.h", "using std::span;\n")

    def test_texts_are_not_hashed_with_a_fixed_seed(self):
        for bad in ("std::unordered_map<std::string, int> a;", "std::unordered_set<std::string_view> b;",
                    "int f(const std::unordered_set<std::string>& names);", "std::hash<std::string_view>()(text)"):
            self.refused(tidy.check_code_rules, "src/chat/a.cc", bad + "\n")
            self.passes(tidy.check_code_rules, "tests/node/a_test.cc", bad + "\n")
        for good in ("std::unordered_map<std::string, int, TextHash> a;", "std::unordered_map<int, std::string> b;",
                     "std::map<std::string, int> c;"):
            self.passes(tidy.check_code_rules, "src/chat/a.cc", good + "\n")

    def test_a_source_includes_its_own_header_first(self):
        paths = {"src/base/a.h", "src/base/a.cc"}
        check = tidy.check_own_header_first
        self.passes(check, "src/base/a.cc", '#include "base/a.h"\n\n#include <string>\n', paths)
        self.refused(check, "src/base/a.cc", '#include <string>\n#include "base/a.h"\n', paths)
        self.refused(check, "src/base/a.cc", "int a;\n", paths)
        self.passes(check, "src/base/b.cc", "#include <string>\n", paths)

    def test_a_header_that_nothing_includes_is_refused(self):
        header = tidy.SourceFile("src/base/a.h", self.GOOD)
        user = tidy.SourceFile("tests/base/a_test.cc", '#include "base/a.h"\n')
        self.assertTrue(list(tidy.check_header_is_used([header])))
        self.assertEqual(list(tidy.check_header_is_used([header, user])), [])


class OneDefinition(unittest.TestCase):
    def findings(self, *texts):
        files = [tidy.SourceFile(f"src/base/{i}.cc", text) for i, text in enumerate(texts)]
        return list(tidy.check_one_definition(files))

    def test_two_types_of_one_name_are_refused(self):
        for kind in ["struct A {", "class A final : public B {", "enum class A {", "struct A : B,\n    C {"]:
            self.assertEqual(len(self.findings(f"namespace lockstep {{\n{kind}\n}};\n}}\n", "\nstruct A {\n};\n")), 1, kind)

    def test_an_anonymous_namespace_a_declaration_and_a_nested_type_are_no_second_one(self):
        anonymous = "namespace {\n\nvoid f() {\n}\n\nstruct A {\n};\n\n}  // namespace\n"
        for other in [anonymous, "class A;\n", "struct B {\n  struct A {};\n};\n", "// struct A {\n", "struct A::Impl {\n};\n"]:
            self.assertEqual(self.findings("struct A {\n};\n", other), [], other)

    def test_types_of_two_namespaces_may_have_one_name(self):
        files = [tidy.SourceFile(path, "struct A {\n};\n")
                 for path in ("src/base/a.h", "src/chat/jinja/a.h", "src/chat/jinja_syntax/b.h")]
        self.assertEqual([finding.path for finding in tidy.check_one_definition(files)], ["src/chat/jinja_syntax/b.h"])

    def test_types_after_an_anonymous_namespace_count(self):
        text = "namespace {\n\nint i;\n\n}  // namespace\n\nstruct A {\n};\n"
        self.assertEqual(len(self.findings(text, "struct A {\n};\n")), 1)


class Code(Case):
    def test_files_of_one_instruction_set_include_intrinsics_only(self):
        check = tidy.check_isa_includes
        good = '#include <cstdint>\n#include <immintrin.h>\n\n#include "kernels/generic/math.inl"\n#include "kernels/kernels.h"\n'
        for path in ["src/kernels/isa_avx2.cc", "src/kernels/generic/matmul.inl"]:
            self.passes(check, path, good)
            for include in ["<algorithm>", "<vector>", "<cmath>", '"base/check.h"', '"kernels/isa.h"']:
                self.refused(check, path, f"#include {include}\n")
        self.passes(check, "src/kernels/choose.cc", "#include <algorithm>\n")

    def test_memory_has_owners(self):
        check = tidy.check_code_rules
        for code in ["auto* a = new A;", "delete a;", "delete[] a;", "std::malloc(1);", "free(p);", "::free(p);"]:
            self.refused(check, "src/base/a.cc", code)
            self.passes(check, "tests/base/a_test.cc", code)
        for code in ["A(const A&) = delete;", "// new\n", 'f("new");', "pages.free(p);", "a->free(p);", "int newer;"]:
            self.passes(check, "src/base/a.cc", code)

    def test_new_goes_straight_into_a_unique_ptr_or_into_given_memory(self):
        check = tidy.check_code_rules
        for code in [
            "return std::unique_ptr<Link>(new ShmLink(std::move(memory)));",
            "std::unique_ptr<Model> model(new Model(config));",
            "std::shared_ptr<const Vocabulary> all{new Vocabulary};",
            "auto* region = new (memory.data()) Region();",
            "#include <new>",
        ]:
            self.passes(check, "src/base/a.cc", code)
        for code in ["owner(new A);", "auto a = new (std::nothrow) A;", "p.reset(new A);"]:
            self.refused(check, "src/base/a.cc", code)

    def test_a_try_follows_no_other_element_inside_braces(self):
        check = tidy.check_code_rules
        for code in [
            "return Pair{TRY(first()), TRY(second())};",
            "Pair pair = {name, TRY(second(a, b))};",
            "open({.folder = folder,\n      .model = TRY(model_of(options))});",
            "list.push_back({condition, TRY(block())});",
        ]:
            self.refused(check, "src/base/a.cc", code, lines=[1])
        for code in [
            "return Pair{TRY(first()), second};",
            "Pair pair = {TRY(join(a, b))};",
            "Result<int> sum(int a, int b) {\n  return TRY(add(a, b));\n}",
            "const auto f = [&](int a, int b) -> Result<int> { return TRY(add(a, b)); };",
            "list.push_back(make(condition, TRY(block())));",
        ]:
            self.passes(check, "src/base/a.cc", code)

    def test_no_sleep_in_tests(self):
        check = tidy.check_code_rules
        for code in ["std::this_thread::sleep_for(1ms);", "std::this_thread::sleep_until(t);", "usleep(1);", "::sleep(1);"]:
            self.refused(check, "tests/base/a_test.cc", code)
        self.passes(check, "tests/base/a_test.cc", "clock.sleep(1); // std::this_thread::sleep_for(1)\n")
        self.passes(check, "src/base/threads/wait.cc", "std::this_thread::sleep_for(1ms);")

    def test_there_is_one_namespace(self):
        check = tidy.check_namespace
        self.passes(check, "src/base/a.cc", "namespace lockstep {\nnamespace {\n}\n}\n")
        self.passes(check, "src/net/a.cc", "namespace lockstep {\nnamespace asio = boost::asio;\n}\n")
        names = "namespace CLI {\nclass App;\nclass Option;\n}\nnamespace lockstep {}\n"
        self.passes(check, "src/cli/a.h", names)
        self.refused(check, "src/cli/a.h", names.replace("class App;", "class App {};"))
        self.refused(check, "src/cli/a.h", "namespace CLI {\nclass App;\n}\n")  # no namespace of ours
        self.refused(check, "src/base/a.cc", "namespace lockstep::detail {\n}\n")
        self.refused(check, "src/base/a.cc", "namespace lockstep {\nnamespace detail {\n}\n}\n")
        self.refused(check, "src/base/a.cc", "int a;\n")
        self.passes(check, "src/main.cc", "int main() {}\n")
        self.passes(check, "src/chat/jinja/a.cc", "namespace lockstep::jinja {\n}\n")
        self.refused(check, "src/chat/jinja/a.cc", "namespace lockstep {\n}\n")
        self.refused(check, "src/chat/a.cc", "namespace lockstep::jinja {\n}\n")


class Words(Case):
    def test_words_with_a_reason_are_refused_in_every_text(self):
        check = tidy.check_banned_words
        # Joined here: this file must not contain a machine's paths either.
        paths = ["/".join(parts) for parts in (["see ", "work", "x"], ["cd ", "home", "me"], ["", "root", "a"])]
        for text in ["// TODO: later", "# FIXME", "XXX", "image: docker.io/x", *paths]:
            self.refused(check, "docs/a.md", text)
            self.refused(check, "src/base/a.cc", text)
        own_folder = "/".join(["~", "work", "lockstep"])
        self.passes(check, "web/src/a.ts", "ghcr.io/open-webui/open-webui:main")
        for text in ["// TODO(#12): later", "the work/ folder", "https://brew.sh/home/", own_folder]:
            self.passes(check, "docs/a.md", text)


class Page(Case):
    def test_text_never_becomes_html_code_or_an_inline_style(self):
        check = tidy.check_web_rules
        for bad in ["{@html answer}", "box.innerHTML = text;", "box.outerHTML = text;", 'box.insertAdjacentHTML("beforeend", text);',
                    "document.write(text);", "document . writeln(text)", "eval(text);", "new Function(text)", "<p style='x'>",
                    '<p style="color: red">', "<p style={text}>", 'box.setAttribute("style", text)', "frame.srcdoc = text",
                    'new DOMParser().parseFromString(text, "text/html")']:
            for path in ["web/src/chat/A.svelte", "web/src/lib/a.ts"]:
                self.refused(check, path, "first line\n" + bad + "\n")
        for good in ["<p style:width={share}>", "box.textContent = text;", "retrieval(text)", "parser.eval(text)", "<style>p { margin: 0; }</style>",
                     "new FunctionTable(text)", "document.writes(text)", "const { style = {} } = node;"]:
            self.passes(check, "web/src/chat/A.svelte", good)
        self.passes(check, "docs/a.md", "{@html answer}")
        self.passes(check, "web/tests/a.ts", "box.innerHTML = text;")


class CommentWords(Case):
    def test_stilted_phrases_are_refused_and_plain_ones_pass(self):
        for bad, good in [
            ("Starts the rank anew.", "Starts the rank again."),
            ("The error that comes of it.", "The resulting error."),
            ("The tokens that came of the step.", "A prodigy comes of age."),
            ("Refuses options that make no sense.", "Refuses invalid options."),
            ("The bytes behind the header.", "For a node behind a proxy, behind the NAT or behind a firewall."),
            ("Behind it nothing is read.", "A rank that lags behind."),
            ("A file beside the model.", "A file next to the model, besides the table."),
            ("What it lacks is fetched.", "What does it lack? Fetches the missing pieces."),
            ("Ends it. Who waits is told.", "Ends it, and tells callers who wait what happened."),
            ("Of two names the first wins.", "The first of two names wins."),
            ("Here: What is left.", "Here: what is left."),
            ("(Ends it.) What is left.", "Whatever is left."),
        ]:
            self.refused(tidy.check_comment_words, "src/base/a.h", f"// {bad}\n")
            self.passes(tidy.check_comment_words, "src/base/a.h", f"// {good}\n")

    def test_a_phrase_is_found_at_its_line_across_the_lines_of_a_block(self):
        check = tidy.check_comment_words
        self.refused(check, "tests/base/a_test.cc", "int a;\n\n// The number that\n// came\n// of it.\n", lines=[4])
        self.refused(check, "src/base/a.cc", "f();  // The first.\n      // What is left.\n", lines=[2])
        self.passes(check, "src/base/a.cc", "// Shows all of it, and says\n// What the API calls it.\n")
        self.refused(check, "src/base/a.cc", "// All of it.\n  // What is left.\n", lines=[2])
        self.refused(check, "src/base/a.cc", "f();  // Of each rank.\n", lines=[1])

    def test_only_comments_of_cpp_files_count(self):
        for path, text in [
            ("src/base/a.cc", 'f("made anew");\n'),
            ("src/base/a.cc", 'f("// anew");\nint beside;\n'),
            ("docs/a.md", "// anew\n"),
        ]:
            self.passes(tidy.check_comment_words, path, text)

    def test_phrases_count_in_strings_and_in_text_of_other_languages(self):
        check = tidy.check_other_words
        self.refused(check, "src/base/a.cc", '\nf("made anew");\n', lines=[2])
        self.refused(check, "docs/a.md", "First.\n\nIt is made anew.\n", lines=[3])
        self.refused(check, "tests/a_test.py", "# a file beside it\n", lines=[1])
        self.passes(check, "src/base/a.cc", 'f("beside");\n')  # a name, not a sentence
        self.passes(check, "docs/a.md", "The key `beside` is a number. The first of two names wins.\n")

    def test_sentences_of_documents_begin_with_their_subject(self):
        check = tidy.check_other_words
        for bad in ("What works", "## What works", "- **Who decides.** Rank 0.", "1. Who makes it: the engine.", "| Of two | 1 |",
                    "[What it costs](a.md).", "It ends. Of two names the first wins.", "**Loading.** What is left."):
            self.refused(check, "docs/a.md", f"First.\n\n{bad}\n", lines=[3])
        for good in ("## What does it cost?", "- **What must travel?** Little.", "It is what the API calls it.", "| what | who |",
                     "Whatever is left.", "`What` is a word.", "All of it."):
            self.passes(check, "docs/a.md", f"First.\n\n{good}\n")
        self.passes(check, "tools/a.sh", "# What works\n")

    def test_comments_of_the_page_begin_with_their_subject(self):
        check = tidy.check_web_comments
        for path in ("web/src/chat/a.ts", "web/src/chat/A.svelte", "web/tests/page/a.mjs"):
            self.refused(check, path, "let a;\n// What is left.\n", lines=[2])
            self.refused(check, path, "  // Ends it.\n  // Of each rank.\n", lines=[2])
            self.refused(check, path, "// It ends. Who waits\n// is told.\n", lines=[1])
            self.passes(check, path, "// Shows all of it, and says\n// What the API calls it.\nconst text = 'What is left';\n")
        self.passes(check, "web/src/styles/base.css", "// What is left.\n")

    def test_a_file_that_a_comment_names_exists(self):
        def reasons_of(comment):
            files = [tidy.SourceFile("src/base/log.h", ""), tidy.SourceFile("src/net/a.cc", comment)]
            return [finding.line for finding in tidy.check_named_paths(files)]

        self.assertEqual(reasons_of("int a;\n// As base/lag.h says.\n"), [2])
        self.assertEqual(reasons_of("// As src/base/log.cc says.\n"), [1])
        for good in ("base/log.h", "src/base/log.h", "other/project.h", "https://a.org/base/lag.h", "x.base/lag.h"):
            self.assertEqual(reasons_of(f"// As {good} says.\n"), [], good)

    def test_a_source_that_a_document_names_exists(self):
        def lines_of(text):
            files = [tidy.SourceFile("src/base/files/log.h", ""), tidy.SourceFile("docs/a.md", text)]
            return [finding.line for finding in tidy.check_quoted_paths(files)]

        for bad in ("src/base/files/lag.h", "base/log.h", "lag.h", "base/*/lag.h", "files/log.py", "og.h"):
            self.assertEqual(lines_of(f"First.\n\nSee `{bad}`.\n"), [3], bad)
        for good in ("src/base/files/log.h", "base/files/log.h", "log.h", "base/*/log.h", "tests/<folder>/a.cc",
                     "data/x.py", "lag.h: no", "a/config.json"):
            self.assertEqual(lines_of(f"See `{good}`, not lag.h.\n"), [], good)

    def test_members_of_a_class_are_defined_in_sources_that_begin_with_its_header(self):
        def names_of(*sources):
            header = tidy.SourceFile("src/net/loop.h", "class Loop {\n  void run();\n};\n")
            files = [header, *(tidy.SourceFile(path, "\nvoid Loop::run() {\n}\n") for path in sources)]
            return [(finding.path, finding.line) for finding in tidy.check_member_files(files)]

        self.assertEqual(names_of("src/net/running.cc"), [("src/net/running.cc", 2)])
        self.assertEqual(names_of("src/net/loops.cc"), [("src/net/loops.cc", 2)])
        self.assertEqual(names_of("src/net/loop.cc", "src/net/loop_run.cc", "src/server/other.cc"), [])

    def test_functions_of_anonymous_namespaces_have_names_of_their_own(self):
        def lines_of(**sources):
            files = [tidy.SourceFile("src/" + path.replace("__", "/").replace("_h", ".h").replace("_cc", ".cc"), text)
                     for path, text in sources.items()]
            return [(finding.path, finding.line) for finding in tidy.check_anonymous_functions(files)]

        local = "namespace {\n\nint size(int a) {\n  return a;\n}\n\n}  // namespace\n"
        other = local.replace("int a", "long a")
        self.assertEqual(lines_of(net__a_cc=local, net__b_cc=other), [("src/net/b.cc", 3)])
        self.assertEqual(lines_of(net__a_h="int size(long a);\n", net__b_cc=local), [("src/net/b.cc", 3)])
        self.assertEqual(lines_of(net__a_cc=local, node__b_cc=other), [])
        self.assertEqual(lines_of(net__a_cc=local + local.replace("int a", "char a")), [])  # overloads on purpose
        self.assertEqual(lines_of(net__a_h="class A {\n  int size(long a);\n};\n", net__b_cc=local), [])

    def test_headers_in_a_circle_are_refused(self):
        def circle(*includes):
            files = [tidy.SourceFile(f"src/net/{a}", f'#include "net/{b}"\n') for a, b in includes]
            return [finding.reason for finding in tidy.check_header_circles(files)]

        self.assertEqual(len(circle(("a.h", "b.h"), ("b.h", "c.h"), ("c.h", "a.h"))), 1)
        self.assertEqual(circle(("a.h", "b.h"), ("b.h", "c.h"), ("a.cc", "a.h"), ("c.cc", "a.h")), [])

    def test_boost_is_named_in_its_folders_only(self):
        self.refused(tidy.check_code_rules, "src/node/a.cc", "boost::system::error_code error;\n", lines=[1])
        self.passes(tidy.check_code_rules, "src/json/a.h", "boost::system::error_code error;\n")


class Objects(unittest.TestCase):
    def test_weak_and_unique_symbols_are_found(self):
        output = "0000 T lockstep::avx2\n0000 W std::vector<int>::push_back\n     U memcpy\n0000 V a table\n0000 u once\n"
        self.assertEqual(tidy.weak_symbols(output), ["std::vector<int>::push_back", "a table", "once"])

    def test_local_and_global_symbols_and_exception_pointers_pass(self):
        output = "0000 t local\n0000 D table\n0000 V DW.ref.__gxx_personality_v0\n                 w __cxa_finalize\n"
        self.assertEqual(tidy.weak_symbols(output), [])

    def test_a_call_without_objects_is_a_finding(self):
        self.assertTrue(tidy.check_objects("nm", ["choose.cc.o"])[0])


class Project(unittest.TestCase):
    """Everything together, over a small project on disk."""

    def project(self, files):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        for name, text in files.items():
            path = Path(folder.name, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return tidy.check_project(Path(folder.name))

    GOOD = {
        "src/layers.txt": "base:\n",
        "src/base/a.h": Headers.GOOD,
        "src/base/a.cc": '#include "base/a.h"\nnamespace lockstep {}\n',
    }

    def test_a_good_project_has_no_finding_and_all_files_were_read(self):
        findings, what = self.project(self.GOOD)
        self.assertEqual((findings, what), ([], "3 files"))

    def test_each_file_check_is_applied(self):
        bad = {
            "src/base/wall.cc": "#include <CLI/CLI.hpp>\nnamespace lockstep {}\n",
            "src/base/long_line.cc": "namespace lockstep {}" + " " * 100 + "\n",
            "src/base/long_file.cc": "namespace lockstep {}\n" + "\n" * rules.FILE_LINES_MAX,
            "src/base/long_function.cc": "namespace lockstep {\nvoid f() {\n" + "\n" * 70 + "}\n}\n",
            "src/base/a.h": "#pragma once\nnamespace lockstep {}\n",
            "src/kernels/isa_avx2.cc": "#include <vector>\n",
            "src/base/memory.cc": "namespace lockstep {\nint* a = new int;\n}\n",
            "src/base/scope.cc": "int a;\n",
            "docs/word.md": "FIXME\n",
            "src/base/words.cc": "// Made anew.\nnamespace lockstep {}\n",
            "src/base/layer.cc": '#include "stray/a.h"\nnamespace lockstep {}\n',
            "src/base/b.h": Headers.GOOD,
            "src/base/a.cc": '#include <string>\n#include "base/a.h"\nnamespace lockstep {}\n',
        }
        for name, text in bad.items():
            findings, _ = self.project({**self.GOOD, name: text})
            self.assertTrue([finding for finding in findings if finding.path == name], name)


if __name__ == "__main__":
    unittest.main()
