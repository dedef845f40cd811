"""`lockstep serve` on emulated machines: each in its own network namespace with a cable to one bridge, to which this test
is attached. Needs root and `ip`; everything is made inside a namespace of this test and ends with it."""

import http.client
import json
import os
import secrets
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

from harness import PROGRAM, STORIES, Node, events, metric_sum

SKIPPED = 77
INSIDE = "LOCKSTEP_INSIDE_NAMESPACE"
PATIENCE_S = 60.0
HTTP_PORT = 8600
MODEL = STORIES
MODEL_NAME = os.path.basename(STORIES)


def enter_own_namespace():
    """Runs this script again where it may create networks; exit code 77 if that is not permitted."""
    if os.environ.get(INSIDE):
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
        return
    try:
        subprocess.run(["unshare", "--net", "ip", "link", "set", "lo", "up"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"skipped: no network namespaces here ({error})")
        sys.exit(SKIPPED)
    os.execvpe("unshare", ["unshare", "--net", sys.executable, "-B", *sys.argv], {**os.environ, INSIDE: "1"})


def ip(*arguments):
    subprocess.run(["ip", *arguments], check=True, capture_output=True)


def wait_for(condition, what, patience=PATIENCE_S):
    """Polls until `condition` returns something, and returns that. `what` may be a function that describes it."""
    deadline = time.monotonic() + patience
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"{what() if callable(what) else what} did not happen within {patience} s")
        select.select([], [], [], 0.02)


class Machine:
    """A namespace that outlives its processes, and its node, which can be started, killed, stopped and cut off."""

    def __init__(self, cluster, number, name):
        self.cluster, self.name, self.address, self.cable = cluster, name, f"10.86.0.{number}", f"v{number}"
        self.home = os.path.join(cluster.folder, name)
        self.node = self.log = None
        self.holder = subprocess.Popen(["unshare", "--net", "sh", "-c", "echo ready; read end"],
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.holder.stdout.readline() == "ready\n"
        pid = str(self.holder.pid)
        ip("link", "add", self.cable, "type", "veth", "peer", "name", "eth0", "netns", pid)
        ip("link", "set", self.cable, "master", cluster.bridge, "up")
        if cluster.blocks_multicast:
            ip("link", "set", self.cable, "type", "bridge_slave", "mcast_flood", "off")
        for inside in (["link", "set", "lo", "up"], ["addr", "add", self.address + "/24", "dev", "eth0"],
                       ["link", "set", "eth0", "up"]):
            self.inside("ip", *inside)

    def command(self, *arguments):
        return ["nsenter", "-t", str(self.holder.pid), "-n", *arguments]

    def inside(self, *arguments, check=True):
        return subprocess.run(self.command(*arguments), check=check, capture_output=True, text=True,
                              timeout=PATIENCE_S, env={**os.environ, "LOCKSTEP_HOME": self.home})

    def lockstep(self, *arguments):
        """The finished process of a command on this machine."""
        return self.inside(PROGRAM, *arguments, check=False)

    def start(self, *flags, terminal=None):
        """`terminal`: a terminal's file, for interactive input."""
        if self.log:
            self.log.close()
        self.log = open(os.path.join(self.cluster.folder, self.name + ".log"), "ab")
        self.node = subprocess.Popen(
            self.command(self.cluster.program, "serve", "--host", "0.0.0.0", "--open", "--name", self.name, *self.cluster.flags(self), *flags),
            stdin=terminal or subprocess.DEVNULL, stdout=self.log, stderr=terminal or self.log,
            env={**os.environ, "LOCKSTEP_HOME": self.home, **self.cluster.environment(self)})

    def said(self):
        with open(os.path.join(self.cluster.folder, self.name + ".log"), encoding="utf-8", errors="replace") as file:
            return file.read()

    def workers(self):
        """Processes of ranks on this machine."""
        found = []
        for thread in os.listdir(f"/proc/{self.node.pid}/task"):
            try:
                with open(f"/proc/{self.node.pid}/task/{thread}/children", encoding="utf-8") as file:
                    found += [int(child) for child in file.read().split()]
            except OSError:
                pass
        return found

    def request(self, method, path, body=None, headers=None, patience=PATIENCE_S):
        """(status, parsed JSON), requested from the bridge: from another machine."""
        status, text = self.request_text(method, path, body, headers, patience)
        return status, json.loads(text)

    def request_text(self, method, path, body=None, headers=None, patience=PATIENCE_S):
        connection = http.client.HTTPConnection(self.address, HTTP_PORT, timeout=patience)
        try:
            connection.request(method, path, None if body is None else json.dumps(body), headers or {})
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()

    def metric(self, name):
        return metric_sum(self.request_text("GET", "/metrics")[1].decode(), name)

    def answer(self, body):
        """The text of a completion."""
        status, answer = self.request("POST", "/v1/completions", body)
        assert status == 200, answer
        return answer["choices"][0]["text"]

    def load(self, *flags):
        """Returns once the model is ready at every living node of the cluster."""
        loaded = self.lockstep("load", MODEL, "--no-wait", *flags)
        assert loaded.returncode == 0, loaded.stderr
        self.cluster.wait_until_ready(MODEL_NAME, [m for m in self.cluster.machines if m.node.poll() is None])

    def unload(self, name=MODEL_NAME):
        unloaded = self.lockstep("unload", name)
        assert unloaded.returncode == 0, unloaded.stderr

    def placement(self):
        """The machines of the model's ranks, as this node knows them."""
        ranks = wait_for(lambda: self.model(MODEL_NAME).get("placement"), "a placement")
        return [self.cluster.machine(rank["node_name"]) for rank in ranks]

    def status(self):
        try:
            return self.request("GET", "/cluster/status", patience=5)[1]
        except (OSError, http.client.HTTPException, json.JSONDecodeError):
            return {"nodes": [], "models": []}

    def model(self, name):
        return next((model for model in self.status()["models"] if model["name"] == name), {})

    def sees_alive(self):
        return sum(node["state"] == "alive" for node in self.status().get("nodes", []))

    def kill(self):
        self.node.kill()
        self.node.wait()

    def pause(self, how=signal.SIGSTOP):
        for pid in [*self.workers(), self.node.pid]:
            try:
                os.kill(pid, how)
            except ProcessLookupError:
                pass

    def cut(self, is_cut=True):
        ip("link", "set", self.cable, "down" if is_cut else "up")

    def end(self):
        """Sends SIGTERM as to a service; always ended."""
        if self.node and self.node.poll() is None:
            self.node.send_signal(signal.SIGCONT)
            self.node.terminate()
            try:
                self.node.wait(PATIENCE_S)
            except subprocess.TimeoutExpired:
                self.kill()
                raise

    def close(self):
        try:
            self.end()
        finally:
            subprocess.run(["ip", "link", "del", self.cable], check=False, capture_output=True)
            self.holder.stdin.close()
            self.holder.wait()
            self.holder.stdout.close()
            # The kernel removes a namespace with a delay; the next machine may use this cable's name.
            subprocess.run(["ip", "link", "del", self.cable], capture_output=True, check=False)
            if self.log:
                self.log.close()


class Cluster:
    """Machines that all know the cluster's key, as after joining. Use as a context manager."""

    def __init__(self, names, serve_flags=(), flags_of=None, environment_of=None, blocks_multicast=False):
        self.blocks_multicast = blocks_multicast
        self.bridge, self.serve_flags = "br0", list(serve_flags)
        self.flags_of, self.environment_of = flags_of or {}, environment_of or {}
        self.program = PROGRAM
        self.folder = tempfile.mkdtemp(prefix="lockstep_cluster_")
        self.key = secrets.token_hex(32)
        ip("link", "add", self.bridge, "type", "bridge", "mcast_snooping", "0")
        ip("addr", "add", "10.86.0.254/24", "dev", self.bridge)
        ip("link", "set", self.bridge, "up")
        self.machines = [Machine(self, number + 1, name) for number, name in enumerate(names)]

    def flags(self, machine):
        return [*self.serve_flags, *self.flags_of.get(machine.name, ())]

    def environment(self, machine):
        return self.environment_of.get(machine.name, {})

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            for machine in self.machines:
                if machine.node and machine.node.poll() is None:
                    machine.pause(signal.SIGCONT)
                    machine.node.terminate()
            for machine in self.machines:
                machine.close()
        finally:
            ip("link", "del", self.bridge)
            shutil.rmtree(self.folder)

    def give_key(self, machine):
        os.makedirs(machine.home, mode=0o700, exist_ok=True)
        path = os.path.join(machine.home, "cluster_key")
        with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="ascii") as file:
            file.write(self.key + "\n")

    def start(self):
        for machine in self.machines:
            self.give_key(machine)
            machine.start()

    def machine(self, name):
        return next(machine for machine in self.machines if machine.name == name)

    def wait_until_together(self, machines=None):
        machines = machines or self.machines
        for machine in machines:
            wait_for(lambda m=machine: m.sees_alive() == len(machines),
                     lambda m=machine: f"{m.name} sees all: {m.said()[-2000:]}")

    def wait_until_empty(self):
        """No model is known, no worker process is left, no memory is promised."""
        for machine in self.machines:
            wait_for(lambda m=machine: not m.workers() and not m.status()["models"]
                     and not any(node["promised_bytes"] for node in m.status()["nodes"]),
                     lambda m=machine: f"nothing is loaded at {m.name}: {m.workers()} {m.status()}")

    def wait_until_ready(self, model, machines=None):
        for machine in machines or self.machines:
            wait_for(lambda m=machine: m.model(model).get("state") == "ready",
                     lambda m=machine: f"{model} ready at {m.name}: {m.status()} {m.said()[-2000:]}")


class Stream(threading.Thread):
    """A streamed completion: its text so far, the time of each piece, and how it ended."""

    def __init__(self, machine, body, on_piece=None):
        super().__init__(daemon=True)
        self.machine, self.body, self.on_piece = machine, body, on_piece
        self.pieces, self.times, self.problem, self.finish = [], [], None, None
        self.start()

    def run(self):
        connection = http.client.HTTPConnection(self.machine.address, HTTP_PORT, timeout=PATIENCE_S)
        try:
            connection.request("POST", "/v1/completions", json.dumps({"stream": True, **self.body}))
            response = connection.getresponse()
            if response.status != 200:
                self.problem = f"{response.status}: {response.read()[:300]}"
                return
            for event in events(response):
                if event == "[DONE]":
                    return
                if "error" in event:
                    self.problem = str(event)
                    return
                choice = event["choices"][0]
                self.finish = choice.get("finish_reason") or self.finish
                self.pieces.append(choice["text"])
                self.times.append(time.monotonic())
                if self.on_piece:
                    self.on_piece(self)
            self.problem = "the stream ended without [DONE]"
        except (OSError, http.client.HTTPException, ValueError) as error:
            self.problem = repr(error)
        finally:
            connection.close()

    def text(self):
        return "".join(self.pieces)

    def longest_pause(self):
        return max((b - a for a, b in zip(self.times, self.times[1:])), default=0.0)

    def wait_for_pieces(self, count):
        wait_for(lambda: len(self.pieces) >= count or self.problem, "pieces of a stream")
        assert not self.problem, self.problem
        return self

    def check_under_way(self):
        """Call it after an event: if the stream had ended before, the test would prove nothing."""
        assert not self.problem, self.problem
        assert self.finish is None, f"the stream of {len(self.pieces)} pieces ended too early: make it slower"


class Streams(threading.Thread):
    """A context in which streams follow each other, each of which must be whole: every event inside happens during a
    stream, however long it takes. It begins when the first stream has begun, and ends with the last one."""

    def __init__(self, machine, body, expected):
        super().__init__(daemon=True)
        self.machine, self.body, self.expected = machine, body, expected
        self.count, self.problem = 0, None
        self.has_begun, self.is_over = threading.Event(), threading.Event()

    def run(self):
        while not self.is_over.is_set() and not self.problem:
            stream = Stream(self.machine, self.body, lambda _: self.has_begun.set())
            stream.join(PATIENCE_S)
            self.count += 1
            if stream.is_alive() or stream.problem or stream.text() != self.expected:
                self.problem = f"stream {self.count}: {stream.problem or 'another text'}: {stream.text()!r}"
        self.has_begun.set()

    def __enter__(self):
        self.start()
        assert self.has_begun.wait(PATIENCE_S), "no stream began"
        return self

    def __exit__(self, *_):
        self.is_over.set()
        self.join(2 * PATIENCE_S)
        assert not self.is_alive(), "the last stream has no end"
        assert not self.problem, self.problem


def texts_alone(bodies):
    """The answer of one machine in no cluster."""
    with Node() as node:
        return [node.request("POST", "/v1/completions", body)[1]["choices"][0]["text"] for body in bodies]
