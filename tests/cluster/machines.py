"""`lockstep serve` on emulated machines: each in a network namespace of its own with a cable to one bridge, at which this
test stands. Needs root and `ip`; everything is made inside a namespace of the test alone and ends with it."""

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

from harness import PROGRAM, STORIES, events

SKIPPED = 77
INSIDE = "LOCKSTEP_INSIDE_NAMESPACE"
PATIENCE_S = 60.0
HTTP_PORT = 8600


def enter_own_namespace():
    """Runs this script again where it may make networks; exit code 77 where that is not permitted."""
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
    """Polls until `condition` gives something, which is returned."""
    deadline = time.monotonic() + patience
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"{what} did not happen within {patience} s")
        select.select([], [], [], 0.02)


class Machine:
    """A namespace that outlives what runs in it, and the node in it, which may be started, killed, stopped, cut off."""

    def __init__(self, cluster, number, name):
        self.cluster, self.name, self.address, self.cable = cluster, name, f"10.86.0.{number}", f"v{number}"
        self.home = os.path.join(cluster.folder, name)
        self.node = None
        self.holder = subprocess.Popen(["unshare", "--net", "sh", "-c", "echo ready; read end"],
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.holder.stdout.readline() == "ready\n"
        pid = str(self.holder.pid)
        ip("link", "add", self.cable, "type", "veth", "peer", "name", "eth0", "netns", pid)
        ip("link", "set", self.cable, "master", cluster.bridge, "up")
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

    def start(self):
        self.log = open(os.path.join(self.cluster.folder, self.name + ".log"), "ab")
        self.node = subprocess.Popen(
            self.command(PROGRAM, "serve", "--host", "0.0.0.0", "--name", self.name, *self.cluster.flags(self)),
            stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log,
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

    def status(self):
        try:
            connection = http.client.HTTPConnection(self.address, HTTP_PORT, timeout=5)
            connection.request("GET", "/cluster/status")
            return json.loads(connection.getresponse().read())
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
        """Takes SIGTERM like a service; ended in any case."""
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
            if self.node:
                self.log.close()


class Cluster:
    """Machines that all know the cluster's key, as after joining. Use as a context."""

    def __init__(self, names, serve_flags=(), flags_of=None, environment_of=None):
        self.bridge, self.serve_flags = "br0", list(serve_flags)
        self.flags_of, self.environment_of = flags_of or {}, environment_of or {}
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

    def wait_until_together(self):
        for machine in self.machines:
            wait_for(lambda m=machine: m.sees_alive() == len(self.machines),
                     f"{machine.name} sees all: {machine.said()[-2000:]}")

    def wait_until_ready(self, model, machines=None):
        for machine in machines or self.machines:
            wait_for(lambda m=machine: m.model(model).get("state") == "ready",
                     f"{model} ready at {machine.name}: {machine.status()} {machine.said()[-2000:]}")


class Stream(threading.Thread):
    """A streamed completion: its text so far, when each piece came, and how it ended."""

    def __init__(self, machine, body, on_piece=None):
        super().__init__(daemon=True)
        self.machine, self.body, self.on_piece = machine, body, on_piece
        self.pieces, self.times, self.problem, self.finish = [], [], None, None
        self.start()

    def run(self):
        try:
            connection = http.client.HTTPConnection(self.machine.address, HTTP_PORT, timeout=PATIENCE_S)
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

    def text(self):
        return "".join(self.pieces)

    def longest_pause(self):
        return max((b - a for a, b in zip(self.times, self.times[1:])), default=0.0)


MODEL = STORIES
