"""Each turn of a conversation computes the new part of its prompt and less than one page of the old part, for every kind
of state, and in the first turn after a restart too."""

import os
import random
import tempfile
import unittest

from harness import Node, main
from text_checkpoint import KINDS, write_text_checkpoint

PAGE = 64
TURNS = 8
RESTART = 5  # before this turn
FLAGS = ["--ranks", "2", "--cache-disk", "1", "--context", "1024"]


class Turns(unittest.TestCase):
    def answer(self, node, model, prompt):
        """(the text, how many positions of the prompt were computed)"""
        status, answer = node.request("POST", "/v1/completions",
                                      {"model": model, "prompt": prompt, "max_tokens": 30, "temperature": 0})
        self.assertEqual(status, 200, answer)
        cached = answer["usage"]["prompt_tokens_details"]["cached_tokens"]
        return answer["choices"][0]["text"], len(prompt) - cached

    def check_turns(self, case):
        chance, prompt, texts = random.Random(1), [], []
        with tempfile.TemporaryDirectory() as folder:
            model, home = os.path.join(folder, case), os.path.join(folder, "home")
            write_text_checkpoint(case, model)
            for turns in (range(1, RESTART), range(RESTART, TURNS + 1)):
                with Node(*FLAGS, model=model, env={"LOCKSTEP_HOME": home}) as node:
                    for turn in turns:
                        new = [chance.randrange(3, 500) for _ in range(chance.randrange(60, 110))]
                        prompt += new
                        text, computed = self.answer(node, case, prompt)
                        texts.append(text)
                        self.assertGreaterEqual(computed, len(new))
                        self.assertLess(computed, len(new) + PAGE, f"turn {turn}")
            with Node("--ranks", "1", "--context", "1024", model=model) as node:
                text, computed = self.answer(node, case, prompt)
                self.assertEqual((text, computed), (texts[-1], len(prompt)))

    def test_each_kind_of_state(self):
        for kind, case in KINDS.items():
            with self.subTest(kind):
                self.check_turns(case)


if __name__ == "__main__":
    main()
