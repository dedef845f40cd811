"""A cluster of four loads a model from a hub: the hub sends each byte once, whichever node is killed; without a hub the
others get a node's copy; and corruption on a disk is detected. SEED chooses the moments."""

import os
import random
import shutil
import threading

import harness
import machines
from hub_machines import MODEL, NAMES, PIECE, HubMachinesTest, fake_hub
from machines import wait_for

NAME = MODEL
TALE = {"model": machines.MODEL_NAME, "prompt": "Lily and Tom", "temperature": 0, "max_tokens": 60}
WEIGHTS = "model.safetensors"
LAYERS = 4  # some 90 MB
SEEDS = 2
CONNECTIONS = 4  # from a node to the hub
PATIENCE_S = 90.0


class Download(HubMachinesTest):
    @classmethod
    def setUpClass(cls):
        cls.make_model(LAYERS)

    def load(self, machine, ranks=4, waits=True, everywhere=False):
        """`everywhere`: even on a machine that was lost a moment ago."""
        where = ["--nodes", ",".join(NAMES)] if everywhere else []
        loaded = self.command(machine, "load", MODEL, "--ranks", str(ranks), *where, "--timeout", str(int(PATIENCE_S)),
                              *([] if waits else ["--no-wait"]))
        self.assertEqual(loaded.returncode, 0, loaded.stderr + self.told())

    def wait_until_ready(self, machine):
        wait_for(lambda: machine.model(NAME).get("state") == "ready",
                 lambda: f"ready at {machine.name}: {machine.status()} {self.told()}", PATIENCE_S)

    def complete(self, machine):
        status, body = machine.request("POST", "/v1/completions", {
            "model": NAME, "prompt": "Once upon a time", "temperature": 0, "max_tokens": 8})
        self.assertEqual(status, 200, str(body) + self.told())
        return body["choices"][0]["text"]

    def blob(self, machine, name):
        content = self.files[name]
        large = len(content) >= fake_hub.LARGE
        name = fake_hub.hashlib.sha256(content).hexdigest() if large else fake_hub.git_hash(content)
        return os.path.join(self.disk(machine), "hub", "models--org--tiny", "blobs", name)

    def has_all(self, machine):
        for name, content in self.files.items():
            try:
                with open(self.blob(machine, name), "rb") as file:
                    if file.read() != content:
                        return False
            except FileNotFoundError:
                return False
        return True

    def holders(self):
        return [machine.name for machine in self.cluster.machines if self.has_all(machine)]

    def lose_with_disk(self, machine):
        machine.kill()
        for folder in (machine.home, self.disk(machine)):
            shutil.rmtree(folder, ignore_errors=True)

    def start_again(self, machine):
        self.cluster.give_key(machine)
        machine.start()

    def check_sent(self, at_most):
        times = self.hub.sent_bytes() / self.hub.total()
        print(f"the hub sent {times:.4f} times {self.hub.total()} bytes", flush=True)
        self.assertGreaterEqual(times, 1.0)
        self.assertLessEqual(times, at_most)

    def test_all_load_it_the_hub_sends_it_once_and_is_needed_no_more(self):
        self.start()
        loads = [threading.Thread(target=self.load, args=(machine,)) for machine in self.cluster.machines]
        for thread in loads:
            thread.start()
        for thread in loads:
            thread.join(PATIENCE_S)
        for machine in self.cluster.machines:
            self.wait_until_ready(machine)
        expected = self.complete(self.cluster.machines[0])
        for machine in self.cluster.machines:
            self.assertEqual(self.complete(machine), expected)
            self.assertTrue(self.has_all(machine), machine.name)
        self.check_sent(1.02)

        self.hub.close()
        anna, lost = self.cluster.machines[0], self.cluster.machines[2]
        self.lose_with_disk(lost)
        wait_for(lambda: anna.sees_alive() == 3, "the loss is seen", PATIENCE_S)
        self.wait_until_ready(anna)
        self.assertEqual(self.complete(anna), expected)
        self.start_again(lost)
        self.cluster.wait_until_together()
        self.assertEqual(self.command(lost, "unload", NAME).returncode, 0)
        self.load(lost)
        self.assertEqual(self.complete(lost), expected)
        self.assertTrue(self.has_all(lost))

    def test_a_node_that_is_killed_at_any_moment_goes_on(self):
        seed = int(os.environ.get("SEED", random.SystemRandom().randrange(1 << 30)))
        for number in range(seed, seed + SEEDS):
            chance = random.Random(number)
            with self.subTest(seed=number):
                self.go_on_after_a_kill(chance, number)
                self.doCleanups()

    def go_on_after_a_kill(self, chance, seed):
        self.start()
        self.hub.faults.drip = 64 << 10
        some, victim = chance.randrange(self.hub.total()), chance.choice(self.cluster.machines)
        client = chance.choice([machine for machine in self.cluster.machines if machine is not victim])
        self.load(client, waits=False)
        wait_for(lambda: self.hub.sent_bytes() >= some, "the download", PATIENCE_S)
        victim.kill()
        print(f"seed {seed}: {victim.name} killed after {some} bytes", flush=True)
        self.start_again(victim)
        self.wait_until_ready(client)
        self.wait_until_ready(victim)
        self.assertEqual(self.complete(client), self.complete(victim))
        # Transfers in progress on the victim's connections are lost. It still has the rest, and the others
        # wait for it.
        self.check_sent(1 + (CONNECTIONS + 1) * PIECE / self.hub.total())

    def test_a_model_on_one_node_alone_has_a_copy_that_serves_when_it_is_lost(self):
        self.start()
        self.load(self.cluster.machines[0], ranks=1)
        anna = self.cluster.machines[0]
        expected = self.complete(anna)
        wait_for(lambda: len(self.holders()) >= 2, lambda: f"a second copy {self.told()}", PATIENCE_S)
        self.check_sent(1.02)
        self.hub.close()
        holder = next(machine for machine in self.cluster.machines
                      if machine.name == anna.model(NAME)["placement"][0]["node_name"])
        client = next(machine for machine in self.cluster.machines if machine is not holder)
        self.lose_with_disk(holder)
        wait_for(lambda: client.sees_alive() == 3, "the loss is seen", PATIENCE_S)
        self.wait_until_ready(client)
        self.assertEqual(self.complete(client), expected)
        wait_for(lambda: len(self.holders()) >= 2, lambda: f"a second copy again {self.told()}", PATIENCE_S)

    def test_every_machine_of_a_model_fetches_its_draft_model(self):
        self.start()
        anna = self.cluster.machines[0]
        text, = machines.texts_alone([TALE])
        loaded = self.command(anna, "load", machines.MODEL, "--ranks", "2", "--parallel", "pipeline",
                              "--draft-model", MODEL, "--timeout", str(int(PATIENCE_S)))
        self.assertEqual(loaded.returncode, 0, loaded.stderr + self.told())
        placed = anna.placement()
        for machine in placed:
            self.assertTrue(self.has_all(machine), machine.name)
        self.assertEqual(anna.answer(TALE), text)
        wait_for(lambda: placed[0].metric("lockstep_draft_steps_total") > 0, "guesses")

    def test_damage_on_a_disk_is_found(self):
        self.start()
        anna, berta, clara = self.cluster.machines[:3]
        self.load(anna, everywhere=True)
        expected = self.complete(anna)
        self.assertEqual(self.command(anna, "unload", NAME).returncode, 0)
        with open(self.blob(berta, WEIGHTS), "r+b") as file:
            file.seek(len(self.files[WEIGHTS]) // 2)
            byte = file.read(1)[0]
            file.seek(-1, os.SEEK_CUR)
            file.write(bytes([byte ^ 1]))

        # A node that copies the file gets intact pieces from the others.
        sent = self.hub.sent_bytes()
        clara.kill()
        shutil.rmtree(self.disk(clara))
        self.start_again(clara)
        self.cluster.wait_until_together()
        self.load(anna, everywhere=True)
        self.assertTrue(self.has_all(clara))
        self.assertLessEqual(self.hub.sent_bytes() - sent, 2 * PIECE)

        # The file itself is repaired when its user requests it.
        self.assertEqual(self.command(anna, "unload", NAME).returncode, 0)
        self.assertFalse(self.has_all(berta))
        verified = self.command(berta, "pull", MODEL, "--verify")
        self.assertEqual(verified.returncode, 0, verified.stderr)
        print(verified.stdout.strip())
        self.assertTrue(self.has_all(berta))
        self.load(anna, everywhere=True)
        self.assertEqual(self.complete(clara), expected)


if __name__ == "__main__":
    machines.enter_own_namespace()
    machines.PATIENCE_S = PATIENCE_S
    harness.main()
