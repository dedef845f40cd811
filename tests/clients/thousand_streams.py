"""Many clients at once on one node: each requests a stream, reads it to its end, and repeats.

thousand_streams.py --clients 1000 --seconds 300 --streams 128 --queue 900

Every answer must be a whole stream (200, with its end and [DONE]) or a refusal that says when to retry (429 or 503
with Retry-After). In the middle of the run half of the clients vanish mid-stream. Memory of the node and its worker
must not grow, and in the end nothing may be left: no request, no descriptor.

With --attacked one more client sends the worst requests that we know (worst_inputs.py) all the time, after --quiet seconds
without it; then the 99th percentile of the time to the first token is shown for both, and --factor limits their ratio. It
continues until each of them was answered at least once.

Without arguments it is a short test (many_streams), with --attacked another (attacked_streams). LOCKSTEP_PROGRAM names the
program."""

import argparse
import asyncio
import json
import os
import random
import shutil
import socket
import struct
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "cluster"))

import harness  # noqa: E402
import worst_inputs  # noqa: E402

END_S = 60  # for requests still running when the time is up
MIB = 1 << 20


def parse_arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--clients", type=int, default=150)
    parser.add_argument("--seconds", type=float, default=8)
    parser.add_argument("--streams", type=int, default=16, help="that the node runs together")
    parser.add_argument("--queue", type=int, default=64, help="that may wait; more are refused with 429")
    parser.add_argument("--tokens", type=int, default=48, help="of an answer")
    parser.add_argument("--attacked", action="store_true", help="one client sends the worst requests all the while")
    parser.add_argument("--quiet", type=float, default=0, help="seconds before the attack, to compare with")
    parser.add_argument("--factor", type=float, help="of the p99 of the time to the first token, at most")
    parser.add_argument("--growth-mib", type=float, default=16, help="of memory that is not yet a leak")
    return parser.parse_args()


class Outcomes:
    def __init__(self):
        self.complete = self.refused = self.vanished = self.tokens = 0
        self.wrong = []  # (undefined outcome, an excerpt)
        self.running = 0
        self.running_max = 0
        self.first_token_s = []

    def summary(self):
        return {"complete": self.complete, "refused_with_retry_after": self.refused, "vanished": self.vanished,
                "tokens": self.tokens, "wrong": len(self.wrong), "first_wrong": self.wrong[:3],
                "open_at_once": self.running_max}


class Client:
    """One client: stream after stream, each on its own connection."""

    def __init__(self, port, seed, tokens, outcomes):
        self.port, self.tokens, self.outcomes = port, tokens, outcomes
        self.random = random.Random(seed)
        self.vanishes = False

    def request(self):
        self.asked_at = time.monotonic()
        body = json.dumps({
            "model": "stories260K", "prompt": self.random.choice(["Once upon a time", "Lily and Tom", "The big dog"]),
            "max_tokens": self.random.randint(self.tokens // 2, self.tokens), "seed": self.random.randrange(1 << 30),
            "stream": True, "temperature": 1}).encode()
        return (b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(body)) + body

    async def run(self, goes_on):
        while goes_on():
            pause, writer = 0, None
            try:
                reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
                writer.write(self.request())
                await writer.drain()
                self.outcomes.running += 1
                self.outcomes.running_max = max(self.outcomes.running_max, self.outcomes.running)
                try:
                    pause = await self.read_answer(reader, writer)
                finally:
                    self.outcomes.running -= 1
            except (OSError, asyncio.IncompleteReadError, ValueError) as error:
                self.outcomes.wrong.append(f"{type(error).__name__}: {error}")
            finally:
                if writer:
                    writer.close()
            if pause:
                await asyncio.sleep(pause)

    async def read_answer(self, reader, writer):
        """Seconds to wait before the next request."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        status = int(head.split(" ", 2)[1])
        if status in (429, 503) and "\r\nretry-after: " in head:
            self.outcomes.refused += 1
            await reader.read()
            # Spread over time, as well-behaved clients do.
            return int(head.split("\r\nretry-after: ")[1].split("\r\n")[0]) * self.random.uniform(1, 2)
        if status != 200:
            self.outcomes.wrong.append(f"{status}: {(await reader.read()).decode(errors='replace')[:200]}")
            return 1
        last, ended = "", False
        async for line in reader:
            if not line.startswith(b"data: "):
                continue  # the chunks of HTTP
            if self.vanishes:
                self.vanish(writer)
                return 0
            if not last:
                self.outcomes.first_token_s.append(time.monotonic() - self.asked_at)
            last = line[6:].strip().decode()
            ended = ended or '"finish_reason":"' in last
            self.outcomes.tokens += last != "[DONE]"
        if last == "[DONE]" and ended:
            self.outcomes.complete += 1
        else:
            self.outcomes.wrong.append(f"a stream without its end: {last[:200]}")
        return 0

    def vanish(self, writer):
        """The connection is reset, as by a machine that loses its power and comes back."""
        self.vanishes = False
        self.outcomes.vanished += 1
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()


def resident_mib(pid):
    with open(f"/proc/{pid}/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / MIB


def descriptors(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


class Watch:
    """Samples the processes of a node."""

    def __init__(self, node):
        self.pids = {"node": node.process.pid}
        self.pids |= {f"worker {rank}": pid for rank, pid in enumerate(node.worker_pids())}
        self.before = {name: descriptors(pid) for name, pid in self.pids.items()}
        self.memory = {name: [] for name in self.pids}

    def sample(self):
        for name, pid in self.pids.items():
            self.memory[name].append(resident_mib(pid))

    def growth_mib(self):
        """The growth from the median of the second quarter, when everything has been used once, to that of the last quarter."""
        growths = {}
        for name, samples in self.memory.items():
            quarter = max(1, len(samples) // 4)
            median = lambda part: sorted(part)[len(part) // 2]
            growths[name] = round(median(samples[-quarter:]) - median(samples[quarter:2 * quarter] or samples), 1)
        return growths

    def left_mib(self):
        """The latest sample minus the first."""
        return {name: round(samples[-1] - samples[0], 1) for name, samples in self.memory.items()}

    def is_given_back(self, growth_mib):
        self.sample()
        return max(self.left_mib().values()) <= growth_mib

    def descriptors_left(self):
        return {name: descriptors(pid) - self.before[name] for name, pid in self.pids.items()}


async def load(node, watch, arguments, seconds, attacker=None, vanish=True):
    """Runs this long, and until the attacker, if there is one, has sent everything."""
    outcomes = Outcomes()
    clients = [Client(node.port, seed, arguments.tokens, outcomes) for seed in range(arguments.clients)]
    began = time.monotonic()
    until = began + seconds
    goes_on = lambda: time.monotonic() < until or (attacker is not None and attacker.is_under_way())
    tasks = [asyncio.create_task(client.run(goes_on)) for client in clients]
    half_is_gone = not vanish
    while goes_on():
        await asyncio.sleep(min(1.0, seconds / 40))
        watch.sample()
        if not half_is_gone and time.monotonic() > began + seconds / 2:
            half_is_gone = True
            for client in clients[::2]:
                client.vanishes = True
    ended, late = await asyncio.wait(tasks, timeout=END_S)
    outcomes.wrong += [f"a client broke: {task.exception()!r}" for task in ended if task.exception()]
    for task in late:
        task.cancel()
        outcomes.wrong.append(f"a client had no end within {END_S} s")
    return outcomes


def running(node):
    return node.status()["running"]


def p99(times):
    return sorted(times)[len(times) * 99 // 100] if times else 0.0


def write_model(folder):
    """The shipped model with a chat template that knows tools."""
    model = shutil.copytree(harness.STORIES, os.path.join(folder, "stories260K"))
    shutil.copy(worst_inputs.TEMPLATE, os.path.join(model, "chat_template.jinja"))
    return model


def attacked_load(node, watch, arguments):
    """The outcomes under attack, and the attack's own report."""
    quiet = asyncio.run(load(node, watch, arguments, arguments.quiet, vanish=False)) if arguments.quiet else Outcomes()
    with worst_inputs.Attacker(node.port) as attacker:
        outcomes = asyncio.run(load(node, watch, arguments, arguments.seconds, attacker))
    outcomes.wrong += quiet.wrong + ([attacker.problem] if attacker.problem else [])
    said = {"attack": attacker.statuses, "attack_longest_s": attacker.longest_s, "rounds": attacker.rounds, "first_token_p99_s": {"quiet": p99(quiet.first_token_s), "attacked": p99(outcomes.first_token_s)}}
    if arguments.factor and p99(outcomes.first_token_s) > arguments.factor * p99(quiet.first_token_s):
        outcomes.wrong.append(f"the p99 of the time to the first token is more than {arguments.factor} times that without an attack")
    return outcomes, said


def judge(outcomes, watch, arguments):
    """The violations."""
    wrong = [f"{len(outcomes.wrong)} answers that are none: {outcomes.wrong[:3]}"] if outcomes.wrong else []
    if outcomes.complete == 0:
        wrong.append("no stream was complete")
    if outcomes.vanished < arguments.clients // 4:
        wrong.append(f"only {outcomes.vanished} clients vanished in the middle of a stream")
    # Under attack a large request may be in progress at any moment: the minimum counts.
    for name, growth in (watch.left_mib() if arguments.attacked else watch.growth_mib()).items():
        if growth > arguments.growth_mib:
            wrong.append(f"the {name} grew by {growth} MiB")
    return wrong


def run(node, arguments):
    """The violations, after the figures were printed."""
    node.complete()
    watch = Watch(node)
    said = {}
    if arguments.attacked:
        outcomes, said = attacked_load(node, watch, arguments)
    else:
        outcomes = asyncio.run(load(node, watch, arguments, arguments.seconds))
    ends = [("the end of all requests", lambda: running(node) == 0),
            ("the end of all connections", lambda: max(watch.descriptors_left().values()) <= 0)]
    if arguments.attacked:
        # A thread that has parsed a large request may still be freeing it after its client has
        # gone.
        ends.append(("the memory of large requests", lambda: watch.is_given_back(arguments.growth_mib)))
    wrong = []
    for what, condition in ends:
        try:
            harness.wait_until(condition, 20, what)
        except AssertionError as error:
            wrong.append(str(error))
    wrong += judge(outcomes, watch, arguments)
    print(json.dumps(outcomes.summary() | said | {
        "memory_mib": {name: [round(samples[0], 1), round(max(samples), 1), round(samples[-1], 1)]
                       for name, samples in watch.memory.items()},
        "growth_mib": watch.growth_mib(), "descriptors_left": watch.descriptors_left()}, indent=1))
    return wrong


def main():
    arguments = parse_arguments()
    with tempfile.TemporaryDirectory() as folder:
        model = write_model(folder) if arguments.attacked else harness.STORIES
        # Without --core-dumps only root may count a node's descriptors.
        with harness.Node("--ranks", "1", "--streams", str(arguments.streams), "--queue", str(arguments.queue),
                          "--core-dumps", model=model) as node:
            wrong = run(node, arguments)
    for sentence in wrong:
        print(f"wrong: {sentence}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
