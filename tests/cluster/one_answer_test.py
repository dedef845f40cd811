"""`lockstep logits` and `run` over worker processes: within the references' tolerance, and the same in every configuration."""

import json
import os
import re
import struct
import unittest

import harness

CASES = ["llama-f32", "llama3-bf16", "llama3-bf16-long", "llama3-bf16-tied", "llama3-f16-sharded", "mistral-bf16",
         "ministral3-bf16", "ministral3-bf16-l4scale", "qwen2-bf16", "qwen3-bf16-tied", "qwen3moe-bf16",
         "glm4moe-bf16", "deepseekv3-bf16"]
TOLERANCE = 1e-3
VARIANTS = [[*ranks, "--link", link]
            for ranks in (["--ranks", "2"], ["--ranks", "3"], ["--ranks", "4"], ["--shares", "3:1"],
                          ["--shares", "2:1:1"])
            for link in ("shm", "tcp")] + [
    ["--ranks", "2", "--parallel", "pipeline"], ["--ranks", "4", "--stages", "2", "--link", "tcp"],
    ["--shares", "3:1", "--parallel", "pipeline", "--chunk", "7"],
    ["--threads", "2"], ["--ranks", "2", "--threads", "2", "--chunk", "7"], ["--chunk", "1"],
    ["--chunk", "32", "--ranks", "2"], ["--device", "delayed"], ["--ranks", "2", "--device", "delayed"]]


def read_json(*path):
    with open(os.path.join(*path), encoding="utf-8") as file:
        return json.load(file)


def available_isas():
    process = harness.run("logits", harness.STORIES, "--ids", "1", env={"LOCKSTEP_ISA": "none"})
    names = ("scalar", "avx2", "avx512", "neon", "neon_dotprod", "neon_i8mm")
    known = [name for name in names if name in process.stderr]
    assert "scalar" in known, process.stderr
    return known


# Whole on every rank: the router, and the projections to the latents of latent attention.
WHOLE = re.compile(r"mlp\.gate\.weight$|q_a_proj|kv_a_proj")


def cut_tensor_bytes(folder):
    """(bytes of cut matrices and biases, bytes that are whole on every rank), from the headers."""
    layers = read_json(folder, "config.json")["num_hidden_layers"]
    cut = whole = 0
    for name in os.listdir(folder):
        if not name.endswith(".safetensors"):
            continue
        with open(os.path.join(folder, name), "rb") as file:
            size = struct.unpack("<Q", file.read(8))[0]
            header = json.loads(file.read(size))
        for tensor, entry in header.items():
            layer = re.search(r"layers\.(\d+)\.", tensor)
            is_no_part = "inv_freq" in tensor or (layer and int(layer.group(1)) >= layers)
            if tensor == "__metadata__" or is_no_part:
                continue
            length = entry["data_offsets"][1] - entry["data_offsets"][0]
            is_vector = len(entry["shape"]) == 1 and not tensor.endswith(".bias")
            if is_vector or WHOLE.search(tensor):
                whole += length
            else:
                cut += length
    return cut, whole


class OneAnswer(unittest.TestCase):
    def test_golden_cases_over_processes(self):
        for case in CASES:
            folder = os.path.join(harness.GOLDEN, case)
            golden = read_json(folder, "golden.json")
            ids = ",".join(map(str, golden["prompt"]))
            exact = harness.run_json("logits", folder, "--ids", ids, "--greedy", 32, "--kv", "f32")
            with self.subTest(case=case):
                self.assertEqual(len(exact["logits"]), len(golden["prompt"]))
                self.assertEqual(exact["greedy"], golden["greedy"]["tokens"])
                for row in golden["logits"]:
                    got = exact["logits"][row["position"]]
                    self.assertEqual(len(got), len(row["values"]))
                    worst = max(abs(a - b) for a, b in zip(got, row["values"]))
                    self.assertLess(worst, TOLERANCE)
            reference = harness.run_json("logits", folder, "--ids", ids, "--greedy", 32)
            for variant in VARIANTS:
                with self.subTest(case=case, variant=variant):
                    answer = harness.run_json("logits", folder, "--ids", ids, "--greedy", 32, *variant)
                    self.assertEqual(answer["logits"], reference["logits"])
                    self.assertEqual(answer["greedy"], reference["greedy"])
            for isa in available_isas():
                with self.subTest(case=case, isa=isa):
                    answer = harness.run_json("logits", folder, "--ids", ids, "--greedy", 32,
                                              env={"LOCKSTEP_ISA": isa})
                    self.assertEqual(answer["logits"], reference["logits"])

    def test_each_kind_of_keys_and_values_over_processes(self):
        ids = ",".join(str(3 + i * 37 % 200) for i in range(100))
        for case in ("llama3-bf16", "deepseekv3-bf16"):
            folder = os.path.join(harness.GOLDEN, case)
            answers = {}
            for kind in ("f32", "bf16", "f16", "q8"):
                flags = ["--ids", ids, "--greedy", 8, "--kv", kind]
                answers[kind] = harness.run_json("logits", folder, *flags)["logits"]
                for variant in (["--shares", "3:1", "--link", "tcp"], ["--ranks", "3", "--chunk", "7"],
                                ["--ranks", "4", "--stages", "2"], ["--threads", "2", "--device", "delayed"]):
                    with self.subTest(case=case, kind=kind, variant=variant):
                        answer = harness.run_json("logits", folder, *flags, *variant)
                        self.assertEqual(answer["logits"], answers[kind])
            self.assertEqual(len({json.dumps(answer) for answer in answers.values()}), 4)
            self.assertEqual(harness.run_json("logits", folder, "--ids", ids)["logits"], answers["f16"])
            self.assertEqual(harness.run_json("logits", folder, "--ids", ids, "--exact")["logits"], answers["f32"])

    def test_ranks_hold_and_read_their_share(self):
        for case in CASES + [harness.STORIES]:
            folder = os.path.join(harness.GOLDEN, case)
            cut, whole = cut_tensor_bytes(folder)
            for ranks in (1, 2, 4):
                answer = harness.run_json("logits", folder, "--ids", "1", "--ranks", ranks)
                self.assertEqual(len({rank["pid"] for rank in answer["ranks"]}), ranks)
                total = 0
                for rank in answer["ranks"]:
                    self.assertEqual(rank["weight_bytes"], rank["read_bytes"])
                    self.assertLessEqual(rank["weight_bytes"] - whole, 1.02 * cut / ranks, (case, ranks))
                    total += rank["weight_bytes"] - whole
                self.assertEqual(total, cut, (case, ranks))

    def test_stages_hold_their_layers_alone(self):
        folder = os.path.join(harness.GOLDEN, "llama3-bf16")
        whole = harness.run_json("logits", folder, "--ids", "1")["ranks"][0]
        stages = harness.run_json("logits", folder, "--ids", "1", "--ranks", 2, "--parallel", "pipeline")["ranks"]
        self.assertEqual(sum(rank["weight_bytes"] for rank in stages), whole["weight_bytes"])
        for rank in stages:
            self.assertEqual(rank["weight_bytes"], rank["read_bytes"])

    def test_stories_continue_as_expected(self):
        tokenizer_cases = read_json(harness.SOURCE, "tests/data/stories260K/expected_tokens.json")
        for case in tokenizer_cases:
            got = harness.run_json("tokenize", harness.STORIES, "--text", case["text"])
            self.assertEqual(got["ids"], case["ids"])
        for story in read_json(harness.SOURCE, "tests/data/stories260K/expected_greedy.json"):
            for ranks in (1, 2, 4):
                answer = harness.run_json("run", harness.STORIES, story["prompt"], "--temperature", 0,
                                          "--max-tokens", len(story["greedy_ids"]), "--ranks", ranks,
                                          "--kv", "f32", "--json")
                self.assertEqual(answer["tokens"], story["greedy_ids"])

    def test_a_seed_gives_the_same_text_on_any_ranks(self):
        def text(seed, *flags):
            return harness.run_json("run", harness.STORIES, "Lily", "--seed", seed, "--temperature", 1,
                                    "--max-tokens", 40, "--json", *flags)["text"]
        alone = text(5)
        self.assertEqual(text(5, "--ranks", "3"), alone)
        self.assertEqual(text(5, "--ranks", "5", "--parallel", "pipeline"), alone)
        self.assertEqual(text(5, "--ranks", "4", "--stages", "2", "--top-k", "0"), alone)
        self.assertEqual(text(5, "--ranks", "2", "--link", "tcp", "--top-p", "1"), alone)
        self.assertNotEqual(text(6), alone)


if __name__ == "__main__":
    harness.main()
