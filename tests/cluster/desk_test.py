"""The page's routes and the terminal's commands on a real node and a hub: a plan as the command prints it, a pull that
stalls and goes on after its caller, the log without secrets, completion in bash, a client that is launched."""

import json
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import harness
from control_test import ask, proof_header

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "hub"))
import fake_hub  # noqa: E402

PROFILE, LINK = "mac-studio-m3-ultra", "tb5-rdma"
TOKEN = "hf_a-token-that-no-line-may-show"


def wait_for(condition, what):
    harness.wait_until(condition, harness.PATIENCE_S, what)


def secret_of(home):
    with open(os.path.join(home, "control_secret"), encoding="utf-8") as file:
        return file.read().strip()


def control(home, port, method, target, body=None):
    """The status and the JSON of a request with the proof of the node's own user; `home` is the node's LOCKSTEP_HOME."""
    text = b"" if body is None else json.dumps(body).encode()
    header = proof_header(port, secret_of(home), method, target, text)
    status, answer, _ = ask(port, method, target, body, Host="localhost", X_Lockstep_Control=header)
    return status, json.loads(answer)


class DeskTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = cls.enterClassContext(tempfile.TemporaryDirectory(prefix="lockstep_desk_"))
        files = {"config.json": b'{"model_type": "tiny"}', "model.safetensors": os.urandom(3_000_000)}
        cls.hub = cls.enterClassContext(fake_hub.Hub(files))
        cls.env = {"HF_ENDPOINT": cls.hub.url, "HF_HUB_CACHE": os.path.join(cls.folder, "cache"), "HF_TOKEN": TOKEN}
        cls.node = cls.enterClassContext(harness.Node("--ranks", "2", env=cls.env))
        cls.home = cls.node.own_env["LOCKSTEP_HOME"]

    def control(self, method, target, body=None):
        return control(self.home, self.node.port, method, target, body)

    def command(self, *arguments, env=None):
        return harness.run(*arguments, "--port", self.node.port, env={"LOCKSTEP_HOME": self.home, **(env or {})})

    def pull(self):
        pulls = self.node.request("GET", "/cluster/status")[1]["pulls"]
        return pulls[0] if pulls else {}

    def test_plan_is_the_commands_output(self):
        cluster = os.path.join(self.folder, "cluster.json")
        with open(cluster, "w", encoding="utf-8") as file:
            json.dump({"machines": [{"profile": PROFILE, "count": 2}], "link": LINK}, file)
        printed = harness.run_json("plan", "llama-3.3-70b", "--cluster", cluster, "--context", 8192, "--streams", 4,
                                   "--json")
        machines = [{"profile": PROFILE, "link": LINK, "name": f"{PROFILE}-{i}"} for i in (1, 2)]
        status, planned = self.node.request("POST", "/cluster/plan", {
            "model": "llama-3.3-70b", "context": 8192, "streams": 4, "remove": ["this machine"], "add": machines})
        self.assertEqual(status, 200, planned)
        self.assertEqual(planned, printed)
        # This machine alone is measured, so its figures differ; it is there.
        status, planned = self.node.request("POST", "/cluster/plan", {"model": "qwen3-0.6b", "context": 1024})
        self.assertEqual(status, 200, planned)
        self.assertEqual(planned["choice"]["groups"][0]["ranks"][0]["machine"], "this machine")

    def test_plan_of_the_model_that_this_node_serves_by_itself(self):
        status, planned = self.node.request("POST", "/cluster/plan", {"model": "stories260K"})
        self.assertEqual(status, 200, planned)
        self.assertEqual(planned["choice"]["groups"][0]["ranks"][0]["machine"], "this machine")

    def test_pull_stalls_and_goes_on_without_its_caller(self):
        gate = self.hub.faults.gate = threading.Event()  # no body gets past its half
        self.addCleanup(gate.set)
        status, said = self.control("POST", "/cluster/pull", {"model": "org/tiny"})
        self.assertEqual((status, said), (202, {"model": "org/tiny"}))
        # The model is one piece, so nothing of it is whole; its bytes are counted as they come.
        wait_for(lambda: self.pull().get("bytes_s", 0) > 0, "the pull goes on")
        self.assertEqual(self.pull()["source"], "hub")
        wait_for(lambda: self.pull().get("bytes_s") == 0, "the pull goes on")
        self.assertEqual(self.pull()["phase"], "downloading")
        self.assertNotIn("seconds_left", self.pull())
        gate.set()
        wait_for(lambda: self.pull().get("phase") == "done", "the pull goes on")
        listed = self.node.request("GET", "/cluster/disk")[1]["nodes"][0]["models"]
        self.assertEqual([(model["name"], model["complete"]) for model in listed], [("org/tiny", True)])
        self.assertEqual(self.control("DELETE", "/cluster/disk", {"model": "org/tiny"})[0], 200)
        self.assertEqual(self.node.request("GET", "/cluster/disk")[1]["nodes"][0]["models"], [])

    def test_doctor_is_the_commands_output(self):
        status, found = self.control("GET", "/cluster/doctor")
        self.assertEqual(status, 200, found)
        printed = json.loads(self.command("doctor", "--json").stdout)
        self.assertEqual([finding["check"] for finding in found["findings"]],
                         [finding["check"] for finding in printed["findings"]])
        # The test of GPUs ran, in a process of its own.
        alone = json.loads(self.command("doctor", "--gpus", "--json").stdout)["findings"]
        self.assertEqual([finding for finding in printed["findings"] if finding["check"] == "gpu"], alone)
        self.assertEqual([finding for finding in found["findings"] if finding["check"] == "gpu"], alone)

    def test_logs_show_no_secret(self):
        shown = self.command("logs")
        self.assertEqual(shown.returncode, 0, shown.stderr)
        lines = self.command("logs", "--json").stdout.splitlines()
        self.assertGreaterEqual(len(lines), 0)
        for secret in (TOKEN, secret_of(self.home)):
            self.assertNotIn(secret, shown.stdout)
        with subprocess.Popen([harness.PROGRAM, "logs", "-f", "--port", str(self.node.port)], stdout=subprocess.PIPE,
                              text=True, env={**os.environ, "LOCKSTEP_HOME": self.home}) as following:
            try:
                # A download is told in the log.
                self.assertEqual(self.control("POST", "/cluster/pull", {"model": "org/tiny"})[0], 202)
                for line in following.stdout:
                    if "org/tiny is fetched" in line:
                        break
                else:
                    self.fail("the log has no line about the download")
            finally:
                following.kill()
        wait_for(lambda: self.pull().get("phase") == "done", "the pull goes on")
        self.assertEqual(self.control("DELETE", "/cluster/disk", {"model": "org/tiny"})[0], 200)

    def test_ps_is_one_line_a_model(self):
        shown = self.command("ps")
        self.assertEqual(shown.returncode, 0, shown.stderr)
        lines = shown.stdout.splitlines()
        self.assertEqual(len(lines), 2)
        self.assertRegex(lines[1], r"^stories260K +ready .* 2 ranks here$")
        self.assertEqual(json.loads(self.command("ps", "--json").stdout)[0]["name"], "stories260K")

    def test_commands_without_control_say_what_is_missing(self):
        refused = self.command("logs", env={"LOCKSTEP_HOME": os.path.join(self.folder, "another")})
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn("control", refused.stderr)

    def test_bash_completes_commands_flags_and_values(self):
        def complete(*words):
            script = ("eval \"$(\"$1\" completion bash)\"; shift; COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); "
                      "_lockstep; printf '%s\\n' \"${COMPREPLY[@]}\"")
            found = subprocess.run(["bash", "-c", script, "bash", harness.PROGRAM, "lockstep", *words],
                                   capture_output=True, text=True, timeout=harness.PATIENCE_S, check=True)
            return found.stdout.split()
        self.assertEqual(complete("sta"), ["status"])
        self.assertIn("bench", complete(""))
        self.assertEqual(complete("status", "--po"), ["--port"])
        self.assertEqual(sorted(complete("completion", "")), ["bash", "fish", "man", "zsh"])
        self.assertEqual(complete("bench", "coll"), ["collective"])
        self.assertIn("--ranks", complete("bench", "collective", "--"))
        self.assertEqual(complete("launch", "cl"), ["claude"])

    def test_the_manual_names_every_command(self):
        page = os.path.join(self.folder, "lockstep.1")
        self.assertEqual(harness.run("completion", "man", "-o", page).returncode, 0)
        if shutil.which("groff") is None:
            self.skipTest("groff formats manual pages and is not installed")
        formatted = subprocess.run(["groff", "-man", "-Tutf8", "-ww", page], capture_output=True, text=True,
                                   timeout=harness.PATIENCE_S, check=True)
        self.assertEqual(formatted.stderr, "")
        plain = re.sub("\x1b\\[[0-9;]*m|.\b", "", formatted.stdout)  # bold and underlined text
        for command in ("serve", "bench collective", "completion", "key add"):
            self.assertTrue(re.search(rf"^ +lockstep {command}\b", plain, re.MULTILINE), command)

    def launch(self, *arguments, home):
        """`claude` is a script that tells what it was given."""
        programs = os.path.join(self.folder, "programs")
        os.makedirs(programs, exist_ok=True)
        for name in ("claude", "codex"):
            path = os.path.join(programs, name)
            with open(path, "w", encoding="utf-8") as file:
                file.write('#!/bin/sh\necho "$ANTHROPIC_BASE_URL $ANTHROPIC_MODEL"\nprintf "[%s]" "$@"\n')
            os.chmod(path, stat.S_IRWXU)
        return harness.run("launch", *arguments, "--port", self.node.port,
                           env={"PATH": programs + ":" + os.environ["PATH"], "HOME": home})

    def test_launch_runs_a_client_with_the_node(self):
        with tempfile.TemporaryDirectory(prefix="lockstep_home_") as home:
            ran = harness.run("launch", "claude", "--port", self.node.port, "--", "--continue", "now",
                              env={"PATH": "/nowhere", "HOME": home})
            self.assertEqual(ran.returncode, 2)
            self.assertIn("not installed", ran.stderr)
            ran = self.launch("claude", home=home)
            self.assertEqual(ran.stdout.splitlines()[0], f"http://localhost:{self.node.port} stories260K")
            ran = self.launch("codex", home=home)
            self.assertIn(f'[model_providers.lockstep.base_url="http://localhost:{self.node.port}/v1"]', ran.stdout)
            self.assertEqual(os.listdir(home), [])  # no file unless it is asked for
            self.assertEqual(self.launch("claude", "--write", home=home).returncode, 0)
            settings = os.path.join(home, ".claude", "settings.json")
            with open(settings, encoding="utf-8") as file:
                self.assertIn("ANTHROPIC_BASE_URL", json.load(file)["env"])
            again = self.launch("claude", "--write", home=home)
            self.assertEqual(again.returncode, 2)
            self.assertIn("left as it is", again.stderr)


class TwoNodes(unittest.TestCase):
    """Two nodes of a cluster on this machine, each with a disk of its own."""

    def start(self, name, *arguments):
        env = {"LOCKSTEP_HOME": os.path.join(self.folder, name), "HF_ENDPOINT": self.hub.url,
               "HF_HUB_CACHE": os.path.join(self.folder, name, "cache")}
        node = subprocess.Popen(
            [harness.PROGRAM, "serve", "--port", "0", "--control-port", "0", "--no-beacon", "--name", name, "--json",
             "--memory", "1", *arguments], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            env={**os.environ, **env})
        self.addCleanup(self.end, node)
        said = json.loads(node.stdout.readline())
        return node, said, env

    def end(self, node):
        node.send_signal(signal.SIGCONT)
        node.send_signal(signal.SIGTERM)
        try:
            node.wait(harness.PATIENCE_S)
        except subprocess.TimeoutExpired:
            node.kill()
            node.wait()
        node.stdout.close()

    def control(self, method, target, body):
        return control(self.env["LOCKSTEP_HOME"], self.port, method, target, body)

    def disks(self):
        answer = json.loads(ask(self.port, "GET", "/cluster/disk", Host="localhost")[1])
        return {node["name"]: node for node in answer["nodes"]}

    def test_disks_of_both_nodes_are_listed_and_removed_from_and_a_silent_one_has_a_sentence(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory(prefix="lockstep_desk_"))
        self.hub = self.enterContext(fake_hub.Hub({"config.json": b'{"model_type": "tiny"}',
                                                   "model.safetensors": os.urandom(100_000)}))
        _, anna, self.env = self.start("anna")
        self.port = anna["port"]
        token = harness.run_json("cluster", "token", "--json", "--port", self.port, env=self.env)["token"]
        berta, said, env = self.start("berta", "--join", f"localhost:{anna['control_port']}", "--token", token)
        wait_for(lambda: set(self.disks()) == {"anna", "berta"}, "both nodes are listed")
        pulled = harness.run("pull", "org/tiny", env=env)  # by the command, to berta's disk
        self.assertEqual(pulled.returncode, 0, pulled.stderr)
        self.assertEqual(self.disks()["anna"]["models"], [])
        self.assertEqual([model["name"] for model in self.disks()["berta"]["models"]], ["org/tiny"])
        # anna gets it from berta, although the hub is there too.
        self.hub.reset_counters()
        self.assertEqual(self.control("POST", "/cluster/pull", {"model": "org/tiny"})[0], 202)
        pulls = lambda: json.loads(ask(self.port, "GET", "/cluster/status", Host="localhost")[1])["pulls"]
        wait_for(lambda: pulls()[0]["phase"] == "done", "the pull is done")
        self.assertEqual(pulls()[0]["source"], "neighbour")
        self.assertEqual(self.hub.sent_bytes(), 0)
        # A model that guesses for one that is to be loaded is used as well.
        self.assertEqual(self.control("POST", "/cluster/load", {"model": "org/big", "draft_model": "org/tiny"})[0], 200)
        status, refused = self.control("DELETE", "/cluster/disk", {"model": "org/tiny"})
        self.assertEqual((status, "unload it first" in json.dumps(refused)), (400, True), refused)
        self.assertEqual(self.control("POST", "/cluster/unload", {"model": "org/big"})[0], 200)
        status, removed = self.control("DELETE", "/cluster/disk", {"model": "org/tiny", "node": "berta"})
        self.assertEqual(status, 200, removed)
        self.assertEqual(self.disks()["berta"]["models"], [])
        self.assertEqual([model["name"] for model in self.disks()["anna"]["models"]], ["org/tiny"])
        berta.send_signal(signal.SIGSTOP)
        os.waitpid(berta.pid, os.WUNTRACED)  # until then it may still answer
        began = time.monotonic()
        self.assertIn("unknown", self.disks()["berta"]["sentence"])
        self.assertLess(time.monotonic() - began, harness.PATIENCE_S / 2)


if __name__ == "__main__":
    unittest.main()
