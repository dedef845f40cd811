"""Lists the lines of C++ code that are compiled for macOS and not for Linux, which no test of Linux ever executes.

only_macos.py [--root FOLDER] [--output FILE]: each range of lines with its count, and the sum. Preprocessor conditions decide: each is
evaluated once with the macros of Linux and once with those of macOS, and may be unknown (instruction sets, headers that exist). A
line counts if macOS may compile it and Linux does not. CMake compiles every file on both systems, so that there are no other
lines. Blank lines, comments and the conditions themselves do not count."""

import argparse
import os
import re
import sys

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(SOURCE, "tests", "tidy"))
import cpp_text  # noqa: E402

# Macros whose value a system decides. std::from_chars of doubles: libstdc++ has it, libc++ does not.
SYSTEMS = {
    "linux": {"__linux__": True, "__APPLE__": False, "__MACH__": False, "__GLIBC__": True, "__cpp_lib_to_chars": True},
    "macos": {"__linux__": False, "__APPLE__": True, "__MACH__": True, "__GLIBC__": False, "__cpp_lib_to_chars": False},
}
NOWHERE = {"_WIN32": False, "__FreeBSD__": False, "__ANDROID__": False}
DIRECTIVE = re.compile(r"^\s*#\s*(ifdef|ifndef|if|elif|else|endif)\b(.*)$")
TOKEN = re.compile(r"\s*(defined|&&|\|\||!(?!=)|\(|\)|\w+|[^\s\w()&|!]+|!=|&|\|)")
SUFFIXES = (".cc", ".h", ".inl")


def both(left, right):
    """and of True, False and None (unknown)."""
    if left is False or right is False:
        return False
    return True if left and right else None


def either(left, right):
    if left is True or right is True:
        return True
    return False if left is False and right is False else None


def opposite(value):
    return None if value is None else not value


class Condition:
    """An expression of #if: defined, names, numbers, !, &&, || and brackets; anything else is unknown."""

    def __init__(self, text, known):
        self.tokens = TOKEN.findall(text)
        self.known = known
        self.at = 0

    def value(self):
        return self._or()

    def _peek(self):
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def _next(self):
        self.at += 1
        return self.tokens[self.at - 1] if self.at <= len(self.tokens) else ""

    def _or(self):
        value = self._and()
        while self._peek() == "||":
            self._next()
            value = either(value, self._and())
        return value

    def _and(self):
        value = self._term()
        while self._peek() == "&&":
            self._next()
            value = both(value, self._term())
        return value

    def _term(self):
        value = self._factor()
        while self._peek() not in ("", "&&", "||", ")"):  # a comparison or arithmetic
            self._next()
            if self._peek() not in ("", "&&", "||", ")"):
                self._factor()
            value = None
        return value

    def _factor(self):
        token = self._next()
        if token == "!":
            return opposite(self._factor())
        if token == "(":
            value = self._or()
            self._next()
            return value
        if token == "defined":
            bracketed = self._peek() == "("
            if bracketed:
                self._next()
            name = self._next()
            if bracketed:
                self._next()
            return self.known.get(name)
        if self._peek() == "(":  # __has_include(<...>), a call
            self._skip_brackets()
            return None
        if token.isdigit():
            return token != "0"
        return self.known.get(token)

    def _skip_brackets(self):
        depth = 0
        while self.at < len(self.tokens):
            token = self._next()
            depth += {"(": 1, ")": -1}.get(token, 0)
            if depth == 0:
                return


class Branches:
    """The open #if of a file, for one system: whether its current branch is compiled."""

    def __init__(self, known):
        self.known = known
        self.stack = []  # (whether an earlier branch of it was taken, whether this one is)

    def directive(self, kind, text):
        if kind == "ifdef":
            text = f"defined({text.strip()})"
        elif kind == "ifndef":
            text = f"!defined({text.strip()})"
        if kind in ("if", "ifdef", "ifndef"):
            value = Condition(text, self.known).value()
            self.stack.append((value, value))
        elif kind == "elif":
            taken, _ = self.stack.pop()
            value = Condition(text, self.known).value()
            self.stack.append((either(taken, value), both(opposite(taken), value)))
        elif kind == "else":
            taken, _ = self.stack.pop()
            self.stack.append((True, opposite(taken)))
        else:
            self.stack.pop()

    def compiled(self):
        value = True
        for _, branch in self.stack:
            value = both(value, branch)
        return value


def only_macos_lines(text):
    """Numbers of the lines with code that macOS may compile and Linux does not."""
    code = cpp_text.without_comments_and_strings(text).split("\n")
    systems = {name: Branches({**NOWHERE, **known}) for name, known in SYSTEMS.items()}
    found = []
    lines = text.split("\n")
    number = 0
    while number < len(lines):
        begin = number
        logical = lines[number]
        while logical.endswith("\\") and number + 1 < len(lines):
            number += 1
            logical = logical[:-1] + " " + lines[number]
        number += 1
        directive = DIRECTIVE.match(logical)
        if directive:
            for branches in systems.values():
                branches.directive(directive.group(1), re.sub(r"//.*|/\*.*?\*/", "", directive.group(2)))
            continue
        if systems["macos"].compiled() is not False and systems["linux"].compiled() is False:
            found += [at + 1 for at in range(begin, number) if code[at].strip()]
    return found


def ranges(numbers, text):
    """(first, last, count) of lines between which nothing else is compiled."""
    lines = text.split("\n")
    found = []
    for number in numbers:
        if found and not any(DIRECTIVE.match(line) for line in lines[found[-1][1]:number - 1]):
            first, _, count = found[-1]
            found[-1] = (first, number, count + 1)
        else:
            found.append((number, number, 1))
    return found


def sources(root):
    for folder, folders, files in os.walk(os.path.join(root, "src")):
        folders.sort()
        for name in sorted(files):
            if name.endswith(SUFFIXES):
                yield os.path.relpath(os.path.join(folder, name), root)


def listing(root):
    total, files, out = 0, 0, []
    for path in sources(root):
        with open(os.path.join(root, path), encoding="utf-8") as file:
            text = file.read()
        found = ranges(only_macos_lines(text), text)
        for first, last, count in found:
            out.append(f"{path}:{first}-{last}: {count}")
            total += count
        files += bool(found)
    out.append(f"{total} lines in {files} files are compiled only for macOS and were never executed")
    return "\n".join(out) + "\n"


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--root", default=SOURCE)
    arguments.add_argument("--output")
    chosen = arguments.parse_args()
    text = listing(chosen.root)
    if chosen.output:
        with open(chosen.output, "w", encoding="utf-8") as file:
            file.write(text)
        print(text.splitlines()[-1] + f": {os.path.relpath(chosen.output)}")
    else:
        print(text, end="")


if __name__ == "__main__":
    main()
