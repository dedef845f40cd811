"""A cluster of four whose machines keep their share of a model and a copy of others' (`serve --keep shares`): the hub sends
each byte once, each byte is on two disks, and a machine that is lost with its disk is replaced without the hub."""

import hashlib
import os
import shutil
import struct

import harness
import machines
from hub_machines import MODEL, PIECE, HubMachinesTest
from machines import wait_for

LAYERS = 6  # some 130 MB
HEAD, RECORD = 24, 48  # bytes of a journal of pieces
PATIENCE_S = float(os.environ.get("PATIENCE", "150"))


class Shares(HubMachinesTest):
    @classmethod
    def setUpClass(cls):
        cls.make_model(LAYERS, shards=2)
        cls.weights = {hashlib.sha256(content).hexdigest(): len(content)
                       for name, content in cls.files.items() if name.endswith(".safetensors")}
        assert len(cls.weights) == 2

    def setUp(self):
        self.start(["--keep", "shares"])

    def load(self, machine, *flags):
        loaded = self.command(machine, "load", MODEL, "--timeout", str(int(PATIENCE_S)), *flags)
        self.assertEqual(loaded.returncode, 0, loaded.stderr + self.told())

    def wait_until_ready(self, machine):
        wait_for(lambda: machine.model(MODEL).get("state") == "ready",
                 lambda: f"ready at {machine.name}: {machine.status()} {self.told()}", PATIENCE_S)

    def complete(self, machine):
        status, body = machine.request("POST", "/v1/completions", {
            "model": MODEL, "prompt": "Once upon a time", "temperature": 0, "max_tokens": 8}, patience=PATIENCE_S)
        self.assertEqual(status, 200, str(body) + self.told())
        return body["choices"][0]["text"]

    def blobs(self, machine):
        return os.path.join(self.disk(machine), "hub", "models--org--tiny", "blobs")

    def pieces(self, machine, blob):
        """The pieces of a file of weights that the machine's disk has, by its journal."""
        self.assertFalse(os.path.exists(os.path.join(self.blobs(machine), blob)), "a whole file")
        try:
            with open(os.path.join(self.blobs(machine), blob + ".lockstep.pieces"), "rb") as file:
                journal = file.read()
        except FileNotFoundError:
            return set()
        there = set()
        for at in range(HEAD, len(journal) - RECORD + 1, RECORD):
            piece, is_there = struct.unpack_from("<II", journal, at)
            (there.add if is_there else there.discard)(piece)
        return there

    def bytes_on(self, machine):
        """The disk space of weight files on the machine."""
        try:
            return sum(os.stat(os.path.join(self.blobs(machine), name)).st_blocks * 512
                       for name in os.listdir(self.blobs(machine)) if name.endswith(".lockstep"))
        except FileNotFoundError:
            return 0

    def times(self):
        return sum(map(self.bytes_on, self.cluster.machines)) / sum(self.weights.values())

    def has_two_copies(self):
        for blob, size in self.weights.items():
            held = [piece for machine in self.cluster.machines for piece in self.pieces(machine, blob)]
            if any(held.count(piece) < 2 for piece in range((size + PIECE - 1) // PIECE)):
                return False
        return True

    # The piece with a file's table is on every machine that has any of the file.
    def is_settled(self):
        return self.has_two_copies() and self.times() <= 2 + 2 * 2 * PIECE / sum(self.weights.values()) + 0.02

    def wait_until_settled(self, when):
        wait_for(self.is_settled, lambda: f"two copies {when}: {self.times():.2f} times on the disks, "
                 f"{[self.bytes_on(m) for m in self.cluster.machines]} {self.told()}", PATIENCE_S)
        print(f"{when}: {self.times():.3f} times {sum(self.weights.values())} bytes on the disks, "
              f"{[round(self.bytes_on(m) / 1e6) for m in self.cluster.machines]} MB each", flush=True)

    def lose_with_disk(self, machine):
        machine.kill()
        for folder in (machine.home, self.disk(machine)):
            shutil.rmtree(folder, ignore_errors=True)

    def lose_and_serve(self, parallel):
        anna, lost = self.cluster.machines[0], self.cluster.machines[1]
        self.load(anna, "--ranks", "4", "--parallel", parallel)
        expected = self.complete(anna)
        self.wait_until_settled(f"{parallel}, loaded")
        sent = self.hub.sent_bytes() / self.hub.total()
        print(f"the hub sent {sent:.4f} times {self.hub.total()} bytes", flush=True)
        self.assertLessEqual(sent, 1.002)  # small files that two requested at once
        listed = self.command(anna, "list").stdout
        print(listed, flush=True)
        self.assertRegex(listed, r"org/tiny .* [0-9.]+ MB of [0-9.]+ MB")
        self.assertRegex(self.command(anna, "status").stdout, r"(?m)^  [0-9.]+ MB of [0-9.]+ MB on this disk$")

        self.hub.close()
        self.lose_with_disk(lost)
        wait_for(lambda: anna.sees_alive() == 3, "the loss is seen", PATIENCE_S)
        self.wait_until_ready(anna)
        self.assertEqual(self.complete(anna), expected)
        self.wait_until_settled(f"{parallel}, after a loss")
        return expected

    def test_a_machine_lost_with_its_disk_is_replaced_without_the_hub(self):
        expected = self.lose_and_serve("tensor")
        # A rank that dies is restarted, with the pieces that the others keep.
        anna, clara, dora = self.cluster.machines[0], self.cluster.machines[2], self.cluster.machines[3]
        workers = [pid for machine in (clara, dora, anna) for pid in machine.workers()]
        self.assertEqual(len(workers), 4)
        os.kill(workers[0], 9)
        self.assertEqual(self.complete(anna), expected)
        # Removed pieces take no disk space any more.
        self.assertEqual(self.command(anna, "unload", MODEL).returncode, 0)
        removed = self.command(clara, "remove", MODEL)
        self.assertEqual(removed.returncode, 0, removed.stderr)
        print(removed.stdout.strip(), flush=True)
        self.assertEqual(self.bytes_on(clara), 0)

    def test_stages_keep_their_layers(self):
        self.lose_and_serve("pipeline")


if __name__ == "__main__":
    machines.enter_own_namespace()
    machines.PATIENCE_S = PATIENCE_S
    harness.main()
