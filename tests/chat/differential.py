#!/usr/bin/env python3
"""Random conversations through every available chat template, by `lockstep template --raw` and by Python's jinja2
as transformers calls it: the same text, and the same message if the template refuses. If Python fails otherwise (a
TypeError), any result is accepted. Exits with 77 (skipped) if jinja2 is missing.

  LOCKSTEP_PROGRAM=... differential.py [--count 10000] [--seed 1]
"""

import argparse
import collections
import datetime
import json
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

try:
    import jinja2
    import jinja2.ext
    import jinja2.nodes
    import jinja2.sandbox
except ImportError:
    print("skipped: python3 has no module jinja2")
    sys.exit(77)

SOURCE = Path(__file__).resolve().parents[2]
SHARED = Path(os.environ.get("LOCKSTEP_SHARED_DIR", SOURCE.parent / "shared"))
FOLDERS = [SOURCE / "tests/data/templates", SHARED / "data/templates/jinja"]
MISMATCHES_SHOWN = 40


# ---- the reference


class Generation(jinja2.ext.Extension):
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_render"), [], [], body).set_lineno(line)

    @staticmethod
    def _render(caller):
        return caller()


class Refused(jinja2.TemplateError):
    pass


def refuse(message):
    raise Refused(message)


def to_json(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def reference_environment():
    environment = jinja2.sandbox.SandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols", Generation]
    )
    environment.filters["tojson"] = to_json
    environment.filters["from_json"] = json.loads
    environment.globals["raise_exception"] = refuse
    return environment


def reference(environment, template, case):
    """("text", prompt), ("refused", message) or ("failed", Python's message)."""
    extra = dict(case["extra"])
    now = datetime.datetime.fromisoformat(extra.pop("now"))
    environment.globals["strftime_now"] = now.strftime
    try:
        return "text", template.render(messages=case["messages"], tools=case["tools"], documents=None, **extra)
    except Refused as error:
        return "refused", str(error.message)
    except Exception as error:  # a template can fail in any way
        return "failed", f"{type(error).__name__}: {error}"


# ---- random conversations

WORDS = (
    "hello Paris weather <tool_call> </think> <think> naïve Größe 東京 🙂 {{x}} {%if%} 'quoted' \"double\" a\\b x<y&z "
    "<|im_start|> <|im_end|> [INST] [/INST] <|end|> $5 50% None True 1.0 /think /no_think ß İ \u00a0 \u2028 \x1f"
).split(" ") + ["\n", "\n\n", "\t", "  ", "\r\n", "", "</think>\n\n"]
NAMES = ["get_weather", "search_files", "sumNumbers", "list", "items", "Ünïcode"]
KEYS = ["city", "unit", "Limit", "options", "items", "get", "values", "keys", "naïve", "a b", "0"]


class Maker:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.plain = True  # the form most templates take: texts as content, objects as arguments

    def chance(self, probability):
        return self.random.random() < probability

    def text(self, words_max=12):
        joint = self.random.choice([" ", " ", ""])
        return joint.join(self.random.choice(WORDS) for _ in range(self.random.randint(0, words_max)))

    def number(self):
        return self.random.choice(
            [0, 1, -1, 7, 2**31, 2**53, -(2**63), 0.5, 2.0, -0.0, 1e-7, 1e16, 123456.789, 1e300, 5e-324, 1 / 3, 1e22]
        )

    def value(self, depth=0):
        kind = self.random.randint(0, 7 if depth < 3 else 4)
        if kind <= 1:
            return self.text(4)
        if kind == 2:
            return self.number()
        if kind == 3:
            return self.random.choice([True, False])
        if kind == 4:
            return None
        if kind == 5:
            return [self.value(depth + 1) for _ in range(self.random.randint(0, 3))]
        return self.object(depth + 1)

    def object(self, depth=0):
        return {self.random.choice(KEYS): self.value(depth) for _ in range(self.random.randint(0, 3))}

    def schema(self, depth=0):
        kinds = ["string", "integer", "number", "boolean", "object", "array", ["string", "null"], "null"]
        schema = {"type": self.random.choice(kinds)}
        if self.chance(0.6):
            schema["description"] = self.text(5)
        if schema["type"] == "string" and self.chance(0.3):
            schema["enum"] = [self.text(1) for _ in range(self.random.randint(1, 3))]
        if schema["type"] == "array" and self.chance(0.8):
            schema["items"] = self.schema(depth + 1)
        if schema["type"] == "object" and depth < 3:
            schema["properties"] = self.properties(depth + 1)
        if self.chance(0.15):
            schema["default"] = self.value(2)
        if self.chance(0.1):
            schema["nullable"] = True
        if self.chance(0.08) and depth < 3:
            schema[self.random.choice(["oneOf", "anyOf"])] = [self.schema(depth + 1), self.schema(depth + 1)]
        return schema

    def properties(self, depth=0):
        return {self.random.choice(KEYS): self.schema(depth) for _ in range(self.random.randint(0, 4))}

    def tool(self):
        parameters = {"type": "object", "properties": self.properties()}
        if self.chance(0.6):
            parameters["required"] = [name for name in parameters["properties"] if self.chance(0.5)]
        function = {"name": self.random.choice(NAMES), "description": self.text(6), "parameters": parameters}
        if self.chance(0.1):
            function["return"] = {"type": "object"}
        return {"type": "function", "function": function}

    def content(self):
        kind = self.random.random()
        if self.plain or kind < 0.72:
            return self.text(15)
        if kind < 0.82:
            return None
        if kind < 0.96:
            return [{"type": "text", "text": self.text()} for _ in range(self.random.randint(0, 3))]
        return self.value()

    def tool_id(self):
        if self.chance(0.85):
            return "".join(self.random.choice("abcDEF0123456789") for _ in range(9))
        return self.random.choice(["call_1", "", "functions.get_weather:0"])

    def call(self, identity):
        arguments = self.object() if self.plain or self.chance(0.85) else json.dumps(self.object())
        call = {"type": "function", "function": {"name": self.random.choice(NAMES), "arguments": arguments}}
        if identity is not None:
            call["id"] = identity
        return call

    def assistant(self, identities):
        message = {"role": "assistant"}
        if self.plain or self.chance(0.93):
            message["content"] = self.content()
        if self.chance(0.3):
            message[self.random.choice(["reasoning_content", "thinking", "reasoning"])] = self.text()
        if identities:
            message["tool_calls"] = [self.call(identity) for identity in identities]
        elif not self.plain and self.chance(0.05):
            message["tool_calls"] = self.random.choice([None, []])
        return message

    def messages(self):
        messages = []
        if self.chance(0.5):
            messages.append({"role": self.random.choice(["system", "system", "developer"]), "content": self.content()})
        for _ in range(self.random.randint(0, 4)):
            messages.append({"role": "user", "content": self.content()})
            if self.chance(0.3):
                identities = [self.tool_id() for _ in range(self.random.choice([1, 1, 2]))]
                messages.append(self.assistant(identities))
                for identity in identities:
                    result = self.content() if self.chance(0.8) else self.random.choice(["12", "1.50", " 7", "-3e5"])
                    tool = {"role": "tool", "content": result, "tool_call_id": identity}
                    if self.chance(0.5):
                        tool["name"] = self.random.choice(NAMES)
                    messages.append(tool)
            if self.chance(0.85):
                messages.append(self.assistant([]))
        if not self.plain and self.chance(0.1):
            self.random.shuffle(messages)
        return messages

    def case(self):
        self.plain = self.chance(0.65)
        extra = {
            "bos_token": self.random.choice(["<s>", "", "<|begin|>"]),
            "eos_token": self.random.choice(["</s>", "<|end|>"]),
            "add_generation_prompt": self.chance(0.6),
            "now": f"20{self.random.randint(10, 40)}-{self.random.randint(1, 12):02}-{self.random.randint(1, 28):02}"
            f"T{self.random.randint(0, 23):02}:08:05",
        }
        options = {
            "enable_thinking": [True, False],
            "thinking": [True, False],
            "reasoning_effort": ["low", "high"],
            "builtin_tools": [["browser"], ["python", "browser"], ["code_interpreter"], []],
            "tools_in_user_message": [True, False],
            "date_string": ["26 Jul 2024"],
            "custom_tools": [None],
            "clear_thinking": [True, False],
            "keep_past_thinking": [True, False],
            "custom_instructions": ["Be brief."],
            "controls": [{"length": "short"}],
        }
        for name, values in options.items():
            if self.chance(0.2):
                extra[name] = self.random.choice(values)
        tools = [self.tool() for _ in range(self.random.randint(0, 3))] if self.chance(0.6) else None
        return {"messages": self.messages(), "tools": tools, "extra": extra}


# ---- empty and odd values

ODD_VALUES = [None, "", [], {}, 0, False, 0.0, 7, True, "a b", "it's (a) well-known <b", ["b", "a"], ["\n"], [[]], [None],
              {"b": 1, "a": None}]
LAZY = {"batch", "slice", "map", "items", "reject", "rejectattr", "reverse", "select", "selectattr", "unique"}  # Python prints an object
FILTERS = """abs|attr('x')|batch(2)|batch(3, 'x')|batch(0)|capitalize|center(7)|center(4)|count|e|escape|d('other')|default('other', true)|dictsort|first|float|indent|int|items|join|join(',')
last|length|list|lower|map('upper')|map(attribute='x')|map(attribute='x', default='d')|max|min|reject|reject('none')|rejectattr('x')
rejectattr('x', 'equalto', 1)|replace('a', 'b')|reverse|round|safe|select|select('string')|selectattr('x')|selectattr('x', 'defined')
sort|string|sum|sum(start=1)|title|tojson|trim|unique|upper|slice(2)|slice(3, 'x')
groupby(0)|groupby(0, default='')|truncate(5)|truncate(5, true)|truncate(6, false, '..', 0)|wordcount""".replace("\n", "|").split("|")
TESTS = """boolean|defined|divisibleby(2)|eq(0)|equalto('')|escaped|even|false|filter|float|ge(0)|in([0, none, ''])|integer|iterable|lower|mapping|ne(1)
none|number|odd|sameas(none)|sequence|string|test|true|undefined|upper""".replace("\n", "|").split("|")


def odd_cases():
    """(template, cases): each filter and test over each value, and over one that is not there."""
    extra = {"now": "2026-01-01T00:00:00"}
    cases = [{"messages": [], "tools": None, "extra": extra | {"x": value}} for value in ODD_VALUES]
    cases.append({"messages": [], "tools": None, "extra": extra})
    for name in FILTERS:
        yield f"{{{{ x | {name}{' | list' if name.split('(')[0] in LAZY else ''} }}}}", cases
    for name in TESTS:
        yield f"{{{{ x is {name} }}}}", cases


# ---- the comparison


def answers(program, path, cases):
    lines = "".join(json.dumps(case) + "\n" for case in cases)
    process = subprocess.run(
        [program, "template", str(path), "--raw", "--batch"], input=lines.encode(), capture_output=True, timeout=600
    )
    result = [json.loads(line) for line in process.stdout.decode().split("\n")[:-1]]
    if len(result) != len(cases):
        raise SystemExit(f"{path.name}: {len(result)} answers to {len(cases)} cases; {process.stderr.decode()[-500:]}")
    return result


def agrees(kind, expected, answer):
    if kind == "text":
        return answer.get("prompt") == expected
    return kind == "failed" or answer.get("error") == expected


def show(path, case, expected, answer):
    got = answer.get("prompt", str(answer))
    at = next((i for i, (x, y) in enumerate(zip(expected, got)) if x != y), min(len(expected), len(got)))
    print(f"{path.name}: at {at}\n  want {expected[max(0, at - 80):at + 80]!r}\n  got  {got[max(0, at - 80):at + 80]!r}")
    print(f"  case {json.dumps(case)[:3000]}")


class Comparison:
    def __init__(self, program):
        self.program = program
        self.environment = reference_environment()
        self.kinds = collections.Counter()
        self.mismatches = 0

    def compare(self, path, cases):
        template = self.environment.from_string(path.read_text(encoding="utf-8"))
        for case, answer in zip(cases, answers(self.program, path, cases)):
            kind, expected = reference(self.environment, template, case)
            self.kinds[kind if kind != "failed" or "error" in answer else "failed, rendered here"] += 1
            if not agrees(kind, expected, answer):
                self.mismatches += 1
                if self.mismatches <= MISMATCHES_SHOWN:
                    show(path, case, expected, answer)

    def compare_odd_values(self):
        with tempfile.TemporaryDirectory() as folder:
            for number, (template, cases) in enumerate(odd_cases()):
                path = Path(folder, f"{number} {template.replace('/', ' ')}")
                path.write_text(template)
                self.compare(path, cases)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    comparison = Comparison(os.environ["LOCKSTEP_PROGRAM"])
    comparison.compare_odd_values()
    paths = {path.name: path for folder in FOLDERS for path in sorted(folder.glob("*.jinja"))}
    for number, path in enumerate(paths.values()):
        share = options.count // len(paths) + (number < options.count % len(paths))
        maker = Maker(options.seed * 1000 + number)
        comparison.compare(path, [maker.case() for _ in range(share)])
    shown = ", ".join(f"{count} {kind}" for kind, count in sorted(comparison.kinds.items()))
    print(f"{sum(comparison.kinds.values())} cases, {len(paths)} templates: {shown}; {comparison.mismatches} differ")
    sys.exit(1 if comparison.mismatches else 0)


if __name__ == "__main__":
    main()
