"""`lockstep run` and `lockstep top` at a running node, in pipes and in a pseudo terminal."""

import fcntl
import json
import os
import pty
import re
import select
import signal
import stat
import struct
import subprocess
import tempfile
import termios
import time
import unittest

import harness
from random_checkpoint import write_checkpoint
from serve_test import copy_stories

STORY = "Once upon a time"


class Terminal:
    """A program in a pseudo terminal of 24 rows and 80 columns."""

    def __init__(self, *arguments, env=None):
        self.leader, follower = pty.openpty()
        fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        self.before = termios.tcgetattr(follower)
        self.follower = follower
        self.home = tempfile.TemporaryDirectory(prefix="lockstep_terminal_")
        own = {"LOCKSTEP_HOME": os.path.join(self.home.name, "home"), "TERM": "xterm-256color", "LC_ALL": "C.UTF-8"}
        self.process = subprocess.Popen(
            [harness.PROGRAM, *map(str, arguments)], stdin=follower, stdout=follower, stderr=follower,
            env={**os.environ, **own, **(env or {})}, start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        self.seen = ""  # since the last match

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self.leader)
        os.close(self.follower)
        self.home.cleanup()

    def type(self, text):
        os.write(self.leader, text.encode())

    def read(self, seconds=0.2):
        ready, _, _ = select.select([self.leader], [], [], seconds)
        if ready:
            self.seen += os.read(self.leader, 65536).decode(errors="replace")
        return bool(ready)

    def wait_for(self, pattern, seconds=harness.PATIENCE_S):
        """The text up to the end of the first match, which is then forgotten."""
        deadline = time.monotonic() + seconds
        while True:
            found = re.search(pattern, self.seen)
            if found:
                text, self.seen = self.seen[:found.end()], self.seen[found.end():]
                return text
            if time.monotonic() > deadline:
                raise AssertionError(f"{pattern!r} did not appear in {self.seen!r}")
            self.read()

    def end(self):
        """The exit status, once the program has ended."""
        deadline = time.monotonic() + harness.PATIENCE_S
        while self.process.poll() is None and time.monotonic() < deadline:
            self.read()
        while self.read(0):
            pass
        return self.process.poll()


def at(node):
    return ["--port", node.port]


class RunAtANode(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.node = harness.Node("--ranks", "2").__enter__()
        cls.home = tempfile.TemporaryDirectory(prefix="lockstep_run_")
        cls.env = {"LOCKSTEP_HOME": os.path.join(cls.home.name, "home")}

    @classmethod
    def tearDownClass(cls):
        cls.node.__exit__(None, None, None)
        cls.home.cleanup()

    def test_the_text_is_that_of_own_workers(self):
        for raw in ([], ["--raw"]):
            arguments = ["run", harness.STORIES, STORY, "--temperature", 0, "-n", 40, "--json", *raw]
            own = harness.run_json(*arguments)
            told = harness.run_json(*arguments, *at(self.node))
            for field in ("text", "prompt_tokens", "completion_tokens", "finish_reason"):
                self.assertEqual(told[field], own[field], field)
            self.assertIn("tokens", own)
            self.assertEqual(told["node"], f"http://localhost:{self.node.port}")
            printed = harness.run(*arguments[:-1 - len(raw)], *raw, *at(self.node))
            self.assertEqual(printed.stdout, own["text"] + "\n")
            self.assertEqual(printed.stderr, "")

    def test_without_a_model_it_is_the_one_of_the_node(self):
        told = harness.run("run", *at(self.node), "--temperature", 0, "-n", 5, "--json", stdin=STORY)
        self.assertEqual(told.returncode, 0, told.stderr)
        self.assertEqual(json.loads(told.stdout)["completion_tokens"], 5)

    def test_stdin_files_and_prompt_are_one_message(self):
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
            file.write("Lily\n")
            file.flush()
            told = harness.run_json("run", "stories260K", "went home", "-f", file.name, "-n", 1, "--json", *at(self.node),
                                    stdin="and Tom")
        name = os.path.basename(file.name)
        whole = harness.run_json("run", "stories260K", f"{name}\n```\nLily\n```\n\nand Tom\n\nwent home", "-n", 1, "--json",
                                 *at(self.node))
        self.assertEqual(told["prompt_tokens"], whole["prompt_tokens"])

    def test_a_conversation_goes_on(self):
        first = harness.run("run", "stories260K", STORY, "-n", 8, "--temperature", 0, "-c", *at(self.node), env=self.env)
        self.assertEqual(first.returncode, 2)
        self.assertIn("no conversation", first.stderr)
        with Terminal("run", "stories260K", STORY, "-n", 8, "--temperature", 0, *at(self.node), env=self.env) as terminal:
            self.assertEqual(terminal.end(), 0)
        path = os.path.join(self.env["LOCKSTEP_HOME"], "run-conversation.json")
        self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o600)
        kept = harness.run_json("run", "stories260K", "Then", "-n", 1, "-c", "--json", *at(self.node), env=self.env)
        alone = harness.run_json("run", "stories260K", "Then", "-n", 1, "--json", *at(self.node), env=self.env)
        self.assertGreater(kept["prompt_tokens"], alone["prompt_tokens"] + 8)

    def test_a_schema_that_cannot_hold_is_refused(self):
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump({"type": "object", "properties": {"a": {"enum": ["x", "y"]}}, "required": ["a"],
                       "additionalProperties": False}, file)
            file.flush()
            told = harness.run("run", "stories260K", "Hi", "--schema", file.name, "-n", 60, *at(self.node))
            self.assertEqual((told.returncode, told.stdout), (2, ""))
            self.assertIn("stories260K has no chat template", told.stderr)

    def test_an_answer_of_a_chat_matches_its_schema(self):
        schema = {"type": "object", "properties": {"a": {"enum": ["x", "y"]}}, "required": ["a"], "additionalProperties": False}
        with tempfile.TemporaryDirectory() as folder:
            model = copy_stories(folder, tokenizer_config={"chat_template": "{% for m in messages %}{{ m.content }}{% endfor %}"})
            path = os.path.join(folder, "schema.json")
            with open(path, "w", encoding="utf-8") as file:
                json.dump(schema, file)
            with harness.Node(model=model) as node:
                for seed in range(1, 4):
                    told = harness.run_json("run", "stories260K", STORY, "--schema", path, "-n", 60, "--seed", seed, "--json",
                                            *at(node))
                    self.assertIn(json.loads(told["text"]), ({"a": "x"}, {"a": "y"}))
                    self.assertEqual(told["finish_reason"], "stop")

    def test_flags_and_files_are_read_before_a_model_is_loaded(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "schema.json")
            with open(path, "w", encoding="utf-8") as file:
                json.dump({"type": "object"}, file)
            texts = os.path.join(folder, "list.json")
            with open(texts, "w", encoding="utf-8") as file:
                json.dump(["object"], file)
            nothing = os.path.join(folder, "nothing")
            for arguments, said in ((("--schema", path), "needs a node"), (("--schema", path, "--raw"), "leave out --raw"),
                                    (("--schema", texts), "is not a JSON schema"), (("--schema", nothing), nothing),
                                    (("-f", nothing), nothing), (("-c",), "no conversation")):
                refused = harness.run("run", "/nonexistent/model", "Hi", "--local", *arguments,
                                      env={"LOCKSTEP_HOME": os.path.join(folder, "home")})
                self.assertEqual((refused.returncode, refused.stdout), (2, ""), arguments)
                self.assertIn(said, refused.stderr)

    def test_what_cannot_be_is_one_sentence(self):
        other = harness.run("run", "other", "Hi", *at(self.node))
        self.assertNotEqual(other.returncode, 0)
        self.assertIn("serves only stories260K", other.stderr)
        nobody = harness.run("run", "stories260K", "Hi", "--port", 1)
        self.assertEqual(nobody.returncode, 1)
        self.assertIn("no node answers", nobody.stderr)
        self.assertEqual(len(nobody.stderr.splitlines()), 1)

    def test_top_prints_once(self):
        text = harness.run("top", "--once", *at(self.node))
        self.assertEqual(text.returncode, 0, text.stderr)
        for part in ("1 machine", "stories260K", "ready", "shm"):
            self.assertIn(part, text.stdout)
        said = harness.run_json("top", "--once", "--json", *at(self.node))
        self.assertEqual(said["status"]["models"][0]["name"], "stories260K")
        self.assertEqual(said["requests"], [])
        self.assertIn("nodes", said["meters"])


class InATerminal(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.node = harness.Node("--ranks", "2", "--link-delay-us", "2000").__enter__()

    @classmethod
    def tearDownClass(cls):
        cls.node.__exit__(None, None, None)

    def chat(self, *arguments, env=None):
        return Terminal("run", "stories260K", "--temperature", 0, *arguments, *at(self.node), env=env)

    def test_a_first_session(self):
        with self.chat("-n", 12) as terminal:
            terminal.wait_for(r"stories260K 0/512 > ")
            terminal.type(STORY + "\r")
            text = terminal.wait_for(r"\d+ reused \+ \d+ new")
            self.assertIn("12 tokens", text)
            self.assertIn("tok/s", text)
            terminal.wait_for(r"stories260K 1\d/512 > ")
            terminal.type("/mod\t")
            terminal.wait_for(r"/mod(\r\x1b\[\d+G)?el ")  # the editor may place the cursor before it draws the rest
            terminal.type("\x03")
            terminal.wait_for(r"> ")
            terminal.type("/frobnicate\r")
            terminal.wait_for("there is no command /frobnicate")
            terminal.type("/undo\r")
            terminal.wait_for("Forgotten; 0 messages left")
            terminal.wait_for(r"> $")
            terminal.type("\x03")
            terminal.wait_for(r"> $")
            terminal.type("\x03")
            terminal.wait_for("Ctrl-D or /quit leaves")
            terminal.wait_for(r"> $")
            terminal.type("\x04")
            self.assertEqual(terminal.end(), 0)
            history = os.path.join(terminal.home.name, "home", "run-history")
            self.assertEqual(stat.S_IMODE(os.stat(history).st_mode), 0o600)
            with open(history, encoding="utf-8") as file:
                self.assertEqual([json.loads(line) for line in file], [STORY, "/frobnicate", "/undo"])
            self.assertEqual(termios.tcgetattr(terminal.follower)[3], terminal.before[3])

    def test_a_paste_is_one_message(self):
        with self.chat("-n", 2, "--no-history") as terminal:
            terminal.wait_for(r"0/512 > ")
            terminal.type("\x1b[200~one\rtwo\x1b[201~\r")
            terminal.wait_for(r"reused \+ \d+ new")
            terminal.wait_for(r"> $")
            terminal.type("/stats\r")
            terminal.wait_for("since the start: 1 answer,")
            terminal.wait_for(r"> $")
            terminal.type("\x04")
            self.assertEqual(terminal.end(), 0)
            self.assertFalse(os.path.exists(os.path.join(terminal.home.name, "home", "run-history")))

    def test_ctrl_c_stops_the_answer_and_its_request(self):
        with self.chat() as terminal:
            terminal.wait_for(r"0/512 > ")
            terminal.type(STORY + "\r")
            terminal.wait_for(re.escape(STORY) + r"[^>]*\n[^>]*[a-z]{2} [a-z]")  # the question, and the answer's first words
            terminal.type("\x03")
            terminal.wait_for("stopped")
            harness.wait_until(lambda: self.node.request("GET", "/cluster/requests")[1]["requests"] == [],
                               harness.PATIENCE_S, "the end of the request")
            terminal.wait_for(r" [1-9]\d*/512 > $")
            terminal.type("\x04")
            self.assertEqual(terminal.end(), 0)

    def test_a_signal_at_the_prompt_is_ctrl_c(self):
        with self.chat() as terminal:
            terminal.wait_for(r"0/512 > $")
            for _ in range(2):
                os.kill(terminal.process.pid, signal.SIGINT)
                terminal.wait_for(r"\^C[^>]*> $")
            terminal.type("\x04")
            self.assertEqual(terminal.end(), 0)

    def test_a_lost_worker_changes_no_text(self):
        arguments = ["run", "stories260K", STORY, "--temperature", 0, "-n", 150, *at(self.node)]
        whole = harness.run_json(*arguments, "--json")["text"]
        with Terminal(*arguments) as terminal:
            text = terminal.wait_for("[a-z]{2} [a-z]{2}")
            killed = self.node.worker_pids()[1]
            os.kill(killed, signal.SIGKILL)
            self.assertIsNone(terminal.process.poll(), "the answer had ended before its worker was killed")
            self.assertEqual(terminal.end(), 0)
            text += terminal.seen
        self.assertNotIn(killed, self.node.worker_pids())
        said = re.sub("\x1b\\[2m.*?\x1b\\[0m|\x1b\\[K", "", text)  # what is dim is not of the answer
        self.assertEqual("".join(said.split()), "".join(whole.split()))

    def test_accessible_terminals_are_never_repainted(self):
        with self.chat("-n", 4, env={"ACCESSIBLE": "1"}) as terminal:
            terminal.wait_for(r"0/512 > ")
            terminal.type(STORY + "\r")
            text = terminal.wait_for(r"reused \+ \d+ new")
            self.assertNotIn("\x1b[K", text)
            self.assertNotIn("\x1b[?2004h", text)
            terminal.wait_for(r"> $")
            terminal.type("\x04")
            self.assertEqual(terminal.end(), 0)
        with Terminal("top", *at(self.node), env={"ACCESSIBLE": "1"}) as terminal:
            text = terminal.wait_for("links")
            self.assertNotIn("\x1b[", text)
            terminal.type("\x03")
            self.assertEqual(terminal.end(), 0)

    def test_a_refusal_repaints_nothing_either(self):
        for env in ({"ACCESSIBLE": "1"}, {"TERM": "dumb"}):
            with Terminal("show", "no/such-folder/here", env=env) as terminal:
                self.assertEqual(terminal.end(), 2)
                self.assertIn("lockstep: ", terminal.seen)
                self.assertNotIn("\x1b", terminal.seen)

    def test_top_leaves_the_screen_as_it_was(self):
        for end in (lambda terminal: terminal.type("q"), lambda terminal: terminal.process.send_signal(signal.SIGTERM)):
            with Terminal("top", *at(self.node)) as terminal:
                terminal.wait_for(r"\x1b\[\?1049h")
                terminal.wait_for("5 events")
                terminal.type("2\r")
                terminal.wait_for("name: stories260K")
                terminal.type("\x1b")
                terminal.wait_for("1 machines")
                terminal.type("2u")
                terminal.wait_for(r"Unload stories260K\?")
                terminal.type("n?")
                terminal.wait_for("all about it")
                end(terminal)
                self.assertEqual(terminal.end(), 0)
                self.assertIn("\x1b[?1049l", terminal.seen)
                self.assertEqual(termios.tcgetattr(terminal.follower)[3], terminal.before[3])


class ASlowLoad(unittest.TestCase):
    """A model whose worker is let read only now and then."""

    @classmethod
    def setUpClass(cls):
        cls.folder = cls.enterClassContext(tempfile.TemporaryDirectory(prefix="lockstep_load_"))
        cls.model = os.path.join(cls.folder, "big")
        write_checkpoint(cls.model, 8, is_hollow=True)

    def worker_of(self, pid):
        """The worker process that the program has started, as soon as it is one."""
        def is_worker(child):
            try:
                with open(f"/proc/{child}/cmdline", "rb") as file:
                    return b"worker" in file.read().split(b"\0")
            except FileNotFoundError:
                return False
        harness.wait_until(lambda: any(map(is_worker, harness.children(pid))), harness.PATIENCE_S, "a worker starts")
        return next(filter(is_worker, harness.children(pid)))

    def check(self, terminal, pid):
        """The line moves with the bytes; when they do not come, the rate falls to 0."""
        worker = self.worker_of(pid)
        deadline = time.monotonic() + harness.PATIENCE_S
        moving = r"big.*?: [\d.]+ [KMG]B of [\d.]+ MB, [\d.]+ [KMG]B/s, [\d:]+ left"
        while not re.search(moving, terminal.seen):
            self.assertLess(time.monotonic(), deadline, terminal.seen)
            os.kill(worker, signal.SIGCONT)
            terminal.read(0.02)
            os.kill(worker, signal.SIGSTOP)
            terminal.read(0.6)
        terminal.wait_for(moving)
        terminal.wait_for(r"big.*?: [\d.]+ [KMG]B of [\d.]+ MB, 0\.00 KB/s\x1b")
        os.kill(worker, signal.SIGCONT)

    def test_of_own_workers(self):
        with Terminal("run", self.model, "Hi", "--local", "-n", 1) as terminal:
            self.check(terminal, terminal.process.pid)
            self.assertEqual(terminal.end(), 0)

    def test_of_a_node(self):
        for command in (["run", self.model, "Hi", "-n", 1], ["load", self.model]):
            with harness.Node("--memory", "2", model=None) as node:
                with Terminal(*command, *at(node), env=node.own_env) as terminal:
                    self.check(terminal, node.process.pid)
                    self.assertEqual(terminal.end(), 0)


if __name__ == "__main__":
    harness.main()
