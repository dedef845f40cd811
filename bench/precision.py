#!/usr/bin/env python3
"""Measures the cost of rounding: compares the logits of small models with those of options that round less.

    bench/precision.py [PROGRAM]     Markdown tables, then one JSON line

First table: activations of 8 bits against --exact, on the quantised golden cases. Prompt and greedy
continuation are fed at once (teacher forced). rms: root mean square of the differences of all
logits; KL: mean divergence in nats of the next token's distribution; top-1: how many of the greedy
steps keep the best token. "simulated" is the loss from the same rounding in the float64 program that
made the cases.

Second and third table: each kind of keys and values (--kv) against f32, where top-1 counts all
positions, on the golden cases whose weights are not quantised (with activations of 8 bits the
smallest change moves some of them to another code, which hides the rounding itself), and on
stories260K with the text of bench/precision_stories.txt.
"""
import json
import math
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
CASES = ROOT / "tests" / "data" / "golden"
STORIES_MODEL = ROOT / "models" / "stories260K"
STORIES = ROOT / "bench" / "precision_stories.txt"
ROUNDED_KINDS = ("bf16", "f16", "q8")


def is_quantised(folder):
    config = json.loads((folder / "config.json").read_text())
    return "quantization" in config or "quantization_config" in config


def run(program, *arguments):
    answer = subprocess.run([program, *arguments], check=True, capture_output=True, text=True, timeout=120)
    return json.loads(answer.stdout)


def logits(program, folder, ids, *flags):
    return run(program, "logits", str(folder), "--ids", ",".join(map(str, ids)), *flags)["logits"]


def log_softmax(row):
    largest = max(row)
    total = largest + math.log(sum(math.exp(x - largest) for x in row))
    return [x - total for x in row]


def divergence(exact, rounded):
    p, q = log_softmax(exact), log_softmax(rounded)
    return sum(math.exp(a) * (a - b) for a, b in zip(p, q))


def mean_divergence(exact, rounded):
    return sum(divergence(x, y) for x, y in zip(exact, rounded)) / len(exact)


def rms(exact, rounded):
    squares = [(a - b) ** 2 for x, y in zip(exact, rounded) for a, b in zip(x, y)]
    return math.sqrt(sum(squares) / len(squares))


def agreement(exact, rounded):
    return sum(x.index(max(x)) == y.index(max(y)) for x, y in zip(exact, rounded))


def forced_ids(golden):
    return golden["prompt"] + golden["greedy"]["tokens"][:-1]


def measure_activations(program, folder):
    golden = json.loads((folder / "golden.json").read_text())
    ids = forced_ids(golden)
    exact = logits(program, folder, ids, "--exact")
    rounded = logits(program, folder, ids, "--kv", "f32")
    first = len(golden["prompt"]) - 1
    simulated = golden["stats"]["simulated"]["int8_block32"]
    return {
        "case": folder.name,
        "rms": rms(exact, rounded),
        "simulated_rms": simulated["rms_diff"],
        "mean_kl": mean_divergence(exact, rounded),
        "top1": f"{agreement(exact[first:], rounded[first:])}/{len(exact) - first}",
        "simulated_top1": simulated["top1_agreement"],
    }


def measure_kinds(program, folder, ids):
    """For each kind the divergence from f32, and the positions that keep the best token."""
    whole = logits(program, folder, ids, "--kv", "f32")
    result = {"positions": len(ids)}
    for kind in ROUNDED_KINDS:
        rounded = logits(program, folder, ids, "--kv", kind)
        result[kind] = {"rms": rms(whole, rounded), "mean_kl": mean_divergence(whole, rounded),
                        "top1": agreement(whole, rounded)}
    return result


def measure_stories(program):
    stories = [story.strip() for story in STORIES.read_text().split("\n\n") if story.strip()]
    tokens = [run(program, "tokenize", str(STORIES_MODEL), "--bos", "--text", story)["ids"]
              for story in stories]
    result = {"tokens": sum(len(ids) - 1 for ids in tokens)}
    whole = [logits(program, STORIES_MODEL, ids, "--kv", "f32") for ids in tokens]
    for kind in ("f32", *ROUNDED_KINDS):
        lost = divergences = same = positions = 0
        for ids, expected in zip(tokens, whole):
            rows = logits(program, STORIES_MODEL, ids, "--kv", kind)
            lost -= sum(log_softmax(row)[token] for row, token in zip(rows, ids[1:]))
            divergences += sum(divergence(x, y) for x, y in zip(expected, rows))
            same += agreement(expected, rows)
            positions += len(rows)
        result[kind] = {"perplexity": math.exp(lost / result["tokens"]), "mean_kl": divergences / positions,
                        "top1": f"{same}/{positions}"}
    return result


def print_activations(results):
    print("| case | rms | simulated rms | mean KL | top-1 | simulated top-1 |")
    print("| --- | --- | --- | --- | --- | --- |")
    for r in results:
        print(f"| `{r['case']}` | {r['rms']:.4f} | {r['simulated_rms']:.4f} | {r['mean_kl']:.5f} "
              f"| {r['top1']} | {r['simulated_top1']} |")


def print_kinds(results):
    print("\n| case | " + " | ".join(f"{kind}: mean KL | top-1" for kind in ROUNDED_KINDS) + " |")
    print("| --- |" + " --- |" * (2 * len(ROUNDED_KINDS)))
    for name, r in results.items():
        cells = [f"{r[kind]['mean_kl']:.1e} | {r[kind]['top1']}/{r['positions']}" for kind in ROUNDED_KINDS]
        print(f"| `{name}` | " + " | ".join(cells) + " |")


def print_stories(result):
    print("\n| `--kv` | perplexity | mean KL | top-1 |")
    print("| --- | --- | --- | --- |")
    for kind in ("f32", *ROUNDED_KINDS):
        r = result[kind]
        print(f"| {kind} | {r['perplexity']:.5f} | {r['mean_kl']:.1e} | {r['top1']} |")


def main():
    program = sys.argv[1] if len(sys.argv) > 1 else str(ROOT / "build" / "release" / "lockstep")
    folders = sorted(folder for folder in CASES.iterdir() if folder.is_dir())
    activations = [measure_activations(program, folder) for folder in folders if is_quantised(folder)]
    print_activations(activations)
    kinds = {}
    for folder in folders:
        if is_quantised(folder):
            continue
        ids = forced_ids(json.loads((folder / "golden.json").read_text()))
        kinds[folder.name] = measure_kinds(program, folder, ids)
    print_kinds(kinds)
    stories = measure_stories(program)
    print_stories(stories)
    print(json.dumps({"activations": activations, "kinds": kinds, "stories": stories}))


if __name__ == "__main__":
    main()
