"""tools/macos/only_macos.py: which lines count as compiled only for macOS."""

import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools", "macos"))
import only_macos  # noqa: E402


class OnlyMacos(unittest.TestCase):
    def lines(self, text):
        return only_macos.only_macos_lines(text)

    def test_branches_of_either_system(self):
        self.assertEqual(self.lines("#ifdef __APPLE__\na;\n#else\nb;\n#endif\n"), [2])
        self.assertEqual(self.lines("#ifdef __linux__\na;\n#else\nb;\n#endif\n"), [4])
        self.assertEqual(self.lines("#ifndef __linux__\na;\n#endif\nb;\n"), [2])
        self.assertEqual(self.lines("#if defined(__linux__)\na;\n#elif defined __APPLE__\nb;\n#else\nc;\n#endif\n"), [4])
        self.assertEqual(self.lines("#if !defined(__linux__) || defined(X)\na;\n#endif\n"), [])
        self.assertEqual(self.lines("#if __APPLE__\na;\n#endif\n#if defined(__MACH__)\nb;\n#endif\n"), [2, 5])

    def test_other_conditions_are_unknown_and_may_be_compiled(self):
        processor = "#if defined(__aarch64__) && defined({})\na;\n#endif\n"
        self.assertEqual(self.lines(processor.format("__APPLE__")), [2])
        self.assertEqual(self.lines(processor.format("__linux__")), [])
        self.assertEqual(self.lines("#ifdef __aarch64__\na;\n#else\nb;\n#endif\n"), [])
        self.assertEqual(self.lines("#if __has_include(<x.h>) && !defined(Y)\na;\n#endif\n"), [])
        self.assertEqual(self.lines("#if VERSION >= 3 && defined(__APPLE__)\na;\n#endif\n"), [2])
        self.assertEqual(self.lines("#if (A + 1) == 2 || defined(__linux__)\na;\n#else\nb;\n#endif\n"), [4])

    def test_inside_of_others(self):
        text = "#ifdef __linux__\n#ifdef __APPLE__\na;\n#endif\n#endif\n"
        self.assertEqual(self.lines(text), [])
        text = "#ifdef __APPLE__\n#ifdef X\na;\n#else\nb;\n#endif\nc;\n#endif\n"
        self.assertEqual(self.lines(text), [3, 5, 7])

    def test_a_library_that_lacks_something(self):
        self.assertEqual(self.lines("#ifdef __cpp_lib_to_chars\na;\n#else\nb;\n#endif\n"), [4])

    def test_comments_and_blank_lines_do_not_count(self):
        text = "#ifdef __APPLE__  // a comment\n\n// b\na;  // c\n/* d\n e */\n#endif /* f */\n"
        self.assertEqual(self.lines(text), [4])

    def test_conditions_on_several_lines(self):
        self.assertEqual(self.lines("#if defined(__APPLE__) && \\\n    defined(Y)\na;\n#endif\nb;\n"), [3])
        self.assertEqual(self.lines("#ifdef __APPLE__\n#define A \\\n  b\n#endif\n"), [2, 3])

    def test_the_listing_names_ranges_and_counts(self):
        with tempfile.TemporaryDirectory() as root:
            os.makedirs(os.path.join(root, "src", "base"))
            with open(os.path.join(root, "src", "base", "a.cc"), "w", encoding="utf-8") as file:
                file.write("a;\n#ifdef __APPLE__\nb;\n// c\nd;\n#endif\n#ifndef __linux__\ne;\n#endif\n")
            with open(os.path.join(root, "src", "base", "b.h"), "w", encoding="utf-8") as file:
                file.write("#ifdef __linux__\na;\n#endif\n")
            self.assertEqual(only_macos.listing(root),
                             "src/base/a.cc:3-5: 2\nsrc/base/a.cc:8-8: 1\n"
                             "3 lines in 1 files are compiled only for macOS and were never executed\n")


if __name__ == "__main__":
    unittest.main()
