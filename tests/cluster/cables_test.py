"""Machines that a cable of its own joins for each pair, as Macs over Thunderbolt: the nodes find each other on another
network, and each link between ranks uses the cable between its two machines, and over RDMA the device of that cable."""

import os
import unittest

import harness
import machines
from machines import MODEL_NAME, Cluster, wait_for

BODY = {"model": MODEL_NAME, "prompt": "Once upon a time", "temperature": 0, "max_tokens": 30}
ALL_CABLES = ["--data-network", "10.87.0.0/16"]
LIBRARY = os.environ.get("LOCKSTEP_FAKE_VERBS", "")


class Cables(unittest.TestCase):
    def start(self, names, flags_of=None, environment_of=None, flags=()):
        self.cluster = Cluster(names, serve_flags=[*ALL_CABLES, *flags], flags_of=flags_of, environment_of=environment_of)
        self.cluster.__enter__()
        self.ends = {name: set() for name in names}
        self.addCleanup(self.cluster.__exit__)

    def join(self, number, low, high):
        """Cable `number` has the network 10.87.<number>.0/30; `low` has its first address."""
        ends = [self.cluster.machine(name) for name in (low, high)]
        name = f"cable{number}"
        machines.ip("link", "add", name, "netns", str(ends[0].holder.pid), "type", "veth", "peer", "name", name,
                    "netns", str(ends[1].holder.pid))
        for end, machine in enumerate(ends):
            machine.inside("ip", "addr", "add", f"10.87.{number}.{end + 1}/30", "dev", name)
            machine.inside("ip", "link", "set", name, "up")
            self.ends[machine.name].add(f"10.87.{number}.{end + 1}/30")

    def start_and_meet(self):
        """Starts the nodes and waits until every machine knows the address of every end of a cable. Linux takes up to a
        second to report that a cable carries, so a node that has just started may tell fewer."""
        self.cluster.start()
        self.cluster.wait_until_together()
        for machine in self.cluster.machines:
            wait_for(lambda m=machine: {name: set(told) for name, told in self.told(m).items()} == self.ends,
                     lambda m=machine: f"{m.name} knows {self.ends}: {self.told(m)}")

    @staticmethod
    def told(machine):
        """{name: data addresses in their order} of all nodes, as `machine` knows them."""
        return {node["name"]: node["data_addresses"] for node in machine.status()["nodes"]}

    def load(self, names):
        self.cluster.machine(names[0]).load("--ranks", str(len(names)), "--nodes", ",".join(names))

    def links(self):
        """{(machine, machine): link} as the leading node says it, the lower rank first."""
        for machine in self.cluster.machines:
            model = machine.model(MODEL_NAME)
            if model.get("links"):
                names = {rank["rank"]: rank["node_name"] for rank in model["placement"]}
                return {(names[link["a"]], names[link["b"]]): link for link in model["links"]}
        raise AssertionError("no node says links")

    def check_cables(self, cables, links):
        """Each pair of `cables` {(low, high): number} uses its cable."""
        self.assertEqual({tuple(sorted(pair)) for pair in links}, set(cables))
        for (a, b), link in links.items():
            number = cables[tuple(sorted((a, b)))]
            ends = {a: link["a_host"], b: link["b_host"]}
            low, high = sorted(ends)
            self.assertEqual((ends[low], ends[high]), (f"10.87.{number}.1", f"10.87.{number}.2"), (a, b))
            self.assertEqual(link["network_note"], "")

    def check_answers(self):
        alone, = machines.texts_alone([BODY])
        for machine in self.cluster.machines:
            self.assertEqual(machine.answer(BODY), alone)


MESH = {("anna", "berta"): 1, ("anna", "carla"): 2, ("berta", "carla"): 3}
NAMES = ["anna", "berta", "carla"]


class TcpTest(Cables):
    def test_three_machines_use_the_cable_of_each_pair(self):
        self.start(NAMES)
        for (low, high), number in MESH.items():
            self.join(number, low, high)
        self.start_and_meet()
        self.assertEqual(self.told(self.cluster.machines[1]),
                         {"anna": ["10.87.1.1/30", "10.87.2.1/30"], "berta": ["10.87.1.2/30", "10.87.3.1/30"],
                          "carla": ["10.87.2.2/30", "10.87.3.2/30"]})
        self.load(NAMES)
        links = self.links()
        self.check_cables(MESH, links)
        self.assertEqual({link["path"] for link in links.values()}, {"tcp"})
        self.check_answers()
        leader = self.cluster.machine(next(iter(links))[0])
        shown = leader.lockstep("status").stdout
        doctor = leader.lockstep("doctor").stdout
        for link in links.values():
            self.assertIn(f"{link['a_host']} - {link['b_host']}\n", shown)
            self.assertRegex(doctor, rf"the links of {MODEL_NAME}: .*{link['a_host']} - \w+ {link['b_host']}")

    def test_a_pair_without_a_cable_says_so_and_uses_the_other_network_until_it_has_one(self):
        self.start(NAMES)
        self.join(1, "anna", "berta")
        self.join(2, "anna", "carla")
        self.start_and_meet()
        self.load(NAMES)
        links = self.links()
        (pair, missing), = [item for item in links.items() if set(item[0]) == {"berta", "carla"}]
        self.assertEqual({missing["a_host"], missing["b_host"]}, {self.cluster.machine(name).address for name in pair})
        # The node with the lower id comes first, and ids are random.
        why = "(berta and carla|carla and berta) have no data network in common"
        self.assertRegex(missing["network_note"], f"^{why}: join the two with a cable")
        cables = {pair: MESH[pair] for pair in (("anna", "berta"), ("anna", "carla"))}
        self.check_cables(cables, {pair: link for pair, link in links.items() if link is not missing})
        self.check_answers()
        leader = self.cluster.machine(next(iter(links))[0])
        self.assertRegex(leader.lockstep("status").stdout, f"no data network: {why}")
        self.assertRegex(leader.lockstep("doctor").stdout, f"is in no data network: {why}")

        self.join(3, "berta", "carla")
        carla = self.cluster.machine("carla")
        for machine in self.cluster.machines:
            wait_for(lambda m=machine: all("10.87.3." in str(node["data_addresses"]) for node in m.status()["nodes"]
                                           if node["name"] != "anna"),
                     lambda m=machine: f"{m.name} knows the new cable: {m.status()['nodes']}")
        self.assertIn("addresses for links between ranks are now 10.87.2.2, 10.87.3.2", carla.said())
        carla.unload()
        self.cluster.wait_until_empty()
        self.load(NAMES)
        self.check_cables(MESH, self.links())

    def test_networks_may_be_listed_and_the_flag_repeated_and_link_local_ones_are_refused(self):
        self.start(["anna", "berta"])
        self.cluster.serve_flags = ["--data-network", "10.87.2.0/30,10.87.9.0/30", "--data-network", "10.87.1.0/30"]
        self.join(1, "anna", "berta")
        self.join(2, "anna", "berta")
        self.start_and_meet()
        self.assertEqual(self.told(self.cluster.machines[0])["anna"], ["10.87.2.1/30", "10.87.1.1/30"])
        self.load(["anna", "berta"])
        self.check_cables({("anna", "berta"): 2}, self.links())
        for machine in self.cluster.machines:
            machine.end()
        self.cluster.serve_flags = ["--data-network", "fe80::/64"]
        anna = self.cluster.machine("anna")
        anna.start()
        self.assertEqual(anna.node.wait(machines.PATIENCE_S), 2)
        self.assertIn("fe80::/64 is link-local: its addresses are valid only with an interface of one machine", anna.said())


@unittest.skipUnless(LIBRARY, "this build has no played RDMA library")
class RdmaTest(Cables):
    def start_with_rdma(self, names, ports_of, flags=()):
        """`ports_of`: the RDMA ports of each machine, by their addresses."""
        self.start(names, flags=["--link", "verbs", *flags])
        wire = os.path.join(self.cluster.folder, "wire")
        self.cluster.environment_of = {
            name: {"LOCKSTEP_VERBS_LIBRARY": LIBRARY, "LOCKSTEP_FAKE_VERBS_FILE": wire, "LOCKSTEP_FAKE_VERBS_MODE": "apple",
                   "LOCKSTEP_FAKE_VERBS_ADDRESSES": ",".join(ports)} for name, ports in ports_of.items()}

    def test_each_pair_uses_the_device_of_its_cable(self):
        ports_of = {"anna": ["10.87.1.1", "10.87.2.1"], "berta": ["10.87.3.1", "10.87.1.2"],
                    "carla": ["10.87.3.2", "10.87.2.2"]}
        self.start_with_rdma(NAMES, ports_of)
        for (low, high), number in MESH.items():
            self.join(number, low, high)
        self.start_and_meet()
        self.load(NAMES)
        links = self.links()
        self.check_cables(MESH, links)
        for (a, b), link in links.items():
            self.assertEqual((link["path"], link["reason"]), ("verbs-uc", ""), (a, b))
            self.assertEqual(link["device"], f"fake{ports_of[a].index(link['a_host'])}", (a, b))
        self.check_answers()
        leader = self.cluster.machine(next(iter(links))[0])
        shown = leader.lockstep("status").stdout
        for link in links.values():
            self.assertIn(f"{link['a_host']} - {link['b_host']}, {link['device']}\n", shown)

    def test_of_two_cables_the_one_with_rdma_at_both_ends_is_used(self):
        # The first cable has RDMA at one end only; the second's port is down at one end.
        self.start_with_rdma(["anna", "berta"], {"anna": ["10.87.1.1", "!10.87.2.1", "10.87.3.1"],
                                                 "berta": ["10.87.3.2", "10.87.2.2"]})
        for number in (1, 2, 3):
            self.join(number, "anna", "berta")
        self.start_and_meet()
        self.load(["anna", "berta"])
        links = self.links()
        self.check_cables({("anna", "berta"): 3}, links)
        self.assertEqual([link["path"] for link in links.values()], ["verbs-uc"])
        self.check_answers()


if __name__ == "__main__":
    machines.enter_own_namespace()
    harness.main()
