"""`lockstep bench serve` against real nodes: its own, and an existing one."""

import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cluster"))

import harness  # noqa: E402


def bench(*arguments):
    return harness.run_json("bench", "serve", *arguments, "--json")


class BenchServe(unittest.TestCase):
    def check_times(self, result, completed):
        self.assertEqual(result["completed"], completed, result)
        self.assertEqual(result["errors"], {})
        self.assertEqual(result["tokens_counted_by"], "server")
        for key in ("first_token_ms", "whole_ms"):
            times = result[key]
            self.assertEqual(times["count"], completed)
            self.assertGreater(times["p50"], 0)
            self.assertLessEqual(times["p50"], times["p90"])
            self.assertLessEqual(times["p90"], times["p99"])
            self.assertLessEqual(times["p99"], times["max"])
        self.assertLessEqual(result["first_token_ms"]["max"], result["whole_ms"]["max"])

    def test_a_node_of_its_own(self):
        result = bench(harness.STORIES, "--requests", 20, "--concurrency", 4, "--prompt-tokens", "8-40",
                       "--new-tokens", 12)
        self.check_times(result, 20)
        self.assertEqual(result["running_max"], 4)
        self.assertEqual(result["model"], "stories260K")
        self.assertTrue(20 <= result["new_tokens_total"] <= 240, result)
        self.assertTrue(160 <= result["prompt_tokens_total"] <= 820, result)

    def test_an_existing_server_by_rate_and_by_chat(self):
        with harness.Node("--ranks", "1") as node:
            url = f"http://localhost:{node.port}"
            result = bench("--url", url, "--rate", 100, "--requests", 30, "--new-tokens", 4, "--whole-ms", 60000)
            self.check_times(result, 30)
            self.assertEqual(result["good"], 30)
            self.assertEqual(result["lateness_ms"]["count"], 30)
            chat = bench("--url", f"{url}/v1", "--api", "chat", "--requests", 5, "--prompt-tokens", 10, "--new-tokens", 4)
            self.check_times(chat, 5)
            # The same seed gives the same requests, so the server counts the same.
            again = bench("--url", url, "--rate", 100, "--requests", 30, "--new-tokens", 4)
            self.assertEqual(again["prompt_tokens_total"], result["prompt_tokens_total"])
            self.assertEqual(again["new_tokens_total"], result["new_tokens_total"])

    def test_an_overloaded_server_is_reported(self):
        with harness.Node("--ranks", "1", "--streams", "1", "--queue", "1") as node:
            result = bench("--url", f"http://localhost:{node.port}", "--concurrency", 12, "--requests", 60,
                           "--new-tokens", 100)
            refused = result["errors"]["429"]
            self.assertEqual(result["completed"] + refused["count"], 60, result)
            self.assertGreater(result["completed"], 0)
            self.assertIn("requests", refused["example"])

    def test_an_impossible_measurement_is_one_sentence(self):
        for arguments in (("--url", "http://localhost:1"), ("--url", "https://localhost:1"), (),
                          ("--url", "localhost:1", harness.STORIES), (harness.STORIES, "--prompt-tokens", "9-3"),
                          (harness.STORIES, "--new-tokens", "100000"), (harness.STORIES, "--rate", "0")):
            said = harness.run("bench", "serve", *arguments)
            self.assertNotEqual(said.returncode, 0, arguments)
            self.assertEqual(said.stderr.count("\n"), 1, said.stderr)
            self.assertEqual(said.stdout, "")

    def test_a_load_of_which_nothing_is_completed_fails(self):
        with harness.Node("--ranks", "1") as node:
            said = harness.run("bench", "serve", "--url", f"http://localhost:{node.port}/other", "--model", "m",
                               "--requests", "2")
            self.assertEqual(said.returncode, 1)
            self.assertIn("404", said.stdout)


if __name__ == "__main__":
    harness.main()
