"""Nodes in separate network namespaces, connected by a bridge: they find each other, strangers get nothing, and the
traffic cannot be read. Needs root and `ip` (exit code 77 without); everything is made inside a namespace of this test
and ends with it."""

import json
import os
import queue
import secrets
import select
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest

PROGRAM = os.environ.get("LOCKSTEP_TEST_NODE", "")
SKIPPED = 77
INSIDE = "LOCKSTEP_INSIDE_NAMESPACE"
CONTROL_PORT = 8601
BEACON_PORT = 8602
PATIENCE_S = 20.0
FIND_EACH_OTHER_S = 3.0
BEACONS_UNHEARD = 3  # after this many from each it would have been found
IDLE_CORE_SHARE = 0.01
IDLE_SECONDS = 10.0
IDLE_WINDOWS = 4


def ip(*arguments):
    subprocess.run(["ip", *arguments], check=True, capture_output=True)


def address_text(packed):
    """An address that this test can call."""
    if len(packed) == 4:
        return socket.inet_ntop(socket.AF_INET, packed)
    return socket.inet_ntop(socket.AF_INET6, packed) + "%br0"  # of one link


class Capture(threading.Thread):
    """Every packet on every interface of this namespace, which holds the bridge's end of each cable."""

    def __init__(self):
        super().__init__(daemon=True)
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
        self.socket.setsockopt(socket.SOL_SOCKET, 33, 64 << 20)  # SO_RCVBUFFORCE: no packet may be missed
        self.packets = []
        self.lock = threading.Lock()
        self.start()

    def run(self):
        while True:
            try:
                packet = self.socket.recv(1 << 18)
            except OSError:
                return
            with self.lock:
                self.packets.append(packet)

    def packets_of(self, protocol):
        """(source, destination, payload of the IP packet), in order of arrival. Nodes find each other by IPv4 and by
        IPv6, and stay with the first connection."""
        with self.lock:
            packets = list(self.packets)
        for packet in packets:
            if packet[12:14] == b"\x08\x00" and packet[23] == protocol:
                header = (packet[14] & 15) * 4
                length = struct.unpack(">H", packet[16:18])[0] or len(packet) - 14
                yield packet[26:30], packet[30:34], packet[14 + header : 14 + length]
            elif packet[12:14] == b"\x86\xdd" and packet[20] == protocol:
                length = struct.unpack(">H", packet[18:20])[0] or len(packet) - 54
                yield packet[22:38], packet[38:54], packet[54 : 54 + length]

    def all_bytes(self):
        with self.lock:
            return b"\n".join(self.packets)

    def datagrams(self):
        return [payload[8:] for _, _, payload in self.packets_of(17) if payload[2:4] == struct.pack(">H", BEACON_PORT)]

    def beacons_of(self, address):
        """The number of different beacons that this machine sent."""
        source = socket.inet_aton(address)
        return len({payload for sender, _, payload in self.packets_of(17)
                    if sender == source and payload[2:4] == struct.pack(">H", BEACON_PORT)})

    def streams(self):
        """(source, source port, destination, destination port) -> bytes sent, from the first on."""
        streams = {}
        for source, destination, payload in self.packets_of(6):
            ports = struct.unpack(">HH", payload[:4])
            sequence = struct.unpack(">I", payload[4:8])[0]
            flow = streams.setdefault((source, ports[0], destination, ports[1]), {})
            if payload[13] & 2:  # SYN
                flow["first"] = sequence + 1
            if len(payload) > (payload[12] >> 4) * 4:
                flow[sequence] = payload[(payload[12] >> 4) * 4 :]
        whole = {}
        for key, flow in streams.items():
            position, data = flow.get("first"), b""
            while position in flow:
                data += flow[position]
                position = (position + len(flow[position])) & 0xFFFFFFFF
            whole[key] = data
        return whole


class Machine:
    """One namespace with one node in it. It starts when go() is called, with the cable in."""

    def __init__(self, network, number, name, folder, *arguments):
        self.name, self.address, self.cable = name, f"10.86.0.{number}", f"v{number}"
        self.events, self.seen = queue.Queue(), []
        command = [PROGRAM, "--home", os.path.join(folder, name), "--name", name, *arguments]
        self.process = subprocess.Popen(
            ["unshare", "--net", "sh", "-c", 'echo ready; read go; exec "$@"', "sh", *command],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
        assert self.process.stdout.readline() == "ready\n"
        pid = str(self.process.pid)
        ip("link", "add", self.cable, "type", "veth", "peer", "name", "eth0", "netns", pid)
        ip("link", "set", self.cable, "master", network.bridge)
        ip("link", "set", self.cable, "up")
        if network.blocks_multicast:
            ip("link", "set", self.cable, "type", "bridge_slave", "mcast_flood", "off")
        for inside in (["link", "set", "lo", "up"], ["addr", "add", self.address + "/24", "dev", "eth0"],
                       ["link", "set", "eth0", "up"]):
            subprocess.run(["nsenter", "-t", pid, "-n", "ip", *inside], check=True, capture_output=True)
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            self.events.put((time.monotonic(), json.loads(line)))

    def say(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def go(self):
        self.say("go")

    def wait_for(self, kind, patience=PATIENCE_S, **fields):
        """The next matching event, and its time."""
        deadline = time.monotonic() + patience
        while True:
            try:
                when, event = self.events.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                raise AssertionError(f"{self.name}: no {kind} {fields}, but {self.seen}") from None
            self.seen.append(event)
            if event["event"] == kind and all(event.get(key) == value for key, value in fields.items()):
                return when, event

    def report(self):
        self.say("report")
        return self.wait_for("report")[1]

    def reports(self, condition):
        deadline = time.monotonic() + PATIENCE_S
        while True:
            report = self.report()
            if condition(report):
                return report
            if time.monotonic() > deadline:
                raise AssertionError(f"{self.name} still reports {report}")
            select.select([], [], [], 0.05)

    def wait_for_peers(self, names):
        """The time at which the last of them was connected."""
        missing, last = set(names) - {self.name}, 0.0
        while missing:
            last, event = self.wait_for("connected")
            missing.discard(event["name"])
        return last

    def cpu_seconds(self):
        with open(f"/proc/{self.process.pid}/stat") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def stop(self):
        self.process.stdin.close()
        try:
            self.process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise
        finally:
            self.reader.join(PATIENCE_S)
            self.process.stdout.close()
            subprocess.run(["ip", "link", "del", self.cable], capture_output=True)


class Network:
    """A bridge, this test at 10.86.0.254 on it, and the machines plugged in."""

    def __init__(self, blocks_multicast=False):
        self.bridge, self.blocks_multicast, self.machines = "br0", blocks_multicast, []
        self.folder = tempfile.mkdtemp(prefix="lockstep_network_")
        ip("link", "add", self.bridge, "type", "bridge", "mcast_snooping", "0")
        ip("addr", "add", "10.86.0.254/24", "dev", self.bridge)
        ip("link", "set", self.bridge, "up")

    def add(self, name, *arguments):
        machine = Machine(self, len(self.machines) + 1, name, self.folder, *arguments)
        self.machines.append(machine)
        return machine

    def close(self):
        for machine in self.machines:
            machine.stop()
        ip("link", "del", self.bridge)
        shutil.rmtree(self.folder)


class NetworkTest(unittest.TestCase):
    blocks_multicast = False

    def setUp(self):
        self.network = Network(self.blocks_multicast)
        self.addCleanup(self.network.close)
        self.key = secrets.token_hex(32)

    def start_four(self, **arguments):
        names = ["anna", "berta", "clara", "dora"]
        machines = [self.network.add(name, "--cluster-key", self.key, *arguments.get(name, ())) for name in names]
        started = time.monotonic()
        for machine in machines:
            machine.go()
        found = max(machine.wait_for_peers(names) for machine in machines) - started
        return machines, found


class BeaconTest(NetworkTest):
    def test_four_nodes_find_each_other_by_beacon_alone(self):
        _, found = self.start_four()
        print(f"four nodes found each other by beacon in {found:.2f} s")
        self.assertLess(found, FIND_EACH_OTHER_S)

    def test_four_nodes_that_have_nothing_to_do_cost_nothing(self):
        machines, _ = self.start_four()
        # Other load on the machine is charged to any process that wakes up meanwhile; a busy process shows in every
        # window.
        least = [1.0] * len(machines)
        for _ in range(IDLE_WINDOWS):
            before = [machine.cpu_seconds() for machine in machines]
            select.select([], [], [], IDLE_SECONDS)
            shares = [(machine.cpu_seconds() - was) / IDLE_SECONDS for machine, was in zip(machines, before)]
            print("idle, each node takes of a core: " + ", ".join(f"{100 * share:.2f} %" for share in shares))
            least = [min(pair) for pair in zip(least, shares)]
            if max(least) < IDLE_CORE_SHARE:
                break
        self.assertLess(max(least), IDLE_CORE_SHARE)
        for machine in machines:
            self.assertEqual(len(machine.report()["connected"]), 3)

    def test_a_machine_without_a_key_joins_with_the_pin_that_a_node_shows(self):
        host = self.network.add("anna", "--cluster-key", self.key)
        host.go()
        host.wait_for("started")
        joiner = self.network.add("berta")
        joiner.go()
        joiner.wait_for("asked", by="anna")
        host.say("pin")
        joiner.say(host.wait_for("pin")[1]["pin"])
        joiner.wait_for("connected", name="anna")
        host.wait_for("connected", name="berta")

    def test_a_machine_that_types_a_wrong_pin_stays_outside(self):
        host = self.network.add("anna", "--cluster-key", self.key)
        host.go()
        host.wait_for("started")
        joiner = self.network.add("berta")
        joiner.go()
        joiner.wait_for("asked", by="anna")
        host.say("pin")
        right = int(host.wait_for("pin")[1]["pin"])
        joiner.say(f"{(right + 1) % 10**8:08}")
        self.assertIn("the PIN was wrong", joiner.wait_for("error")[1]["message"])
        self.assertEqual(host.report()["connected"], [])

    def test_another_version_is_named_and_not_connected(self):
        old = self.network.add("anna", "--cluster-key", self.key)
        new = self.network.add("berta", "--cluster-key", self.key, "--protocol", "9")
        old.go()
        new.go()
        report = old.reports(lambda report: report["unusable"])
        self.assertEqual(report["unusable"][0]["name"], "berta")
        self.assertIn("too new", report["unusable"][0]["reason"])
        self.assertIn("too old", new.reports(lambda report: report["unusable"])["unusable"][0]["reason"])
        self.assertEqual(old.report()["connected"], [])


class StrangerTest(NetworkTest):
    def test_a_node_of_another_cluster_is_counted_and_gets_nothing(self):
        host = self.network.add("anna", "--cluster-key", self.key)
        other = self.network.add("mallory", "--cluster-key", secrets.token_hex(32), "--join", "10.86.0.1")
        host.go()
        host.wait_for("started")
        other.go()
        other.wait_for("started")
        report = host.reports(lambda report: report["strangers"] >= 2 and report["other_clusters"] == 1)
        self.assertEqual(report["connected"], [])
        self.assertEqual(report["absent"], 0)
        report = other.reports(lambda report: report["other_clusters"] == 1)
        self.assertEqual((report["connected"], report["absent"]), ([], 0))

    def test_replayed_beacons_and_sessions_get_nothing(self):
        capture = Capture()
        names = ["anna", "berta"]
        machines = [self.network.add(name, "--cluster-key", self.key) for name in names]
        for machine in machines:
            machine.go()
        for machine in machines:
            machine.wait_for_peers(names)
        # Replays each beacon from an address where this test listens for a node that believes it.
        trap = socket.create_server(("10.86.0.254", CONTROL_PORT))
        self.addCleanup(trap.close)
        trap.settimeout(2.0)
        beacons = set(capture.datagrams())
        self.assertGreaterEqual(len(beacons), 2)
        select.select([], [], [], 0.6)  # past the time in which a copy counts as another network path
        sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.addCleanup(sender.close)
        sender.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton("10.86.0.254"))
        for beacon in [*beacons, b"", b"x" * 100, secrets.token_bytes(400), b"lockstpB" + bytes(300)]:
            sender.sendto(beacon, ("239.86.0.1", BEACON_PORT))
        for machine in machines:
            machine.reports(lambda report: report["replayed"] >= 1 and report["malformed"] >= 3)
        with self.assertRaises(socket.timeout):
            trap.accept()
        # Replays a member's whole session, byte for byte.
        replayed = 0
        for (_, _, destination, port), data in capture.streams().items():
            if port != CONTROL_PORT or not data:
                continue
            with socket.create_connection((address_text(destination), port), timeout=PATIENCE_S) as again:
                again.sendall(data)
                answer = b""
                try:
                    while piece := again.recv(1 << 16):
                        answer += piece
                except ConnectionResetError:
                    pass
                # Everything a server sends before its client has proved anything, and the end.
                self.assertLess(len(answer), 2048)
            replayed += 1
        self.assertGreaterEqual(replayed, 1)
        for machine in machines:
            self.assertEqual(len(machine.report()["connected"]), 1)
        capture.socket.close()

    def test_traffic_contains_no_plaintext(self):
        capture = Capture()
        names = ["annabella", "bertalina"]  # long ones: four letters come up by chance
        machines = [self.network.add(name, "--cluster-key", self.key) for name in names]
        for machine in machines:
            machine.go()
        for machine in machines:
            machine.wait_for_peers(names)
        word = "a-secret-of-some-length"
        machines[0].say("send " + word)
        machines[1].wait_for("message", name="annabella", bytes=len(word))
        machines[0].say("stream " + word)
        machines[1].wait_for("stream", name="annabella")
        joiner = self.network.add("carlotta")
        joiner.go()
        host = machines[names.index(joiner.wait_for("asked")[1]["by"])]
        host.say("pin")
        pin = host.wait_for("pin")[1]["pin"]
        joiner.say(pin)
        joiner.wait_for("connected")
        streams = capture.streams()
        control = b"\n".join(data for key, data in streams.items() if CONTROL_PORT in (key[1], key[3]))
        everything = capture.all_bytes()
        capture.socket.close()
        # The capture has the expected traffic: beacons are readable, the stream's 200 KB are there.
        self.assertIn(b"annabella", b"\n".join(capture.datagrams()))
        self.assertGreater(len(control), 200_000)
        for secret in (word.encode(), self.key.encode(), bytes.fromhex(self.key), pin.encode(), b'"accepted"',
                       b'"channel"', b'"confirmation"', b"LSG1M\x01\0\x01\0"):
            self.assertNotIn(secret, everything)
        for name in (b"annabella", b"bertalina", b"carlotta"):
            self.assertNotIn(name, control)


class BlockedMulticastTest(NetworkTest):
    blocks_multicast = True

    def test_without_multicast_one_address_is_enough(self):
        join = ("--join", "10.86.0.1")
        alone = [self.network.add(name, "--cluster-key", self.key) for name in ("x", "y")]
        capture = Capture()
        for machine in alone:
            machine.go()
        # Both keep sending beacons, which do not get through; otherwise this would prove nothing.
        deadline = time.monotonic() + PATIENCE_S
        while any(capture.beacons_of(machine.address) < BEACONS_UNHEARD for machine in alone):
            self.assertLess(time.monotonic(), deadline, "they send no beacons")
            select.select([], [], [], 0.05)
        capture.socket.close()
        for machine in alone:
            self.assertEqual(machine.report()["connected"], [])
        for machine in alone:
            machine.stop()
        self.network.machines.clear()
        _, found = self.start_four(berta=join, clara=join, dora=join)
        print(f"four nodes found each other by --join in {found:.2f} s")


def main():
    if not PROGRAM:
        sys.exit("LOCKSTEP_TEST_NODE must name cluster_test_node")
    if os.environ.get(INSIDE) != "1":
        probe = "ip link add v0 type veth peer name v1 && ip link add b0 type bridge"
        allowed = (os.geteuid() == 0 and shutil.which("ip") and shutil.which("unshare") and
                   subprocess.run(["unshare", "--net", "sh", "-c", probe], capture_output=True).returncode == 0)
        if not allowed:
            print("skipped: network namespaces are not permitted here (they need root, ip and unshare)")
            sys.exit(SKIPPED)
        os.environ[INSIDE] = "1"
        os.execvp("unshare", ["unshare", "--net", sys.executable, *sys.argv])
    ip("link", "set", "lo", "up")
    unittest.main(verbosity=2)


if __name__ == "__main__":
    main()
