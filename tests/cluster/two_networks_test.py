"""Two machines that share two networks: control connections stay on the one where the nodes found each other, and with
`--data-network` the links between ranks use the other."""

import unittest

import harness
import machines
from machines import HTTP_PORT, MODEL_NAME, Cluster, wait_for

CONTROL_PORT = 8601
BODY = {"model": MODEL_NAME, "prompt": "Once upon a time", "temperature": 0, "max_tokens": 30}


def data_address(machine):
    return machine.address.replace("10.86.0.", "10.87.0.")


def address_text(hexadecimal):
    """An IPv4 address of /proc/net/tcp, also as the end of an IPv6 one."""
    return ".".join(str(byte) for byte in reversed(bytes.fromhex(hexadecimal[-8:])))


def connections(machine):
    """(own address, own port, peer's address, peer's port) of established connections."""
    found = set()
    for table in ("tcp", "tcp6"):
        with open(f"/proc/{machine.holder.pid}/net/{table}", encoding="ascii") as file:
            rows = [line.split() for line in file.readlines()[1:]]
        for row in rows:
            if row[3] != "01":
                continue
            (own, own_port), (peer, peer_port) = (end.split(":") for end in row[1:3])
            found.add((address_text(own), int(own_port, 16), address_text(peer), int(peer_port, 16)))
    return found


class TwoNetworksTest(unittest.TestCase):
    def setUp(self):
        self.cluster = Cluster(["anna", "berta"], serve_flags=["--data-network", "10.87.0.0/24"])
        self.cluster.__enter__()
        self.addCleanup(self.cluster.__exit__)

    def give_second_addresses(self):
        for machine in self.cluster.machines:
            machine.inside("ip", "addr", "add", data_address(machine) + "/24", "dev", "eth0")

    def test_ranks_talk_over_the_data_network_and_nodes_over_the_other(self):
        self.give_second_addresses()
        self.cluster.start()
        self.cluster.wait_until_together()
        anna, berta = self.cluster.machines
        for machine in self.cluster.machines:
            told = {node["name"]: node["data_host"] for node in machine.status()["nodes"]}
            self.assertEqual(told, {"anna": data_address(anna), "berta": data_address(berta)})
        anna.load("--ranks", "2", "--nodes", "anna,berta")
        alone, = machines.texts_alone([BODY])
        self.assertEqual([machine.answer(BODY) for machine in (anna, berta)], [alone, alone])
        there = {one for one in connections(anna) if HTTP_PORT not in (one[1], one[3])}
        data = {one for one in there if one[2] == data_address(berta)}
        self.assertTrue(data, "no link of ranks on the data network")
        self.assertTrue(all(one[0] == data_address(anna) for one in data), data)
        # Over IPv4 or IPv6, depending on how the nodes found each other.
        control = {one for one in there if CONTROL_PORT in (one[1], one[3])}
        self.assertTrue(control, "no control connection on the other network")
        self.assertEqual(there, data | control)
        self.assertFalse(data & control)

    def test_a_node_that_is_not_in_the_data_network_says_so(self):
        anna = self.cluster.machines[0]
        self.cluster.give_key(anna)
        anna.start()
        self.assertEqual(anna.node.wait(machines.PATIENCE_S), 2)
        self.assertIn("this machine has no address in 10.87.0.0/24; it has 10.86.0.1 (eth0)", anna.said())

    def test_machines_of_which_one_has_no_data_network_talk_where_their_nodes_do(self):
        self.give_second_addresses()
        self.cluster.serve_flags = []
        self.cluster.flags_of = {"anna": ["--data-network", "10.87.0.0/24"]}
        self.cluster.start()
        self.cluster.wait_until_together()
        anna, berta = self.cluster.machines
        berta.load("--ranks", "2", "--nodes", "anna,berta")
        wait_for(lambda: anna.model(MODEL_NAME).get("state") == "ready", "the model")
        alone, = machines.texts_alone([BODY])
        self.assertEqual(berta.answer(BODY), alone)


if __name__ == "__main__":
    machines.enter_own_namespace()
    harness.main()
