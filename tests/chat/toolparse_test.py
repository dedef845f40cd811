"""The contract of `lockstep toolparse`: keys, deltas, errors, and flags in place of a case's keys."""

import json
import os
import subprocess
import tempfile
import unittest

PROGRAM = os.environ["LOCKSTEP_PROGRAM"]
DATA = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "data", "tool_calls")
TOOLS = os.path.join(DATA, "tools.json")


def run(*arguments, text=""):
    return subprocess.run([PROGRAM, "toolparse", *arguments], input=text, capture_output=True, text=True, timeout=60)


def batch(family, cases):
    lines = "".join(json.dumps(case) + "\n" for case in cases)
    process = run("--format", family, "--tools", TOOLS, "--batch", text=lines)
    assert process.returncode == 0, process.stderr
    return [json.loads(line) for line in process.stdout.splitlines()]


def replayed(deltas):
    """The message that a client assembles from the deltas."""
    message = {"content": "", "reasoning_content": "", "tool_calls": []}
    for delta in [delta for chunk in deltas for delta in chunk]:
        message["content"] += delta.get("content", "")
        message["reasoning_content"] += delta.get("reasoning_content", "")
        for call in delta.get("tool_calls", []):
            if "id" in call:
                assert call["type"] == "function" and call["index"] == len(message["tool_calls"])
                message["tool_calls"].append({"id": call["id"], "name": call["function"]["name"], "arguments": ""})
            message["tool_calls"][call["index"]]["arguments"] += call["function"]["arguments"]
    return {**message, "content": message["content"] or None, "reasoning_content": message["reasoning_content"] or None}


class Toolparse(unittest.TestCase):
    def test_every_recorded_output_whole_and_by_characters(self):
        others = ("tools.json", "malformed.json")
        families = sorted(name[:-5] for name in os.listdir(DATA) if name.endswith(".json") and name not in others)
        self.assertEqual(len(families), 13)
        for family in families:
            with open(os.path.join(DATA, family + ".json"), encoding="utf-8") as file:
                recorded = json.load(file)
            cases = [
                {"raw": one["raw"], "split": split, "open_think": one.get("prompt_ends_with_open_think", False),
                 "truncated": one.get("truncated", False)}
                for one in recorded for split in (None, 1, [one["raw"]])
            ]
            answers = batch(family, cases)
            self.assertEqual(len(answers), len(cases))
            for case, answer in zip(cases, answers):
                self.assertEqual(set(answer), {"content", "reasoning_content", "tool_calls", "finish_reason", "deltas"})
                self.assertEqual(len(answer["deltas"]), 1 + (len(case["raw"]) if case["split"] == 1 else 1))
                deltas = answer.pop("deltas")
                reason = answer.pop("finish_reason")
                self.assertEqual(replayed(deltas), answer)
                self.assertEqual(reason == "length", case["truncated"])
                self.assertEqual(reason == "tool_calls", bool(answer["tool_calls"]) and not case["truncated"])
                for call in answer["tool_calls"]:
                    self.assertEqual(set(call), {"id", "name", "arguments"})

    def test_only_a_case_without_an_answer_has_the_key_error(self):
        bad = ["{", "{}", '{"raw": 1}', '{"raw": "ab", "split": 0}', '{"raw": "ab", "split": ["a"]}',
               '{"raw": "ab", "split": "x"}', '{"raw": "ab", "truncated": 1}']
        process = run("--format", "hermes", "--tools", TOOLS, "--batch", text="\n".join(bad) + '\n{"raw": "ab"}\n')
        answers = [json.loads(line) for line in process.stdout.splitlines()]
        self.assertEqual([list(answer) == ["error"] for answer in answers], [True] * len(bad) + [False])
        self.assertEqual(answers[-1]["content"], "ab")

    def test_flags_stand_for_the_keys(self):
        answer = json.loads(run("--format", "hermes", "--tools", TOOLS, "--split", "2", "--open-think", "--truncated",
                                text="é</think>é").stdout)
        self.assertEqual((answer["reasoning_content"], answer["content"]), ("é", "é"))
        self.assertEqual((answer["finish_reason"], len(answer["deltas"])), ("length", 6))
        answer = json.loads(run("--format", "hermes", "--tools", TOOLS, "--split", '["a", "b"]', text="ab").stdout)
        self.assertEqual(answer["deltas"], [[{"content": "a"}], [{"content": "b"}], []])

    def test_invalid_input_is_one_sentence(self):
        with tempfile.NamedTemporaryFile("w", suffix=".json") as no_list:
            no_list.write("{}")
            no_list.flush()
            for arguments, part in ((("--format", "nobody", "--tools", TOOLS), "llama3, hermes"),
                                    (("--format", "hermes", "--tools", "/nowhere.json"), "/nowhere.json"),
                                    (("--format", "hermes", "--tools", no_list.name), "list of tools"),
                                    (("--format", "hermes"), "--tools"),
                                    (("--format", "hermes", "--tools", TOOLS, "--split", "x"), "split")):
                process = run(*arguments, text="a")
                self.assertEqual((process.returncode, process.stdout), (2, ""), (arguments, process.stderr))
                self.assertEqual(len(process.stderr.strip().splitlines()), 1)
                self.assertIn(part, process.stderr)


if __name__ == "__main__":
    unittest.main()
