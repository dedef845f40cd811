"""The result of a wrong command line: one sentence on stderr, exit status 2, nothing on stdout."""

import json
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import unittest

import harness

LLAMA = os.path.join(harness.GOLDEN, "llama-f32")


class CommandLine(unittest.TestCase):
    def check_refused(self, arguments, part, **options):
        process = harness.run(*arguments, **options)
        self.assertEqual(process.returncode, 2, (arguments, process.stderr))
        self.assertEqual(process.stdout, "", arguments)
        lines = process.stderr.splitlines()
        self.assertEqual(len(lines), 1, process.stderr)
        self.assertTrue(lines[0].startswith("lockstep: "), lines[0])
        self.assertIn(part, lines[0])

    def test_version_and_help(self):
        self.assertRegex(harness.run("--version").stdout, r"^lockstep \d+\.\d+\.\d+\n$")
        overview = harness.run("--help").stdout
        for command in ("run", "serve", "logits", "tokenize", "template", "toolparse", "show", "pull", "list", "remove",
                        "plan", "bench", "status", "probe", "quantize", "load", "unload", "cluster"):
            self.assertIn(command, overview)
            self.assertIn("Usage", harness.run(command, "--help").stdout)
        self.assertNotIn("worker ", overview)
        for command in (["run"], ["serve"], ["logits"], ["bench"], ["bench", "serve"]):
            self.assertRegex(harness.run(*command, "--help").stdout, r"--device TEXT +where ranks compute: auto, cpu", command)

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
        self.check_refused(["logits", LLAMA, "--ids", "1", "--kv", "f8"], "f8")
        self.check_refused(["logits", LLAMA, "--ids", "1", "--device", "vulcan"],
                           'there is no device "vulcan"; use auto, cpu, vulkan or vulkan:N')
        self.check_refused(["run", harness.STORIES, "x", "--ranks", "3", "--device", "cpu,auto"], "too few for rank 2")
        self.check_refused(["bench", "device", "--device", "vulcan"], 'there is no device "vulcan"')
        with tempfile.TemporaryDirectory() as home:
            self.check_refused(["serve", "--port", "0", "--control-port", "0", "--no-beacon", "--device", "cpu,cpu"],
                               "give a MODEL and --ranks, or one device", env={"LOCKSTEP_HOME": home})
        self.check_refused(["logits", LLAMA, "--ids", "1", "--kv", "q8", "--exact"], "leave out --kv q8")
        self.check_refused(["serve", harness.STORIES, "--port", "0", "--kv", "q8", "--exact"], "leave out --kv q8")
        self.check_refused(["logits", LLAMA, "--ids", "1", "--parallel", "pigeon"], "pigeon")
        self.check_refused(["logits", LLAMA, "--ids", "1", "--parallel", "pipeline"], "at least two ranks")
        self.check_refused(["logits", LLAMA, "--ids", "1", "--ranks", "3", "--stages", "2"], "does not divide 3 ranks")
        self.check_refused(["logits", LLAMA, "--ids", "1", "--ranks", "3", "--stages", "3"], "2 layers")
        self.check_refused(["run", harness.STORIES, "x", "--ranks", "2", "--parallel", "tensor", "--stages", "2"],
                           "leave out --parallel tensor")
        self.check_refused(["bench", "placement", "--clusters", "3..17"], "write 4 or 1..16")
        self.check_refused(["run", LLAMA, "x"], "no tokenizer")
        self.check_refused(["run", harness.STORIES, "x", "-n", "0"], "from 1 to 2147483647, not 0")
        self.check_refused(["logits", LLAMA, "--ids", "1", "--context", "9999999999"], "--context")
        self.check_refused(["show", "llama-3.2-1c"], "llama-3.2-1b")
        self.check_refused(["serve", harness.STORIES, harness.STORIES, "--alone", "--port", "0", "--cache-disk", "0"],
                           "two models are named stories260K")
        self.check_refused(["tokenize", LLAMA, "--text", "x"], "tokenizer.json")
        self.check_refused(["logits", LLAMA, "--ids", "1"], "LOCKSTEP_ISA", env={"LOCKSTEP_ISA": "z80"})

    def test_commands_of_a_cluster(self):
        self.check_refused(["serve", "--alone"], "MODEL (with --alone)")
        self.check_refused(["serve", harness.STORIES, "--alone", "--join", "h"], "--alone excludes")
        self.check_refused(["serve", harness.STORIES, "--drain", "-1"], "--drain")
        self.check_refused(["cluster"], "subcommand")
        self.check_refused(["load", "/nonexistent/model"], "/nonexistent/model")
        self.check_refused(["load", harness.STORIES, "--ranks", "0"], "--ranks")
        with tempfile.TemporaryDirectory() as work:
            env = {"LOCKSTEP_HOME": os.path.join(work, "home")}
            self.check_refused(["serve", "--join", "host", "--port", "0"], "needs a token", env=env)
            self.check_refused(["serve", "--join", "host:x"], "host:x", env=env)
            self.check_refused(["serve", "--token", "x"], "a token needs --join", env=env)
            self.check_refused(["serve", "--join", "host", "--token", "x"], "token", env=env)
            self.check_refused(["serve", "--name", "a\nb"], "name", env=env)
            self.check_refused(["serve", "/nonexistent/model"], "/nonexistent/model", env=env)
            self.check_refused(["cluster", "leave"], "in no cluster", env=env)
            told = harness.run_json("cluster", "id", "--json", env=env)
            self.assertEqual((len(told["id"]), told["cluster"], told["folder"]), (64, None, env["LOCKSTEP_HOME"]))
            with open(os.path.join(env["LOCKSTEP_HOME"], "cluster_key"), "w", encoding="utf-8",
                      opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
                file.write("ab" * 32 + "\n")
            cluster = harness.run_json("cluster", "id", "--json", env=env)["cluster"]
            self.assertRegex(cluster, "^[0-9a-f]{8}$")
            self.assertIn(f"in cluster {cluster}", harness.run("cluster", "id", env=env).stdout)
            with harness.Node(env=env) as node:
                port = ("--port", node.port)
                self.check_refused(["load", harness.STORIES, *port], "start it without --alone", env=env)
                self.check_refused(["unload", "stories260K", *port], "start it without --alone", env=env)
                self.check_refused(["cluster", "token", *port], "start it without --alone", env=env)
                left = harness.run_json("cluster", "leave", "--json", *port, env=env)
            self.assertEqual(left, {"left": cluster})
            self.assertIsNone(harness.run_json("cluster", "id", "--json", env=env)["cluster"])

    def test_status_of_a_running_node_and_of_none(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        nobody = harness.run("status", "--port", port)
        self.assertEqual((nobody.returncode, nobody.stdout), (1, ""))
        self.assertRegex(nobody.stderr, f"^lockstep: no node answers on port {port} [^\n]*\n$")
        env = {"LOCKSTEP_VERBS_LIBRARY": "/nowhere/librdma.so"}
        with harness.Node("--ranks", "2", "--link", "verbs", env=env) as node:
            told = harness.run_json("status", "--port", node.port, "--json")
            model = told["models"][0]
            self.assertEqual([rank["pid"] for rank in model["ranks"]], node.worker_pids())
            link = model["links"][0]
            self.assertEqual((link["a"], link["b"], link["path"]), (0, 1, "tcp"))
            self.assertIn("/nowhere/librdma.so", link["reason"])
            text = harness.run("status", "--port", node.port).stdout
        for part in ("stories260K: ready", "2 ranks", str(model["ranks"][1]["pid"]), model["ranks"][1]["device"], " 0 - 1   tcp", link["reason"]):
            self.assertIn(part, text)

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
                     ("long name", config(architectures=["X" * 100_000]), "X" * 100 + "\" is unknown"),
                     ("layers", config(num_hidden_layers=3), "model.layers.2."),
                     ("fewer layers", config(num_hidden_layers=1), "says 1 layer, but the files hold 2"),
                     ("bits", config(quantization={"bits": 7, "group_size": 64}), "\"bits\": 7; supported are affine"),
                     ("mode", config(quantization={"bits": 4, "mode": "foo"}), "\"foo\"; supported are affine"),
                     ("weights", lambda f: os.remove(os.path.join(f, "model.safetensors")), "safetensors"),
                     ("config", lambda f: os.remove(os.path.join(f, "config.json")), "config.json")]
            for name, change, part in cases:
                with self.subTest(name=name):
                    folder = broken(name, change)
                    for ranks in ("1", "2"):
                        self.check_refused(["logits", folder, "--ids", "1", "--ranks", ranks], part)

    def test_weights_that_are_no_numbers_are_an_error_of_the_model(self):
        with tempfile.TemporaryDirectory() as work:
            folder = os.path.join(work, "broken")
            harness.copy_with_nan(harness.STORIES, folder, "model.norm.weight")
            for arguments in (["run", folder, "Once", "-n", "4"], ["run", folder, "Once", "-n", "4", "--ranks", "2"],
                              ["logits", folder, "--ids", "1,2"], ["run", folder, "Once", "--top-k", "3"]):
                process = harness.run(*arguments)
                self.assertEqual(process.returncode, 1, (arguments, process.stderr))
                self.assertEqual(process.stdout, "", arguments)
                self.assertRegex(process.stderr, r"^lockstep: the logits after \d+ tokens? are not numbers \(NaN")
                self.assertEqual(len(process.stderr.splitlines()), 1, process.stderr)

    def test_a_prompt_that_is_too_long_names_the_flag_that_makes_room(self):
        for arguments in (["run", harness.STORIES, "Once upon a time", "--context", "3"],
                          ["logits", harness.STORIES, "--ids", "1,2,3,4,5,6", "--context", "3"]):
            process = harness.run(*arguments)
            self.assertEqual(process.returncode, 1, process.stderr)
            self.assertRegex(process.stderr, r"^lockstep: the prompt has \d+ tokens but the context holds 3; --context \d")

    def test_a_template_wants_a_list_of_messages(self):
        with tempfile.TemporaryDirectory() as work:
            path = os.path.join(work, "chat.jinja")
            with open(path, "w", encoding="utf-8") as file:
                file.write("{% for m in messages %}{{ m }}{% endfor %}")
            for messages in ("x", 5, {"role": "user"}, ["x"], None):
                process = harness.run("template", path, stdin=json.dumps({"messages": messages}))
                self.assertEqual(process.returncode, 2, process.stderr)
                self.assertEqual(process.stderr, 'lockstep: "messages" must be a list of objects\n')
            self.assertEqual(harness.run("template", path, stdin='{"messages": []}').returncode, 0)

    def test_bits_on_load_report_their_loss(self):
        case = os.path.join(harness.GOLDEN, "llama3-bf16")
        with tempfile.TemporaryDirectory() as work:
            wanted = harness.run_json("quantize", case, os.path.join(work, "q4"), "--bits", 4, "--json")
        worst = wanted["tensors"][0]
        for ranks in (1, 2):
            short = harness.run("logits", case, "--ids", "1", "--bits", 4, "--ranks", ranks)
            self.assertEqual(short.returncode, 0, short.stderr)
            self.assertEqual(len(short.stderr.splitlines()), 1, short.stderr)
            self.assertIn(f"rms error {wanted['relative_rms_error'] * 100:.1f}", short.stderr)
            self.assertIn(f"{worst['name']} {worst['relative_rms_error'] * 100:.3f} %", short.stderr)
            long = harness.run("logits", case, "--ids", "1", "--bits", 4, "--verbose", "--ranks", ranks)
            self.assertEqual(long.stdout, short.stdout.replace(short.stdout[short.stdout.index('"ranks"'):], "")
                             + long.stdout[long.stdout.index('"ranks"'):])
            for tensor in wanted["tensors"]:
                self.assertRegex(long.stderr, rf"(?m)^{re.escape(tensor['name'])} +4 ")
        self.assertEqual(harness.run("logits", case, "--ids", "1").stderr, "")

    def test_kv_decides_how_much_memory_keys_and_values_take(self):
        numbers = 2 * 16 * 8192 * 8 * 64
        wanted = {"f32": numbers * 4, "bf16": numbers * 2, "f16": numbers * 2, "q8": numbers + numbers // 32 * 2}
        with tempfile.TemporaryDirectory() as work:
            cluster = os.path.join(work, "cluster.json")
            with open(cluster, "w", encoding="utf-8") as file:
                file.write('{"machines": [{"profile": "mac-studio-m3-ultra"}]}')
            for flags, kind in [([], "f16")] + [(["--kv", kind], kind) for kind in wanted]:
                plan = harness.run_json("plan", "llama-3.2-1b", "--cluster", cluster, "--json", *flags)
                self.assertEqual(plan["kv"], kind)
                self.assertEqual(plan["choice"]["groups"][0]["ranks"][0]["state_bytes"], wanted[kind])

    def test_a_lost_worker_ends_run_with_one_sentence(self):
        process = subprocess.Popen([harness.PROGRAM, "run", harness.STORIES, "--ranks", "2"], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)  # it waits for its prompt
        try:
            harness.wait_until(lambda: len(harness.children(process.pid)) == 2, harness.PATIENCE_S, "two workers")
            os.kill(harness.children(process.pid)[1], signal.SIGKILL)
            harness.wait_until(lambda: not harness.children(process.pid), harness.PATIENCE_S, "the group's end")
            _, errors = process.communicate("Once", timeout=harness.PATIENCE_S)
        finally:
            process.kill()
            process.communicate()
        self.assertEqual(process.returncode, 1, errors)
        self.assertNotIn("restarting", errors)
        self.assertEqual(len(errors.splitlines()), 1, errors)
        self.assertIn("rank 1", errors)

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

    def test_quantize_writes_a_folder_that_equals_bits_on_load(self):
        case = os.path.join(harness.GOLDEN, "llama3-bf16")
        ids = ",".join(map(str, range(5, 25)))
        with tempfile.TemporaryDirectory() as work:
            folder = os.path.join(work, "q4")
            report = harness.run_json("quantize", case, folder, "--bits", 4, "--json")
            self.assertLess(report["bytes_after"], report["bytes_before"] / 2)
            errors = [tensor["relative_rms_error"] for tensor in report["tensors"]]
            self.assertEqual(errors, sorted(errors, reverse=True))
            self.assertEqual(len(os.listdir(work)), 1)
            wanted = harness.run_json("logits", folder, "--ids", ids)["logits"]
            for ranks in (1, 3):
                for arguments in ([folder], [case, "--bits", 4]):
                    got = harness.run_json("logits", *arguments, "--ids", ids, "--ranks", ranks)["logits"]
                    self.assertEqual(got, wanted, arguments)
            table = harness.run("quantize", case, os.path.join(work, "q8"), "--bits", 8).stdout
            self.assertIn("lm_head", table)
            self.assertIn("bits a weight", table)
            self.check_refused(["quantize", case, folder], "already exists")
            self.check_refused(["quantize", folder, os.path.join(work, "again")], "--requantise")
            self.check_refused(["logits", folder, "--ids", "1", "--bits", "4"], "already quantised")
            harness.run_json("quantize", folder, os.path.join(work, "again"), "--bits", 2, "--requantise", "--json")
        self.check_refused(["quantize", "/nonexistent/model", "/nonexistent/out"], "/nonexistent/model")
        self.check_refused(["quantize", case, "/nonexistent/out"], "/nonexistent")
        self.check_refused(["quantize", case, "x", "--bits", "7"], "7")
        self.check_refused(["logits", case, "--ids", "1", "--bits", "9"], "9")

    def test_bench_prints_its_contract(self):
        model = harness.run_json("bench", harness.STORIES, "-p", 64, "-n", 16, "-r", 1, "--json")
        for key in ("prefill_tok_s", "decode_tok_s", "read_gb_s", "decode_gb_s"):
            self.assertGreater(model[key], 0)
        for link in ("shm", "tcp"):
            times = harness.run_json("bench", "collective", "--ranks", 2, "--link", link, "--bytes", 1024,
                                     "--rounds", 200, "--runs", 1, "--json")
            self.assertGreater(times["p50_us"], 0)
            self.assertGreaterEqual(times["p99_us"], times["p50_us"])

    def test_bench_counts_what_a_draft_layer_guesses(self):
        case = os.path.join(harness.GOLDEN, "mtp-glm4moe-bf16")
        lengths = ["-p", 8, "-n", 40, "-r", 1]
        told = harness.run_json("bench", case, *lengths, "--draft-layer", "--ranks", 2, "--json")
        self.assertGreaterEqual(told["guesses_right"], 0)
        self.assertLessEqual(told["guesses_right"], 1)
        self.assertGreaterEqual(told["tokens_per_step"], 1)
        self.assertGreater(told["exchanges_per_token"], 2)
        self.assertNotIn("decode_gb_s", told)
        text = harness.run("bench", case, *lengths, "--draft-layer").stdout
        self.assertRegex(text, r"guesses +[0-9.]+ % right +[0-9.]+ tokens a step\n")
        self.assertNotIn("guesses", harness.run("bench", case, *lengths).stdout)

    def test_bench_of_a_shape_needs_no_checkpoint(self):
        with tempfile.TemporaryDirectory() as work:
            path = os.path.join(work, "config.json")
            with open(os.path.join(LLAMA, "config.json"), encoding="utf-8") as file:
                content = {**json.load(file), "num_hidden_layers": 6}
            with open(path, "w", encoding="utf-8") as file:
                json.dump(content, file)
            lengths = ["-p", 16, "-n", 4, "-r", 1, "--json"]
            whole = harness.run_json("bench", "--shape", path, "--bits", 8, "--ranks", 2, *lengths)
            part = harness.run_json("bench", "--shape", path, "--bits", 8, "--layers", 2, *lengths)
            for result, extrapolated, measured in ((whole, False, 6), (part, True, 2)):
                for key in ("prefill_tok_s", "decode_tok_s", "read_gb_s", "decode_gb_s"):
                    self.assertGreater(result[key], 0)
                self.assertEqual(result["extrapolated"], extrapolated)
                self.assertEqual(result["layers_measured"], measured)
                self.assertEqual(result["layers"], 6)
            self.assertEqual(whole["weight_bytes_per_token"], part["weight_bytes_per_token"])
        self.check_refused(["bench", "--shape", "no-such-model"], "llama-3.2-1b")
        self.check_refused(["bench", "--shape", "qwen3-0.6b", "--format", "q9"], "q4_k")
        self.check_refused(["bench", harness.STORIES, "--format", "mlx4"], "--shape")
        self.check_refused(["bench", harness.STORIES, "--bits", "7"], "--bits 7")
        self.check_refused(["bench", harness.STORIES, "--shape", "qwen3-0.6b"], "MODEL")

    def test_show_counts_what_a_model_consists_of(self):
        stories = harness.run_json("show", harness.STORIES, "--json")
        self.assertEqual(stories["architecture"], "LlamaForCausalLM")
        self.assertEqual(stories["parameters"], stories["active_parameters"])
        self.assertEqual(stories["tokenizer"]["tokens"], 512)
        self.assertIsNone(stories["chat_template"])
        self.assertEqual(sum(part["bytes"] for part in stories["classes"]), stories["weight_bytes"])
        shape = harness.run_json("show", "qwen3-235b-a22b", "--json")
        self.assertEqual(round(shape["parameters"] / 1e9), 235)
        self.assertRegex(harness.run("show", "qwen3-0.6b").stdout, r"parameters +596.05 M")
        random = harness.run_json("show", "shape:qwen3-0.6b?format=mlx4&layers=2", "--json")
        self.assertEqual((random["layers"], random["weights_problem"]), (2, None))
        self.assertAlmostEqual(random["bits_per_weight"], 4.5, delta=0.01)
        self.assertGreater(random["size_bytes"], 0)
        self.check_refused(["show", "shape:no-such-model"], "llama-3.2-1b")
        unknown = harness.run_json("show", "shape:qwen3-0.6b?format=q9", "--json")
        self.assertIn("q4_k", unknown["weights_problem"])
        self.check_refused(["show", "/nonexistent/model"], "/nonexistent/model")


if __name__ == "__main__":
    harness.main()
