#!/usr/bin/env python3
"""The error of 8-bit activations: logits of the golden cases as users run them against --exact.

    bench/precision.py [PROGRAM]     a Markdown table, then one JSON line

Prompt and greedy continuation are fed at once (teacher forced). rms: root mean square of the
differences of all logits; KL: mean divergence in nats of the next token's distribution; top-1: how
many of the greedy steps keep the best token. "simulated" is the loss from the same rounding in the
float64 program that made the cases.
"""
import json
import math
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
CASES = ROOT / "tests" / "data" / "golden"


def is_quantised(folder):
    config = json.loads((folder / "config.json").read_text())
    return "quantization" in config or "quantization_config" in config


def logits(program, folder, ids, *flags):
    command = [program, "logits", str(folder), "--ids", ",".join(map(str, ids)), *flags]
    answer = subprocess.run(command, check=True, capture_output=True, text=True, timeout=120)
    return json.loads(answer.stdout)["logits"]


def log_softmax(row):
    largest = max(row)
    total = largest + math.log(sum(math.exp(x - largest) for x in row))
    return [x - total for x in row]


def divergence(exact, rounded):
    p, q = log_softmax(exact), log_softmax(rounded)
    return sum(math.exp(a) * (a - b) for a, b in zip(p, q))


def measure(program, folder):
    golden = json.loads((folder / "golden.json").read_text())
    ids = golden["prompt"] + golden["greedy"]["tokens"][:-1]
    exact = logits(program, folder, ids, "--exact")
    rounded = logits(program, folder, ids)
    squares = [(a - b) ** 2 for x, y in zip(exact, rounded) for a, b in zip(x, y)]
    steps = list(zip(exact, rounded))[len(golden["prompt"]) - 1:]
    same = sum(x.index(max(x)) == y.index(max(y)) for x, y in steps)
    simulated = golden["stats"]["simulated"]["int8_block32"]
    return {
        "case": folder.name,
        "rms": math.sqrt(sum(squares) / len(squares)),
        "simulated_rms": simulated["rms_diff"],
        "mean_kl": sum(divergence(x, y) for x, y in zip(exact, rounded)) / len(exact),
        "top1": f"{same}/{len(steps)}",
        "simulated_top1": simulated["top1_agreement"],
    }


def main():
    program = sys.argv[1] if len(sys.argv) > 1 else str(ROOT / "build" / "release" / "lockstep")
    results = [measure(program, folder) for folder in sorted(CASES.iterdir())
               if folder.is_dir() and is_quantised(folder)]
    print("| case | rms | simulated rms | mean KL | top-1 | simulated top-1 |")
    print("| --- | --- | --- | --- | --- | --- |")
    for r in results:
        print(f"| `{r['case']}` | {r['rms']:.4f} | {r['simulated_rms']:.4f} | {r['mean_kl']:.5f} "
              f"| {r['top1']} | {r['simulated_top1']} |")
    print(json.dumps(results))


if __name__ == "__main__":
    main()
