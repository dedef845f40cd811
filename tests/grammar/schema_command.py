"""The answers of `lockstep schema`: schema_command.py PROGRAM TOOL_SCHEMAS."""

import json
import subprocess
import sys
import tempfile


def run(arguments, text):
    return subprocess.run([sys.argv[1], "schema", *arguments], input=text, capture_output=True, text=True, timeout=60)


def batch(cases, *flags):
    lines = "".join(json.dumps(case) + "\n" for case in cases)
    result = run(["--batch", *flags], lines)
    answers = [json.loads(line) for line in result.stdout.splitlines()]
    assert result.returncode == 0 and len(answers) == len(cases), result.stderr
    return answers


def main():
    with open(sys.argv[2], encoding="utf-8") as file:
        schemas = json.load(file)
    cases = [
        ({"schema": entry["schema"], "instance": json.dumps(instance, separators=(",", ":"))}, kind == "valid")
        for entry in schemas
        for kind in ("valid", "invalid")
        for instance in entry[kind]
    ]
    for (case, expected), answer in zip(cases, batch([case for case, _ in cases])):
        assert answer == {"accepted": expected}, (case, answer)

    refused = {"schema": {"type": "array", "uniqueItems": True}, "instance": "[]"}
    spaced = {"schema": {"type": "array"}, "instance": "[1, 2]"}
    nothing = {"schema": False, "instance": "1"}
    answers = batch([refused, spaced, nothing, {"schema": {}}, {"instance": "1"}, {"schema": {}, "instance": 1}])
    assert list(answers[0]) == ["error"] and "uniqueItems" in answers[0]["error"], answers[0]
    assert answers[1:3] == [{"accepted": True}, {"accepted": False}], answers
    assert all(list(answer) == ["error"] for answer in answers[3:]), answers
    lenient = batch([refused], "--lenient")[0]
    assert lenient["accepted"] and "uniqueItems" in lenient["warnings"][0], lenient
    assert batch([spaced], "--compact") == [{"accepted": False}]

    single = run([], json.dumps(spaced))
    assert single.returncode == 0 and json.loads(single.stdout) == {"accepted": True}, single
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        file.write(json.dumps(spaced["schema"]))
        file.flush()
        named = run([file.name, "--instance", "[true]"], "")
        assert json.loads(named.stdout) == {"accepted": True}, named
    missing = run(["no-such-file.json"], "[]")
    assert missing.returncode == 2 and missing.stderr.startswith("lockstep: "), missing
    print(f"{len(cases)} cases")


if __name__ == "__main__":
    main()
