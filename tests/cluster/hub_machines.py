"""Machines of a cluster that know a hub on the bridge, for tests of how models get to their disks."""

import os
import shutil
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "hub"))
import fake_hub
from machines import PROGRAM, Cluster
from random_checkpoint import write_checkpoint

NAMES = ["anna", "berta", "clara", "dora"]
MODEL = "org/tiny"
PIECE = 8 << 20


class HubMachinesTest(unittest.TestCase):
    @classmethod
    def make_model(cls, layers, **shape):
        """The hub's files: {name: content}."""
        folder = tempfile.mkdtemp(prefix="lockstep_models_")
        cls.addClassCleanup(shutil.rmtree, folder)
        write_checkpoint(os.path.join(folder, "tiny"), layers, hidden=1024, inner=2816, **shape)
        cls.files = {}
        for name in os.listdir(os.path.join(folder, "tiny")):
            with open(os.path.join(folder, "tiny", name), "rb") as file:
                cls.files[name] = file.read()

    def start(self, serve_flags=()):
        """Four machines that know a hub, and the hub."""
        self.cluster = self.enterContext(Cluster(NAMES, serve_flags))
        self.hub = fake_hub.Hub(self.files, MODEL, host="10.86.0.254")
        self.addCleanup(self.hub.close)
        for machine in self.cluster.machines:
            self.cluster.environment_of[machine.name] = {
                "HF_ENDPOINT": self.hub.url, "HF_HOME": self.disk(machine), "HF_HUB_DOWNLOAD_TIMEOUT": "5"}
        self.cluster.start()
        self.cluster.wait_until_together()

    def disk(self, machine):
        return os.path.join(self.cluster.folder, machine.name + "_models")

    def command(self, machine, *arguments):
        """The finished process of a command on this machine, which knows the same hub as its node."""
        environment = self.cluster.environment_of[machine.name]
        return machine.inside("env", *(f"{key}={value}" for key, value in environment.items()), PROGRAM, *arguments,
                              check=False)

    def told(self):
        return "".join(f"\n--- {machine.name}\n{machine.said()[-2500:]}" for machine in self.cluster.machines)
