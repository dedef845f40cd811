"""Access to a cluster of `lockstep serve`: joining with the key, a token and a PIN where multicast is blocked; strangers
on the same network; and how much a stranger learns of a prompt that is answered over several machines."""

import contextlib
import json
import os
import pty
import secrets
import shutil
import socket
import ssl
import struct
import subprocess
import sys
import threading
import time
import unittest

import harness
import machines
from machines import HTTP_PORT, MODEL, MODEL_NAME, Cluster, Machine, Stream, wait_for
from network_test import Capture

CONTROL_PORT = 8601
# The first message of a member of a cluster, with an invalid proof.
GREETING = b"LSG1M\x01\0\x01\0" + bytes(32)
# A message between machines is so slow that LONG lasts more than ten seconds; each action on a stream takes one.
SLOWED = ["--link-delay-us", "3000"]
# A rank waits ten seconds for the others at its port (node/worker/worker_links.cc); the rest is for connecting.
MEETING_S = 5.0
MEETINGS = 5
BODY = {"model": MODEL_NAME, "prompt": "Once upon a time", "temperature": 0, "max_tokens": 30}
LONG = {"model": MODEL_NAME, "prompt": "Lily and Tom", "temperature": 0.9, "seed": 0, "max_tokens": 400}
ASK = """
import json, sys, urllib.request
request = urllib.request.Request("http://127.0.0.1:8600/v1/completions", sys.argv[1].encode())
print(json.load(urllib.request.urlopen(request, timeout=60))["choices"][0]["text"], end="")
"""
LISTEN = """
import socket, struct
listener = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
listener.bind(("", 8602))
listener.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP,
                    struct.pack("4s4s", socket.inet_aton("239.86.0.1"), socket.inet_aton("ADDRESS")))
print("listening", flush=True)
listener.recv(2048)
print("heard a beacon", flush=True)
"""


def listening_ports(machine):
    """TCP ports of a machine with a listener."""
    ports = set()
    for table in ("tcp", "tcp6"):
        with open(f"/proc/{machine.holder.pid}/net/{table}", encoding="ascii") as file:
            rows = [line.split() for line in file.readlines()[1:]]
        ports |= {int(row[1].rsplit(":", 1)[1], 16) for row in rows if row[3] == "0A"}
    return ports


def throw_at(address, port, sent):
    """The answer to these bytes until the connection ends. There must be a listener."""
    answer = b""
    with socket.create_connection((address, port), timeout=machines.PATIENCE_S) as stranger:
        try:
            stranger.sendall(sent)
            stranger.shutdown(socket.SHUT_WR)
            while piece := stranger.recv(1 << 16):
                answer += piece
        except TimeoutError:
            raise
        except OSError:  # closed or reset before all was sent or read
            pass
    return answer


class Terminal:
    """A terminal on which a node was started: its output, and typing."""

    def __init__(self):
        self.keyboard, self.device = pty.openpty()
        self.shown = ""
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        try:
            while text := os.read(self.keyboard, 4096):
                self.shown += text.decode(errors="replace")
        except OSError:
            pass

    def type(self, line):
        os.write(self.keyboard, line.encode() + b"\n")


class JoiningTest(unittest.TestCase):
    def start_cluster(self, names, **options):
        cluster = Cluster(names, **options)
        self.addCleanup(cluster.__exit__)
        return cluster

    def test_key_token_and_pin_join_where_multicast_is_blocked(self):
        cluster = self.start_cluster(["anna", "berta", "clara", "dora"], blocks_multicast=True)
        anna, berta, clara, dora = cluster.machines
        listener = subprocess.Popen(
            clara.command(sys.executable, "-c", LISTEN.replace("ADDRESS", clara.address)), stdout=subprocess.PIPE, text=True)
        self.assertEqual(listener.stdout.readline(), "listening\n")
        capture = Capture()
        self.addCleanup(capture.socket.close)
        cluster.give_key(anna)
        cluster.give_key(berta)
        anna.start()
        berta.start("--join", anna.address)
        cluster.wait_until_together([anna, berta])
        wait_for(lambda: len(capture.datagrams()) > 1, "the beacons that clara must not hear")
        listener.kill()
        self.assertEqual(listener.communicate()[0], "", "multicast is not blocked: this shows nothing")
        self.refuse_a_wrong_token(clara, anna)
        self.join_with_token(clara, anna)
        self.join_with_pin(dora, anna)
        cluster.wait_until_together()
        dora.load("--ranks", "2")
        expected, = machines.texts_alone([BODY])
        for machine in cluster.machines:
            self.assertEqual(machine.answer(BODY), expected, machine.name)

    def refuse_a_wrong_token(self, machine, host):
        token = json.loads(host.lockstep("cluster", "token", "--json").stdout)["token"]
        wrong = token[:-1] + ("2" if token[-1] != "2" else "3")
        refused = machine.lockstep("serve", "--join", host.address, "--token", wrong)
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn("token", refused.stderr)
        self.assertFalse(os.path.exists(os.path.join(machine.home, "cluster_key")))

    def join_with_token(self, machine, host):
        token = host.lockstep("cluster", "token").stdout.strip()
        machine.start("--join", host.address, "--token", token)

    def join_with_pin(self, machine, host):
        terminal = Terminal()
        machine.start("--join", host.address, terminal=terminal.device)
        wait_for(lambda: "anna" in terminal.shown and "PIN" in terminal.shown, "the question for the PIN")
        shown, = json.loads(host.lockstep("status", "--json").stdout)["pins"]
        self.assertEqual((shown["name"], len(shown["pin"])), (machine.name, 8))
        self.assertNotIn("pins", host.status(), "who asks from another machine sees the PINs")
        terminal.type(shown["pin"])
        wait_for(lambda: machine.sees_alive() > 1, lambda: f"joining with a PIN: {terminal.shown}")


class StrangersTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(["anna", "berta", "clara"], SLOWED)
        cls.addClassCleanup(cls.cluster.__exit__)
        # A separate copy: the file that holds its workers is next to it.
        cls.cluster.program = shutil.copy(os.environ["LOCKSTEP_HELD_PROGRAM"], cls.cluster.folder)
        cls.cluster.start()
        cls.cluster.wait_until_together()
        cls.expected, cls.long_text = machines.texts_alone([BODY, LONG])

    def setUp(self):
        if not self.cluster.machines[0].model(MODEL_NAME):
            self.cluster.machines[0].load("--ranks", "3", "--nodes", "anna,berta,clara")
        self.assertEqual(len(set(self.cluster.machines[0].placement())), 3)
        self.processes = self.workers()

    def workers(self):
        return [machine.workers() for machine in self.cluster.machines]

    def check_unharmed(self):
        """The same processes serve as before: a group broken by a stranger would be formed again with others."""
        for machine in self.cluster.machines:
            self.assertEqual(machine.answer(BODY), self.expected, machine.name)
            self.assertEqual(machine.status()["models"][0]["restarts"], 0)
        self.assertEqual([len(pids) for pids in self.processes], [1, 1, 1])
        self.assertEqual(self.workers(), self.processes)

    def check_whole(self, stream):
        stream.join(machines.PATIENCE_S)
        self.assertIsNone(stream.problem)
        self.assertEqual(stream.text(), self.long_text)

    def test_callers_of_another_machine_may_change_nothing(self):
        anna, berta, _ = self.cluster.machines
        for headers in ({}, {"Host": "localhost:8600"}, {"Host": "127.0.0.1", "Origin": "http://127.0.0.1"}):
            for path, body in (("load", {"model": "x", "path": MODEL}), ("unload", {"model": MODEL_NAME}), ("token", {})):
                status, answer = anna.request("POST", "/cluster/" + path, body, headers)
                self.assertEqual((status, answer["error"]["code"]), (403, "not_local"), path)
        for words in (["load", MODEL], ["unload", MODEL_NAME], ["cluster", "token"]):
            process = berta.lockstep(*words, "--host", anna.address)
            self.assertNotEqual(process.returncode, 0, words)
            self.assertIn("only this machine's own programs", process.stderr)
        said = anna.status()
        self.assertNotIn("pins", said)
        self.assertNotIn(self.cluster.key, json.dumps(said))
        self.check_unharmed()

    def test_a_node_of_another_cluster_gets_nothing(self):
        own = [node["id"] for node in self.cluster.machines[0].status()["nodes"]]
        key, self.cluster.key = self.cluster.key, secrets.token_hex(32)
        mallory = Machine(self.cluster, 9, "mallory")
        self.addCleanup(mallory.close)
        self.cluster.give_key(mallory)
        self.cluster.key = key
        mallory.start("--join", self.cluster.machines[0].address, "--join", self.cluster.machines[1].address)
        for machine in self.cluster.machines[:2]:
            wait_for(lambda m=machine: m.status()["strangers_refused"], f"the stranger's call at {machine.name}")
        self.assertEqual([node["name"] for node in mallory.status()["nodes"]], ["mallory"])
        self.assertEqual(mallory.status()["models"], [])
        self.assertNotEqual(mallory.lockstep("unload", MODEL_NAME).returncode, 0)
        mallory.lockstep("load", MODEL, "--alias", "mine")
        self.assertEqual(mallory.answer({**BODY, "model": "mine"}), self.expected)
        self.assertEqual(len(mallory.workers()), 1)
        for machine in self.cluster.machines:
            self.assertEqual(sorted(node["id"] for node in machine.status()["nodes"]), sorted(own))
            self.assertEqual(machine.request("POST", "/v1/completions", {**BODY, "model": "mine"})[0], 404)
        self.check_unharmed()

    def test_strange_bytes_do_no_harm_to_a_stream(self):
        for machine in self.cluster.machines:
            stream = Stream(self.cluster.machines[1], LONG).wait_for_pieces(5)
            for port in listening_ports(machine):
                for sent in (b"", secrets.token_bytes(5000), b"GET /cluster/status\r\n\r\n", GREETING):
                    answer = throw_at(machine.address, port, sent)
                    if port != HTTP_PORT:
                        self.assertLess(len(answer), 100, answer)
            self.call_without_a_certificate(machine)
            stream.check_under_way()
            self.check_whole(stream)
        self.check_unharmed()

    def call_without_a_certificate(self, machine):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        with socket.create_connection((machine.address, CONTROL_PORT), timeout=machines.PATIENCE_S) as plain:
            with self.assertRaises(OSError):  # ssl.SSLError is one
                with context.wrap_socket(plain) as stranger:
                    stranger.sendall(GREETING)
                    if not stranger.recv(1 << 16):
                        raise OSError("closed")

    def test_strange_bytes_at_ports_of_workers_that_meet_do_no_harm(self):
        for _ in range(MEETINGS):
            took = self.throw_at_workers_that_meet()
            print(f"strangers were at the ranks' ports for {took:.2f} s")
            if took < MEETING_S:
                return self.check_unharmed()
        self.fail(f"no round of strangers took less than {MEETING_S} s: the ranks gave each other up")

    def throw_at_workers_that_meet(self):
        """Seconds that the ranks of a new group waited at their ports, which stay open to strangers all the time."""
        self.cluster.machines[0].unload()
        self.cluster.wait_until_empty()
        hold = os.path.join(self.cluster.folder, "hold")
        open(hold, "x", encoding="ascii").close()
        with contextlib.ExitStack() as silent:
            try:
                asked = self.cluster.machines[0].lockstep(
                    "load", MODEL, "--no-wait", "--ranks", "3", "--nodes", "anna,berta,clara")
                self.assertEqual(asked.returncode, 0, asked.stderr)
                ports = [wait_for(lambda m=machine: listening_ports(m) - {HTTP_PORT, CONTROL_PORT}, f"the rank's port at {machine.name}")
                         for machine in self.cluster.machines]
                began = time.monotonic()
                self.processes = self.workers()
                for machine, (port,) in zip(self.cluster.machines, ports):
                    for _ in range(3):
                        silent.enter_context(socket.create_connection((machine.address, port), timeout=machines.PATIENCE_S))
                    for sent in (b"", secrets.token_bytes(600), GREETING):
                        self.assertLess(len(throw_at(machine.address, port, sent)), 100)
            finally:
                os.unlink(hold)
            took = time.monotonic() - began
            self.cluster.wait_until_ready(MODEL_NAME)
        return took

    def control_and_data(self, capture):
        """The packets of nodes and of ranks. The status that this test requests is public."""
        control, data = [], []
        for _, _, packet in capture.packets_of(6):
            ports = struct.unpack(">HH", packet[:4])
            if HTTP_PORT not in ports:
                (control if CONTROL_PORT in ports else data).append(packet)
        return control, data

    def test_traffic_reveals_nothing_of_prompt_answer_or_model(self):
        client = self.cluster.machines[2]
        prompt = "Zacharias Quillenfeather went to the market to buy a big red balloon"
        body = {**BODY, "prompt": prompt, "max_tokens": 60}
        ids = harness.run_json("tokenize", MODEL, "--text", prompt)["ids"]
        capture = Capture()
        self.addCleanup(capture.socket.close)
        self.cluster.machines[0].unload()
        self.cluster.wait_until_empty()
        client.lockstep("load", MODEL, "--ranks", "3", "--nodes", "anna,berta,clara")
        asked = client.inside(sys.executable, "-c", ASK, json.dumps(body))
        answer = asked.stdout
        self.assertGreater(len(answer), 60)
        # The capture has the expected traffic: control, and the data of the ranks.
        wait_for(lambda: all(sum(map(len, part)) > 10_000 for part in self.control_and_data(capture)),
                 lambda: f"control and data are heard: {[len(part) for part in self.control_and_data(capture)]}", 20)
        heard = b"\n".join([*sum(self.control_and_data(capture), []), *(data for _, _, data in capture.packets_of(17))])
        said = prompt + answer
        secrets_said = [MODEL_NAME.encode(), MODEL.encode(), self.cluster.key.encode(), bytes.fromhex(self.cluster.key)]
        secrets_said += [said[at : at + 8].encode() for at in range(len(said) - 8)]
        secrets_said += [struct.pack(form, *ids[at : at + 4]) for form in ("<4h", "<4i", "<4q") for at in range(len(ids) - 4)]
        for secret in secrets_said:
            self.assertNotIn(secret, heard)


if __name__ == "__main__":
    machines.enter_own_namespace()
    harness.main()
