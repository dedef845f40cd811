"""Four unequal machines, two of 2 GiB and two of 1 GiB, serve models that none of them could hold alone: within their
memory, two models at the same time, and with the numbers if a third does not fit. Control groups limit the machines; if
those are not permitted, `--memory` says how much they may use."""

import os
import re
import shutil
import tempfile
import threading
import unittest

import harness
import machines
from machines import Cluster
from memory_limit import MemoryLimit, NotPermitted
from random_checkpoint import write_checkpoint

MIB, GIB = 1 << 20, 1 << 30
LIMITS = {"anna": 2048 * MIB, "berta": 2048 * MIB, "clara": 1024 * MIB, "dora": 1024 * MIB}
LAYERS = {"large": 22, "middle": 2, "third": 12}
PATIENCE_S = 150.0
TOKENS = 8


def make_limits():
    """The control groups of all machines; none if that is not permitted."""
    limits = {}
    try:
        for name, limit in LIMITS.items():
            limits[name] = MemoryLimit(limit)
    except NotPermitted as error:
        for limit in limits.values():
            limit.close()
        print(f"{error}; tested with `serve --memory` alone")
        return {}
    print("tested with control groups, without --memory")
    return limits


def put_within(machine, limit):
    """All processes started on the machine from now on share the limit."""
    unlimited = machine.command
    machine.command = lambda *arguments: [*limit.enter(), *unlimited(*arguments)]


@unittest.skipIf(harness.SANITIZERS, "a sanitizer's own memory is larger than the machines are here")
class UnequalMachines(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.models = tempfile.mkdtemp(prefix="lockstep_models_")
        cls.addClassCleanup(shutil.rmtree, cls.models)
        cls.bytes = {name: write_checkpoint(cls.path(name), layers, is_hollow=name == "third")
                     for name, layers in LAYERS.items()}

    @classmethod
    def path(cls, name):
        return os.path.join(cls.models, name)

    def setUp(self):
        self.limits = make_limits()
        for limit in self.limits.values():
            self.addCleanup(limit.close)
        budgets = {} if self.limits else {name: ["--memory", str(0.75 * limit / GIB)]
                                          for name, limit in LIMITS.items()}
        self.cluster = self.enterContext(Cluster(list(LIMITS), flags_of=budgets))
        for machine in self.cluster.machines:
            self.cluster.give_key(machine)
            if self.limits:
                put_within(machine, self.limits[machine.name])
            machine.start()
        self.cluster.wait_until_together()
        self.start_peaks = {name: limit.take_peak() for name, limit in self.limits.items()}
        self.anna = self.cluster.machines[0]

    def load(self, name, *flags):
        loaded = self.anna.lockstep("load", self.path(name), "--streams", "2", *flags, "--timeout", str(int(PATIENCE_S)))
        self.assertEqual(loaded.returncode, 0, loaded.stderr + self.told())
        holders = self.holders(name)
        print(f"{name}: " + ", ".join(f"{bytes / GIB:.2f} GiB on {machine}" for machine, bytes in holders.items()))
        return holders

    def told(self):
        return "".join(f"\n--- {machine.name}\n{machine.said()[-1500:]}" for machine in self.cluster.machines)

    def holders(self, name):
        """The machines of a model's ranks, and the bytes planned there."""
        return {rank["node_name"]: rank["bytes"] for rank in self.anna.model(name)["placement"]}

    def complete(self, machine, name):
        status, body = machine.request("POST", "/v1/completions", {
            "model": name, "prompt": "Once upon a time", "temperature": 0, "max_tokens": TOKENS})
        self.assertEqual(status, 200, body)
        return body["choices"][0]["text"]

    def check_memory(self, workers):
        """No machine ran out of memory, and no process was lost."""
        for machine in self.cluster.machines:
            self.assertIsNone(machine.node.poll(), machine.said()[-2000:])
            self.assertLessEqual(workers[machine.name], set(machine.workers()), "a worker was started again")
        for name, limit in self.limits.items():
            peak = limit.take_peak()
            print(f"{name}: at most {self.start_peaks[name] / MIB:.0f} MiB at the start and {peak / MIB:.0f} with the "
                  f"models, of {limit.limit / MIB:.0f}")
            self.assertEqual(limit.kills(), 0)
            self.assertLess(max(peak, self.start_peaks[name]), limit.limit)

    def workers(self):
        return {machine.name: set(machine.workers()) for machine in self.cluster.machines}

    def test_models_that_no_machine_could_hold(self):
        large = self.load("large", "--ranks", "4")
        self.assertGreater(sum(large.values()), max(node["budget_bytes"] for node in self.anna.status()["nodes"]))
        self.assertEqual(set(large), set(LIMITS))
        self.assertGreater(max(large.values()), 1.05 * min(large.values()), "equal shares do not fit")
        workers = self.workers()
        alone = self.complete(self.anna, "large")

        middle = self.load("middle")
        self.assertTrue(set(large) & set(middle), "no machine has parts of both")
        answers = {}
        threads = [threading.Thread(target=lambda m=machine, n=name: answers.update({(m.name, n): self.complete(m, n)}))
                   for machine in self.cluster.machines[:2] for name in ("large", "middle")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE_S)
        self.assertEqual(answers[("anna", "large")], alone)
        self.assertEqual(answers[("berta", "large")], alone)
        self.assertEqual(answers[("anna", "middle")], answers[("berta", "middle")])

        self.check_refusal()
        self.assertEqual(self.complete(self.anna, "large"), alone)
        self.check_memory(workers)

    def check_refusal(self):
        free = {node["name"]: node["budget_bytes"] - node["promised_bytes"] for node in self.anna.status()["nodes"]}
        self.assertLess(sum(free.values()), self.bytes["third"])
        refused = self.anna.lockstep("load", self.path("third"), "--timeout", str(int(PATIENCE_S)))
        self.assertEqual(refused.returncode, 1, refused.stdout)
        print(refused.stderr.strip())
        said = re.search(r"'third' needs ([\d.]+) GiB more than there is: .* node (\w+) would need ([\d.]+) GiB and has "
                         r"([\d.]+) GiB", refused.stderr)
        self.assertTrue(said, refused.stderr)
        lacking, node, needed, has = float(said[1]), said[2], float(said[3]), float(said[4])
        self.assertAlmostEqual(has, free[node] / GIB, delta=0.006)
        self.assertGreater(needed, has)
        self.assertGreaterEqual(lacking + 0.01, needed - has)
        self.assertEqual(self.anna.lockstep("unload", "third").returncode, 0)


if __name__ == "__main__":
    machines.enter_own_namespace()
    machines.PATIENCE_S = PATIENCE_S
    harness.main()
