"""The cost of parsing untrusted input must not grow faster than the input.

growth_probe (growth_probe.cc) runs each of its probes with inputs of n, 2n and 4n items. callgrind counts the
instructions of each run, those of the standard library and of memcpy too, so that the verdict is the same on every
machine. Growth like n or n log n passes, like n * sqrt(n) or more fails.

The probes named "cost: ..." compile grammars that would cost far more than their text: there the instructions are
compared with the steps that the compiler has charged against its limit.

  growth_test.py [WORD...]    only the probes whose names contain one of the words; prints all figures
"""

import concurrent.futures
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

PROBE = os.environ.get("LOCKSTEP_GROWTH_PROBE", "build/release/growth_probe")
SKIPPED = 77  # for ctest
# The cost of 2n more items as a multiple of that of n more: 2 for n, about 2.2 for n log n, 2.8 for n *
# sqrt(n), 4 for n * n.
GROWTH_MAX = 2.6
# 4n items cost at least this many times as much as n of them; otherwise the items are not what is
# measured.
SHARE_MIN = 1.5
# Instructions by which the allocator may vary: twice the items that cost no more cost nothing.
NOISE = 200_000
STEP_INSTRUCTIONS_MAX = 320  # per step of a grammar; src/grammar/dfa/limits.h defines a step
COST_INSTRUCTIONS_FREE = 80_000_000  # about 20 ms: reading a text of 100 KB, which costs no steps
PROBES_AT_ONCE = 24
QUADRATIC = "control: quadratic"

# For these shapes even two items are refused: they have no end, or give no result.
REFUSED = {
    "json: too deep", "jinja lexer: comments that do not end", "jinja lexer: strings that do not end",
    "jinja parser: open brackets", "regex: open groups",
}
# These do quadratic work of their own, which is limited elsewhere.
SQUARES = {
    # Each state has the letters of all items that may be omitted; the limit of steps ends it.
    "regex: optional letters",
    # Each pattern is compared with every other one, for a key that matches both; likewise.
    "schema: patterns of keys",
    # For each call the template scans the messages after it; the limits of a rendering end it.
    "template openai-gpt-oss-120b: calls",
}


def growth(counts):
    """The cost of the last items, as a multiple of the cost of half as many before them."""
    small, middle, large = counts
    return (large - middle) / max(middle - small, middle / 20)


def complaint(name, small, counts, verdicts):
    """Why a probe fails; None: it passes. Many items may be refused, by a limit, but not just two."""
    if small == "small refused" and name not in REFUSED:
        return "two items are refused, so that nothing is known of reading them"
    if small == "small read" and name in REFUSED:
        return "two items are read, and REFUSED says that they are not"
    if verdicts == ["read"] * 3 and counts[2] < SHARE_MIN * counts[0]:
        return "the items cost too little to be seen; the probe needs more of them"
    if counts[2] - counts[1] > NOISE and growth(counts) > GROWTH_MAX and name not in SQUARES:
        return f"twice the items cost {growth(counts):.2f} times as much, more than {GROWTH_MAX}"
    return None


def cost_complaint(steps, count):
    if count == 0:
        return "callgrind has counted nothing"
    if count > COST_INSTRUCTIONS_FREE + STEP_INSTRUCTIONS_MAX * steps:
        return f"{count / max(steps, 1):.0f} instructions a step, more than {STEP_INSTRUCTIONS_MAX}"
    return None


def probe_names():
    return subprocess.run([PROBE, "--list"], check=True, text=True, stdout=subprocess.PIPE).stdout.splitlines()


def dumped_counts(folder):
    """The instructions of each measured call, in order; the last dump is from the program's end."""
    dumps = {}
    for name in os.listdir(folder):
        number = re.fullmatch(r"out\.(\d+)", name)
        if number:
            with open(os.path.join(folder, name), encoding="utf-8", errors="replace") as dump:
                dumps[int(number.group(1))] = int(re.search(r"^totals: (\d+)", dump.read(), re.MULTILINE).group(1))
    return [dumps[number] for number in sorted(dumps)]


def measured(names):
    """[(name, verdict of two items, [(items or steps, verdict, instructions), ...])]"""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            ["valgrind", "--tool=callgrind", "--collect-atstart=no", "--dump-line=no",
             "--toggle-collect=growth_measured", "--toggle-collect=cost_measured",
             "--dump-after=growth_measured", "--dump-after=cost_measured",
             f"--callgrind-out-file={folder}/out", PROBE, *names],
            text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"growth_probe {names} under valgrind ended with {done.returncode}:\n"
                               f"{done.stdout[-2000:]}{done.stderr[-4000:]}")
        counts = dumped_counts(folder)
    lines = [line.split("\t") for line in done.stdout.splitlines()]
    small = {name: verdict for name, _, verdict in lines if verdict.startswith("small")}
    calls = [line for line in lines if not line[2].startswith("small")]
    if len(counts) < len(calls):
        raise RuntimeError(f"callgrind counted {len(counts)} calls of {len(calls)}")
    found = {}
    for (name, size, verdict), count in zip(calls, counts):
        found.setdefault(name, []).append((int(size), verdict, count))
    return [(name, small.get(name), found[name]) for name in names]


def measure_all(names):
    parts = [names[i:i + PROBES_AT_ONCE] for i in range(0, len(names), PROBES_AT_ONCE)]
    with concurrent.futures.ThreadPoolExecutor(max_workers=min(4, os.cpu_count() or 1)) as pool:
        for part in pool.map(measured, parts):
            yield from part


def verdict_of(name, small, runs):
    counts = [count for _, _, count in runs]
    if len(runs) == 1:
        return cost_complaint(runs[0][0], counts[0])
    return complaint(name, small, counts, [verdict for _, verdict, _ in runs])


class GrowthTest(unittest.TestCase):
    def test_lines_and_logarithms_pass_and_powers_do_not(self):
        def counts(cost):
            return [1000 + cost(n) for n in (1000, 2000, 4000)]

        for cost in (lambda n: n, lambda n: n * n.bit_length(), lambda n: 7):
            self.assertLess(growth(counts(cost)), GROWTH_MAX)
        for cost in (lambda n: n ** 1.5, lambda n: n * n, lambda n: 300 * n + n * n):
            self.assertGreater(growth(counts(cost)), GROWTH_MAX)

    def test_a_probe_that_measures_nothing_fails(self):
        self.assertIsNotNone(complaint("a", "small read", [1000, 1001, 1002], ["read"] * 3))
        self.assertIsNotNone(complaint("a", "small refused", [1000, 2000, 4000], ["refused"] * 3))
        self.assertIsNone(complaint("a", "small read", [1000, 2000, 4000], ["read"] * 3))
        self.assertIsNone(complaint("a", "small read", [1000, 900, 950], ["read", "refused", "refused"]))

    def test_steps_that_cost_more_than_they_say_fail(self):
        self.assertIsNotNone(cost_complaint(1000, 100_000_000))
        self.assertIsNone(cost_complaint(1_000_000, 100_000_000))
        self.assertIsNotNone(cost_complaint(1000, 0))

    def test_no_parser_costs_more_than_its_input_grows(self):
        names = probe_names()
        self.assertEqual(len(names), len(set(names)), "two probes have the same name")
        self.assertEqual(set(), (REFUSED | SQUARES) - set(names), "these probes are not there")
        complaints = {}
        for name, small, runs in measure_all(names):
            why = verdict_of(name, small, runs)
            if why:
                complaints[name] = why
        # The cost of a nested loop must be detected, or no other is.
        self.assertIn(QUADRATIC, complaints)
        del complaints[QUADRATIC]
        self.assertFalse(complaints, "".join(f"\n  {name}: {why}" for name, why in complaints.items()))


def print_figures(words):
    names = [name for name in probe_names() if any(word in name for word in words)]
    for name, small, runs in measure_all(names):
        figures = " ".join(f"{size}:{verdict}:{count}" for size, verdict, count in runs)
        counts = [count for _, _, count in runs]
        ratio = f"{growth(counts):6.2f}" if len(runs) == 3 else f"{counts[0] / max(runs[0][0], 1):6.0f}"
        print(f"{ratio}  {verdict_of(name, small, runs) or 'ok'}  {name}  {figures}", flush=True)


def why_skipped():
    if os.environ.get("LOCKSTEP_SANITIZE"):
        return "valgrind cannot run a program with sanitizers"
    if not shutil.which("valgrind"):
        return "there is no valgrind here (tools/install_packages.sh installs it on Debian and Ubuntu)"
    return None


if __name__ == "__main__":
    if why_skipped():
        print(f"skipped: {why_skipped()}")
        sys.exit(SKIPPED)
    if len(sys.argv) > 1:
        print_figures(sys.argv[1:])
    else:
        unittest.main()
