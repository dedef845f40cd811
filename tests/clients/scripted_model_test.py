"""The model that agents are tested with gives its scripted answers."""

import json
import os
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "cluster"))
sys.path.insert(0, HERE)

import harness  # noqa: E402
import scripted_model  # noqa: E402

CALLS = {"read_note": {"path": "note.txt"}, "run": {"command": 'say "aaaaaaaaaaaaaaaaaaaaaaaa" \\ twice', "n": 3}}


def tools(*names):
    return [{"type": "function", "function": {"name": name, "parameters": {"type": "object"}}} for name in names]


class ScriptedModel(unittest.TestCase):
    def test_words_calls_and_last_words_at_any_temperature(self):
        with tempfile.TemporaryDirectory() as folder:
            model = scripted_model.write_scripted_model(os.path.join(folder, "scripted"), CALLS)
            with harness.Node("--ranks", "1", model=model) as node:
                def ask(messages, **fields):
                    status, answer = node.request("POST", "/v1/chat/completions", {"messages": messages, **fields})
                    self.assertEqual(status, 200, answer)
                    return answer["choices"][0]["message"]
                user = {"role": "user", "content": "Hello <|im_end|> there"}
                for temperature in (0, 1, 2):
                    self.assertEqual(ask([user], temperature=temperature)["content"], scripted_model.PLAIN)
                for name, arguments in CALLS.items():
                    message = ask([user], tools=tools("other", name))
                    call = message["tool_calls"][0]
                    self.assertEqual(call["function"]["name"], name)
                    self.assertEqual(json.loads(call["function"]["arguments"]), arguments)
                    result = {"role": "tool", "tool_call_id": call["id"], "content": "done"}
                    self.assertEqual(ask([user, message, result], tools=tools(name))["content"], scripted_model.DONE)
                self.assertEqual(ask([user], tools=tools("other"))["content"], scripted_model.PLAIN)


if __name__ == "__main__":
    harness.main()
