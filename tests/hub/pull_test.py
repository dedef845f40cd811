"""`lockstep pull`, `list` and `remove` against a hub on the loopback that counts bytes and misbehaves."""

import hashlib
import json
import os
import pathlib
import pty
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "cluster"))
import fake_hub
import harness

PIECE_KIB = 16
PIECE = PIECE_KIB << 10


def tiny_model(seed=1, size=300_000):
    random.seed(seed)
    return {"config.json": b'{"architectures": ["LlamaForCausalLM"]}', "tokenizer.json": random.randbytes(9000),
            "model-00001-of-00002.safetensors": random.randbytes(size),
            "model-00002-of-00002.safetensors": random.randbytes(size // 3),
            "model.safetensors.index.json": b"{}", "README.md": b"", "consolidated.safetensors": random.randbytes(5000),
            "original/model.bin": random.randbytes(6000), "onnx/model.onnx": random.randbytes(6000)}


def chosen(files):
    return {name: content for name, content in files.items()
            if not name.startswith(("original/", "onnx/", "consolidated"))}


class HubTest(unittest.TestCase):
    def setUp(self):
        self.work = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.work)
        self.files = tiny_model()
        self.hub = fake_hub.Hub(self.files)
        self.addCleanup(self.hub.close)
        self.wanted = chosen(self.files)
        self.bytes = sum(map(len, self.wanted.values()))

    def env(self, **more):
        kept = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
        return {**kept, "HF_HOME": os.path.join(self.work, "hf"), "HF_ENDPOINT": self.hub.url,
                "HF_HUB_CACHE": "", "HF_TOKEN": "",
                "HF_HUB_OFFLINE": "", "HF_HUB_DOWNLOAD_TIMEOUT": "2", "LOCKSTEP_MODELS": "", **more}

    def lockstep(self, *arguments, **env):
        return subprocess.run([harness.PROGRAM, *arguments], env=self.env(**env), capture_output=True, text=True,
                              timeout=harness.PATIENCE_S, check=False)

    def pull(self, *arguments, model="org/tiny", **env):
        pieces = [] if "--piece-kib" in arguments else ["--piece-kib", str(PIECE_KIB)]
        process = self.lockstep("pull", model, "--json", *pieces, *arguments, **env)
        self.assertEqual(process.returncode, 0, process.stderr)
        return json.loads(process.stdout)

    def refused(self, part, *arguments, model="org/tiny", status=2, **env):
        process = self.lockstep("pull", model, "--quiet", "--piece-kib", str(PIECE_KIB), *arguments, **env)
        self.assertEqual(process.returncode, status, process.stderr)
        self.assertEqual(process.stdout, "")
        self.assertEqual(len(process.stderr.splitlines()), 1, process.stderr)
        self.assertIn(part, process.stderr)
        return process.stderr

    def folder(self):
        return os.path.join(self.work, "hf/hub/models--org--tiny")

    def check_whole(self, path, wanted=None):
        wanted = wanted or self.wanted
        found = {}
        for folder, _, names in os.walk(path):
            for name in names:
                full = os.path.join(folder, name)
                with open(full, "rb") as file:
                    found[os.path.relpath(full, path)] = file.read()
        self.assertEqual(found, wanted)


class Pull(HubTest):
    def test_one_pull_brings_each_byte_once_in_the_cache_s_layout(self):
        report = self.pull()
        self.check_whole(report["path"])
        self.assertEqual(report["received_bytes"], self.bytes)
        self.assertEqual(self.hub.sent_bytes(), self.bytes)
        self.assertEqual(report["path"], os.path.join(self.folder(), "snapshots", fake_hub.COMMIT))
        for name, content in self.wanted.items():
            large = len(content) >= fake_hub.LARGE
            blob = hashlib.sha256(content).hexdigest() if large else fake_hub.git_hash(content)
            self.assertEqual(os.readlink(os.path.join(report["path"], name)), f"../../blobs/{blob}")
        with open(os.path.join(self.folder(), "refs/main"), encoding="utf-8") as file:
            self.assertEqual(file.read(), fake_hub.COMMIT)
        self.assertEqual(sorted(os.listdir(os.path.join(self.folder(), "blobs"))),
                         sorted({os.path.basename(os.readlink(os.path.join(report["path"], n))) for n in self.wanted}))
        again = self.pull()
        self.assertEqual(again["received_bytes"], 0)
        self.assertEqual(self.hub.sent_bytes(), self.bytes)

    def test_a_redirect_is_asked_for_once_a_connection_and_gets_no_token(self):
        self.hub.faults.expect_token = "secret"
        self.pull("--connections", "1", HF_TOKEN="secret")
        hosts = [(host, token) for host, _, token in self.hub.requests]
        self.assertEqual({token for host, token in hosts if host == "front"}, {"Bearer secret"})
        self.assertEqual({token for host, token in hosts if host == "storage"}, {None})
        large = sum(len(content) >= fake_hub.LARGE for content in self.wanted.values())
        redirected = [path for host, path, _ in self.hub.requests 
                      if host == "front" and path.endswith((".safetensors", "tokenizer.json"))]
        self.assertEqual(len(redirected), large)

    def test_a_model_is_found_by_its_name_and_served_under_it(self):
        stories = {path.name: path.read_bytes() for path in pathlib.Path(harness.STORIES).iterdir()}
        with fake_hub.Hub(stories, "karpathy/stories") as hub:
            missing = self.lockstep("run", "karpathy/stories", "Once", "--local", HF_ENDPOINT=hub.url)
            self.assertEqual(missing.returncode, 2)
            self.assertIn("`lockstep pull karpathy/stories`", missing.stderr)
            self.assertEqual(len(missing.stderr.splitlines()), 1)
            self.pull(model="karpathy/stories", HF_ENDPOINT=hub.url)
        local = self.lockstep("run", harness.STORIES, "Once", "--local", "-n", "8", "--temperature", "0")
        pulled = self.lockstep("run", "karpathy/stories", "Once", "--local", "-n", "8", "--temperature", "0",
                               HF_HUB_OFFLINE="1")
        self.assertEqual((pulled.returncode, pulled.stdout), (0, local.stdout), pulled.stderr)
        shown = self.lockstep("show", "karpathy/stories", "--json")
        self.assertEqual(json.loads(shown.stdout)["layers"], 5)
        cache = os.path.join(self.work, "hf/hub")
        elsewhere = self.lockstep("show", "karpathy/stories", "--json", HF_HOME=os.path.join(self.work, "no"),
                                  LOCKSTEP_MODELS=cache)
        self.assertEqual(elsewhere.returncode, 0, elsewhere.stderr)
        os.makedirs(os.path.join(self.work, "store/mine"))
        shutil.copytree(harness.STORIES, os.path.join(self.work, "store/mine/tale"))
        plain = self.lockstep("show", "mine/tale", "--json", LOCKSTEP_MODELS=os.path.join(self.work, "store"))
        self.assertEqual(plain.returncode, 0, plain.stderr)

    def test_list_and_remove(self):
        self.assertEqual(json.loads(self.lockstep("list", "--json").stdout), [])
        self.pull()
        listed = json.loads(self.lockstep("list", "--json").stdout)
        self.assertEqual([(m["model"], m["revisions"], m["is_whole"], m["size_bytes"]) for m in listed],
                         [("org/tiny", ["main"], True, self.bytes)])
        self.assertRegex(self.lockstep("list").stdout, r"org/tiny +main +[\d.]+ KB  whole")
        process = self.lockstep("remove", "org/other")
        self.assertEqual((process.returncode, len(process.stderr.splitlines())), (2, 1))
        self.assertEqual(self.lockstep("remove", "org/tiny@main").returncode, 0)
        self.assertEqual(os.listdir(os.path.join(self.folder(), "blobs")), [])
        self.pull()
        self.assertEqual(self.lockstep("remove", "org/tiny").returncode, 0)
        self.assertFalse(os.path.exists(self.folder()))

    def test_faults_that_pass_are_no_failures(self):
        cases = {"truncate": 5, "drop": 2, "stall": 1, "expire": 2, "drip": 777}
        for name, count in cases.items():
            with self.subTest(fault=name):
                shutil.rmtree(os.path.join(self.work, "hf"), ignore_errors=True)
                self.hub.faults = fake_hub.Faults()
                self.hub.reset_counters()
                setattr(self.hub.faults, name, count)
                report = self.pull()
                self.check_whole(report["path"])
                self.assertEqual(report["received_bytes"], self.bytes, "a piece goes on where it stopped")
        self.hub.faults = fake_hub.Faults()
        self.hub.faults.statuses = [(429, {"Retry-After": "1"}), (503, {}), (500, {})]
        shutil.rmtree(os.path.join(self.work, "hf"))
        self.check_whole(self.pull()["path"])
        self.assertEqual(self.hub.faults.statuses, [])

    def test_flipped_bytes_are_found_and_fetched_again(self):
        name = "model-00001-of-00002.safetensors"
        self.hub.faults.flip = {name: 1}
        report = self.pull()
        self.check_whole(report["path"])
        self.assertEqual(report["received_bytes"], self.bytes + len(self.files[name]))
        self.hub.faults.flip = {name: 10_000, "config.json": 1}
        shutil.rmtree(self.folder())
        sentence = self.refused("SHA-256", "--retries", "0")
        self.assertIn(name, sentence)
        self.assertFalse(os.path.exists(os.path.join(self.folder(), "snapshots")))
        missing = self.lockstep("show", "org/tiny")
        self.assertIn("lockstep pull org/tiny", missing.stderr)

    def test_lengths_that_lie(self):
        self.hub.faults.wrong_total = 10_000
        self.refused("but its list says")
        self.hub.faults = fake_hub.Faults()
        self.hub.faults.too_long = 10_000
        self.refused("more bytes than expected")
        self.hub.faults = fake_hub.Faults()
        self.hub.faults.no_ranges = True
        self.refused("does not serve parts of files")
        self.hub.faults = fake_hub.Faults()

        def longer(listed):
            for sibling in listed["siblings"]:
                if "lfs" in sibling:
                    sibling["size"] = sibling["lfs"]["size"] = sibling["size"] + 5
        self.hub.faults.list_change = longer
        self.refused("but its list says")

    def test_lists_that_cannot_be_used(self):
        def named(name):
            def change(listed):
                listed["siblings"][0]["rfilename"] = name
            return change
        for name in ("../../evil", "/etc/evil", "a/../../b", "a//b", "a\\..\\b", "x\n.json"):
            self.hub.faults.list_change = named(name)
            self.refused("points outside the model's folder")
        for change, part in ((lambda listed: listed.pop("sha"), "names no commit"),
                             (lambda listed: listed["siblings"][2].pop("size"), "how long"),
                             (lambda listed: listed["siblings"].append(listed["siblings"][0]), "twice"),
                             (lambda listed: listed["siblings"][2]["lfs"].update(size=1), "two lengths"),
                             (lambda listed: listed["siblings"][0].update(blobId="../x"), "no hash")):
            self.hub.faults.list_change = change
            self.refused(part)
        self.assertFalse(os.path.exists(os.path.join(self.work, "evil")))
        self.assertEqual(self.hub.sent_bytes(), 0)

    def test_refusals_say_what_to_do(self):
        self.hub.faults.expect_token = "right"
        self.refused("set HF_TOKEN")
        self.refused("HF_TOKEN has no access", HF_TOKEN="wrong")
        self.refused("holds invalid characters", HF_TOKEN="a b")
        self.hub.faults = fake_hub.Faults()
        self.hub.faults.status = (401, {})
        self.refused("does not exist")
        self.hub.faults.status = (429, {"Retry-After": "3600"})
        self.refused("in 60 minutes", status=1)
        self.hub.faults.status = (503, {})
        self.refused("HTTP 503, even after 2 retries", "--retries", "2", status=1)
        self.hub.faults = fake_hub.Faults()
        self.hub.faults.redirect = self.hub.url + "/again"
        self.refused("redirects more than 5 times")
        self.hub.faults.redirect = "file:///etc/passwd"
        self.refused("cannot be used")
        self.hub.faults = fake_hub.Faults()
        self.refused("no model org/none", model="org/none")
        self.refused("a revision gone", model="org/tiny@gone")
        self.refused("is not a hub model", model="tiny")
        self.refused("is not a revision", model="org/tiny@a b")
        self.refused("no safetensors and no GGUF", "--exclude", "*.safetensors")
        self.refused("HF_ENDPOINT", HF_ENDPOINT="ftp://x")
        self.refused("cannot be reached", "--retries", "0", status=1, HF_ENDPOINT="http://127.0.0.1:9")
        self.assertEqual(self.hub.sent_bytes(), 0)

    def test_gguf_models_are_chosen_by_name(self):
        small = {"tiny-Q4_K_M.gguf": b"4" * 5000, "tiny-Q8_0.gguf": b"8" * 6000, "mmproj-f16.gguf": b"m" * 5000,
                 "big-00001-of-00002.gguf": b"1" * 5000, "big-00002-of-00002.gguf": b"2" * 5000, "README.md": b"x"}
        with fake_hub.Hub(small) as hub:
            self.refused("tiny-Q4_K_M.gguf (5.00 KB)", HF_ENDPOINT=hub.url)
            report = self.pull(model="org/tiny/tiny-Q4_K_M.gguf", HF_ENDPOINT=hub.url)
            self.assertTrue(report["path"].endswith("/tiny-Q4_K_M.gguf"))
            self.assertEqual(report["received_bytes"], 5001)
            report = self.pull(model="org/tiny/big-00001-of-00002.gguf", HF_ENDPOINT=hub.url)
            self.assertEqual(report["received_bytes"], 10_000)
            both = self.lockstep("show", "org/tiny")
            self.assertIn("org/tiny/big-00001-of-00002.gguf, org/tiny/tiny-Q4_K_M.gguf", both.stderr)
            self.assertNotIn("00002-of", both.stderr)

    def test_no_route_to_the_outside(self):
        path = self.pull()["path"]
        self.hub.close()
        self.assertEqual(self.pull(HF_HUB_OFFLINE="1", HF_ENDPOINT="http://127.0.0.1:9")["path"], path)
        self.assertEqual(self.pull("--verify", HF_HUB_OFFLINE="1")["path"], path)
        self.refused("lockstep pull org/other", model="org/other", HF_HUB_OFFLINE="1")
        blob = os.path.realpath(os.path.join(path, "tokenizer.json"))
        with open(blob, "r+b") as file:
            file.seek(100)
            file.write(b"\0\0\0\0")
        self.refused("tokenizer.json of org/tiny is damaged", "--verify", HF_HUB_OFFLINE="1")
        os.truncate(blob, 50)
        self.refused("1 of the 6 files of org/tiny", HF_HUB_OFFLINE="1")

    def test_damage_on_the_disk_is_repaired(self):
        path = self.pull()["path"]
        blob = os.path.realpath(os.path.join(path, "model-00002-of-00002.safetensors"))
        with open(blob, "r+b") as file:
            file.seek(70_000)
            file.write(b"\0\0\0\0")
        report = self.pull("--verify")
        self.assertEqual((report["repaired_files"], report["received_bytes"]), (1, os.path.getsize(blob)))
        self.check_whole(path)

    def test_kill_9_at_random_moments_loses_a_piece_a_connection(self):
        rounds, connections = 50, 3
        seed = random.randrange(1 << 30)
        chance = random.Random(seed)
        # Enough bytes are left to be sent that no download is done before its process is killed.
        held = self.bytes - (connections + 1) * PIECE
        for i in range(rounds):
            shutil.rmtree(os.path.join(self.work, "hf"), ignore_errors=True)
            self.hub.reset_counters()
            kills = 3
            for _ in range(kills):
                self.hub.faults.hold_at = held
                some = chance.randrange(self.hub.sent_bytes(), max(held, self.hub.sent_bytes() + 1))
                process = subprocess.Popen([harness.PROGRAM, "pull", "org/tiny", "--quiet", "--connections",
                                            str(connections),
                                            "--piece-kib", str(PIECE_KIB)], env=self.env(),
                                           stdout=subprocess.DEVNULL)
                harness.wait_until(lambda: process.poll() is not None or self.hub.sent_bytes() >= some,
                                   harness.PATIENCE_S, "the download")
                process.send_signal(signal.SIGKILL)
                self.assertEqual(process.wait(), -signal.SIGKILL, f"seed {seed}, round {i}")
                self.hub.release()
            report = self.pull("--connections", str(connections))
            self.check_whole(report["path"])
            more = self.hub.sent_bytes() - self.bytes
            self.assertLessEqual(more, kills * connections * PIECE, f"seed {seed}, round {i}")
            self.assertEqual([n for n in os.listdir(os.path.join(self.folder(), "blobs")) if "." in n], [])
        print(f"{rounds} rounds of {kills} kills; seed {seed}")

    def test_two_processes_and_ctrl_c(self):
        self.hub.faults.gate = threading.Event()
        first = subprocess.Popen([harness.PROGRAM, "pull", "org/tiny", "--quiet"], env=self.env(),
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        harness.wait_until(lambda: self.hub.sent_bytes() > 0, harness.PATIENCE_S, "the first part")
        self.refused("another process is downloading", status=1)
        first.send_signal(signal.SIGINT)
        _, errors = first.communicate(timeout=harness.PATIENCE_S)
        self.hub.faults.gate.set()
        self.assertEqual((first.returncode, errors), (1, "lockstep: the download was stopped\n"))
        self.check_whole(self.pull()["path"])

    def test_progress_is_plain_lines_where_there_is_no_terminal(self):
        process = self.lockstep("pull", "org/tiny")
        self.assertRegex(process.stderr, r"org/tiny: 100 %, 4\d\d\.\d\d KB of 4\d\d\.\d\d KB")
        self.assertEqual(process.stdout, os.path.join(self.folder(), "snapshots", fake_hub.COMMIT) + "\n")
        self.assertEqual(self.lockstep("pull", "org/tiny", "--quiet").stderr, "")

    def test_a_terminal_shows_a_bar(self):
        self.hub.faults.gate = threading.Event()
        screen, terminal = pty.openpty()
        process = subprocess.Popen([harness.PROGRAM, "pull", "org/tiny", "--piece-kib", str(PIECE_KIB)],
                                   env=self.env(TERM="xterm", LC_ALL="C.UTF-8"), stdout=subprocess.PIPE, stderr=terminal)
        os.close(terminal)
        shown = b""
        try:
            while "█".encode() not in shown or b" left" not in shown:
                shown += os.read(screen, 4096)
                self.hub.faults.gate.set()
            while True:
                shown += os.read(screen, 4096)
        except OSError:  # the terminal closed with the process
            pass
        process.communicate(timeout=harness.PATIENCE_S)
        os.close(screen)
        self.assertEqual(process.returncode, 0, shown)
        bar, amount = r"\d+ % \|[█▏▎▍▌▋▊▉ ]{16}\|", r"[\d.]+ .B of 4\d\d\.\d\d KB"
        self.assertRegex(shown.decode(), rf"\r\x1b\[K(\x1b\[2m)? *{bar} {amount}, [\d.]+ .B/s, \S+ left")


@unittest.skipUnless(os.geteuid() == 0, "only root can mount a small disk")
class FullDisk(HubTest):
    def setUp(self):
        super().setUp()
        self.disk = os.path.join(self.work, "disk")
        os.mkdir(self.disk)
        command = ["mount", "-t", "tmpfs", "-o", "size=20m", "tmpfs", self.disk]
        if subprocess.run(command, check=False, capture_output=True).returncode != 0:
            self.skipTest("a small disk cannot be mounted here")
        self.addCleanup(subprocess.run, ["umount", self.disk], check=True)

    def serve(self, size):
        self.hub.files = {"config.json": b"{}", "model.safetensors": os.urandom(size)}

    def test_too_little_space_is_reported_before_anything_is_fetched(self):
        self.serve(10 << 20)
        sentence = self.refused("set HF_HUB_CACHE", status=1, HF_HUB_CACHE=self.disk)
        self.assertIn(f"({(10 << 20) + 2} bytes of its 10.49 MB)", sentence)
        self.assertEqual(self.hub.sent_bytes(), 0)

    def test_a_disk_that_fills_up_meanwhile_and_is_freed(self):
        self.serve(2 << 20)
        self.hub.faults.gate = threading.Event()
        process = subprocess.Popen([harness.PROGRAM, "pull", "org/tiny", "--quiet", "--piece-kib", "256"],
                                   env=self.env(HF_HUB_CACHE=self.disk), stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        harness.wait_until(lambda: self.hub.sent_bytes() > 1, harness.PATIENCE_S, "the first part")
        other = os.path.join(self.disk, "other")
        with open(other, "wb") as file:
            with self.assertRaises(OSError):
                while True:
                    file.write(bytes(1 << 16))
                    file.flush()
        self.hub.faults.gate.set()
        _, errors = process.communicate(timeout=harness.PATIENCE_S)
        self.assertEqual(process.returncode, 1)
        self.assertRegex(errors, "^lockstep: the disk is full at .*; free some space and pull again")
        self.assertEqual(len(errors.splitlines()), 1)
        os.remove(other)
        self.check_whole(self.pull("--piece-kib", "256", HF_HUB_CACHE=self.disk)["path"], self.hub.files)


if __name__ == "__main__":
    harness.main()
