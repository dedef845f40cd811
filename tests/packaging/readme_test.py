#!/usr/bin/env python3
"""The commands of README.md and docs/: each `make` target, subcommand and flag in a code block exists, links lead
somewhere, and README's commands that need no network are run, with the small model that comes with the project in the
place of a downloaded one.

  LOCKSTEP_PROGRAM=... readme_test.py
"""

import os
import re
import shlex
import subprocess
import sys
import unittest
import urllib.request
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
PROGRAM = os.environ["LOCKSTEP_PROGRAM"]
MODEL = SOURCE / "models/stories260K"
README = (SOURCE / "README.md").read_text(encoding="utf-8")
PAGES = [SOURCE / "README.md", SOURCE / "CONTRIBUTING.md", SOURCE / "ARCHITECTURE.md", *sorted((SOURCE / "docs").rglob("*.md"))]
DEADLINE_S = 60
ELSEWHERE = "~/models/Llama-3.2-1B-Instruct"  # the model of README's examples


def blocks(text):
    return re.findall(r"^```\w*\n(.*?)^```$", text, re.M | re.S)


def commands(text):
    """The command lines of the code blocks, without comments; continued lines are joined."""
    for block in blocks(text):
        for line in block.replace("\\\n", " ").split("\n"):
            try:
                words = shlex.split(line, comments=True)
            except ValueError:  # a quote that ends on a later line
                continue
            while words:
                end = next((i for i, word in enumerate(words) if word in ("&&", ";", "|", "&")), len(words))
                if words[:end]:
                    yield words[:end]
                words = words[end + 1 :]


def lockstep_commands(text):
    """The arguments of each command that runs the program, also in a sentence, after sudo or VARIABLE=value."""
    quoted = re.findall(r"`((?:build/release/)?lockstep [^`]+)`", re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S))
    for words in [*commands(text), *(line.split() for line in quoted)]:
        while words and (words[0] in ("sudo", "$") or re.fullmatch(r"[A-Z_]+=.*", words[0])):
            words = words[1:]
        if words and Path(words[0]).name == "lockstep" and len(words) > 1:
            yield words[1:]


def run(arguments, **options):
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=DEADLINE_S,
                          stdin=subprocess.DEVNULL, **options)


class Names(unittest.TestCase):
    def test_make_targets_exist(self):
        targets = set(re.findall(r"^([a-z0-9-]+):.*##", (SOURCE / "Makefile").read_text(), re.M))
        found = 0
        for page in PAGES:
            text = page.read_text(encoding="utf-8")
            named = re.findall(r"`make ([a-z0-9-]+)`", text) + [w[1] for w in commands(text) if w[0] == "make" and len(w) > 1]
            for target in named:
                found += 1
                self.assertIn(target, targets, f"{page.name}: make {target}")
        self.assertGreater(found, 10)

    def test_subcommands_and_flags_exist(self):
        helps = {}
        found = 0
        for page in PAGES:
            for words in lockstep_commands(page.read_text(encoding="utf-8")):
                chain = []
                for word in words:  # bench serve, cluster restart
                    if not re.fullmatch(r"[a-z]+(-[a-z]+)*", word) or len(chain) == 2:
                        break
                    if chain and run([*chain, word, "--help"]).stdout == run([*chain, "--help"]).stdout:
                        break
                    chain.append(word)
                key = tuple(chain)
                if key not in helps:
                    shown = run([*chain, "--help"])
                    self.assertEqual(shown.returncode, 0, f"{page.name}: lockstep {' '.join(words)}")
                    helps[key] = shown.stdout
                for flag in (word.split("=")[0] for word in words if re.match("--[a-z]", word)):
                    found += 1
                    self.assertTrue(re.search(rf"(?<![\w-]){re.escape(flag)}(?![\w-])", helps[key]),
                                    f"{page.name}: {flag} of lockstep {' '.join(words)}")
        self.assertGreater(found, 15)

    def test_links_lead_somewhere(self):
        for page in PAGES:
            for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
                self.assertTrue((page.parent / target).exists(), f"{page.name}: {target}")


class Runs(unittest.TestCase):
    def test_what_make_run_prints_is_what_the_program_says(self):
        said = run(["run", str(MODEL), "Once upon a time", "--ranks", "2", "--temperature", "0", "--max-tokens", "200"])
        self.assertEqual(said.returncode, 0, said.stderr)
        self.assertIn(said.stdout.strip(), README)

    def test_the_run_commands(self):
        found = 0
        for words in lockstep_commands(README):
            if words[0] == "run" and ELSEWHERE in words:
                found += 1
                said = run([str(MODEL) if word == ELSEWHERE else word for word in words] + ["--max-tokens", "8"])
                self.assertEqual((said.returncode, bool(said.stdout.strip())), (0, True), said.stderr)
        self.assertGreater(found, 0)

    def test_serve_and_curl(self):
        serve = next(words for words in lockstep_commands(README) if words[0] == "serve" and ELSEWHERE in words)
        serve = [str(MODEL) if word == ELSEWHERE else word for word in serve] + ["--port", "0"]
        path, body = re.search(r"^curl http://localhost:8600(\S+) -d '(.*?)'$", README, re.M | re.S).groups()
        node = subprocess.Popen([PROGRAM, *serve], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                stdin=subprocess.DEVNULL)
        try:
            address = next(m[1] for line in node.stdout if (m := re.search(r"(http://localhost:\d+)/", line)))
            body = body.replace(Path(ELSEWHERE).name, MODEL.name)
            request = urllib.request.Request(address + path, body.encode(), {"Content-Type": "application/json"})
            with urllib.request.urlopen(request, timeout=DEADLINE_S) as answer:
                stream = answer.read().decode()
            self.assertTrue(stream.startswith("data: {"), stream[:200])
            self.assertTrue(stream.endswith("data: [DONE]\n\n"), stream[-200:])
        finally:
            node.terminate()
            node.wait(DEADLINE_S)
            node.stdout.close()


if __name__ == "__main__":
    sys.exit(not unittest.main(exit=False, verbosity=1).result.wasSuccessful())
