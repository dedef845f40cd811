"""Random texts that constrained decoding may produce are valid for an independent validator, python3-jsonschema.

validate_walks.py RANDOM_WALKS FOLDER [WALKS] [SEED]: RANDOM_WALKS is the program of random_walks.cc, FOLDER has
tool_schemas.json and test_suite.json. Exits 77 (skipped) without python3-jsonschema.
"""

import json
import pathlib
import re
import subprocess
import sys

try:
    import jsonschema
except ImportError:
    print("python3-jsonschema is not installed")
    sys.exit(77)

# Python's floats would round these, and judge another number.
LONG_NUMBER = re.compile(r"\d[\d.]{15,}|[eE]")

EXACT = [
    {"type": "number", "minimum": -1.5, "exclusiveMaximum": 1000.25},
    {"type": "integer", "minimum": 17, "maximum": 4096, "multipleOf": 7},
    {"type": "number", "multipleOf": 0.25, "minimum": 3},
    {"type": "object", "properties": {"a": {"type": "integer"}}, "minProperties": 1, "maxProperties": 3,
     "additionalProperties": {"type": "string", "maxLength": 4}},
    {"type": "object", "patternProperties": {"^x": {"type": "null"}, "y$": {"type": ["null", "integer"]}},
     "additionalProperties": False},
    {"type": "string", "pattern": "^[a-c]{2,4}(x|\\d+)$", "maxLength": 5},
    {"type": "array", "prefixItems": [{"type": "integer"}], "items": {"enum": ["a", 1.5, None]}, "minItems": 2,
     "maxItems": 4},
    {"oneOf": [{"type": "integer", "minimum": 5}, {"type": "number", "maximum": 9}]},
    {"not": {"type": ["string", "object", "array"]}},
    {"if": {"type": "string"}, "then": {"maxLength": 3}, "else": {"type": "integer"}},
]


def schemas(folder):
    found = [entry["schema"] for entry in json.loads((folder / "tool_schemas.json").read_text())]
    found += [entry["schema"] for entry in json.loads((folder / "test_suite.json").read_text())]
    return found + EXACT


def main():
    program, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    walks = sys.argv[3] if len(sys.argv) > 3 else "25"
    seed = sys.argv[4] if len(sys.argv) > 4 else "1"
    known = schemas(folder)
    lines = "".join(json.dumps(schema) + "\n" for schema in known)
    result = subprocess.run([program, walks, seed], input=lines, capture_output=True, text=True, timeout=250, check=True)
    # By default a format is only an annotation.
    checker = jsonschema.Draft202012Validator.FORMAT_CHECKER
    validators = [jsonschema.Draft202012Validator(schema, format_checker=checker) for schema in known]
    texts = refused = unjudged = 0
    wrong = []
    for line in result.stdout.split("\n"):
        if not line:
            continue
        answer = json.loads(line)
        schema = known[answer["schema"]]
        if "refused" in answer:
            refused += 1
            continue
        if LONG_NUMBER.search(re.sub(r'"(\\.|[^"\\])*"', '""', answer["text"]).replace("true", "").replace("false", "")):
            unjudged += 1
            continue
        texts += 1
        try:
            value = json.loads(answer["text"])
        except ValueError as error:
            wrong.append((schema, answer["text"], f"no JSON: {error}"))
            continue
        faults = [fault.message for fault in validators[answer["schema"]].iter_errors(value)]
        if faults:
            wrong.append((schema, answer["text"], faults[0]))
    for schema, text, fault in wrong[:20]:
        print(f"{json.dumps(schema)[:300]}\n  wrote {text[:300]!r}\n  {fault[:200]}")
    print(f"{texts} texts of {len(known) - refused} schemas, {len(wrong)} wrong; {refused} schemas refused, "
          f"{unjudged} texts with numbers too long for the validator")
    sys.exit(1 if wrong or texts < 10 * (len(known) - refused) / 2 else 0)


if __name__ == "__main__":
    main()
