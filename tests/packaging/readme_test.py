#!/usr/bin/env python3
"""The commands of README.md and docs/: each `make` target, subcommand and flag in a code block exists, links lead
somewhere, and README's commands that need no network are run, with the small model that comes with the project in the
place of a downloaded one.

In docs/macs.md a block ```sh is run, and a block ```text right after it is its output; ```sh mac-not-run is for Macs and
not run. In all pages each line of a block ```doctor is a sentence that stands in src/doctor, each of ```said one in src.
guide_test.py follows other pages.

  LOCKSTEP_PROGRAM=... readme_test.py
"""

import os
import re
import shlex
import subprocess
import sys
import tempfile
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


def marked_blocks(text):
    """(what stands after the opening ```, the lines) of each block."""
    return re.findall(r"^ *```([^\n`]*)\n(.*?)^ *```$", text, re.M | re.S)


def blocks(text):
    return [lines for _, lines in marked_blocks(text)]


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
    quoted = re.findall(r"`((?:build/release/)?lockstep [^`]+)`", re.sub(r"^ *```.*?^ *```$", "", text, flags=re.M | re.S))
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


class Macs(unittest.TestCase):
    PAGE = (SOURCE / "docs/macs.md").read_text(encoding="utf-8")

    def run_block(self, lines, folder):
        """In a copy-like folder: the project's make, and `lockstep` in the PATH."""
        if "make " in lines and not (SOURCE / ".git").exists():
            return None
        where = SOURCE if "make " in lines else folder
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", lines], cwd=where, capture_output=True, text=True, timeout=300,
                              stdin=subprocess.DEVNULL,
                              env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "LOCKSTEP_HOME": f"{folder}/home"})
        self.assertEqual(done.returncode, 0, f"{lines}\n{done.stdout}{done.stderr}")
        return done.stdout

    def test_blocks_without_the_mark_are_run_and_print_what_stands_there(self):
        found = marked_blocks(self.PAGE)
        self.assertEqual({mark for mark, _ in found}, {"", "sh", "sh mac-not-run", "text", "doctor"})
        ran = compared = 0
        with tempfile.TemporaryDirectory() as folder:
            os.symlink(PROGRAM, os.path.join(folder, "lockstep"))
            for (mark, lines), (next_mark, expected) in zip(found, [*found[1:], ("", "")]):
                if mark != "sh":
                    continue
                said = self.run_block(lines, folder)
                ran += said is not None
                if next_mark == "text":
                    compared += 1
                    self.assertEqual(said, expected, lines)
            self.assertIn("kernels.json", said)  # the last one lists a report
        self.assertGreaterEqual(ran, 5)
        self.assertEqual(compared, 3)

    def test_blocks_for_macs_are_commands_and_none_of_them_is_left_unmarked(self):
        only_there = re.compile(r"\b(sudo|networksetup|rdma_ctl|ibv_dev\w+|ifconfig|brew|xattr|xcrun|ditto|sysctl|launchctl)\b")
        count = 0
        for mark, lines in marked_blocks(self.PAGE):
            if mark == "sh":
                self.assertNotRegex(lines, only_there)
            elif mark == "sh mac-not-run":
                count += 1
                checked = subprocess.run(["bash", "-n", "-c", lines], capture_output=True, text=True)
                self.assertEqual((checked.returncode, checked.stderr), (0, ""), lines)
        self.assertGreater(count, 5)


class Sentences(unittest.TestCase):
    """Blocks ```doctor have sentences of the doctor, blocks ```said parts of what the program says elsewhere."""

    @staticmethod
    def literals(folder):
        """The strings in the sources, as patterns: what is put into them later can be anything."""
        for source in (SOURCE / folder).rglob("*.cc"):
            text = re.sub(r"(?<!:)//[^\n]*", "", source.read_text(encoding="utf-8"))
            for parts in re.findall(r'"(?:[^"\\\n]|\\.)*"(?:\s*"(?:[^"\\\n]|\\.)*")*', text):
                sentence = re.sub(r'"\s*"', "", parts)[1:-1].replace('\\"', '"')
                if len(sentence) > 8:
                    yield sentence, re.compile(".+?".join(map(re.escape, re.split(r"\{[^}]*\}", sentence))))

    @staticmethod
    def lines(mark):
        for page in PAGES:
            for found, lines in marked_blocks(page.read_text(encoding="utf-8")):
                yield from lines.splitlines() if found == mark else ()

    def test_sentences_of_the_doctor_stand_in_its_sources(self):
        known = {pattern for _, pattern in self.literals("src/doctor")}
        found = 0
        for line in self.lines("doctor"):
            found += 1
            severity, sentence = re.fullmatch(r"(ok     |note   |PROBLEM)  (.+)", line).groups()
            self.assertTrue(any(pattern.fullmatch(sentence) for pattern in known), f"src/doctor says nothing like: {sentence}")
        self.assertGreater(found, 10)
        self.assertFalse(any(pattern.fullmatch("RDMA over Thunderbolt is switched up") for pattern in known))

    def test_sentences_of_the_program_stand_in_its_sources(self):
        known = [(len(re.sub(r"\{[^}]*\}", "", text)), pattern) for text, pattern in self.literals("src")]
        found = 0
        for line in self.lines("said"):
            found += 1
            # The longest literal in it makes most of the line; names and numbers are put around it.
            longest = max((length for length, pattern in known if length >= 20 and pattern.search(line)), default=0)
            self.assertGreater(longest, len(line) / 2, f"src says nothing like: {line}")
        self.assertGreater(found, 3)
        self.assertFalse(any(pattern.search("no node answers at the door") for length, pattern in known if length >= 20))


if __name__ == "__main__":
    sys.exit(not unittest.main(exit=False, verbosity=1).result.wasSuccessful())
