"""Ranks on a GPU in real processes: the same text as on processors, also when the rank on the GPU is killed during a stream.
Skipped where lockstep finds no GPU; tests install a software one."""

import json
import os
import pathlib
import signal
import sys
import tempfile
import unittest

import harness

SKIPPED = 77
BODY = {"prompt": "Lily and Tom", "temperature": 0.9, "seed": 5, "max_tokens": 120, "n": 2}


def gpu_findings():
    """Runs the doctor and returns its findings about GPUs. Its exit status also depends on other findings, so it is ignored."""
    return [finding for finding in json.loads(harness.run("doctor", "--json").stdout)["findings"] if finding["check"] == "gpu"]


def gpus():
    return [finding["sentence"] for finding in gpu_findings() if finding["sentence"].startswith("the GPU ")]


class RanksOnGpus(unittest.TestCase):
    expected = {}  # the texts on processors

    def texts_on(self, devices):
        with harness.Node("--ranks", "2", "--device", devices) as node:
            return {each["index"]: each["text"] for each in node.complete(**BODY)[1]["choices"]}

    def setUp(self):
        if not self.expected:
            self.expected.update(self.texts_on("cpu"))
        self.assertEqual(len(self.expected), BODY["n"])

    def test_a_group_that_starts_again_on_other_devices_gives_the_same_text(self):
        for devices in ("vulkan", "cpu,vulkan", "auto"):
            self.assertEqual(self.texts_on(devices), self.expected, devices)

    def lose(self, devices, rank):
        """Kills a rank once a stream has begun, and reads the rest of it."""
        with harness.Node("--ranks", "2", "--device", devices) as node:
            pids = node.worker_pids()
            connection, response = node.stream(BODY)
            texts, finished, is_killed = dict.fromkeys(self.expected, ""), 0, False
            for event in harness.events(response):
                if event == "[DONE]":
                    break
                self.assertNotIn("error", event)
                if not is_killed:
                    os.kill(pids[rank], signal.SIGKILL)
                    is_killed = True
                for choice in event["choices"]:
                    texts[choice["index"]] += choice["text"]
                    finished += choice["finish_reason"] is not None
            response.close()
            connection.close()
            status = node.status()
        self.assertEqual(finished, BODY["n"])
        self.assertEqual(texts, self.expected)
        self.assertEqual((status["restarts"], status["epoch"]), (1, 2))
        self.assertIn(f"rank {rank} (pid {pids[rank]})", status["last_error"])
        kept = [old == new["pid"] for old, new in zip(pids, status["ranks"])]
        self.assertEqual(kept, [each != rank for each in range(2)])

    def test_a_stream_goes_on_when_its_rank_on_a_gpu_is_killed(self):
        self.lose("vulkan,cpu", 0)
        self.lose("cpu,vulkan", 1)

    def test_the_status_says_where_each_rank_computes(self):
        with harness.Node("--ranks", "2", "--device", "cpu,vulkan", "--threads", "1") as node:
            places = [rank["device"] for rank in node.status()["ranks"]]
            self.assertRegex(places[0], r"^cpu \(\w+, 1 thread\)$")
            self.assertRegex(places[1], r"^vulkan: .+ \(.+\)$")
            text = harness.run("status", "--port", node.port).stdout
        for place in places:
            self.assertIn(place, text)

    def test_a_node_of_a_cluster_plans_with_its_gpu_and_computes_there(self):
        with harness.Node(harness.STORIES, "--device", "vulkan", model=None) as node:
            models = lambda: node.request("GET", "/cluster/status")[1]["models"]
            harness.wait_until(lambda: models() and models()[0].get("phase") == "ready", harness.PATIENCE_S, "the model's start")
            self.assertRegex(models()[0]["ranks"][0]["device"], r"^vulkan: .+ \(.+\)$")
            texts = {each["index"]: each["text"] for each in node.complete(**BODY)[1]["choices"]}
            own = node.request("GET", "/cluster/status")[1]["nodes"][0]
            libraries = pathlib.Path(f"/proc/{node.process.pid}/maps").read_text(encoding="utf-8")
        self.assertEqual(texts, self.expected)
        self.assertGreater(own["read_bytes_s"], 0)
        device = harness.run_json("bench", "device", "--device", "vulkan", "--json")
        self.assertLessEqual(own["budget_bytes"], device["memory_bytes"])
        self.assertNotIn("libvulkan", libraries)  # a driver that crashes must not end the node

    def test_memory_that_the_gpu_does_not_have_is_refused(self):
        with tempfile.TemporaryDirectory() as home:
            refused = harness.run("serve", "--device", "vulkan", "--memory", "1000000", "--port", "0", "--control-port", "0", "--no-beacon",
                                  env={"LOCKSTEP_HOME": home})
        self.assertEqual(refused.returncode, 2)
        self.assertRegex(refused.stderr, r"lockstep: --memory asks for 1000000.00 GiB, but .+ has [\d.]+ GiB")

    def test_a_plan_takes_what_was_measured_on_a_gpu(self):
        with tempfile.TemporaryDirectory() as folder:
            profile = os.path.join(folder, "box.json")
            harness.run_json("bench", "device", "--device", "vulkan", "--name", "box", "--profile", profile, "--json")
            plan = harness.run_json("plan", harness.STORIES, "--cluster", profile, "--json")
        self.assertRegex(plan["explanation"], r"Measured with lockstep itself: box on .+ \(.+\)\.")

    def test_a_gpu_that_does_not_exist_is_one_sentence(self):
        refused = harness.run("logits", harness.STORIES, "--ids", "1", "--device", "vulkan:99")
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn(f"there is no GPU 99; this machine has {len(gpus())}", refused.stderr)

    def test_auto_says_what_it_chose(self):
        chosen = harness.run("logits", harness.STORIES, "--ids", "1", "--device", "auto")
        self.assertEqual(chosen.returncode, 0, chosen.stderr)
        self.assertRegex(chosen.stderr, r"computing on (cpu|vulkan)")

    def test_the_doctor_has_tried_the_kernels(self):
        for finding in gpu_findings():
            self.assertEqual(finding["severity"], "ok", finding)
            self.assertIn("passed its self-test", finding["sentence"])


if __name__ == "__main__":
    if not gpus():
        print("skipped: lockstep finds no GPU")
        sys.exit(SKIPPED)
    harness.main()
