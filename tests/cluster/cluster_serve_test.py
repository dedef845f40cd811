"""`lockstep serve` on four machines that find each other by beacon: the same answer wherever it is requested and
computed, and streams that continue when machines leave, die or lose power."""

import json
import os
import select
import signal
import time
import unittest
from datetime import datetime

import harness
import machines
from machines import MODEL, Cluster, Stream, Streams, wait_for
from machines import MODEL_NAME as NAME

NAMES = ["anna", "berta", "clara", "dora"]
# A message between machines is slow, so that a stream is still running when something happens to it.
SLOWED = ["--link-delay-us", "3000", "--drain", "1"]
LONG = {"model": NAME, "prompt": "Lily and Tom", "temperature": 0.9, "seed": 7, "max_tokens": 400}
BODIES = [{"model": NAME, "prompt": "Once upon a time", "temperature": 0, "max_tokens": 30},
          {"model": NAME, "prompt": "One day a cat", "temperature": 1.1, "seed": 5, "max_tokens": 30}]
UNNOTICED_S = 1.0  # for pauses of a few hundredths of a second, even with many busy processes
IDLE_WAKES_S = 100  # 60 to 70 were counted, most of them for heartbeats
IDLE_CORE_SHARE = 0.05
IDLE_SECONDS = 10.0


def thread_use(pid):
    """A process's threads with their wake-ups and processor seconds so far: {(pid, thread, name): (count, seconds)}."""
    use = {}
    for thread in os.listdir(f"/proc/{pid}/task"):
        folder = f"/proc/{pid}/task/{thread}"
        try:
            with open(f"{folder}/status", encoding="utf-8", errors="replace") as file:
                status = dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
            with open(f"{folder}/stat", encoding="utf-8", errors="replace") as file:
                fields = file.read().rsplit(")", 1)[1].split()
        except OSError:  # it has exited
            continue
        ticks = sum(int(field) for field in fields[11:13])
        use[pid, int(thread), status["Name"]] = (int(status["voluntary_ctxt_switches"]), ticks / os.sysconf("SC_CLK_TCK"))
    return use


class FourMachinesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        *cls.expected, cls.long_text = machines.texts_alone([*BODIES, LONG])
        cls.cluster = Cluster(NAMES, SLOWED)
        cls.addClassCleanup(cls.cluster.__exit__)
        cls.cluster.start()

    def setUp(self):
        """Four machines with nothing loaded."""
        cluster = self.cluster
        for machine in cluster.machines:
            if machine.node.poll() is not None:
                machine.start()
        cluster.wait_until_together()
        for model in cluster.machines[0].status()["models"]:
            cluster.machines[0].unload(model["name"])
        cluster.wait_until_empty()

    def check_answers(self, asked=None):
        for machine in asked or self.cluster.machines:
            self.assertEqual([machine.answer(body) for body in BODIES], self.expected, machine.name)

    def check_whole(self, stream):
        stream.join(machines.PATIENCE_S)
        self.assertFalse(stream.is_alive())
        self.assertIsNone(stream.problem)
        self.assertEqual(stream.text(), self.long_text)

    def coordinator(self, asked):
        found = [node for node in asked.status()["nodes"] if node["is_coordinator"]]
        self.assertEqual(len(found), 1, found)
        return found[0]

    def test_one_answer_wherever_it_is_asked_for_and_computed(self):
        alone = harness.run_json("run", MODEL, BODIES[0]["prompt"], "--temperature", 0, "-n", 30, "--json")["text"]
        self.assertEqual(self.expected[0], alone)
        for through, ranks in zip(self.cluster.machines, (1, 2, 3, 4)):
            with self.subTest(ranks=ranks, through=through.name):
                through.load("--ranks", str(ranks), "--nodes", ",".join(NAMES[:ranks]))
                self.assertEqual(len(set(through.placement())), ranks)
                self.assertEqual(sum(len(machine.workers()) for machine in self.cluster.machines), ranks)
                self.check_answers()
                self.cluster.machines[ranks % 4].unload()
                self.cluster.wait_until_empty()

    def test_a_draft_model_guesses_on_the_machines_of_the_model_and_is_placed_again_with_it(self):
        anna = self.cluster.machines[0]
        anna.load("--ranks", "2", "--draft-model", MODEL)
        self.assertEqual(anna.model(NAME)["wanted"]["draft_model"], os.path.realpath(MODEL))
        self.check_answers()
        owner, other = anna.placement()
        guessed = lambda machine: machine.metric("lockstep_draft_steps_total") > 0  # noqa: E731
        wait_for(lambda: guessed(owner), "guesses")
        client = next(machine for machine in self.cluster.machines if machine not in (owner, other))
        stream = Stream(client, LONG).wait_for_pieces(5)
        owner.kill()
        stream.check_under_way()
        self.check_whole(stream)
        print(f"owner killed: longest pause of the stream {stream.longest_pause():.2f} s")
        alive = [machine for machine in self.cluster.machines if machine is not owner]
        wait_for(lambda: any(guessed(machine) for machine in alive), "guesses of the next group")

    def test_keys_and_values_are_stored_as_the_cluster_was_told(self):
        anna = self.cluster.machines[0]
        states = []
        for kv in ("f16", "f32"):
            anna.load("--ranks", "2", "--kv", kv)
            wait_for(lambda kv=kv: anna.model(NAME)["wanted"]["kv"] == kv and anna.model(NAME)["ranks"], "the ranks")
            self.assertEqual(anna.answer(BODIES[0]), harness.run_json(
                "run", MODEL, BODIES[0]["prompt"], "--temperature", 0, "-n", 30, "--kv", kv, "--json")["text"])
            states.append(sum(rank["state_bytes"] for rank in anna.model(NAME)["ranks"]))
        self.assertEqual(states[1], 2 * states[0])
        # An answer that has begun would not be the one of either kind.
        stream = Stream(anna, LONG).wait_for_pieces(5)
        anna.load("--ranks", "2", "--kv", "f16")
        stream.join(machines.PATIENCE_S)
        self.assertIn("unloaded", stream.problem)

    def test_flags_of_links_hold_between_machines(self):
        self.cluster.machines[0].load("--ranks", "2")
        owner = self.cluster.machines[0].placement()[0]
        link, = wait_for(lambda: owner.model(NAME)["links"], "the links' times")
        self.assertEqual((link["path"], link["encrypted"]), ("tcp", True))
        self.assertGreater(link["p50_us"], 3000)

    def test_an_unloaded_model_ends_its_streams_and_frees_its_memory(self):
        anna, berta, clara, dora = self.cluster.machines
        anna.load("--ranks", "3")
        stream = Stream(berta, LONG).wait_for_pieces(5)
        clara.unload()
        stream.join(machines.PATIENCE_S)
        self.assertIn("unloaded", stream.problem)
        self.cluster.wait_until_empty()
        self.assertEqual(dora.request("POST", "/v1/completions", BODIES[0])[0], 404)
        dora.load()
        self.check_answers()

    def test_aliases_are_names_and_a_wrong_name_is_answered_with_near_ones(self):
        anna, berta, clara, dora = self.cluster.machines
        anna.load("--alias", "teller", "--alias", "of-stories")
        for alias in ("teller", "of-stories"):
            self.assertEqual(dora.answer({**BODIES[0], "model": alias}), self.expected[0])
        status, answer = clara.request("POST", "/v1/completions", {**BODIES[0], "model": "storys260k"})
        self.assertEqual((status, answer["error"]["code"]), (404, "model_not_found"))
        self.assertIn(f"did you mean {NAME}", answer["error"]["message"])
        berta.unload("teller")
        self.cluster.wait_until_empty()

    def test_a_model_on_demand_is_loaded_while_it_is_used(self):
        loaded = self.cluster.machines[0].lockstep("load", MODEL, "--idle-unload", "3", "--ranks", "2")
        self.assertEqual(loaded.returncode, 0, loaded.stderr)
        no_workers = lambda: not any(machine.workers() for machine in self.cluster.machines)  # noqa: E731
        for machine in self.cluster.machines[1:3]:
            wait_for(no_workers, "the end of the unused model")
            wait_for(lambda m=machine: m.model(NAME), "word of the model")
            started = time.monotonic()
            self.assertEqual(machine.answer(BODIES[0]), self.expected[0])
            print(f"a model that was asked for answered after {time.monotonic() - started:.2f} s")
        wait_for(no_workers, "the end of the unused model")

    def test_a_client_says_how_long_a_model_on_demand_stays(self):
        asked, other = self.cluster.machines[:2]
        loaded = asked.lockstep("load", MODEL, "--idle-unload", "600", "--ranks", "1")
        self.assertEqual(loaded.returncode, 0, loaded.stderr)
        wait_for(lambda: other.model(NAME), "word of the model")

        def ask(machine, keep_alive):
            body = {"model": NAME, "prompt": "Once", "stream": False, "options": {"num_predict": 5}}
            status, answer = machine.request("POST", "/api/generate", {**body, "keep_alive": keep_alive})
            self.assertEqual((status, answer.get("done")), (200, True))

        def stays_s():
            text = asked.request("GET", "/api/ps")[1]["models"][0]["expires_at"]
            return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp() - time.time()

        ask(asked, "5m")
        wait_for(lambda: 290 < stays_s() <= 301, "the time that the client wants")
        ask(asked, "2h")
        wait_for(lambda: 7100 < stays_s() <= 7201, "the longer time")
        ask(other, 0)  # not valid for other nodes' clients
        self.assertGreater(stays_s(), 7000)
        self.assertTrue(any(machine.workers() for machine in self.cluster.machines))
        ask(asked, 0)
        wait_for(lambda: not any(machine.workers() for machine in self.cluster.machines), "the end of the model")

    @unittest.skipIf(harness.SANITIZERS, "a sanitizer multiplies what an idle program computes")
    def test_an_idle_model_costs_nothing(self):
        self.cluster.machines[0].load("--ranks", "4", "--nodes", ",".join(NAMES))
        self.check_answers()
        wakes, shares, most = self.idle_use()
        print("idle, node and worker wake up each second: " + ", ".join(f"{each:.0f}" for each in wakes) +
              "; they take of a core: " + ", ".join(f"{100 * share:.2f} %" for share in shares))
        # How often threads wake up does not depend on the machine; the time that this takes does, so that its limit only
        # finds a thread that never waits.
        self.assertLess(max(wakes), IDLE_WAKES_S, most)
        self.assertLess(max(shares), IDLE_CORE_SHARE, most)

    def idle_use(self):
        """Each machine's wake-ups per second and share of a core in IDLE_SECONDS, and the threads that woke up most."""
        pids = [[machine.node.pid, *machine.workers()] for machine in self.cluster.machines]
        look = lambda: {key: use for each in pids for pid in each for key, use in thread_use(pid).items()}  # noqa: E731
        before = look()
        select.select([], [], [], IDLE_SECONDS)
        used = {key: [now - was for now, was in zip(use, before.get(key, (0, 0.0)))] for key, use in look().items()}
        sums = [[sum(used[key][what] for key in used if key[0] in each) / IDLE_SECONDS for each in pids] for what in (0, 1)]
        return *sums, sorted(((use, key) for key, use in used.items()), reverse=True)[:8]

    def test_no_stream_notices_that_the_coordinator_is_lost(self):
        first = self.coordinator(self.cluster.machines[0])
        victim = self.cluster.machine(first["name"])
        client, *holders = [machine for machine in self.cluster.machines if machine is not victim]
        client.load("--ranks", "2", "--nodes", ",".join(machine.name for machine in holders))
        self.assertEqual(set(client.placement()), set(holders))
        self.assertEqual(first["id"], min(node["id"] for node in client.status()["nodes"]))
        stream = Stream(client, LONG).wait_for_pieces(20)
        workers, epoch = [machine.workers() for machine in holders], client.model(NAME)["epoch"]
        victim.kill()
        wait_for(lambda: client.sees_alive() == 3, "the loss to be noticed")
        stream.check_under_way()
        self.check_whole(stream)
        print(f"coordinator killed: longest pause of the stream {stream.longest_pause():.2f} s")
        self.assertLess(stream.longest_pause(), UNNOTICED_S)
        # The same processes served it, in the same group.
        self.assertEqual([machine.workers() for machine in holders], workers)
        self.assertEqual((client.model(NAME)["epoch"], client.model(NAME)["restarts"]), (epoch, 0))
        self.cluster.wait_until_together([client, *holders])
        for machine in (client, *holders):
            alive = [node["id"] for node in machine.status()["nodes"] if node["state"] == "alive"]
            wait_for(lambda m=machine, lowest=min(alive): self.coordinator(m)["id"] == lowest, "the next coordinator")
        self.check_answers([client, *holders])

    def test_a_stream_goes_on_when_the_node_that_serves_it_is_told_to_end(self):
        self.cluster.machines[0].load("--ranks", "2")
        owner, other = self.cluster.machines[0].placement()
        client = next(machine for machine in self.cluster.machines if machine not in (owner, other))
        stream = Stream(client, LONG).wait_for_pieces(20)
        owner.node.send_signal(signal.SIGTERM)
        self.assertEqual(owner.node.wait(machines.PATIENCE_S), 0)
        stream.check_under_way()
        self.check_whole(stream)
        print(f"owner told to end: longest pause of the stream {stream.longest_pause():.2f} s")

    def test_nodes_restart_one_after_another_while_a_stream_continues(self):
        anna, berta, clara, dora = self.cluster.machines
        dora.load("--ranks", "2", "--nodes", "berta,clara", "--parallel", "pipeline")
        self.assertEqual(anna.model(NAME)["wanted"]["parallelism"], "pipeline")
        wait_for(lambda: anna.model(NAME).get("stages") == 2, "a stage for each rank")
        lives = {node["name"]: node["life"] for node in anna.status()["nodes"]}
        with Streams(anna, LONG, self.long_text) as streams:
            done = dora.lockstep("cluster", "restart", "berta", "clara", "dora", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        print(f"{streams.count} streams one after another went on meanwhile")
        restarted = json.loads(done.stdout)["restarted"]
        print("begun again: " + ", ".join(f"{node['name']} after {node['seconds']:.1f} s" for node in restarted))
        self.assertEqual(restarted[-1]["name"], "dora")
        self.assertEqual({node["name"] for node in restarted}, {"berta", "clara", "dora"})
        now = {node["name"]: node["life"] for node in anna.status()["nodes"]}
        self.assertEqual({name for name in NAMES if lives[name] != now[name]}, {"berta", "clara", "dora"})
        for machine in self.cluster.machines:
            self.assertIsNone(machine.node.poll(), "a node that starts again keeps its process")
        self.check_answers()
        unknown = dora.lockstep("cluster", "restart", "emil")
        self.assertEqual((unknown.returncode, unknown.stdout), (2, ""))
        self.assertIn("there is no node emil; the nodes are", unknown.stderr)

    def test_power_cycled_machines_serve_again_by_themselves(self):
        self.cluster.machines[3].load("--ranks", "3")
        doomed = [pid for machine in self.cluster.machines for pid in (machine.node.pid, *machine.workers())]
        self.assertEqual(len(doomed), 7)
        for pid in doomed:
            os.kill(pid, signal.SIGKILL)
        for machine in self.cluster.machines:
            machine.node.wait()
        started = time.monotonic()
        for machine in self.cluster.machines:
            machine.start()
        self.cluster.wait_until_ready(NAME)
        print(f"ready again {time.monotonic() - started:.1f} s after the power came back")
        self.check_answers()


if __name__ == "__main__":
    machines.enter_own_namespace()
    harness.main()
