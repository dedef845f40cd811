"""A small view of C++ text: code without comments and strings, includes, and the functions with their lengths.

It counts braces and knows no types. It reports text that it cannot read (unbalanced braces) and never guesses silently.
"""

import re
from dataclasses import dataclass

RAW_STRING = re.compile(r'(?:u8|u|U|L)?R"([^ ()\\\t\n]{0,16})\(')
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+(<[^>]+>|"[^"]+")', re.MULTILINE)


def blank(text):
    """The same text as spaces; line ends stay, so positions and line numbers stay."""
    return re.sub(r"[^\n]", " ", text)


def literal_end(text, start):
    """The position after the string or character literal that starts with a quote at `start`."""
    quote = text[start]
    i = start + 1
    while i < len(text) and text[i] != quote and text[i] != "\n":
        i += 2 if text[i] == "\\" else 1
    return min(i + 1, len(text))


def token_end(text, i):
    """The end of the comment or literal that starts at i, or None if none starts there."""
    if text.startswith("//", i):
        end = text.find("\n", i)
        return len(text) if end < 0 else end
    if text.startswith("/*", i):
        end = text.find("*/", i + 2)
        return len(text) if end < 0 else end + 2
    raw = RAW_STRING.match(text, i)
    if raw and not (i and (text[i - 1].isalnum() or text[i - 1] == "_")):
        end = text.find(f"){raw.group(1)}\"", raw.end())
        return len(text) if end < 0 else end + len(raw.group(1)) + 2
    if text[i] == '"':
        return literal_end(text, i)
    if text[i] == "'" and not (i and text[i - 1].isalnum()):  # 1'000 holds no character literal
        return literal_end(text, i)
    return None


def without_comments_and_strings(text):
    """Only the code, with comments and literals as spaces."""
    parts, i, kept = [], 0, 0
    while i < len(text):
        if text[i] in "/\"'uULR":
            end = token_end(text, i)
            if end is not None:
                parts += [text[kept:i], blank(text[i:end])]
                i = kept = end
                continue
        i += 1
    parts.append(text[kept:])
    return "".join(parts)


def without_directives(code):
    """The code without preprocessor lines and what continues them."""
    return re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", lambda match: blank(match.group()), code, flags=re.MULTILINE)


def includes(text):
    """(line, '<x>' or '"x"') of each include outside comments."""
    code = without_block_comments(text)
    return [(line_of(code, match.start(1)), match.group(1)) for match in INCLUDE.finditer(code)]


def without_block_comments(text):
    parts, i, kept = [], 0, 0
    while i < len(text):
        end = token_end(text, i) if text[i] in "/\"'uULR" else None
        if end is None:
            i += 1
            continue
        if text[i] == "/":
            parts += [text[kept:i], blank(text[i:end])]
            kept = end
        i = end
    parts.append(text[kept:])
    return "".join(parts)


@dataclass
class Comment:
    text: str  # the lines of the block joined by spaces, without their slashes
    starts: list  # (position in text, line in the file) of each line

    def line_at(self, position):
        return max((start, line) for start, line in self.starts if start <= position)[1]


def line_comments(text):
    """The // comments of a file; adjacent lines whose slashes are in one column are one comment."""
    found, i, last, line, counted = [], 0, None, 1, 0
    while i < len(text):
        end = token_end(text, i) if text[i] in "/\"'uULR" else None
        if end is None:
            i += 1
            continue
        if text.startswith("//", i):
            begin = text.rfind("\n", 0, i) + 1
            column = i - begin
            line, counted = line + text.count("\n", counted, i), i
            words = text[i:end].lstrip("/").strip()
            if last == (line - 1, column) and not text[begin:i].strip():
                block = found[-1]
                block.starts.append((len(block.text) + 1, line))
                block.text += " " + words
            else:
                found.append(Comment(words, [(0, line)]))
            last = (line, column)
        i = end
    return found


def line_of(text, position):
    return text.count("\n", 0, position) + 1


@dataclass
class Function:
    line: int  # where its declaration starts
    lines: int  # to the closing brace


class BracesError(Exception):
    """Braces do not balance: the text cannot be read by counting them."""


def kind_of_block(header):
    """What a brace opens at namespace or class level: "scope", "function" or "table"."""
    words = re.sub(r"\btemplate\s*<[^{}]*?>\s*(?=\w|\[)", " ", header).strip()
    if re.match(r"(inline\s+)?namespace\b|extern\b(?!.*\()", words):
        return "scope"
    if re.match(r"(typedef\s+)?(class|struct|union|enum)\b", words) and "(" not in re.sub(
        r"\b(alignas|__attribute__)\s*\([^)]*\)+|\[\[.*?\]\]", "", words
    ):
        return "scope"
    if words.endswith("=") or (words and "(" not in words):
        return "table"
    return "function"


def functions(text):
    """The functions of a file, without the lambdas and types inside them."""
    code = without_directives(without_comments_and_strings(text))
    found, stack, header_start, parens = [], [], 0, 0
    for match in re.finditer(r"[{};()]", code):
        mark, position = match.group(), match.start()
        inside = any(kind == "function" for kind, _ in stack)
        if mark in "()":
            parens += 1 if mark == "(" else -1
        elif mark == "{":
            header = code[header_start:position]
            start = header_start + len(header) - len(header.lstrip())
            kind = "inner" if inside or parens else kind_of_block(header)
            stack.append((kind, start))
            if kind in ("scope", "function"):
                header_start = match.end()
        elif mark == "}":
            if not stack:
                raise BracesError(line_of(code, position))
            kind, start = stack.pop()
            if kind == "function":
                first = line_of(code, start)
                found.append(Function(first, line_of(code, position) - first + 1))
            if kind != "inner":
                header_start = match.end()
        elif not parens:
            header_start = match.end()
    if stack:
        raise BracesError(line_of(code, stack[-1][1]))
    return found
