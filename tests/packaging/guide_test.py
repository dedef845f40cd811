#!/usr/bin/env python3
"""docs/getting-started.md is followed from top to bottom, on one machine with two nodes; docs/roce.md as far as a machine without
RDMA can; docs/planner.md has one example.

The words after the opening ``` of a block say what is done with it:
  sh            its commands are run and succeed
  sh stays      its last command is a node, which runs until the end of the page
  sh elsewhere  not run: other machines, hubs, people at keyboards, adapters; its grammar is checked
  text          what the block before printed, byte for byte
  text like     the same without regard to numbers, units and the order of lines and words; a line "..." stands for any others
  doctor, said  sentences of the program (readme_test.py)

The machine is called anna there, and its ports are 8600, 8601, 8610 and 8611; free ones take their place.

  LOCKSTEP_PROGRAM=... guide_test.py
"""

import json
import os
import pty
import re
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

from readme_test import PROGRAM, SOURCE, marked_blocks

MARKS = {"", "sh", "sh stays", "sh elsewhere", "text", "text like", "doctor", "said"}
PORTS = ("8600", "8601", "8610", "8611")
DEADLINE_S = 60
STARTED = "Serving at "

# Takes the place of the program: its first node is called anna and has other ports than usual; none looks for nodes of the network.
WRAPPER = """#!/bin/bash
case "$1" in
  serve) set -- "$@" --no-beacon; [[ "$*" == *--port* ]] || set -- "$@" --name anna --port "$PORT_8600" --control-port "$PORT_8601" ;;
  status | ps | top | logs | load | unload | page | doctor) set -- "$@" --port "$PORT_8600" ;;
  cluster) [ "$2" != token ] || set -- "$@" --port "$PORT_8600" ;;
  run) [[ "$*" == *--ranks* ]] || set -- "$@" --port "$PORT_8600" ;;
esac
exec "$LOCKSTEP_PROGRAM" "$@"
"""


def free_ports(count):
    held = [socket.socket() for _ in range(count)]
    for one in held:
        one.bind(("127.0.0.1", 0))
    ports = [str(one.getsockname()[1]) for one in held]
    for one in held:
        one.close()
    return ports


def likeness(text, host):
    """The lines in any order, each as its words in any order, without numbers and units."""
    text = re.sub(rf"\b{re.escape(host)}\b", "anna", text)
    text = re.sub(r"(?<=\w):\d{4,5}\b", "", text)  # the usual port is left out, another one is not
    text = re.sub(r"\b[0-9a-f]{8,}\b", "0", text)
    text = re.sub(r"\d[\d.,]*( ?[KMG]?B\b| (us|ms|s)\b)?", "0", text)
    return sorted(" ".join(sorted(line.split())) for line in text.splitlines() if line.strip())


class Walk:
    """One page, followed in a folder of its own."""

    def __init__(self, folder):
        self.folder = folder
        self.nodes = []
        self.ports = dict(zip(PORTS, free_ports(len(PORTS))))
        wrapper = os.path.join(folder, "lockstep")
        with open(wrapper, "w", encoding="utf-8") as file:
            file.write(WRAPPER)
        os.chmod(wrapper, 0o755)
        os.symlink(SOURCE / "models", os.path.join(folder, "models"))
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("LOCKSTEP_")},
            **{f"PORT_{usual}": port for usual, port in self.ports.items()},
            "PATH": f"{folder}:{os.environ['PATH']}", "HOME": folder, "HF_HOME": f"{folder}/hub", "HF_HUB_OFFLINE": "1",
            "LOCKSTEP_PROGRAM": os.path.abspath(PROGRAM), "TERM": "dumb"}

    def with_ports(self, text):
        for usual, port in self.ports.items():
            text = re.sub(rf"(?<!PORT_)\b{usual}\b", port, text)
        return text

    def run(self, lines):
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", self.with_ports(lines)], cwd=self.folder, env=self.environment,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=DEADLINE_S, check=False)
        assert done.returncode == 0, f"{lines}\n{done.stdout}{done.stderr}"
        return done.stdout

    def start(self, lines):
        """The lines that the node printed on a terminal until it served."""
        ours, its = pty.openpty()
        node = subprocess.Popen(["bash", "-euo", "pipefail", "-c", self.with_ports(lines)], cwd=self.folder, env=self.environment,
                                stdin=subprocess.DEVNULL, stdout=its, stderr=subprocess.PIPE, start_new_session=True)
        os.close(its)
        self.nodes.append((node, ours))
        said = b""
        end = time.monotonic() + DEADLINE_S
        while STARTED.encode() not in said or not said.endswith(b"\n"):
            readable, _, _ = select.select([ours], [], [], max(0, end - time.monotonic()))
            assert readable, f"{lines}\n{said.decode()}"
            try:
                said += os.read(ours, 4096)
            except OSError:  # a terminal whose program has ended
                raise AssertionError(f"{lines}\n{said.decode()}{node.stderr.read().decode()}") from None
        self.await_nodes(end)
        return said.decode().replace("\r\n", "\n")

    def await_nodes(self, end):
        """Until the first node sees all of them."""
        alive = 0
        while alive < len(self.nodes):
            assert time.monotonic() < end, f"{alive} of {len(self.nodes)} nodes are alive"
            status = json.loads(self.run("lockstep status --json"))
            alive = sum(node["state"] == "alive" for node in status["nodes"])

    def stop(self):
        for node, ours in reversed(self.nodes):
            try:
                os.killpg(node.pid, signal.SIGTERM)
            except ProcessLookupError:
                pass
            try:
                node.communicate(timeout=DEADLINE_S)
            finally:
                os.close(ours)


class Guides(unittest.TestCase):
    def follow(self, page):
        """How many blocks were run and how many outputs compared."""
        found = marked_blocks((SOURCE / "docs" / page).read_text(encoding="utf-8"))
        self.assertLessEqual({mark for mark, _ in found}, MARKS)
        ran = compared = 0
        with tempfile.TemporaryDirectory() as folder:
            walk = Walk(folder)
            self.addCleanup(walk.stop)
            said = ""
            for mark, lines in found:
                if mark == "sh elsewhere":
                    checked = subprocess.run(["bash", "-n", "-c", lines], capture_output=True, text=True, check=False)
                    self.assertEqual((checked.returncode, checked.stderr), (0, ""), lines)
                elif mark in ("sh", "sh stays"):
                    said = walk.run(lines) if mark == "sh" else walk.start(lines)
                    ran += 1
                elif mark == "text":
                    self.assertEqual(said.strip("\n"), lines.strip("\n"))
                    compared += 1
                elif mark == "text like":
                    self.compare(said, lines)
                    compared += 1
            walk.stop()
            walk.nodes.clear()
        return ran, compared

    def compare(self, said, expected):
        host = socket.gethostname()
        got, wanted = likeness(said, host), likeness(expected, host)
        if "..." in wanted:
            wanted.remove("...")
            self.assertLessEqual(set(wanted), set(got), f"{said}\nis not like\n{expected}")
        else:
            self.assertEqual(got, wanted, f"{said}\nis not like\n{expected}")

    def test_getting_started(self):
        ran, compared = self.follow("getting-started.md")
        self.assertGreaterEqual((ran, compared), (8, 8))

    def test_planner(self):
        ran, compared = self.follow("planner.md")
        self.assertGreaterEqual((ran, compared), (1, 1))

    def test_roce(self):
        ran, compared = self.follow("roce.md")
        self.assertGreaterEqual((ran, compared), (3, 2))


if __name__ == "__main__":
    sys.exit(not unittest.main(exit=False, verbosity=1).result.wasSuccessful())
