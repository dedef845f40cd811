"""A model in several groups on four machines: each has the whole model and its own machines, requests from any node go
to the least busy group, and when a machine is lost its group's streams continue in another one with the undisturbed
text."""

import unittest

import harness
import machines
from machines import MODEL, Cluster, Stream, wait_for
from machines import MODEL_NAME as NAME

NAMES = ["anna", "berta", "clara", "dora"]
SLOWED = ["--link-delay-us", "3000", "--drain", "1"]  # so that streams are running when something happens
BODIES = [{"model": NAME, "prompt": "Lily and Tom", "temperature": 0.9, "seed": seed, "max_tokens": 400}
          for seed in (0, 3, 6, 10, 12, 13)]  # none of these texts ends before its 400 tokens
UNNOTICED_S = 1.0  # for pauses of a few hundredths of a second, even with many busy processes


class ReplicasTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.texts = machines.texts_alone(BODIES)
        cls.cluster = Cluster(NAMES, SLOWED)
        cls.addClassCleanup(cls.cluster.__exit__)
        cls.cluster.start()

    def setUp(self):
        """Four machines with nothing loaded."""
        for machine in self.cluster.machines:
            if machine.node.poll() is not None:
                machine.start()
        self.cluster.wait_until_together()
        for machine in self.cluster.machines:  # one that was lost recently gets nothing at first
            wait_for(lambda m=machine: not any(node["note"] for node in m.status()["nodes"]), "all to be used again")
        for model in self.cluster.machines[0].status()["models"]:
            self.cluster.machines[0].unload(model["name"])
        self.cluster.wait_until_empty()

    def load(self, asked, *flags):
        return asked.lockstep("load", MODEL, "--timeout", str(int(machines.PATIENCE_S)), *flags)

    def groups(self, asked):
        """The machines of each group, rank 0's first, and the group's status."""
        model = asked.model(NAME)
        places = [[self.cluster.machine(rank["node_name"]) for rank in model["placement"] if rank["group"] == number]
                  for number in range(len(model.get("groups", [])))]
        return list(zip(places, model.get("groups", [])))

    def ready(self, asked):
        return [places for places, group in self.groups(asked) if group["phase"] == "ready"]

    def load_pairs(self):
        loaded = self.load(self.cluster.machines[1], "--ranks", "2", "--replicas", "2")
        self.assertEqual(loaded.returncode, 0, loaded.stderr)
        wait_for(lambda: all(len(self.ready(machine)) == 2 for machine in self.cluster.machines), "two groups everywhere")
        pairs = self.ready(self.cluster.machines[0])
        self.assertEqual([len(pair) for pair in pairs], [2, 2])
        self.assertEqual({machine.name for pair in pairs for machine in pair}, set(NAMES))
        self.assertEqual([len(machine.workers()) for machine in self.cluster.machines], [1, 1, 1, 1])
        return pairs

    def check_loss(self, rank):
        """Two groups serve streams to three machines; the fourth, which has that rank of one group, is killed."""
        pairs = self.load_pairs()
        victim = pairs[1][rank]
        asked = [machine for machine in self.cluster.machines if machine is not victim]
        streams = [Stream(asked[number % 3], body) for number, body in enumerate(BODIES)]
        for stream in streams:
            stream.wait_for_pieces(15)
        # Each node counts its own requests at once and learns of the others' with the group's next status.
        wait_for(lambda: sum(group["running"] for _, group in self.groups(asked[0])) == len(BODIES),
                 lambda: f"all to be counted in {asked[0].model(NAME)['groups']}", patience=10)
        running = [group["running"] for _, group in self.groups(asked[0])]
        print(f"requests in the groups: {running}")
        self.assertGreaterEqual(min(running), 2)
        for stream in streams:
            stream.check_under_way()
        workers = [machine.workers() for machine in pairs[0]]
        victim.kill()
        for stream in streams:
            stream.join(machines.PATIENCE_S)
            self.assertFalse(stream.is_alive())
            self.assertIsNone(stream.problem)
        self.assertEqual([stream.text() for stream in streams], self.texts)
        pauses = sorted(stream.longest_pause() for stream in streams)
        print(f"rank {rank} of a group killed: longest pauses of the streams " + ", ".join(f"{p:.2f}" for p in pauses) + " s")
        # The other group keeps its processes.
        self.assertEqual([machine.workers() for machine in pairs[0]], workers)
        self.assertLess(pauses[min(running) - 1], UNNOTICED_S, "streams of the other group noticed it")
        # The remaining machine of that group now holds the model alone.
        wait_for(lambda: all(len(self.ready(machine)) == 2 for machine in asked), "the lost group again")
        again = self.ready(asked[0])
        self.assertIn(pairs[0], again)
        self.assertEqual({machine.name for places in again for machine in places}, {machine.name for machine in asked})
        for machine in asked:
            self.assertEqual(machine.answer(BODIES[0]), self.texts[0])

    def test_streams_outlive_the_machine_that_leads_a_group(self):
        self.check_loss(0)

    def test_streams_outlive_another_machine_of_a_group(self):
        self.check_loss(1)

    def test_more_groups_than_machines_are_refused_with_numbers_while_the_others_serve(self):
        anna, berta = self.cluster.machines[:2]
        loaded = self.load(anna, "--replicas", "5")
        self.assertEqual(loaded.returncode, 1, loaded.stdout)
        print(loaded.stderr.strip())
        self.assertIn("4 of 5 groups are placed", loaded.stderr)
        self.assertIn("4 of 4 nodes each hold a group", loaded.stderr)
        self.assertEqual(sorted(places[0].name for places in self.ready(berta)), NAMES)
        said = berta.lockstep("status").stdout
        for line in ("group 0: ready", "group 3: ready", "4 of 5 groups are placed"):
            self.assertIn(line, said)
        self.assertEqual([machine.answer(BODIES[0]) for machine in self.cluster.machines], [self.texts[0]] * 4)
        # From now on one group is enough: a stream survives the change.
        stream = Stream(berta, BODIES[1]).wait_for_pieces(5)
        fewer = self.load(anna, "--replicas", "1")
        self.assertEqual(fewer.returncode, 0, fewer.stderr)
        wait_for(lambda: len(self.ready(berta)) == 1 and sum(len(m.workers()) for m in self.cluster.machines) == 1,
                 "one group")
        stream.join(machines.PATIENCE_S)
        self.assertIsNone(stream.problem)
        self.assertEqual(stream.text(), self.texts[1])


if __name__ == "__main__":
    machines.enter_own_namespace()
    harness.main()
