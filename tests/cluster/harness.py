"""Shared by the tests of the whole program: the program, real models, and a served node that always ends."""

import http.client
import json
import os
import re
import select
import shutil
import signal
import struct
import subprocess
import tempfile
import time
import unittest

SOURCE = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
PROGRAM = os.environ.get("LOCKSTEP_PROGRAM", os.path.join(SOURCE, "build/release/lockstep"))
STORIES = os.path.join(SOURCE, "models/stories260K")
GOLDEN = os.path.join(SOURCE, "tests/data/golden")
# Those that the program was built with; empty: none.
SANITIZERS = os.environ.get("LOCKSTEP_SANITIZE", "")
# A sanitized program on a busy machine is several times slower; figures measured against the 2 s are not
# affected.
PATIENCE_S = 60


def run(*arguments, stdin="", env=None):
    """The finished process of `lockstep ARGUMENTS`. `run` takes own workers unless it names a node: a test must not meet the
    node of its user."""
    arguments = list(map(str, arguments))
    if arguments[:1] == ["run"] and not {"--host", "--port", "--local", "--help"} & set(arguments):
        arguments.append("--local")
    return subprocess.run([PROGRAM, *arguments], input=stdin, capture_output=True, text=True,
                          timeout=PATIENCE_S, env={**os.environ, **(env or {})}, check=False)


def run_json(*arguments, **options):
    process = run(*arguments, **options)
    if process.returncode != 0:
        raise AssertionError(f"{arguments}: {process.stderr}")
    return json.loads(process.stdout)


def copy_with_nan(model, folder, tensor):
    """A copy of a model's folder with a NaN in the float tensor of its model.safetensors."""
    shutil.copytree(model, folder)
    with open(os.path.join(folder, "model.safetensors"), "r+b") as file:
        size = struct.unpack("<Q", file.read(8))[0]
        entry = json.loads(file.read(size))[tensor]
        nan = {"F32": b"\x00\x00\xc0\x7f", "BF16": b"\xc0\x7f", "F16": b"\x00\x7e"}[entry["dtype"]]
        file.seek(8 + size + entry["data_offsets"][0])
        file.write(nan)


def children(pid):
    """The processes that the threads of a process have started, the oldest first. Linux."""
    found = []
    for thread in os.listdir(f"/proc/{pid}/task"):
        try:
            with open(f"/proc/{pid}/task/{thread}/children", encoding="utf-8") as file:
                found += [int(child) for child in file.read().split()]
        except FileNotFoundError:  # the thread and its children have ended meanwhile
            pass
    return sorted(found)


class Node:
    """`lockstep serve` on its own port. Use as a context manager: it is always ended, by its pid. Without a model it is a
    cluster of its own, which can load some."""

    def __init__(self, *arguments, model=STORIES, env=None):
        # Results of one test must not be visible to another one.
        if "--cache-disk" not in arguments:
            arguments += ("--cache-disk", "0")
        self.said = tempfile.TemporaryFile("w+")  # an unread pipe would fill up at some point
        # In no other cluster, with its own keys: a test must not meet its user's nodes, nor become one.
        self.home = tempfile.TemporaryDirectory(prefix="lockstep_node_")
        self.own_env = {"LOCKSTEP_HOME": os.path.join(self.home.name, "home")}
        what = [model, "--alone"] if model else ["--control-port", "0", "--no-beacon"]
        self.process = subprocess.Popen([PROGRAM, "serve", *what, "--port", "0", *arguments],
                                        stdout=subprocess.PIPE, stderr=self.said, text=True,
                                        env={**os.environ, **self.own_env, **(env or {})})
        self.port = None
        for line in self.process.stdout:
            found = re.search(r"http://localhost:(\d+)/", line)
            if found:
                self.port = int(found.group(1))
                break
        if self.port is None:
            self.process.wait(PATIENCE_S)
            self.said.seek(0)
            raise AssertionError(self.said.read())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(PATIENCE_S)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.process.stdout.close()
        self.said.close()
        self.home.cleanup()

    def connect(self):
        return http.client.HTTPConnection("localhost", self.port, timeout=PATIENCE_S)

    def request(self, method, path, body=None):
        """(status, parsed JSON or text)."""
        connection = self.connect()
        data = json.dumps(body) if isinstance(body, (dict, list)) else body
        connection.request(method, path, data)
        response = connection.getresponse()
        text = response.read().decode()
        connection.close()
        try:
            return response.status, json.loads(text)
        except json.JSONDecodeError:
            return response.status, text

    def stream(self, body):
        """An open streamed completion: (connection, response)."""
        connection = self.connect()
        connection.request("POST", "/v1/completions", json.dumps({"model": "stories260K", "stream": True, **body}))
        return connection, connection.getresponse()

    def status(self):
        return self.request("GET", "/cluster/status")[1]["models"][0]

    def worker_pids(self):
        return [rank["pid"] for rank in self.status()["ranks"]]

    def complete(self, prompt="Once upon a time", **options):
        body = {"model": "stories260K", "prompt": prompt, "temperature": 0, "max_tokens": 20, **options}
        return self.request("POST", "/v1/completions", body)


def metric_sum(text, name):
    """The sum of a metric over all models, from the text of /metrics; 0: it has no value."""
    return sum(int(line.split()[-1]) for line in text.splitlines() if line.startswith(name + "{"))


def events(response):
    """The data of each server-sent event, parsed; "[DONE]" unchanged."""
    for line in response:
        text = line.decode().strip()
        if text.startswith("data: "):
            data = text[len("data: "):]
            yield data if data == "[DONE]" else json.loads(data)


def wait_until(condition, seconds, what):
    """Polls `condition` until it holds; fails after `seconds`."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"{what} did not happen within {seconds} s")
        select.select([], [], [], 0.005)  # leaves the processors to the awaited processes


def main():
    unittest.main(verbosity=2)
