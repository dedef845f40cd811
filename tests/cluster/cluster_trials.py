"""Streams survive the loss of any machine except the one that holds their clients: a random node or worker of a cluster
of four is killed, stopped or cut off at a random token of four streams. TRIALS (4) trials from SEED (1).

CASE: a golden case instead of stories260K, made a model of text, or "all": TRIALS of one for each kind of state.
DRAFTS=1: the model guesses its own tokens as a draft model, for two of the streams, since it rests for more."""

import os
import random
import signal
import statistics
import sys
import tempfile
import threading
import time

import machines
from machines import Cluster, Stream
from text_checkpoint import KINDS, write_text_checkpoint

NAMES = ["anna", "berta", "clara", "dora"]
PROMPTS = ["Once upon a time", "The little dog", "Lily and Tom", "One day a cat"]
TOKENS = 160
RECOVERY_S = 5.0
FAULTS = ["kill worker", "kill node", "stop worker", "stop node", "cut off"]
# A rank answers after each of about twelve exchanges per token, so that every stream has a second left at its half.
SLOWED = ["--link-delay-us", "1000"]
HAS_DRAFTS = os.environ.get("DRAFTS", "") == "1"


def bodies():
    """Two greedy streams and two seeded ones; with drafts one of each."""
    sampled = [{"temperature": 0}, {"temperature": 0}, {"temperature": 0.9, "seed": 7}, {"temperature": 1.2, "seed": 8}]
    four = [{"model": os.path.basename(machines.MODEL), "prompt": prompt, "max_tokens": TOKENS, **how}
            for prompt, how in zip(PROMPTS, sampled)]
    return four[1:3] if HAS_DRAFTS else four


def undisturbed(machine):
    """The texts, and how many pieces the first stream has."""
    streams = [Stream(machine, body) for body in bodies()]
    for stream in streams:
        stream.join(machines.PATIENCE_S)
    problems = [stream.problem for stream in streams if stream.problem]
    if problems:
        raise AssertionError(problems)
    return [stream.text() for stream in streams], len(streams[0].pieces)


def break_it(fault, victim, chance):
    if fault == "kill node":
        victim.kill()
    elif fault == "stop node":
        victim.pause()
    elif fault == "cut off":
        victim.cut()
    else:
        workers = victim.workers()
        if workers:
            how = signal.SIGKILL if fault == "kill worker" else signal.SIGSTOP
            os.kill(chance.choice(workers), how)
        return bool(workers)
    return True


def trial(seed, expected):
    """(longest pause, event), in a cluster that is started only for this trial."""
    chance = random.Random(seed)
    with Cluster(NAMES, SLOWED) as cluster:
        cluster.start()
        cluster.wait_until_together()
        client = chance.choice(cluster.machines)
        drafts = ["--draft-model", machines.MODEL] if HAS_DRAFTS else []
        loaded = client.lockstep("load", machines.MODEL, "--ranks", str(chance.choice([2, 3, 4])), *drafts)
        if loaded.returncode != 0:
            raise AssertionError(loaded.stderr)
        cluster.wait_until_ready(os.path.basename(machines.MODEL), [client])
        if expected is None:
            expected = undisturbed(client)
        texts, pieces = expected
        holders = [m for m in cluster.machines if m.workers()]
        fault = chance.choice(FAULTS)
        others = [m for m in cluster.machines if m is not client]
        victim = chance.choice([m for m in holders if "worker" in fault or m is not client] or others)
        at, hit, lock = chance.randrange(1, pieces // 2), [], threading.Lock()

        def on_piece(stream):
            with lock:
                if len(stream.pieces) == at and not hit:
                    hit.append(break_it(fault, victim, chance))

        streams = [Stream(client, body, on_piece if number == 0 else None) for number, body in enumerate(bodies())]
        for stream in streams:
            stream.join(machines.PATIENCE_S)
        what = f"seed {seed}: {fault} of {victim.name}, clients at {client.name}, token {at}"
        if hit != [True]:
            raise AssertionError(f"{what}: nothing was hit")
        for stream, text in zip(streams, texts):
            if stream.is_alive() or stream.problem or stream.text() != text:
                print("\n".join(f"--- {m.name}\n{m.said()[-4000:]}" for m in cluster.machines))
                raise AssertionError(f"{what}: {stream.problem or 'another text'}: {stream.text()!r}, not {text!r}")
        if fault == "cut off":
            victim.cut(False)
        return max(stream.longest_pause() for stream in streams), what, expected


def trials(first, count):
    """How many of them paused for too long."""
    expected, pauses = None, []
    for seed in range(first, first + count):
        started = time.monotonic()
        pause, what, expected = trial(seed, expected)
        pauses.append(pause)
        print(f"{what}: longest pause {pause:.2f} s ({time.monotonic() - started:.0f} s)", flush=True)
    print(f"{count} trials; longest pause: median {statistics.median(pauses):.2f} s, most {max(pauses):.2f} s")
    late = sum(pause > RECOVERY_S for pause in pauses)
    print(f"{late} of them longer than {RECOVERY_S} s", flush=True)
    return late


def main():
    machines.enter_own_namespace()
    first, count = int(os.environ.get("SEED", "1")), int(os.environ.get("TRIALS", "4"))
    case = os.environ.get("CASE", "")
    if not case:
        sys.exit(1 if trials(first, count) else 0)
    late = 0
    for each in KINDS.values() if case == "all" else [case]:
        with tempfile.TemporaryDirectory() as folder:
            machines.MODEL = os.path.join(folder, each)
            write_text_checkpoint(each, machines.MODEL)
            print(f"{each}:", flush=True)
            late += trials(first, count)
    sys.exit(1 if late else 0)


if __name__ == "__main__":
    main()
