"""Random answers under the constraint of a tool call are calls whose arguments are valid for an independent validator.

validate_calls.py CALL_WALKS SOURCE [--schemas COUNT] [--answers COUNT] [--seed SEED] [--lines FILE | --judge FILE]

CALL_WALKS is the program of call_walks.cc, which writes answers in the formats of all families; SOURCE is this
repository. The judge is python3-jsonschema; exits 77 (skipped) without it. --lines keeps the output of CALL_WALKS, for
another judge (tests/clients/judge_calls.mjs), and does not judge; --judge judges such lines.
"""

import argparse
import collections
import json
import pathlib
import subprocess
import sys

CHARACTERS = 8  # per string
FORM_CHARACTERS = 60  # per string with a pattern or a format
ITEMS = 3  # per list, if it may be this short
SCALAR = {"type": ["string", "number", "boolean", "null"], "maxLength": CHARACTERS}
# Keywords that make a schema wider when a schema inside them is made narrower.
NOT_MONOTONE = ("not", "if", "oneOf", "dependentSchemas", "contains", "unevaluatedItems", "unevaluatedProperties")
ENDED_SHARE_LEAST = 0.95


def bounded(schema):
    """A schema that allows less, so that random texts end: short strings, short lists, few keys."""
    if schema is True or schema == {}:
        return SCALAR
    if not isinstance(schema, dict):
        return schema
    narrow = dict(schema)
    for keyword in ("properties", "patternProperties", "$defs", "definitions"):
        if isinstance(schema.get(keyword), dict):
            narrow[keyword] = {name: bounded(one) for name, one in schema[keyword].items()}
    for keyword in ("prefixItems", "allOf", "anyOf"):
        if isinstance(schema.get(keyword), list):
            narrow[keyword] = [bounded(one) for one in schema[keyword]]
    for keyword in ("items", "additionalProperties", "additionalItems"):
        if isinstance(schema.get(keyword), (dict, bool)):
            narrow[keyword] = bounded(schema[keyword])
    if any(keyword in schema for keyword in ("$ref", "enum", "const")):
        return narrow
    if any(keyword in schema for keyword in ("allOf", "anyOf", *NOT_MONOTONE)):
        # What these say about lengths is not considered.
        narrow["maxLength"] = min(schema.get("maxLength", FORM_CHARACTERS), FORM_CHARACTERS)
        narrow["maxItems"] = min(schema.get("maxItems", ITEMS), ITEMS)
        return narrow
    has_form = "pattern" in schema or "format" in schema
    characters = max(schema.get("minLength", 0), FORM_CHARACTERS if has_form else CHARACTERS)
    narrow["maxLength"] = min(schema.get("maxLength", characters), characters)
    items = max(schema.get("minItems", 0), ITEMS)
    narrow["maxItems"] = min(schema.get("maxItems", items), items)
    narrow.setdefault("items", SCALAR)
    keys = max(schema.get("minProperties", 0), len(schema.get("required", [])), len(schema.get("properties", {})) + 1)
    narrow["maxProperties"] = min(schema.get("maxProperties", keys), keys)
    if not schema.get("properties") and not schema.get("patternProperties"):
        narrow.setdefault("additionalProperties", SCALAR)
        if not schema.get("required"):
            narrow.setdefault("propertyNames", {"maxLength": CHARACTERS})
    return narrow


def parameters(source, count):
    """Schemas of tools: own ones, those of the recorded calls, and the test suite's as the value of a parameter."""
    data = source / "tests" / "data"
    found = [entry["schema"] for entry in json.loads((data / "json_schema" / "tool_schemas.json").read_text())]
    found += [tool["function"]["parameters"] for tool in json.loads((data / "tool_calls" / "tools.json").read_text())]
    suite = [entry["schema"] for entry in json.loads((data / "json_schema" / "test_suite.json").read_text())]
    alone = [schema for schema in suite if "$ref" not in json.dumps(schema)]
    found += [{"type": "object", "properties": {"value": schema}, "required": ["value"]} for schema in alone]
    found += suite
    for first, second in zip(alone, alone[7:]):
        found.append({"type": "object", "properties": {"a": first, "a second": second}, "required": ["a second"]})
    step = max(1, len(found) // count)
    return found if step == 1 else found[::step]


def run(program, source, schemas, answers, seed):
    lines = "".join(json.dumps({"schema": schema, "bounded": bounded(schema)}) + "\n" for schema in schemas)
    command = [program, str(source / "models" / "stories260K"), str(answers), str(seed)]
    result = subprocess.run(command, input=lines, capture_output=True, text=True, timeout=1200, check=True)
    return [json.loads(line) for line in result.stdout.split("\n") if line]


def fault_of(answer, validator):
    """The fault of an answer that the grammar ended; None: valid."""
    if answer["finish_reason"] != "tool_calls":
        return "finish_reason " + answer["finish_reason"]
    if answer["content"]:
        return f"content {answer['content']!r} next to the calls"
    for call in answer["calls"]:
        try:
            value = json.loads(call["arguments"])
        except ValueError as error:
            return f"arguments that are no JSON: {error}"
        if not isinstance(value, dict):
            return "arguments that are no object"
        if call["name"] == "the_other-tool2":
            if value or answer["choice"] == "named":
                return "a call of the other tool"
        elif call["name"] != "the_tool":
            return "a call of " + call["name"]
        else:
            fault = next(validator.iter_errors(value), None)
            if fault:
                return fault.message
    return None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("source", type=pathlib.Path)
    parser.add_argument("--schemas", type=int, default=1000)
    parser.add_argument("--answers", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--lines", type=pathlib.Path)
    parser.add_argument("--judge", type=pathlib.Path)
    options = parser.parse_args()
    schemas = parameters(options.source, options.schemas)
    if options.judge:
        answers = [json.loads(line) for line in options.judge.read_text().split("\n") if line]
    else:
        answers = run(options.program, options.source, schemas, options.answers, options.seed)
    if options.lines:
        options.lines.write_text("".join(json.dumps(answer) + "\n" for answer in answers))
        return 0
    try:
        import jsonschema
    except ImportError:
        print("python3-jsonschema is not installed")
        return 77
    # By default a format is only an annotation.
    checker = jsonschema.Draft202012Validator.FORMAT_CHECKER
    validators = [jsonschema.Draft202012Validator(schema, format_checker=checker) for schema in schemas]
    refused = collections.Counter(answer["line"] for answer in answers if "refused" in answer)
    written = [answer for answer in answers if "refused" not in answer]
    ended = [answer for answer in written if answer["ended"]]
    wrong = [(answer, fault) for answer in ended if (fault := fault_of(answer, validators[answer["line"]]))]
    for answer, fault in wrong[:10]:
        print(f"{answer['family']} {answer['vocabulary']} {answer['choice']}: {json.dumps(answer['schema'])[:400]}\n"
              f"  wrote {answer['text'][:600]!r}\n  {fault[:300]}")
    for family in dict.fromkeys(answer["family"] for answer in written):
        of_family = [answer for answer in written if answer["family"] == family]
        print(f"{family}: {sum(answer['ended'] for answer in of_family)} of {len(of_family)} answers ended, "
              f"{sum(answer['family'] == family for answer, _ in wrong)} wrong")
    print(f"{len(written)} answers for {len(schemas) - len(refused)} schemas ({len(refused)} refused in some format), "
          f"{len(ended)} ended by the grammar, {len(wrong)} of them wrong")
    is_enough = len(refused) < len(schemas) / 2 and len(ended) >= ENDED_SHARE_LEAST * len(written)
    return 1 if wrong or not is_enough else 0


if __name__ == "__main__":
    sys.exit(main())
