"""What a user sees who types something wrong: one sentence on stderr, exit status 2, nothing on stdout."""

import json
import os
import shutil
import struct
import tempfile
import unittest

import harness

LLAMA = os.path.join(harness.GOLDEN, "llama-f32")


class CommandLine(unittest.TestCase):
    def check_refused(self, arguments, part, **options):
        process = harness.run(*arguments, **options)
        self.assertEqual(process.returncode, 2, (arguments, process.stderr))
        self.assertEqual(process.stdout, "", arguments)
        lines = process.stderr.strip().splitlines()
        self.assertEqual(len(lines), 1, process.stderr)
        self.assertTrue(lines[0].startswith("lockstep: "), lines[0])
        self.assertIn(part, lines[0])

    def test_version_and_help(self):
        self.assertRegex(harness.run("--version").stdout, r"^lockstep \d+\.\d+\.\d+\n$")
        overview = harness.run("--help").stdout
        for command in ("run", "serve", "logits", "tokenize", "bench"):
            self.assertIn(command, overview)
            self.assertIn("Usage", harness.run(command, "--help").stdout)
        self.assertNotIn("worker ", overview)

    def test_flags_and_models_that_do_not_exist(self):
        self.check_refused(["frobnicate"], "no command frobnicate")
        self.check_refused(["--frobnicate"], "--frobnicate")
        self.check_refused(["run", harness.STORIES, "x", "--frobnicate"], "--frobnicate")
        self.check_refused(["run", "/nonexistent/model", "x"], "/nonexistent/model")
        self.check_refused(["logits", LLAMA, "--ids", "1,x"], "--ids")
        self.check_refused(["logits", LLAMA, "--ids", "1", "--shares", "0:1"], "--shares")
        self.check_refused(["logits", LLAMA, "--ids", "1", "--shares", "1:1", "--ranks", "3"], "--ranks")
        self.check_refused(["logits", LLAMA, "--ids", "1", "--link", "pigeon"], "pigeon")
        self.check_refused(["logits", LLAMA, "--ids", "999"], "999")
        self.check_refused(["logits", LLAMA, "--ids", "1", "--parallel", "pipeline"], "pipeline")
        self.check_refused(["run", LLAMA, "x"], "tokenizer.json")
        self.check_refused(["tokenize", LLAMA, "--text", "x"], "tokenizer.json")
        self.check_refused(["logits", LLAMA, "--ids", "1"], "LOCKSTEP_ISA", env={"LOCKSTEP_ISA": "z80"})

    def test_broken_checkpoints(self):
        with tempfile.TemporaryDirectory() as work:
            def broken(name, change):
                folder = os.path.join(work, name)
                shutil.copytree(LLAMA, folder)
                change(folder)
                return folder

            def config(**values):
                def change(folder):
                    path = os.path.join(folder, "config.json")
                    with open(path, encoding="utf-8") as file:
                        content = {**json.load(file), **values}
                    with open(path, "w", encoding="utf-8") as file:
                        json.dump(content, file)
                return change

            def truncate(folder):
                os.truncate(os.path.join(folder, "model.safetensors"), 100_000)

            def lie(folder):
                with open(os.path.join(folder, "model.safetensors"), "r+b") as file:
                    file.write(struct.pack("<Q", 1 << 60))

            cases = [("truncated", truncate, "model.safetensors"), ("lying", lie, "model.safetensors"),
                     ("shape", config(hidden_size=96), "shape"),
                     ("architecture", config(architectures=["HyenaForCausalLM"]), "HyenaForCausalLM"),
                     ("layers", config(num_hidden_layers=3), "model.layers.2."),
                     ("weights", lambda f: os.remove(os.path.join(f, "model.safetensors")), "safetensors"),
                     ("config", lambda f: os.remove(os.path.join(f, "config.json")), "config.json")]
            for name, change, part in cases:
                with self.subTest(name=name):
                    folder = broken(name, change)
                    for ranks in ("1", "2"):
                        self.check_refused(["logits", folder, "--ids", "1", "--ranks", ranks], part)

    def test_tokenize_batch(self):
        lines = [{"text": "Hello, world!"}, {"text": 5}, {"text": ""}]
        process = harness.run("tokenize", harness.STORIES, "--batch", stdin="\n".join(map(json.dumps, lines)) + "\n{\n")
        answers = [json.loads(line) for line in process.stdout.splitlines()]
        self.assertEqual(answers[0]["ids"], [346, 306, 414, 432, 263, 304, 341, 443])
        self.assertIn("error", answers[1])
        self.assertEqual(answers[2], {"ids": []})
        self.assertIn("error", answers[3])
        decoded = harness.run("tokenize", harness.STORIES, "--batch", "--decode",
                              stdin=json.dumps({"ids": answers[0]["ids"]}) + "\n")
        self.assertEqual(json.loads(decoded.stdout), {"text": "Hello, world!"})

    def test_bench_prints_its_contract(self):
        model = harness.run_json("bench", harness.STORIES, "-p", 64, "-n", 16, "-r", 1, "--json")
        for key in ("prefill_tok_s", "decode_tok_s", "read_gb_s", "decode_gb_s"):
            self.assertGreater(model[key], 0)
        for link in ("shm", "tcp"):
            times = harness.run_json("bench", "collective", "--ranks", 2, "--link", link, "--bytes", 1024,
                                     "--rounds", 200, "--runs", 1, "--json")
            self.assertGreater(times["p50_us"], 0)
            self.assertGreaterEqual(times["p99_us"], times["p50_us"])


if __name__ == "__main__":
    harness.main()
