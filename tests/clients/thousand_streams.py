"""Many clients at once on one node: each asks for a stream, reads it to its end, and asks again.

thousand_streams.py --clients 1000 --seconds 300 --streams 128 --queue 900

Every answer must be a whole stream (200, with its end and [DONE]) or a refusal that says when to come back (429 or 503
with Retry-After). In the middle half of the clients vanish in the middle of their streams. Memory of the node and its
worker must not grow, and in the end nothing may be left: no request, no descriptor.

Without arguments it is a short test (many_streams). LOCKSTEP_PROGRAM names the program."""

import argparse
import asyncio
import json
import os
import random
import socket
import struct
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "cluster"))

import harness  # noqa: E402

END_S = 60  # for what was begun when the time is up
MIB = 1 << 20


def parse_arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--clients", type=int, default=150)
    parser.add_argument("--seconds", type=float, default=8)
    parser.add_argument("--streams", type=int, default=16, help="that the node runs together")
    parser.add_argument("--queue", type=int, default=64, help="that may wait; more are refused with 429")
    parser.add_argument("--tokens", type=int, default=48, help="of an answer")
    parser.add_argument("--growth-mib", type=float, default=16, help="of memory that is not yet a leak")
    return parser.parse_args()


class Outcomes:
    def __init__(self):
        self.complete = self.refused = self.vanished = self.tokens = 0
        self.wrong = []  # (what was not defined, some of it)
        self.running = 0
        self.running_max = 0

    def summary(self):
        return {"complete": self.complete, "refused_with_retry_after": self.refused, "vanished": self.vanished,
                "tokens": self.tokens, "wrong": len(self.wrong), "first_wrong": self.wrong[:3],
                "open_at_once": self.running_max}


class Client:
    """One client: a stream after the other, each on a connection of its own."""

    def __init__(self, port, seed, tokens, outcomes):
        self.port, self.tokens, self.outcomes = port, tokens, outcomes
        self.random = random.Random(seed)
        self.vanishes = False

    def request(self):
        body = json.dumps({
            "model": "stories260K", "prompt": self.random.choice(["Once upon a time", "Lily and Tom", "The big dog"]),
            "max_tokens": self.random.randint(self.tokens // 2, self.tokens), "seed": self.random.randrange(1 << 30),
            "stream": True, "temperature": 1}).encode()
        return (b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(body)) + body

    async def run(self, until):
        while time.monotonic() < until:
            reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
            pause = 0
            try:
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
            # Not all at the same moment, as well-behaved clients do it.
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
        """From the median of the second quarter, when all has been used once, to that of the last quarter."""
        growths = {}
        for name, samples in self.memory.items():
            quarter = max(1, len(samples) // 4)
            median = lambda part: sorted(part)[len(part) // 2]
            growths[name] = round(median(samples[-quarter:]) - median(samples[quarter:2 * quarter] or samples), 1)
        return growths

    def descriptors_left(self):
        return {name: descriptors(pid) - self.before[name] for name, pid in self.pids.items()}


async def load(node, watch, arguments):
    outcomes = Outcomes()
    clients = [Client(node.port, seed, arguments.tokens, outcomes) for seed in range(arguments.clients)]
    began = time.monotonic()
    until = began + arguments.seconds
    tasks = [asyncio.create_task(client.run(until)) for client in clients]
    half_is_gone = False
    while time.monotonic() < until:
        await asyncio.sleep(min(1.0, arguments.seconds / 40))
        watch.sample()
        if not half_is_gone and time.monotonic() > began + arguments.seconds / 2:
            half_is_gone = True
            for client in clients[::2]:
                client.vanishes = True
    _, late = await asyncio.wait(tasks, timeout=END_S)
    for task in late:
        task.cancel()
        outcomes.wrong.append(f"a client had no end within {END_S} s")
    return outcomes


def running(node):
    return node.status()["running"]


def judge(outcomes, watch, arguments):
    """What is wrong."""
    wrong = [f"{len(outcomes.wrong)} answers that are none: {outcomes.wrong[:3]}"] if outcomes.wrong else []
    if outcomes.complete == 0:
        wrong.append("no stream was complete")
    if outcomes.vanished < arguments.clients // 4:
        wrong.append(f"only {outcomes.vanished} clients vanished in the middle of a stream")
    for name, growth in watch.growth_mib().items():
        if growth > arguments.growth_mib:
            wrong.append(f"the {name} grew by {growth} MiB")
    return wrong


def main():
    arguments = parse_arguments()
    with harness.Node("--ranks", "1", "--streams", str(arguments.streams), "--queue", str(arguments.queue)) as node:
        node.complete()
        watch = Watch(node)
        outcomes = asyncio.run(load(node, watch, arguments))
        wrong = judge(outcomes, watch, arguments)
        for what, condition in (
                ("the end of all requests", lambda: running(node) == 0),
                ("the end of all connections", lambda: max(watch.descriptors_left().values()) <= 0)):
            try:
                harness.wait_until(condition, 20, what)
            except AssertionError as error:
                wrong.append(str(error))
        print(json.dumps(outcomes.summary() | {
            "memory_mib": {name: [round(samples[0], 1), round(max(samples), 1), round(samples[-1], 1)]
                           for name, samples in watch.memory.items()},
            "growth_mib": watch.growth_mib(), "descriptors_left": watch.descriptors_left()}, indent=1))
    for sentence in wrong:
        print(f"wrong: {sentence}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
