#!/usr/bin/env python3
"""Holds the project to its own rules (CONTRIBUTING.md): layers, walls around libraries, sizes, words, headers.

  tidy.py [--root DIR]                 checks the sources and other text files
  tidy.py --nm NM --objects FILE...    checks the symbols of files compiled for one instruction set

The rules are data in rules.py. Each finding is one line "path:line: reason"; any finding makes the exit status 1.
"""

import argparse
import collections
import fnmatch
import itertools
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import cpp_text
import layers
import rules

CPP_SUFFIXES = {".cc", ".h", ".inl"}


@dataclass(frozen=True)
class Finding:
    path: str
    line: int
    reason: str

    def __str__(self):
        return f"{self.path}:{self.line}: {self.reason}"


class SourceFile:
    """One text file of the project; the path is relative to the root, with slashes."""

    def __init__(self, path, text):
        self.path = path
        self.text = text
        self.suffix = Path(path).suffix
        self.code = cpp_text.without_comments_and_strings(text) if self.is_cpp() else ""
        self.includes = cpp_text.includes(text) if self.is_cpp() else []

    def is_cpp(self):
        return self.suffix in CPP_SUFFIXES

    def is_source(self):
        return self.is_cpp() and self.path.startswith("src/")

    def folder(self):
        """The folder below src/, "" for files next to the folders."""
        parts = self.path.split("/")
        return parts[1] if len(parts) > 2 else ""

    def finding(self, line, reason):
        return Finding(self.path, line, reason)


# ---- layers


def check_layers(file, table):
    """An include of src/ crosses only borders that src/layers.txt declares."""
    if not file.is_source():
        return
    user = layers.place(file.path.removeprefix("src/"))
    for line, include in file.includes:
        if include[0] != '"':
            continue
        path = include.strip('"')
        if "/" not in path:
            yield file.finding(line, f"{include} names no folder: includes start at src/")
        elif layers.place(path)[0] not in table.folders:
            yield file.finding(line, f"{include} is in no folder of src/layers.txt")
        elif user[0] and (edge := layers.edge(user, path)) and not layers.is_declared(table, *edge):
            yield file.finding(line, f"{edge[0]} may not use {edge[1]} (src/layers.txt)")


def check_layer_table(files, table):
    """The table itself: complete, without cycles, and without unused edges."""
    sources = [(layers.place(file.path.removeprefix("src/")), file) for file in files if file.is_source()]
    for problem in layers.table_problems(table, {place for place, _ in sources}):
        yield Finding("src/layers.txt", 1, problem)
    used = {
        layers.edge(user, include.strip('"')) for user, file in sources for _, include in file.includes if include[0] == '"' and user[0]
    }
    for declares, what in layers.declared_edges(table):
        if (declares, what) not in used:
            yield Finding("src/layers.txt", 1, f"{declares} does not use {what}")


def check_folder_sizes(files):
    counts = collections.Counter(file.path.rpartition("/")[0] for file in files if file.is_source())
    for folder, count in counts.items():
        if count > rules.FOLDER_FILES_MAX:
            yield Finding(folder, 1, f"{count} files, the limit is {rules.FOLDER_FILES_MAX}: it wants sub-folders")


def check_library_walls(file):
    if not file.is_source():
        return
    for line, include in file.includes:
        name = include.strip('<>"')
        prefix = max((p for p in rules.LIBRARY_WALLS if name.startswith(p)), key=len, default=None)
        if prefix is not None and file.folder() not in rules.LIBRARY_WALLS[prefix]:
            yield file.finding(line, f"{include} is not seen in {file.folder() or 'src'}: {prefix} has a wall")


# ---- sizes


def check_line_length(file):
    if not file.is_cpp():
        return
    for number, line in enumerate(file.text.splitlines(), 1):
        if len(line) > rules.LINE_COLUMNS_MAX and "://" not in line:
            yield file.finding(number, f"{len(line)} columns, the limit is {rules.LINE_COLUMNS_MAX}")


def check_file_length(file):
    lines = file.text.count("\n")
    if file.is_cpp() and lines > rules.FILE_LINES_MAX and not rules.TABLE_FILE.search(file.path):
        yield file.finding(lines, f"{lines} lines, the limit is {rules.FILE_LINES_MAX}")


def check_function_length(file):
    if not file.is_cpp():
        return
    try:
        for function in cpp_text.functions(file.text):
            if function.lines > rules.FUNCTION_LINES_MAX:
                reason = f"a function of {function.lines} lines, the limit is {rules.FUNCTION_LINES_MAX}"
                yield file.finding(function.line, reason)
    except cpp_text.BracesError as error:
        yield file.finding(error.args[0], "braces do not balance (an #if that opens a block twice?)")


# ---- headers


def check_header_start(file):
    if file.suffix != ".h":
        return
    if not file.text.startswith("// "):
        yield file.finding(1, "a header starts with a comment: what it is, who uses it")
    first_code = file.code.split(None, 2)[:2]
    if first_code != ["#pragma", "once"]:
        yield file.finding(1, "#pragma once is the first line of code of a header")


def check_header_includes(file):
    if file.suffix != ".h":
        return
    for line, include in file.includes:
        if include == "<iostream>":
            yield file.finding(line, "no <iostream> in a header")


def check_own_header_first(file, paths):
    """x.cc includes x.h first, which proves that x.h stands alone; CMake compiles the headers without an x.cc."""
    own = file.path[: -len(".cc")] + ".h"
    if not file.is_source() or file.suffix != ".cc" or own not in paths:
        return
    expected = f'"{own[len("src/"):]}"'
    if not file.includes or file.includes[0][1] != expected:
        yield file.finding(file.includes[0][0] if file.includes else 1, f"{expected} is the first include")


def check_header_is_used(files):
    used = {include.strip('"') for file in files for _, include in file.includes if include[0] == '"'}
    for file in files:
        if file.is_source() and file.suffix == ".h" and file.path[len("src/") :] not in used:
            yield file.finding(1, "nothing includes this header")


# ---- code


def check_isa_includes(file):
    if not rules.ISA_FILE.match(file.path):
        return
    for line, include in file.includes:
        if not rules.ISA_INCLUDE.match(include):
            yield file.finding(line, f"a file of one instruction set may not include {include}")


def check_code_rules(file):
    if not file.is_cpp():
        return
    code = cpp_text.without_directives(file.code)
    for where, pattern, reason, exempt in rules.CODE_RULES:
        if not where.match(file.path) or file.path in exempt:
            continue
        for match in pattern.finditer(code):
            if "bad" not in pattern.groupindex or match.group("bad"):
                yield file.finding(cpp_text.line_of(code, match.start()), reason)


def own_namespace(file):
    return next((name for folder, name in rules.NAMESPACES.items() if file.path.startswith(folder)), "lockstep")


def check_namespace(file):
    """One namespace, lockstep, and one inside it for folders whose names are many and general (rules.NAMESPACES);
    specialisations of std templates may open std, and a library's may name its classes."""
    if not file.is_source() or rules.ISA_FILE.match(file.path):
        return
    names = re.findall(r"\bnamespace\s+([\w:]+)\s*\{", file.code)
    named_only = rules.FORWARD_DECLARATIONS.findall(file.code)
    own = own_namespace(file)
    for name in names:
        if name not in (own, "std", *named_only):
            yield file.finding(1, f"namespace {name}: the namespace of this folder is {own}")
    if own not in names and file.folder():
        yield file.finding(1, f"nothing here is in namespace {own}")


def outside_anonymous(file):
    return rules.ANONYMOUS_NAMESPACE.sub(lambda match: cpp_text.blank(match.group()), file.code)


def check_one_definition(files):
    """A type's name is unique in its namespace: two of one name in two files link, and then one replaces the other."""
    seen = {}
    for file in files:
        if not file.is_source() or rules.ISA_FILE.match(file.path):
            continue
        code = outside_anonymous(file)
        for match in rules.TYPE_DEFINITION.finditer(code):
            name, line = match.group("name"), cpp_text.line_of(code, match.start())
            key = (own_namespace(file), name)
            if key in seen:
                yield file.finding(line, f"{name} is defined in {seen[key]} too")
            seen.setdefault(key, file.path)


def check_banned_words(file):
    for pattern, reason in rules.BANNED_WORDS:
        for match in pattern.finditer(file.text):
            yield file.finding(cpp_text.line_of(file.text, match.start()), f"{match.group()}: {reason}")


def check_web_rules(file):
    if not rules.WEB_FILE.match(file.path):
        return
    for pattern, reason in rules.WEB_RULES:
        for match in pattern.finditer(file.text):
            yield file.finding(cpp_text.line_of(file.text, match.start()), f"{match.group().strip()}: {reason}")


def found_phrases(phrases, text):
    """(position, reason) of each."""
    for pattern, instead in phrases:
        for match in pattern.finditer(text):
            if "bad" not in pattern.groupindex or match.group("bad"):
                yield match.start(), f"'{match.group()}': {instead}"


def check_comment_words(file):
    if not file.is_cpp():
        return
    for comment in cpp_text.line_comments(file.text):
        for position, reason in found_phrases(rules.COMMENT_PHRASES, comment.text):
            yield file.finding(comment.line_at(position), reason)


def check_web_comments(file):
    """The phrases of every text are check_other_words' task; these are for the beginnings of sentences."""
    if not rules.WEB_SCRIPT.match(file.path):
        return
    for block in rules.WEB_COMMENT.finditer(file.text):
        lines = [re.sub(r"^ *// ?", "", line) for line in block.group().split("\n")]
        text = " ".join(lines)
        ends = list(itertools.accumulate(len(line) + 1 for line in lines))
        for position, reason in found_phrases(rules.SUBJECT_PHRASES, text):
            line = sum(end <= position for end in ends)
            yield file.finding(cpp_text.line_of(file.text, block.start()) + line, reason)


def check_other_words(file):
    """Strings of C++ files with a space in them, and everything in files of other languages."""
    if file.is_cpp():
        for literal in re.finditer(r'"(?:[^"\\\n]|\\.)* (?:[^"\\\n]|\\.)*"', file.text):
            for _, reason in found_phrases(rules.PHRASES, literal.group()):
                yield file.finding(cpp_text.line_of(file.text, literal.start()), reason)
        return
    text = re.sub(r"`[^`\n]+`", lambda match: cpp_text.blank(match.group()), file.text)
    phrases = rules.DOCUMENT_PHRASES if file.suffix == ".md" else rules.PHRASES
    for position, reason in found_phrases(phrases, text):
        yield file.finding(cpp_text.line_of(file.text, position), reason)


def check_member_files(files):
    """A source that defines members of a class of a header in its folder has the header's name, or begins with it."""
    owners = {}  # (folder, class) -> the header's name
    for file in files:
        if file.is_source() and file.suffix == ".h":
            folder, name = file.path.rsplit("/", 1)
            for match in rules.TYPE_DEFINITION.finditer(outside_anonymous(file)):
                owners[folder, match.group("name")] = name.removesuffix(".h")
    for file in files:
        if not file.is_source() or file.suffix != ".cc" or rules.ISA_FILE.match(file.path):
            continue
        folder, name = file.path.rsplit("/", 1)
        code = outside_anonymous(file)
        for match in rules.MEMBER_DEFINITION.finditer(code):
            owner = owners.get((folder, match.group("class")))
            if owner and not re.fullmatch(rf"{owner}(_\w+)?\.cc", name):
                line = cpp_text.line_of(code, match.start("class"))
                yield file.finding(line, f"members of a class of {owner}.h are defined in {owner}.cc or {owner}_PART.cc")


def check_anonymous_functions(files):
    """Functions of anonymous namespaces have names of their own in their folder of src/: its sources are compiled
    together, where one of the same name is an overload that may be called instead, without a word from the compiler."""
    declared = {}  # (folder, function) -> the header
    sources = [file for file in files if file.is_source() and not rules.ISA_FILE.match(file.path)]
    for file in sources:
        if file.suffix == ".h":
            for match in rules.FUNCTION_DECLARATION.finditer(file.code):
                declared.setdefault((file.folder(), match.group("name")), file.path)
    defined = {}
    for file in sources:
        if file.suffix != ".cc":
            continue
        for block in rules.ANONYMOUS_NAMESPACE.finditer(file.code):
            for match in rules.FUNCTION_DEFINITION.finditer(block.group()):
                key = (file.folder(), match.group("name"))
                other = declared.get(key) or defined.setdefault(key, file.path)
                if other != file.path:
                    line = cpp_text.line_of(file.code, block.start() + match.start("name"))
                    yield file.finding(line, f"{key[1]}() is also a function of {other}, with which this file is compiled")


def check_header_circles(files):
    """Headers do not include each other in a circle, which #pragma once would hide."""
    uses = {
        file.path: ["src/" + name.strip('"') for _, name in file.includes]
        for file in files
        if file.is_source() and file.suffix == ".h"
    }
    done = set()

    def visit(path, above):
        if path in above:
            yield Finding(path, 1, "headers in a circle: " + " -> ".join([*above[above.index(path) :], path]))
            return
        if path in done or path not in uses:
            return
        for used in uses[path]:
            yield from visit(used, [*above, path])
        done.add(path)

    for path in uses:
        yield from visit(path, [])


def check_named_paths(files):
    """A path of the project in a comment exists, as it stands or below src/ or tests/."""
    paths = {file.path for file in files}
    folders = {part for path in paths for part in path.split("/")[:-1]}
    for file in files:
        if not file.is_cpp():
            continue
        for comment in cpp_text.line_comments(file.text):
            for match in rules.NAMED_PATH.finditer(comment.text):
                path = match.group()
                if path.split("/")[0] not in folders or any(root + path in paths for root in ("", "src/", "tests/")):
                    continue
                yield file.finding(comment.line_at(match.start()), f"{path}: there is no such file")


def check_quoted_paths(files):
    """A source that a document names in backquotes exists. Its folders may be left out from the left, and * stands for
    any part of a name."""
    paths = ["/" + file.path for file in files]
    for file in files:
        if file.suffix != ".md":
            continue
        for match in rules.QUOTED_PATH.finditer(file.text):
            path = match.group("path")
            if rules.FOLDERS_LEFT_OUT.isdisjoint(path.split("/")) and not fnmatch.filter(paths, "*/" + path):
                yield file.finding(cpp_text.line_of(file.text, match.start()), f"{path}: there is no such file")


# ---- the two ways to run


FILE_CHECKS = [
    check_library_walls,
    check_line_length,
    check_file_length,
    check_function_length,
    check_header_start,
    check_header_includes,
    check_isa_includes,
    check_code_rules,
    check_namespace,
    check_banned_words,
    check_web_rules,
    check_comment_words,
    check_web_comments,
    check_other_words,
]


def check_files(files, table):
    paths = {file.path for file in files}
    for file in files:
        for check in FILE_CHECKS:
            yield from check(file)
        yield from check_layers(file, table)
        yield from check_own_header_first(file, paths)
    yield from check_layer_table(files, table)
    yield from check_folder_sizes(files)
    yield from check_header_is_used(files)
    yield from check_one_definition(files)
    yield from check_named_paths(files)
    yield from check_quoted_paths(files)
    yield from check_member_files(files)
    yield from check_anonymous_functions(files)
    yield from check_header_circles(files)


def read_files(root):
    files = []
    for path in sorted(root.rglob("*")):
        relative = path.relative_to(root)
        if rules.FOLDERS_LEFT_OUT.intersection(relative.parts) or relative.parts[0] in rules.ROOT_FOLDERS_LEFT_OUT:
            continue
        if not path.is_file():
            continue
        is_text = path.suffix in rules.TEXT_SUFFIXES or path.name in rules.TEXT_NAMES
        if is_text or rules.WEB_FILE.match(relative.as_posix()):
            files.append(SourceFile(relative.as_posix(), path.read_text(encoding="utf-8")))
    return files


def check_project(root):
    files = read_files(root)
    findings = list(check_files(files, layers.parse((root / "src/layers.txt").read_text())))
    return findings, f"{len(files)} files"


def weak_symbols(nm_output):
    """Names of the symbols in nm's output that a linker may share between objects."""
    found = []
    for line in nm_output.splitlines():
        parts = line.split(None, 2)
        if len(parts) == 3 and parts[1] in rules.WEAK_SYMBOL_TYPES:
            if not rules.WEAK_SYMBOLS_ALLOWED.match(parts[2]):
                found.append(parts[2])
    return found


def check_objects(nm, objects):
    isa_objects = [path for path in objects if re.match(r"isa_\w+\.cc\.o", Path(path).name)]
    if not isa_objects:
        return [Finding("src/kernels", 1, "no object of an isa_*.cc file was given")], "0 objects"
    findings = []
    for path in isa_objects:
        output = subprocess.run([nm, "-C", path], check=True, capture_output=True, text=True).stdout
        for name in weak_symbols(output):
            findings.append(Finding(Path(path).name, 1, f"weak symbol {name}: another file may get this code"))
    return findings, f"{len(isa_objects)} objects"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parents[2])
    parser.add_argument("--nm", default="nm")
    parser.add_argument("--objects", nargs="*")
    options = parser.parse_args()
    if options.objects is None:
        findings, what = check_project(options.root)
    else:
        findings, what = check_objects(options.nm, options.objects)
    for finding in findings:
        print(finding)
    print(f"tidy: {what}, {len(findings)} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
