"""Four machines, each a process with its own folder (hub_node.cc), share one download from a hub that counts."""

import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "cluster"))
import fake_hub
import harness

PROGRAM = os.path.join(os.environ.get("LOCKSTEP_BINARY_DIR", os.path.join(harness.SOURCE, "build/release")), "hub_node")
PIECE = 16 << 10
MACHINES = 4


class Machine:
    def __init__(self, test, number, honest="honest", hub=None):
        self.folder = os.path.join(test.work, str(number))
        os.makedirs(self.folder, exist_ok=True)
        arguments = [str(number), self.folder, test.list, "org/tiny", hub or test.hub.url, str(PIECE), honest]
        self.process = subprocess.Popen([PROGRAM, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.port = int(self.answer().split()[1])
        test.addCleanup(self.end)

    def end(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()

    def order(self, text):
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()

    def answer(self):
        return self.process.stdout.readline().strip()

    def ask(self, text):
        self.order(text)
        return self.answer()


class Shared(unittest.TestCase):
    def setUp(self):
        self.work = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.work)
        random.seed(7)
        self.files = {"config.json": b"{}", "model-00001-of-00002.safetensors": random.randbytes(1_000_000),
                      "model-00002-of-00002.safetensors": random.randbytes(300_001)}
        self.hub = fake_hub.Hub(self.files)
        self.addCleanup(self.hub.close)
        self.bytes = sum(map(len, self.files.values()))
        self.list = os.path.join(self.work, "list.json")
        with open(self.list, "w", encoding="utf-8") as file:
            json.dump(self.hub.list(), file)

    def start(self, **options):
        self.machines = [Machine(self, i, **options) for i in range(MACHINES)]
        self.introduce()

    def introduce(self):
        ports = " ".join(str(machine.port if machine else 0) for machine in self.machines)
        for machine in filter(None, self.machines):
            self.assertEqual(machine.ask(f"peers {ports}"), "ok")

    def all_ask(self, text):
        machines = [machine for machine in self.machines if machine]
        for machine in machines:
            machine.order(text)
        return [machine.answer() for machine in machines]

    def blob(self, machine, name):
        content = self.files[name]
        large = len(content) >= fake_hub.LARGE
        name = hashlib.sha256(content).hexdigest() if large else fake_hub.git_hash(content)
        return os.path.join(machine.folder, name)

    def check_whole(self):
        for machine in self.machines:
            for name, content in self.files.items():
                with open(self.blob(machine, name), "rb") as file:
                    self.assertEqual(file.read(), content)

    def copies(self):
        """How many disks hold each piece, by the bytes themselves: {(name, piece): machines}."""
        found = {}
        for name, content in self.files.items():
            for begin in range(0, len(content), PIECE):
                wanted = content[begin:begin + PIECE]
                for i, machine in enumerate(self.machines):
                    path = self.blob(machine, name) if machine else ""
                    for path in (path, path + ".lockstep"):
                        if os.path.exists(path):
                            with open(path, "rb") as file:
                                file.seek(begin)
                                if file.read(len(wanted)) == wanted:
                                    found.setdefault((name, begin), set()).add(i)
                found.setdefault((name, begin), set())
        return found

    def test_four_machines_fetch_the_model_once(self):
        self.start()
        answers = self.all_ask("fetch all")
        self.check_whole()
        self.assertEqual(self.hub.sent_bytes(), self.bytes, answers)
        fetched = [int(answer.split()[1]) for answer in answers]
        self.assertEqual(sum(fetched), self.bytes)
        self.assertLess(max(fetched), 0.5 * self.bytes, "all of them fetch")

    def test_each_keeps_its_share_and_a_copy_and_one_is_lost_while_the_hub_is_down(self):
        self.start()
        answers = self.all_ask("fetch share")
        self.assertTrue(all(answer.startswith("received") for answer in answers), answers)
        self.assertEqual(self.hub.sent_bytes(), self.bytes)
        self.assertEqual({len(machines) for machines in self.copies().values()}, {2})
        self.assertEqual(set(self.all_ask("seal")), {"ok"})
        self.hub.close()
        lost = self.machines[2]
        lost.end()
        shutil.rmtree(lost.folder)
        self.machines[2] = None
        self.introduce()
        answers = self.all_ask("fetch share")
        self.assertTrue(all(answer.startswith("received 0 ") for answer in answers), answers)
        self.assertGreaterEqual(min(len(machines) for machines in self.copies().values()), 2)
        self.assertEqual(set(self.all_ask("seal")), {"ok"})
        answers = self.all_ask("fetch all")
        self.assertTrue(all(answer.startswith("received 0 ") for answer in answers), answers)
        self.machines.pop(2)
        self.check_whole()

    def test_machines_killed_at_random_moments_fetch_no_more_than_their_pieces_again(self):
        chance = random.Random(random.randrange(1 << 30))
        kills = 0
        for _ in range(10):
            for i in range(MACHINES):
                shutil.rmtree(os.path.join(self.work, str(i)), ignore_errors=True)
            self.hub.reset_counters()
            self.start()
            for machine in self.machines:
                machine.order("fetch all")
            # All of them, with two connections each, are paused before their downloads are done.
            self.hub.faults.hold_at = self.bytes - (2 * MACHINES + 1) * PIECE
            some, victim = chance.randrange(self.hub.faults.hold_at), chance.randrange(MACHINES)
            harness.wait_until(lambda: self.hub.sent_bytes() >= some, harness.PATIENCE_S, "the download")
            self.machines[victim].process.send_signal(signal.SIGKILL)
            self.machines[victim].end()
            self.machines[victim] = Machine(self, victim)
            kills += 1
            for machine in self.machines:  # the others still wait for the lost one's pieces
                if machine is not self.machines[victim]:
                    machine.end()
            self.hub.release()
            self.machines = [m if i == victim else Machine(self, i) for i, m in enumerate(self.machines)]
            self.introduce()
            self.all_ask("fetch all")
            self.check_whole()
            lost = (MACHINES * 2) * PIECE  # all four were killed, each with two connections
            self.assertLessEqual(self.hub.sent_bytes(), self.bytes + lost)
            for machine in self.machines:
                machine.end()
        self.assertEqual(kills, 10)

    def test_a_machine_that_sends_wrong_pieces_does_no_harm(self):
        self.machines = [Machine(self, i, honest="lies" if i == 1 else "honest") for i in range(MACHINES)]
        self.introduce()
        answers = self.all_ask("fetch all")
        self.assertTrue(all(answer.startswith("received") for answer in answers), answers)
        self.check_whole()
        self.assertGreater(self.hub.sent_bytes(), self.bytes)

    def test_a_byte_that_the_hub_flipped_is_found_by_all(self):
        name = "model-00001-of-00002.safetensors"
        self.hub.faults.flip = {name: 1}
        self.start()
        answers = self.all_ask("fetch all")
        self.assertTrue(all(answer.startswith("received") for answer in answers), answers)
        self.check_whole()


if __name__ == "__main__":
    harness.main()
